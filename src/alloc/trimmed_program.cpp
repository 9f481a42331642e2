// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of each engine free whole chunks, and their own thread or another one gives back that
// space at any moment. A section that is rolled back, replayed or completed never finds a hole in
// what it needs. Marks and stores wait for the next section here, too.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>
#include <redo/redo_sections.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/undo.hpp>

#include <array>

namespace {

constexpr std::size_t large_words = 8192 / 8; // two chunks

/// A block of chunks of its own; of its words two are looked at.
struct large {
    std::uint64_t words[large_words];
};
struct large_root {
    struct alignas(128) slot {
        large* at;
        std::uint64_t count;
    } slots[2];
};

enum class by : std::uint8_t { undo, redo, clobber };

struct replace_args {
    large_root::slot* in;
    std::uint64_t staged;
};
void replace_body(by engine, const replace_args& a) {
    large_root::slot* const in = a.in;
    const auto fill = [&](large* fresh, std::uint64_t value) {
        for (std::size_t w : {std::size_t{0}, large_words - 1}) {
            hf_note_store(&fresh->words[w], 8);
            *const_cast<volatile std::uint64_t*>(&fresh->words[w]) = value;
        }
    };
    if (engine == by::redo) {
        large* const old = load(&in->at);
        auto* const fresh = static_cast<large*>(hf_alloc(sizeof(large)));
        if (fresh == nullptr) hf::fatal("full");
        fill(fresh, load(&old->words[large_words - 1]) + 1);
        store(&old->words[0], std::uint64_t{0}); // what is freed was stored to
        store(&in->at, fresh);
        hf_free(old);
        store(&in->count, load(&in->count) + 1);
        return;
    }
    const auto log = [&](void* to) {
        if (engine == by::undo) hf_undo_log(to, 8);
        else hf_clobber_log(to, 8);
    };
    large* const old = in->at;
    auto* const fresh = static_cast<large*>(hf_alloc(sizeof(large)));
    if (fresh == nullptr) hf::fatal("full");
    fill(fresh, old->words[large_words - 1] + 1);
    log(&old->words[large_words - 1]);
    *const_cast<volatile std::uint64_t*>(&old->words[large_words - 1]) = 0;
    log(&in->at);
    *const_cast<large* volatile*>(&in->at) = fresh;
    hf_free(old);
    log(&in->count);
    *const_cast<volatile std::uint64_t*>(&in->count) = in->count + 1;
}
void again(const void* packed) {
    replace_body(by::clobber, *static_cast<const replace_args*>(packed));
}
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
const hf_txfunc clobber_function{
    HF_ABI_VERSION, sizeof(replace_args), 2701, 1, "replace_large", "here", schema, 2, again};
const hf_txfunc undo_function{HF_ABI_VERSION, 0,       2702, 1,      "replace_large",
                              "here",         nullptr, 0,    nullptr};

void replace_large(by engine, large_root::slot* in) {
    const replace_args args{in, 0};
    if (engine == by::redo) return section([&] { replace_body(engine, args); });
    if (engine == by::undo) {
        hf_undo_begin(&undo_function, nullptr);
        replace_body(engine, args);
        return hf_undo_commit();
    }
    hf_clobber_begin(&clobber_function, &args);
    replace_body(engine, args);
    hf_clobber_commit();
}

class trimmed : public hf::crash::pool_program {
public:
    trimmed(by engine, bool later, bool two)
        : pool_program(
              {.layout = "crash/trimmed",
               .engines = {hf::undo::engine({.durable = later ? hf::durability::by_next_section
                                                              : hf::durability::on_return}),
                           hf::redo::engine(), hf::clobber::engine()},
               .bytes = hf::operator""_KiB(128)}),
          engine_(engine), later_(later), two_(two) {}

private:
    bool buffered(unsigned, unsigned) const override { return later_; }
    void setup(hf::pool& p) override {
        for (large_root::slot& s : p.root<large_root>()->slots) {
            auto* const fresh = static_cast<large*>(hf_alloc(sizeof(large)));
            fresh->words[0] = fresh->words[large_words - 1] = 1;
            hf::persist::persist(p.domain(), fresh, sizeof *fresh);
            s.at = fresh;
            hf::persist::persist(p.domain(), &s, sizeof s);
        }
    }
    unsigned threads() const override { return two_ ? 2 : 1; }
    unsigned operations(unsigned thread) const override { return thread == 1 ? 2 : two_ ? 2 : 5; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        large_root* const r = p.root<large_root>();
        if (thread == 1 || (!two_ && i % 2 == 1)) {
            if (!p.trim()) hf::fatal("not trimmed");
            return;
        }
        replace_large(engine_, &r->slots[0]);
    }
    unsigned operations_after() const override { return 3; }
    void run_after(hf::pool& p, unsigned i) override {
        if (i == 1) return (void)p.trim();
        replace_large(engine_, &p.root<large_root>()->slots[i / 2]);
        if (later_) hf::settle(p);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const large_root* const r = p.root<large_root>();
        for (const large_root::slot& one : r->slots) {
            s.add(one.at->words[0]);
            s.add(one.count);
            s.object(one.at);
            s.expect(one.at->words[0] == one.at->words[large_words - 1], "a block is whole");
            s.expect(one.at->words[0] == one.count + 1, "and the newest");
        }
    }

    by engine_;
    bool later_, two_;
};

[[maybe_unused]] const bool added = [] {
    hf_txfunc_register(&clobber_function);
    const std::array names{"undo", "redo", "clobber"};
    for (unsigned e = 0; e < names.size(); ++e)
        for (const bool two : {false, true}) {
            const std::string name = std::string("trimmed/") + names[e] + (two ? " beside" : "");
            hf::crash::add(name.c_str(),
                           std::make_unique<trimmed>(by{static_cast<std::uint8_t>(e)}, false, two));
            if (e == 0)
                hf::crash::add((name + " later").c_str(),
                               std::make_unique<trimmed>(by::undo, true, two));
        }
    return true;
}();

} // namespace
