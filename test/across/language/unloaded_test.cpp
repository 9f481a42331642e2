// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a library's registrations end with the library. Loaded again, at any place, it works as
// before. A call by an address in its old place is refused, or reaches the function that is there
// now. Method: a library is loaded, unloaded, and kept from its old place.
#include "indirect.hpp"
#include "support.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

namespace language_test {
namespace {

HF_TXFUNC long calls(cell* c, change what, long by) { return what(c, by); }

class library {
public:
    library() : handle_(::dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(handle_, nullptr) << ::dlerror();
    }
    library(const library&) = delete;
    library& operator=(const library&) = delete;
    ~library() { ::dlclose(handle_); }
    template <class T> T variable(const char* name) const {
        return *static_cast<const T*>(::dlsym(handle_, name));
    }
    change add() const { return variable<change>("add_there"); }

private:
    void* handle_;
};

/// The library is gone; unusable pages are in its place.
change add_of_library_that_is_gone() {
    change gone = nullptr;
    {
        const library there;
        gone = there.add();
    }
    constexpr std::uintptr_t page = 4096;
    void* const place =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(gone) / page * page);
    EXPECT_EQ(
        ::mmap(place, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        place);
    return gone;
}

using unloaded = pools;

TEST_F(unloaded, LoadedAgainElsewhereItsSectionsWork) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    const change before = add_of_library_that_is_gone();
    const library again;
    EXPECT_NE(again.add(), before);
    again.variable<void (*)(cell*, long)>("put_value_there")(c, 7);
    EXPECT_EQ(c->value, 7);
    EXPECT_EQ(calls(c, again.add(), 2), 2);
    EXPECT_EQ(c->value, 9);
}

TEST_F(unloaded, WhatWasThereIsNotCalled) {
    const auto call = [&] {
        hf::pool p = open(first);
        (void)calls(p.root<cell>(), add_of_library_that_is_gone(), 1);
    };
    EXPECT_DEATH(call(), "expected a version of it for sections");
}

TEST_F(unloaded, NorWhatAThreadRemembersOfIt) {
    const auto call = [&] {
        hf::pool p = open(first);
        auto* const c = p.root<cell>();
        change gone = nullptr;
        {
            const library there;
            gone = there.add();
            (void)calls(c, gone, 1);
        }
        (void)calls(c, gone, 1);
    };
    EXPECT_DEATH(call(), "expected a version of it for sections");
}

} // namespace
} // namespace language_test
