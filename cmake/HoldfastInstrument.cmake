# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# holdfast_instrument(<target> [ENGINE <engine>] [OPTIONS <plugin option>...])
#
# Builds the failure-atomic functions (HF_TXFUNC) of <target>'s sources for an engine and defines
# HF_ENGINE=<engine> for them. Without ENGINE it is auto, which is right for any code: each function is compiled for
# undo and for redo, and the pool's medium chooses (docs/guide/choosing-an-engine.md). Call it when the target has all its
# sources. The engines are those of the table (holdfast/abi/engines.def) that have sections, its choices, and none. Options, without their leading
# dash: holdfast-refine=0, holdfast-parts=vlog-only|clobberlog-only. Engines justdo and ido make
# sections that go on where a crash has stopped them, and take pool locks inside; ido's stores share
# resume points. Pools are opened with hf::justdo::engine() for both. Engine none leaves the functions plain, and
# defines HOLDFAST_UNINSTRUMENTED: without it, or an engine, pools refuse such a program.
#
# holdfast_trace(<target>)
#
# Builds <target> in trace mode: its accesses of persistent memory are reported to the crash checker,
# which the program must be linked with (holdfast/abi/trace_abi.h). Before or after
# holdfast_instrument, or alone.
#
# holdfast_relocatable(<target>)
#
# Builds <target> so that it can work on a pool mapped at another address than its canonical one
# (open_options::expert.relocate); defines HF_RELOCATABLE. Before or after holdfast_instrument, or alone.
# All code of a program that touches a relocated pool, or shares inline functions with such code, is
# to be built like this.
#
# holdfast_crash_program(<name> ENGINE <engine> SOURCES <source>... [OPTIONS ...])
#
# An executable of crash programs (holdfast/author/crash.hpp), for `holdfast crash` to run: instrumented,
# traced and linked with the checker, which stands for holdfast::holdfast. Link nothing else of
# Holdfast. Code of yours that touches the pool belongs to SOURCES, or to libraries built with
# holdfast_trace.
#
# Works inside Holdfast's own build (target holdfast-plugin) and from an installed package (imported
# target holdfast::plugin). A directory whose plugin was built with another table of engines names that
# table in HOLDFAST_ENGINE_TABLE, and the plugin's target in HOLDFAST_PLUGIN.
include_guard(GLOBAL)

# Sets <engines> to the names of the engines that functions can be instrumented for, as the table
# orders them, and <choice> to all that ENGINE takes, in words.
function(_holdfast_engines engines choice)
  set(table "${HOLDFAST_ENGINE_TABLE}")
  foreach(up IN ITEMS .. ../../..) # of cmake/ in the source tree, of lib/cmake/holdfast in a package
    cmake_path(APPEND CMAKE_CURRENT_FUNCTION_LIST_DIR ${up} include/holdfast/abi/engines.def
               OUTPUT_VARIABLE ours)
    if(NOT table AND EXISTS "${ours}")
      set(table "${ours}")
    endif()
  endforeach()
  if(NOT EXISTS "${table}")
    message(FATAL_ERROR "Holdfast's table of engines is missing: '${table}'")
  endif()
  cmake_path(NORMAL_PATH table) # ninja takes two spellings of one file for a mistake
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
  file(STRINGS "${table}" rows REGEX "^HF_ENGINE_ROW\\(")
  list(FILTER rows EXCLUDE REGEX ",[ ]*none[ ]*,")
  list(TRANSFORM rows REPLACE "^HF_ENGINE_ROW\\([ ]*([a-z_0-9]+).*" "\\1" OUTPUT_VARIABLE names)
  file(STRINGS "${table}" choices REGEX "^HF_ENGINE_CHOICE\\(")
  list(TRANSFORM choices REPLACE "^HF_ENGINE_CHOICE\\(\"([a-z_0-9]+)\".*" "\\1")
  list(APPEND names ${choices})
  set(${engines} ${names} PARENT_SCOPE)
  list(POP_BACK names last)
  list(PREPEND names none)
  list(JOIN names ", " words)
  set(${choice} "${words} or ${last}" PARENT_SCOPE)
