// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a first course teaches: a chained map that searches and inserts in one function, and loops
// that overwrite what they have read.
#include "files.hpp"

#include <holdfast/alloc.hpp>

#include <utility>

HF_PLAIN_BEGIN(textbook)

struct entry {
    entry* next;
    std::uint64_t key, value;
};
struct chained_map {
    std::uint64_t buckets, count;
    entry** table;
};

HF_TXFUNC void create_map(void* root, std::uint64_t room) {
    auto* m = static_cast<chained_map*>(root);
    m->buckets = room;
    m->table = static_cast<entry**>(hf_alloc(room * sizeof(entry*)));
    for (std::uint64_t i = 0; i < room; ++i) m->table[i] = nullptr;
}

std::uint64_t bucket_of(const chained_map* m, std::uint64_t key) {
    return (key ^ key >> 32) * 0x9e3779b97f4a7c15 % m->buckets;
}

HF_TXFUNC bool insert(void* root, std::uint64_t key, std::uint64_t value) {
    auto* m = static_cast<chained_map*>(root);
    entry** bucket = &m->table[bucket_of(m, key)];
    for (entry* e = *bucket; e != nullptr; e = e->next)
        if (e->key == key) {
            e->value = value;
            return false;
        }
    auto* fresh = static_cast<entry*>(hf_alloc(sizeof(entry)));
    fresh->next = *bucket;
    fresh->key = key;
    fresh->value = value;
    *bucket = fresh;
    m->count += 1;
    return true;
}

HF_TXFUNC bool erase(void* root, std::uint64_t key) {
    auto* m = static_cast<chained_map*>(root);
    for (entry** link = &m->table[bucket_of(m, key)]; *link != nullptr; link = &(*link)->next)
        if ((*link)->key == key) {
            entry* found = *link;
            *link = found->next;
            m->count -= 1;
            hf_free(found);
            return true;
        }
    return false;
}

void visit_map(const void* root, void* to, visitor* each) {
    const auto* m = static_cast<const chained_map*>(root);
    for (std::uint64_t b = 0; b < m->buckets; ++b)
        for (const entry* e = m->table[b]; e != nullptr; e = e->next) each(to, e, e->key, e->value);
}

template <class Word> void visit_words(const void* root, void* to, visitor* each, int count) {
    const auto* words = static_cast<const Word*>(root);
    for (int i = 0; i < count; ++i) each(to, nullptr, static_cast<std::uint64_t>(i), words[i]);
}

HF_TXFUNC void create_halves(void* root, std::uint64_t) {
    auto* words = static_cast<std::uint32_t*>(root);
    for (std::uint32_t i = 0; i < 64; ++i) words[i] = i;
}
HF_TXFUNC bool add_three(void* root, std::uint64_t, std::uint64_t) {
    auto* words = static_cast<std::uint32_t*>(root);
    for (int i = 0; i < 64; ++i) words[i] += 3;
    return true;
}
void visit_halves(const void* root, void* to, visitor* each) {
    visit_words<std::uint32_t>(root, to, each, 64);
}

HF_TXFUNC void create_words(void* root, std::uint64_t) {
    auto* words = static_cast<std::uint64_t*>(root);
    for (std::uint64_t i = 0; i < 64; ++i) words[i] = i;
}
HF_TXFUNC bool reverse(void* root, std::uint64_t, std::uint64_t) {
    auto* words = static_cast<std::uint64_t*>(root);
    for (int i = 0, j = 63; i < j; ++i, --j) std::swap(words[i], words[j]);
    return true;
}
void visit_all_words(const void* root, void* to, visitor* each) {
    visit_words<std::uint64_t>(root, to, each, 64);
}

struct counts {
    std::uint64_t a, b, c, d, e, f, g, h;
};
HF_TXFUNC void create_counts(void* root, std::uint64_t) {
    *static_cast<counts*>(root) = {0, 1, 2, 3, 4, 5, 6, 7};
}
HF_TXFUNC bool count(void* root, std::uint64_t, std::uint64_t) {
    auto* c = static_cast<counts*>(root);
    ++c->a;
    ++c->b;
    ++c->c;
    ++c->d;
    ++c->e;
    ++c->f;
    ++c->g;
    ++c->h;
    return true;
}
void visit_counts(const void* root, void* to, visitor* each) {
    visit_words<std::uint64_t>(root, to, each, 8);
}

// A search, then stores of another type, which it cannot have read.
struct last_search {
    double value, key;
    float place;
};
struct sorted_words {
    std::uint64_t word[64];
    last_search last[64];
};
struct index_of_words {
    sorted_words* words;
};
HF_TXFUNC void create_index(void* root, std::uint64_t) {
    auto* words = hf::make<sorted_words>();
    static_cast<index_of_words*>(root)->words = words;
    for (std::uint64_t i = 0; i < 64; ++i) words->word[i] = 2 * i;
}
HF_TXFUNC bool search(void* root, std::uint64_t key, std::uint64_t value) {
    sorted_words* words = static_cast<index_of_words*>(root)->words;
    std::uint64_t low = 0, high = 63;
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        if (words->word[middle] < key % 128) low = middle + 1;
        else high = middle;
    }
    words->last[low].value = static_cast<double>(value % 1024);
    words->last[low].key = static_cast<double>(key % 128);
    words->last[low].place = static_cast<float>(low);
    return true;
}
void visit_last(const void* root, void* to, visitor* each) {
    std::uint64_t at = 0;
    for (const last_search& s : static_cast<const index_of_words*>(root)->words->last)
        for (const double field : {s.value, s.key, static_cast<double>(s.place)})
            each(to, &s, at++, static_cast<std::uint64_t>(field));
}

constexpr subject all[] = {
    {"textbook chained map", shape::keyed, "find, insert", "erase", create_map, insert, erase,
     visit_map},
    {"u32[64]", shape::added, "+= 3", nullptr, create_halves, add_three, nullptr, visit_halves},
    {"u64[64]", shape::reversed, "reverse", nullptr, create_words, reverse, nullptr,
     visit_all_words},
    {"8 adjacent fields", shape::counted, "++", nullptr, create_counts, count, nullptr,
     visit_counts},
    {"search", shape::placed, "then 3 blind stores", nullptr, create_index, search, nullptr,
     visit_last},
};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END
