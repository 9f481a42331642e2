# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# find_package(holdfast): the library holdfast::holdfast and, where the package was built with the
# compiler plugin, holdfast_instrument(target ENGINE <engine>) and, for the crash checker,
# holdfast_crash_program(name ENGINE <engine> SOURCES ...).
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
include(${CMAKE_CURRENT_LIST_DIR}/holdfastTargets.cmake)

get_filename_component(holdfast_plugin ${CMAKE_CURRENT_LIST_DIR}/../../libholdfast-plugin.so ABSOLUTE)
if(EXISTS ${holdfast_plugin} AND NOT TARGET holdfast::plugin)
  add_library(holdfast::plugin MODULE IMPORTED)
  set_target_properties(holdfast::plugin PROPERTIES IMPORTED_LOCATION ${holdfast_plugin})
  include(${CMAKE_CURRENT_LIST_DIR}/HoldfastInstrument.cmake)
endif()
