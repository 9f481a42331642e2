// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section of engine clobber reads an element of a MOD structure, and its mark is left out; then
// an update stores there, or gives the node back and uses it anew. Run again, the section would
// read that.
#include "mod_program.hpp"

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/clobber.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/txfunc.hpp>

namespace {

using numbers = hf::mod::vector<std::uint64_t>;
using table = hf::mod::map<std::uint64_t, std::uint64_t>;

struct sum {
    std::uint64_t value;
};
struct add_args {
    sum* to;
    const std::uint64_t* from;
};
void add_body(const void* packed) {
    const auto& a = *static_cast<const add_args*>(packed);
    const std::uint64_t value = a.to->value + *static_cast<const volatile std::uint64_t*>(a.from);
    hf_clobber_log(&a.to->value, sizeof value);
    *const_cast<volatile std::uint64_t*>(&a.to->value) = value;
}
const hf_arg add_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc add_desc{HF_ABI_VERSION, sizeof(add_args), 3101, 1,       "add",
                         "here",         add_schema,       2,    add_body};
[[maybe_unused]] const bool registered = (hf_txfunc_register(&add_desc), true);

/// Adds an element to a sum, then changes the element.
class read_by_a_section : public hf::crash::pool_program {
public:
    explicit read_by_a_section(bool of_map)
        : pool_program({.layout = "crash/mod read",
                        .engines = {hf::clobber::engine(), hf::mod::engine()},
                        .bytes = hf::operator""_KiB(96)}),
          of_map_(of_map) {}
    void setup(hf::pool& p) override {
        p.root<sum>();
        if (of_map_) (void)map(p).insert(1, 10);
        else (void)vector(p).push_back(10);
    }
    unsigned operations(unsigned) const override { return of_map_ ? 4 : 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) {
            const add_args args{p.root<sum>(), of_map_ ? &*map(p).get(1) : &vector(p)[0]};
            hf_clobber_begin(&add_desc, &args);
            add_body(&args);
            hf_clobber_commit();
        } else if (of_map_) {
            (void)map(p).insert_or_assign(1, 10 + i);
        } else {
            (void)vector(p).set(0, 77);
        }
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        s.add(p.root<sum>()->value);
        (void)hf::mod::store::in(p).wait_for_trace();
        s.add(of_map_ ? *map(p).get(1) : vector(p)[0]);
        hf::mod::store::in(p).for_each_block(
            [](void* to, const void* block) { static_cast<hf::crash::state*>(to)->object(block); },
            &s);
    }

private:
    template <class T> static T opened(hf::pool& p, const char* name) {
        auto found = T::open(p, {name});
        HF_ASSERT(bool(found));
        found->set_durability(hf::mod::durability::on_return);
        return *found;
    }
    static numbers vector(hf::pool& p) { return opened<numbers>(p, "vector"); }
    static table map(hf::pool& p) { return opened<table>(p, "map"); }
    bool of_map_;
};

/// The update is another thread's, which comes by a lock.
class read_before_another final : public read_by_a_section {
public:
    read_before_another() : read_by_a_section(false) {}
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        in_turn([&] { read_by_a_section::run(p, 0, thread); });
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("mod/read by a section, in place", std::make_unique<read_by_a_section>(false));
    hf::crash::add("mod/read by a section, node", std::make_unique<read_by_a_section>(true));
    hf::crash::add("mod/read before another", std::make_unique<read_before_another>());
    return true;
}();

} // namespace
