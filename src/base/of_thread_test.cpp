// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's data in a library that is unloaded goes with the library. Method: a library is loaded,
// used and unloaded, once while a thread that used it is between its thread_local objects'
// destructors.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <future>
#include <memory>
#include <pthread.h>
#include <thread>
#include <vector>

namespace {

struct closes {
    void operator()(void* library) const { ::dlclose(library); }
};
using library = std::unique_ptr<void, closes>;

library loaded() { return library(::dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)); }
bool is_loaded() { return library(::dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD)) != nullptr; }
int count_in(const library& in) {
    return reinterpret_cast<int (*)()>(::dlsym(in.get(), "count_in_thread"))();
}

struct meeting {
    std::promise<void> library_is_done_with, library_is_gone;
};
struct meets {
    meeting* at = nullptr;
    ~meets() {
        if (at == nullptr) return;
        at->library_is_done_with.set_value();
        at->library_is_gone.get_future().wait();
    }
};
thread_local meets in_thread; // made before what the library makes, and destroyed after it

TEST(OfThread, AThreadMayEndWhenTheLibraryHasGone) {
    library used = loaded();
    ASSERT_NE(used, nullptr) << ::dlerror();
    meeting both;
    std::thread thread([&] {
        in_thread.at = &both;
        EXPECT_EQ(count_in(used), 1);
        EXPECT_EQ(count_in(used), 2);
    });
    both.library_is_done_with.get_future().wait();
    used.reset();
    const bool stays = is_loaded();
    both.library_is_gone.set_value();
    thread.join();
    if (stays) GTEST_SKIP() << "this compiler's libraries are not unloaded";
}

std::size_t keys_left() {
    std::vector<pthread_key_t> made;
    for (pthread_key_t key{}; ::pthread_key_create(&key, nullptr) == 0;) made.push_back(key);
    for (const pthread_key_t key : made) ::pthread_key_delete(key);
    return made.size();
}

TEST(OfThread, ALibraryTakesItsKeyAlong) {
    const auto use = [] {
        const library used = loaded();
        std::thread([&] { EXPECT_EQ(count_in(used), 1); }).join();
    };
    use();
    if (is_loaded()) GTEST_SKIP() << "this compiler's libraries are not unloaded";
    const std::size_t before = keys_left();
    for (int i = 0; i < 10; ++i) use();
    EXPECT_EQ(keys_left(), before);
}

} // namespace
