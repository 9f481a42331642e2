# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What cmake --install leaves: public headers, the runtime's libraries, the plugin and its wrappers, the
# crash checker, the server and the command, a CMake package and a pkg-config file. Everything finds
# everything else relative to itself, so the tree may be moved.
# First of all: what is installed has been built.
set(built holdfast-kv holdfast-kv-mod holdfast_command holdfast-classify hf_crash holdfast-plugin hf_c)
set(built_files "")
foreach(target IN LISTS built)
  if(TARGET ${target})
    string(APPEND built_files " \"$<TARGET_FILE:${target}>\"")
  endif()
endforeach()
install(CODE "foreach(file IN ITEMS${built_files})
  if(NOT EXISTS \"\${file}\")
    message(FATAL_ERROR \"Holdfast is not built yet, \${file} is missing: run 'make build' first, or 'cmake --build ${PROJECT_BINARY_DIR}'\")
  endif()
endforeach()")
foreach(module IN LISTS HOLDFAST_MODULES)
  set_target_properties(hf_${module} PROPERTIES EXPORT_NAME ${module})
  list(APPEND libraries hf_${module})
endforeach()

install(DIRECTORY include/holdfast DESTINATION include COMPONENT dev)
install(TARGETS holdfast ${libraries} EXPORT holdfast ARCHIVE DESTINATION lib COMPONENT dev)
if(HOLDFAST_COMPILER) # the crash checker, and all of the above once more, for it to watch
  foreach(module IN ITEMS traced check cli crash)
    set_target_properties(hf_${module} PROPERTIES EXPORT_NAME ${module})
    install(TARGETS hf_${module} EXPORT holdfast ARCHIVE DESTINATION lib COMPONENT dev)
  endforeach()
endif()
install(EXPORT holdfast NAMESPACE holdfast:: FILE holdfastTargets.cmake DESTINATION lib/cmake/holdfast
  COMPONENT dev)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake DESTINATION lib/cmake/holdfast COMPONENT dev)
set(HOLDFAST_LIBRARIES ${HOLDFAST_MODULES}) # a linker wants those that use others before them
list(TRANSFORM HOLDFAST_LIBRARIES PREPEND -lhf_)
list(REVERSE HOLDFAST_LIBRARIES)
list(JOIN HOLDFAST_LIBRARIES " " HOLDFAST_LIBRARIES)
configure_file(cmake/holdfast.pc.in ${PROJECT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION lib/pkgconfig COMPONENT dev)
configure_file(cmake/holdfastConfig.cmake.in ${PROJECT_BINARY_DIR}/holdfastConfig.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfastConfig.cmake DESTINATION lib/cmake/holdfast COMPONENT dev)
install(FILES tools/gdb/holdfast.py DESTINATION share/holdfast/gdb COMPONENT dev)
install(FILES LICENSE DESTINATION share/doc/holdfast COMPONENT dev)

if(HOLDFAST_PROGRAMS) # package managers take the libraries alone, without the sources of these
  install(DIRECTORY examples DESTINATION share/doc/holdfast COMPONENT doc
    REGEX "examples/(CMakeLists.txt|real|[.].*)$" EXCLUDE PATTERN __pycache__ EXCLUDE)
  # The guide, as pages for a browser. They are made of the tree, and looked through for dead links, when they are installed.
  execute_process(COMMAND ${HOLDFAST_PYTHON} -c "import markdown, pygments" RESULT_VARIABLE no_site OUTPUT_QUIET ERROR_QUIET)
  if(no_site)
    message(STATUS "The guide will not be installed: its pages need python3-markdown and python3-pygments")
  else()
    install(CODE "execute_process(COMMAND ${HOLDFAST_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/site.py
      --out \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/holdfast/html\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT doc)
  endif()
endif()

if(HOLDFAST_COMPILER)
  set(plugins holdfast-plugin)
  if(TARGET holdfast-syntax)
    list(APPEND plugins holdfast-syntax)
  endif()
  install(TARGETS ${plugins} LIBRARY DESTINATION lib COMPONENT compiler)
  install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/holdfast-clang
                   ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/holdfast-clang++ DESTINATION bin COMPONENT compiler)
  install(FILES cmake/HoldfastInstrument.cmake DESTINATION lib/cmake/holdfast COMPONENT compiler)
endif()
if(HOLDFAST_COMPILER AND HOLDFAST_PROGRAMS) # the server's engines are programs of their own, side by side
  install(TARGETS holdfast-kv holdfast-kv-mod RUNTIME DESTINATION bin COMPONENT server)
  install(TARGETS holdfast_command RUNTIME DESTINATION bin COMPONENT tools)
  install(FILES tools/gdb/print.py DESTINATION share/holdfast/gdb COMPONENT tools) # where the command looks
  if(TARGET holdfast-classify) # beside the compiler, whose libraries it has
    install(TARGETS holdfast-classify RUNTIME DESTINATION bin COMPONENT compiler)
  endif()
  set(documented holdfast:tools holdfast-kv:server)
  if(TARGET holdfast-classify)
    list(APPEND documented holdfast-classify:compiler)
  endif()
  foreach(command IN LISTS documented)
    string(REGEX MATCH "(.*):(.*)" matched ${command})
    install(FILES ${PROJECT_BINARY_DIR}/manual/man/${CMAKE_MATCH_1}.1 DESTINATION share/man/man1 COMPONENT ${CMAKE_MATCH_2})
    install(FILES ${PROJECT_BINARY_DIR}/manual/completions/${CMAKE_MATCH_1} DESTINATION share/bash-completion/completions
      COMPONENT ${CMAKE_MATCH_2})
  endforeach()
  # Of the packages alone: places outside of the prefix.
  install(FILES packaging/holdfast-kv.service DESTINATION lib/systemd/system COMPONENT server EXCLUDE_FROM_ALL)
  install(FILES packaging/holdfast-kv.default DESTINATION /etc/default RENAME holdfast-kv COMPONENT server
    EXCLUDE_FROM_ALL)
  foreach(package IN ITEMS dev:libholdfast-dev compiler:holdfast-clang tools:holdfast-tools server:holdfast-kv
          doc:holdfast-doc)
    string(REPLACE ":" ";" package ${package})
    list(POP_FRONT package component)
    install(FILES LICENSE DESTINATION share/doc/${package} RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
  include(cmake/HoldfastPackages.cmake)
endif()
