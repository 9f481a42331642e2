// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is no persistent class.
#include <holdfast/simpo.hpp>

#include <vector>

struct allocates {
    static constexpr hf::simpo::class_name simpo_class{"allocates", 1};
    std::vector<int> cells;
};
struct is_virtual {
    static constexpr hf::simpo::class_name simpo_class{"is_virtual", 1};
    virtual int area() const { return 0; }
};
struct nameless {
    int cell;
};

void find(hf::pool& in) {
    (void)hf::simpo::object<allocates>::find(in, "it");  // error in a header: its class is trivially copyable
    (void)hf::simpo::object<is_virtual>::find(in, "it"); // error in a header: its class is trivially copyable
    (void)hf::simpo::object<nameless>::find(in, "it");   // error in a header: a persistent class names itself
}
