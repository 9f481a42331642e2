// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cases of engine selective that structures do not show: log-free and lazy stores beside logged
// ones of one line, over the inputs of a section of another engine whose mark is due, read by such
// a section, and without a rebuild function. Instrumented by hand, so that each step is where it
// appears to be.
#include <check/pool_program.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/clobber.hpp>
#include <holdfast/selective.hpp>

#include <cstdint>
#include <map>
#include <memory>

namespace {

/// Slots below 'used' count, some in its line, some not; their sum and the first slot's double
/// follow from them.
struct root {
    std::uint64_t used, before[5], slots[4];
    std::uint64_t sum, between[7];
    std::uint64_t twice, other[7];
    std::uint64_t input, output;
};

template <class T> void store(T* to, T value) { *const_cast<volatile T*>(to) = value; }

const hf_txfunc& described(std::uint64_t id, const char* name, void (*again)(const void*)) {
    static const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
    static std::map<std::uint64_t, hf_txfunc> all;
    return all.try_emplace(id, hf_txfunc{HF_ABI_VERSION, 8, id, 1, name, "here", schema, 1, again})
        .first->second;
}

/// Uses one slot more.
void add(root* r, std::uint64_t value) {
    hf_selective_begin(&described(3001, "add", nullptr), &r);
    hf_log_free(&r->slots[r->used], 8);
    store(&r->slots[r->used], value);
    hf_lazy(&r->sum, 8);
    store(&r->sum, r->sum + value);
    hf_lazy(&r->twice, 8);
    store(&r->twice, 2 * r->slots[0]);
    hf_selective_log(&r->used, 8);
    store(&r->used, r->used + 1);
    hf_selective_commit();
}

/// Reads 'input', writes it on, and overwrites it: run again, it must find what it has read.
void copied(root* r) {
    hf_note_store(&r->output, 8);
    store(&r->output, 10 * r->input + 1);
}
void copy_again(const void* packed) { copied(*static_cast<root* const*>(packed)); }
void copy(root* r) {
    const hf_txfunc& function = described(3002, "copy", copy_again);
    hf_clobber_begin(&function, &r);
    copied(r);
    hf_clobber_commit();
}

void totalled(root* r) {
    hf_note_store(&r->output, 8);
    store(&r->output, 10 * r->sum + 1);
}
void total_again(const void* packed) { totalled(*static_cast<root* const*>(packed)); }
/// Reads what another section has stored lazily, and is run again before anybody has rebuilt it.
void total(root* r) {
    const hf_txfunc& function = described(3005, "total", total_again);
    hf_clobber_begin(&function, &r);
    totalled(r);
    hf_clobber_commit();
}

/// Stores to that input, log-free: nobody needs its old bytes once 'copy' is complete.
void forget(root* r) {
    hf_selective_begin(&described(3003, "forget", nullptr), &r);
    hf_log_free(&r->input, 8);
    store(&r->input, std::uint64_t{99});
    hf_selective_commit();
}

void rebuild(hf::pool& p) {
    root* r = p.root<root>();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < r->used; ++i) sum += r->slots[i];
    hf_selective_begin(&described(3004, "rebuild", nullptr), &r);
    hf_lazy(&r->sum, 8);
    store(&r->sum, sum);
    hf_lazy(&r->twice, 8);
    store(&r->twice, r->used == 0 ? 0 : 2 * r->slots[0]);
    hf_selective_commit();
}

class selective_program final : public hf::crash::pool_program {
public:
    enum class what : std::uint8_t { adds, mixed, read };
    selective_program(what steps, bool rebuilds)
        : pool_program({.layout = "crash/selective",
                        .engines = {rebuilds ? hf::selective::engine({.rebuild = rebuild})
                                             : hf::selective::engine()}}),
          steps_(steps) {
        if (steps != what::adds) options_.engines.push_back(hf::clobber::engine()); // lazy no more
        hf_txfunc_register(&described(3002, "copy", copy_again));
        hf_txfunc_register(&described(3005, "total", total_again));
    }
    void setup(hf::pool& p) override {
        root* r = p.root<root>();
        r->input = 7;
    }
    unsigned operations(unsigned) const override { return steps_ == what::mixed ? 2 : 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (steps_ == what::read) i % 2 == 0 ? add(r, 5 + i) : total(r);
        else if (steps_ == what::adds) add(r, 5 + i);
        else if (i == 0) copy(r);
        else forget(r);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        root* r = p.root<root>();
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < r->used; ++i) {
            s.add(r->slots[i]);
            sum += r->slots[i];
        }
        s.expect(r->sum == sum, "the sum");
        s.expect(r->twice == (r->used == 0 ? 0 : 2 * r->slots[0]), "the first one's double");
        s.add(r->output);
    }

private:
    const what steps_;
};

[[maybe_unused]] const bool added = [] {
    using what = selective_program::what;
    const auto with = [](const char* name, what steps, bool rebuilds) {
        hf::crash::add(name, std::make_unique<selective_program>(steps, rebuilds));
    };
    with("selective/log-free and lazy", what::adds, true);
    with("selective/nothing rebuilds", what::adds, false);
    with("selective/over another's input", what::mixed, true);
    with("selective/read by a section that is run again", what::read, true);
    return true;
}();

} // namespace
