// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A container that hashes addresses finds none of them in a pool that is mapped elsewhere: relocatable
// code has none. Where addresses are ordered, a pool that moves keeps their order.
// RUN: %hf_clangxx -fsyntax-only -DHF_RELOCATABLE %s
// RUN: %hf_clangxx -fsyntax-only -DADDRESSES %s
// RUN: not %hf_clangxx -fsyntax-only -DHF_RELOCATABLE -DADDRESSES %s 2>&1 | FileCheck %s
#include <holdfast/containers.hpp>

struct node {
  long key;
};
struct by_key {
  std::size_t operator()(const node *at) const noexcept { return at->key; }
};
struct kept {
  hf::unordered_set<long> numbers;
  hf::unordered_map<hf::string, node *> names;
  hf::unordered_set<node *, by_key> hashed_by_key;
  hf::set<node *> ordered;
};

// What an alias's users deduce stays deducible.
template <class Key, class Hash> void deduced(const hf::unordered_set<Key, Hash> &) {}
template <class Key, class Value> void deduced(const hf::unordered_map<Key, Value> &) {}
void use(const kept &in) {
  deduced(in.numbers);
  deduced(in.names);
  deduced(in.hashed_by_key);
}

#if defined(ADDRESSES)
// CHECK-COUNT-3: error: static assertion failed {{.*}}its addresses have other hashes
hf::unordered_set<node *> *set;
hf::unordered_map<const node *, long> *map;
hf::unordered_set<hf::unique_ptr<node>> *owners;
#endif
