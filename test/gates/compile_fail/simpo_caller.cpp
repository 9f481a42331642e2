// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that could not be recognised when they come again.
#include <holdfast/simpo/caller.hpp>

struct order {
    char kind;
    int amount;
};
struct till {
    static constexpr hf::simpo::class_name simpo_class{"till", 1};
    int take(order of) noexcept { return sum += of.amount; }
    int* where() noexcept { return &sum; }
    int sum = 0;
};

void use(hf::simpo::caller<till> by, hf::simpo::retraced<till> of) {
    (void)by.call<&till::take>(1, order{'a', 1}); // error in a header: none has padding between its members
    (void)of.call<&till::take>(order{'a', 1});    // error in a header: none has padding between its members
    (void)by.call<&till::where>(2);               // error in a header: other than an address
}
