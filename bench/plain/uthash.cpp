// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// uthash, a hash table that is a header of macros. It takes memory through the hooks that its
// manual names.
#include "files.hpp"

#include <holdfast/abi/holdfast_abi.h>

#define uthash_malloc(bytes) hf_alloc(bytes)
#define uthash_free(block, bytes) hf_free(block)
#define uthash_fatal(message) hf_pool_full(0)
#include <uthash.h>

HF_PLAIN_BEGIN(ut_hash)

struct item {
    std::uint64_t key, value;
    UT_hash_handle hh;
};
struct table {
    item* head;
};

// An empty table is a null pointer, which the root's zeros are.
HF_TXFUNC void create(void* root, std::uint64_t) { static_cast<table*>(root)->head = nullptr; }

HF_TXFUNC bool add(void* root, std::uint64_t key, std::uint64_t value) {
    auto* t = static_cast<table*>(root);
    item* found = nullptr;
    HASH_FIND(hh, t->head, &key, sizeof key, found);
    if (found != nullptr) {
        found->value = value;
        return false;
    }
    found = static_cast<item*>(hf_alloc(sizeof(item)));
    found->key = key;
    found->value = value;
    HASH_ADD(hh, t->head, key, sizeof found->key, found);
    return true;
}

HF_TXFUNC bool remove(void* root, std::uint64_t key) {
    auto* t = static_cast<table*>(root);
    item* found = nullptr;
    HASH_FIND(hh, t->head, &key, sizeof key, found);
    if (found == nullptr) return false;
    HASH_DEL(t->head, found);
    hf_free(found);
    return true;
}

void visit(const void* root, void* to, visitor* each) {
    for (const item* i = static_cast<const table*>(root)->head; i != nullptr;
         i = static_cast<const item*>(i->hh.next))
        each(to, i, i->key, i->value);
}

constexpr subject all[] = {
    {"uthash", shape::keyed, "HASH_ADD", "HASH_DEL", create, add, remove, visit}};
subjects list() { return {all, 1}; }

HF_PLAIN_END
