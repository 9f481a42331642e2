// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Containers of the standard library with an allocator over hf_alloc compile into sections: their
// out-of-line throws end the process, and their hash policy is followed by name.
// RUN: %hf_clangxx -O2 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -fno-exceptions -c %s -o %t.o

// libstdc++'s map balances its trees in the library, where no log can be inserted.
// RUN: not %hf_clangxx -O2 -DWITH_MAP -c %s -o %t.o 2>&1 | FileCheck %s
// CHECK: error: call of 'std::_Rb_tree_insert_and_rebalance{{.*}}', whose body is not visible here
#include <holdfast/txfunc.hpp>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
__attribute__((malloc)) void* hf_alloc(std::size_t bytes) noexcept;
void hf_free(void* block) noexcept;
}

template <class T> struct pm_allocator {
    using value_type = T;
    pm_allocator() = default;
    template <class U> pm_allocator(const pm_allocator<U>&) noexcept {}
    T* allocate(std::size_t count) noexcept { return static_cast<T*>(hf_alloc(count * sizeof(T))); }
    void deallocate(T* block, std::size_t) noexcept { hf_free(block); }
    template <class U> bool operator==(const pm_allocator<U>&) const noexcept { return true; }
};

using vector = std::vector<long, pm_allocator<long>>;
using string = std::basic_string<char, std::char_traits<char>, pm_allocator<char>>;
using entry = std::pair<const long, long>;
using hash_map =
    std::unordered_map<long, long, std::hash<long>, std::equal_to<>, pm_allocator<entry>>;
using map = std::map<long, long, std::less<>, pm_allocator<entry>>;

HF_TXFUNC void append(vector* v, long x) noexcept { v->push_back(x); }
HF_TXFUNC void append(string* s, char c) noexcept { s->push_back(c); }
HF_TXFUNC void put(hash_map* m, long key, long value) noexcept { (*m)[key] = value; }
#if defined(WITH_MAP)
HF_TXFUNC void put(map* m, long key, long value) noexcept { (*m)[key] = value; }
#endif
