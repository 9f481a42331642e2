# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Tests that another processor's emulator runs: these, with sections that the plugin made, and kills (label "kill").
set(HOLDFAST_CROSS_TESTS base_test persist_test power_test alloc_test log_test section_test undo_test mod_map_test engines_test
  growth_test large_pages_test hash_map_test_auto hash_map_test_clobber hash_map_test_justdo)

# One test of a program, not one of each of its cases: the emulator takes longer to start than most cases take.
# test/gates/arm64/left_out has the cases that it cannot run.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../test/gates/arm64/left_out left_out REGEX "^[^#]")
string(REPLACE ";" ":" HOLDFAST_LEFT_OUT "${left_out}")
function(gtest_discover_tests program)
  if(program IN_LIST HOLDFAST_CROSS_TESTS)
    add_test(NAME ${program} COMMAND ${program} --gtest_brief=1 --gtest_filter=-${HOLDFAST_LEFT_OUT})
    set_tests_properties(${program} PROPERTIES LABELS cross TIMEOUT 1500 COST 100)
  endif()
endfunction()
