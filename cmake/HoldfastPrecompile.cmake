# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The standard library's headers, {fmt}'s, GoogleTest's and CLI11's, compiled once for each set of options and not once
# for each of 1 300 sources: two fifths of a build's time. Sources include what they use as if this were not here:
# presets debug, asan and tsan, and the core with GCC, are built without.
#
#   hf_precompile_headers(DIRECTORY)   for all targets there and below; last of all, when their options stand

set(HF_PRECOMPILED <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstdio> <cstdlib> <cstring> <filesystem>
  <fstream> <functional> <map> <memory> <mutex> <new> <optional> <random> <set> <shared_mutex> <span> <string>
  <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# What clang wants alike in a precompiled header and in what uses it, as a part of a target's name.
function(_hf_precompile_variant target result)
  get_target_property(type ${target} TYPE)
  set(variant pic)
  if(type STREQUAL "EXECUTABLE")
    set(variant pie)
  endif()
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(options MATCHES "-fno-exceptions")
    string(APPEND variant _noexcept)
  endif()
  get_target_property(engine ${target} HOLDFAST_ENGINE)
  if(options MATCHES "-O0" AND NOT options MATCHES "-O2" AND NOT engine) # as hf_test decides
    string(APPEND variant _O0)
  endif()
  get_target_property(links ${target} LINK_LIBRARIES)
  if(links MATCHES "GTest::")
    string(APPEND variant _test)
  endif()
  if(links MATCHES "CLI11::")
    string(APPEND variant _cli)
  endif()
  set(${result} ${variant} PARENT_SCOPE)
endfunction()

function(_hf_add_precompiled variant)
  file(CONFIGURE OUTPUT precompiled.cpp CONTENT "// What the header is compiled for.\n")
  add_library(hf_precompiled_${variant} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp)
  target_precompile_headers(hf_precompiled_${variant} PRIVATE ${HF_PRECOMPILED})
  target_link_libraries(hf_precompiled_${variant} PRIVATE fmt::fmt)
  # ccache knows the header by its contents.
  target_compile_options(hf_precompiled_${variant} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  if(variant MATCHES "^pie")
    set_target_properties(hf_precompiled_${variant} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(hf_precompiled_${variant} PRIVATE -fPIE)
  endif()
  if(variant MATCHES "_noexcept")
    target_compile_options(hf_precompiled_${variant} PRIVATE -fno-exceptions)
  endif()
  if(variant MATCHES "_O0")
    target_compile_options(hf_precompiled_${variant} PRIVATE -O0)
  endif()
  if(variant MATCHES "_test")
    target_precompile_headers(hf_precompiled_${variant} PRIVATE <gtest/gtest.h>)
    target_link_libraries(hf_precompiled_${variant} PRIVATE GTest::gtest)
  endif()
  if(variant MATCHES "_cli")
    find_package(CLI11 REQUIRED)
    target_precompile_headers(hf_precompiled_${variant} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled_cli.hpp)
    target_link_libraries(hf_precompiled_${variant} PRIVATE CLI11::CLI11)
  endif()
endfunction()

function(hf_precompile_headers directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(without ${target} DISABLE_PRECOMPILE_HEADERS)
    get_target_property(sources ${target} SOURCES)
    get_target_property(own ${target} PRECOMPILE_HEADERS)
    if(NOT type MATCHES "EXECUTABLE|LIBRARY" OR type STREQUAL "INTERFACE_LIBRARY" OR without OR own
       OR target MATCHES "^hf_precompiled_" OR NOT sources MATCHES "\\.cpp(;|$)")
      continue()
    endif()
    _hf_precompile_variant(${target} variant)
    if(NOT TARGET hf_precompiled_${variant})
      _hf_add_precompiled(${variant})
    endif()
    target_precompile_headers(${target} REUSE_FROM hf_precompiled_${variant})
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(each IN LISTS below)
    hf_precompile_headers(${each})
  endforeach()
endfunction()
