// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/simpo.hpp>

// [bad]
struct board {
    static constexpr hf::simpo::class_name simpo_class{"board", 1};
    int sum = 0;
    void add(const int (&some)[4]) noexcept { sum += some[0]; }
};

void two(hf::simpo::object<board>& of) {
    const int some[4] = {1, 2, 3, 4};
    of.defer<&board::add>(some);   // error in a header: is no array: take a std::array
}
// [/bad]