endfunction()

# Adds the plugin to the compilation of a target, once. Sets <file_variable> to its path, a
# generator expression.
function(_holdfast_add_plugin target caller file_variable)
  if(HOLDFAST_PLUGIN)
    set(plugin ${HOLDFAST_PLUGIN})
    add_dependencies(${target} ${plugin})
  elseif(TARGET holdfast-plugin)
    set(plugin holdfast-plugin)
    add_dependencies(${target} holdfast-plugin)
  elseif(TARGET holdfast::plugin)
    set(plugin holdfast::plugin)
  else()
    message(FATAL_ERROR "${caller}(${target}): the compiler plugin is not part of this "
                        "build or package (HOLDFAST_COMPILER=OFF?)")
  endif()

  get_property(llvm GLOBAL PROPERTY HOLDFAST_LLVM) # what the plugin was built with
  get_target_property(sources ${target} SOURCES)
  foreach(language C CXX)
    set(endings "c")
    if(language STREQUAL "CXX")
      set(endings "cc|cpp|cxx|cppm|C")
    endif()
    # Another language's compiler may be any.
    if(CMAKE_${language}_COMPILER_LOADED AND "${sources}" MATCHES "\\.(${endings})(;|$)" AND
       NOT (CMAKE_${language}_COMPILER_ID STREQUAL "Clang" AND
            CMAKE_${language}_COMPILER_VERSION MATCHES "^${llvm}\\."))
      message(FATAL_ERROR
        "${caller}(${target}): the plugin needs Clang ${llvm}; the ${language} compiler is "
        "${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION}. Configure with "
        "-DCMAKE_C_COMPILER=clang-${llvm} -DCMAKE_CXX_COMPILER=clang++-${llvm}")
    endif()
  endforeach()

  set(file "$<TARGET_FILE:${plugin}>")
  set(${file_variable} "${file}" PARENT_SCOPE)
  get_target_property(added ${target} HOLDFAST_PLUGIN_ADDED)
  if(added)
    return()
  endif()
  set_target_properties(${target} PROPERTIES HOLDFAST_PLUGIN_ADDED TRUE)
  # OBJECT_DEPENDS below wants a path, no generator expression.
  get_target_property(imported ${plugin} IMPORTED)
  if(imported)
    get_target_property(path ${plugin} LOCATION)
  else()
    get_target_property(path ${plugin} LIBRARY_OUTPUT_DIRECTORY)
    string(APPEND path "/lib${plugin}.so")
  endif()

  # Messages and descriptors name lines. Where the build makes debug information anyway, do not cut
  # it down.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  if(NOT "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}} " MATCHES " -g[^ ]* ")
    target_compile_options(${target} PRIVATE -gline-tables-only)
  endif()
  target_compile_options(${target} PRIVATE "-fplugin=${file}" "-fpass-plugin=${file}")

  # An object depends on the plugin as on a header.
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.(c|cc|cpp|cxx)$")
      set_property(SOURCE ${source} DIRECTORY ${directory} APPEND PROPERTY OBJECT_DEPENDS ${path})
    endif()
  endforeach()
endfunction()

