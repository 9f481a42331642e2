// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An address book whose types have changed: `old NAME …` is last year's program, without it is
// today's.
#include <holdfast/alloc.hpp>
#include <holdfast/migration.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>
#include <cstring>
#include <string_view>

// [types]
namespace v1 { // "contacts/1"
struct contact {
    char name[24];
    contact* next;
};
struct book {
    contact* first;
};
} // namespace v1

struct contact { // "contacts/2"
    char name[24];
    unsigned long calls;
    contact* next;
};
struct book {
    contact* first;
    unsigned long count;
};
// [/types]

HF_TXFUNC void add(v1::book* to, const char* name) {
    auto* entry = hf::make<v1::contact>();
    std::strncpy(entry->name, name, sizeof entry->name - 1);
    entry->next = to->first;
    to->first = entry;
}

// [migrate]
HF_TXFUNC void convert_first(v1::book* from, book* to) {
    v1::contact* old = from->first;
    auto* entry = hf::make<contact>();
    std::memcpy(entry->name, old->name, sizeof entry->name);
    entry->next = to->first;
    to->first = entry;
    to->count += 1;
    hf::crash_point("half-converted");
    from->first = old->next;
    hf::destroy(old);
}

hf::status migrate(hf::migration& m) {
    auto* from = m.in().root<v1::book>();
    auto to = m.new_root<book>();
    if (!to) return to.error();
    while (from->first != nullptr) convert_first(from, *to);
    return {};
}
// [/migrate]

int old_main(int argc, char** argv) {
    auto pool = hf::pool::open("contacts.hf", {.layout = "contacts/1"});
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto* all = pool->root<v1::book>();
    for (int i = 2; i < argc; ++i) add(all, argv[i]);
    return 0;
}

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "old") return old_main(argc, argv);
    // [open]
    hf::open_options options;
    options.layout = "contacts/2";
    options.migrate = migrate;
    auto pool = hf::pool::open("contacts.hf", options);
    // [/open]
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    const auto* all = pool->root<book>();
    for (const contact* c = all->first; c != nullptr; c = c->next)
        std::printf("%s, %lu calls\n", c->name, c->calls);
    std::printf("%lu contacts\n", all->count);
}
