// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sections of `holdfast bench section` as libpmemobj's transactions: a word is announced before
// it changes, once.
#include "../section/sections_under_test.hpp"
#include "pmdk_pool.hpp"

namespace hf::bench {
namespace {

using namespace pmdk;

PMEMobjpool* open_pool = nullptr;
std::uint64_t open_pool_id = 0;

template <class Body> void transact(const Body& body) {
    if (!in_transaction(open_pool, body)) pool_file::fail("a transaction");
}
void announce(section_object* o, std::uint64_t line) { snapshot(&o->lines[line].word); }

void nothing(section_object* o) {
    transact([=] {
        if (o->lines[0].word != ~std::uint64_t{0}) return;
        announce(o, 1);
        o->lines[1].word = 1;
    });
}
void one(section_object* o) {
    transact([=] {
        announce(o, 0);
        o->lines[0].word += 1;
    });
}
void four(section_object* o) {
    transact([=] {
        announce(o, 0);
        o->lines[0].word += 1;
        announce(o, 1);
        o->lines[1].word += o->lines[0].word;
        announce(o, 2);
        o->lines[2].word ^= o->lines[1].word;
        announce(o, 3);
        o->lines[3].word += 3;
    });
}
void many(section_object* o) {
    transact([=] {
        for (std::uint64_t i = 0; i < section_lines; ++i) {
            announce(o, i);
            o->lines[i].word += i + 1;
        }
    });
}
void loop(section_object* o) {
    transact([=] {
        announce(o, o->places[0]);
        for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[o->places[i]].word += i + 1;
    });
}
void node(section_object* o) {
    transact([=] {
        const PMEMoid made = pmemobj_tx_alloc(sizeof(section_node), 1);
        *direct<section_node>(made) = {o->first, 7};
        snapshot(&o->first);
        o->first = direct<section_node>(made);
    });
    transact([=] {
        section_node* const gone = o->first;
        snapshot(&o->first);
        o->first = gone->next;
        const auto offset = reinterpret_cast<std::uint64_t>(gone) -
                            reinterpret_cast<std::uint64_t>(open_pool); // what pmemobj_oid looks up
        pmemobj_tx_free({open_pool_id, offset});
    });
}

class transactions final : public sections_under_test {
public:
    explicit transactions(const map_options& given)
        : sections_under_test({nothing, one, four, many, loop, node}), file_(given) {
        open_pool = file_.pool();
        open_pool_id = pmemobj_root(open_pool, sizeof(section_root)).pool_uuid_lo;
    }
    section_root* root() noexcept override { return file_.root<section_root>(); }
    map_facts facts() const override { return file_.facts(); }

private:
    pool_file file_;
};

} // namespace

std::unique_ptr<sections_under_test> make_sections_pmdk(const map_options& given) {
    return std::make_unique<transactions>(given);
}

} // namespace hf::bench