function(holdfast_instrument target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "ENGINE" "OPTIONS")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "holdfast_instrument: '${target}' is not a target")
  endif()
  _holdfast_engines(engines choice)
  if(NOT DEFINED ARG_ENGINE AND NOT "ENGINE" IN_LIST ARG_KEYWORDS_MISSING_VALUES)
    set(ARG_ENGINE auto)
  endif()
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_ENGINE IN_LIST engines AND NOT ARG_ENGINE STREQUAL "none")
    message(FATAL_ERROR "holdfast_instrument(${target}): say ENGINE ${choice} "
                        "(got '${ARG_ENGINE}' '${ARG_UNPARSED_ARGUMENTS}')")
  endif()
  get_target_property(already ${target} HOLDFAST_ENGINE)
  if(already)
    message(FATAL_ERROR "holdfast_instrument(${target}): already built for engine ${already}; "
                        "one target has one engine")
  endif()
  set_target_properties(${target} PROPERTIES HOLDFAST_ENGINE ${ARG_ENGINE})
  target_compile_definitions(${target} PRIVATE HF_ENGINE=${ARG_ENGINE})
  if(ARG_ENGINE STREQUAL "none")
    target_compile_definitions(${target} PRIVATE HOLDFAST_UNINSTRUMENTED)
    return()
  endif()

  _holdfast_add_plugin(${target} holdfast_instrument file)
  target_compile_options(${target} PRIVATE "SHELL:-mllvm -holdfast-engine=${ARG_ENGINE}")
  foreach(option IN LISTS ARG_OPTIONS)
    target_compile_options(${target} PRIVATE "SHELL:-mllvm -${option}")
  endforeach()

  # With link-time optimisation the sections are instrumented by the link.
  get_target_property(type ${target} TYPE)
  if(type MATCHES "EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY")
    get_property(llvm GLOBAL PROPERTY HOLDFAST_LLVM)
    set(lto "$<BOOL:$<TARGET_PROPERTY:${target},INTERPROCEDURAL_OPTIMIZATION>>")
    target_link_options(${target} PRIVATE
      "$<${lto}:-fuse-ld=lld-${llvm}>" "$<${lto}:-Wl,--load-pass-plugin=${file}>")
  endif()
endfunction()

function(holdfast_trace target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "holdfast_trace: '${target}' is not a target")
  endif()
  _holdfast_add_plugin(${target} holdfast_trace file)
  # The checker walks frames to tell where a report comes from. Without holdfast_instrument, before
  # or after this, or with ENGINE none, failure-atomic functions stay as they are.
  set(engine "$<TARGET_PROPERTY:${target},HOLDFAST_ENGINE>")
  target_compile_options(${target} PRIVATE
    -fno-omit-frame-pointer -fno-optimize-sibling-calls "SHELL:-mllvm -holdfast-trace"
    "SHELL:-mllvm -holdfast-trace-turns"
    "$<$<OR:$<STREQUAL:${engine},>,$<STREQUAL:${engine},none>>:SHELL:-mllvm -holdfast-engine=none>")
endfunction()

function(holdfast_relocatable target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "holdfast_relocatable: '${target}' is not a target")
  endif()
  _holdfast_add_plugin(${target} holdfast_relocatable file)
  set(engine "$<TARGET_PROPERTY:${target},HOLDFAST_ENGINE>")
  target_compile_definitions(${target} PRIVATE HF_RELOCATABLE)
  target_compile_options(${target} PRIVATE "SHELL:-mllvm -holdfast-relocatable"
    "$<$<OR:$<STREQUAL:${engine},>,$<STREQUAL:${engine},none>>:SHELL:-mllvm -holdfast-engine=none>")
endfunction()

function(holdfast_crash_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "ENGINE" "SOURCES;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_ENGINE OR NOT ARG_SOURCES)
    _holdfast_engines(engines choice)
    message(FATAL_ERROR "holdfast_crash_program(${name}): say ENGINE ${choice} and "
                        "SOURCES (got '${ARG_UNPARSED_ARGUMENTS}')")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20) # what holdfast::crash's headers need
  if(TARGET hf_crash)
    target_link_libraries(${name} PRIVATE hf_crash)
  else()
    target_link_libraries(${name} PRIVATE holdfast::crash)
  endif()
  # Functions keep their names where no symbolizer is installed.
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
  holdfast_instrument(${name} ENGINE ${ARG_ENGINE} OPTIONS ${ARG_OPTIONS})
  holdfast_trace(${name})
  # Code of yours may rely on locked operations to order what it has flushed. Holdfast's must not.
  target_compile_options(${name} PRIVATE "SHELL:-mllvm -holdfast-trace-locked")
endfunction()
