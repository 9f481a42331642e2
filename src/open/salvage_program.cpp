// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools with damage that salvage gives up. A crash may cut short what salvage stores as well; the
// next open then stores it again. Data that the damage does not concern are there at any time.
// Instrumented by hand.
#include <check/pool_program.hpp>
#include <log/lane.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/author/persist.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/undo.hpp>

#include <cstdint>

namespace {

struct pair {
    std::uint64_t one, other; // the same
};

const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc function{HF_ABI_VERSION, 8, 5201, 1, "count", "here", schema, 1, nullptr};

void count(pair* to) {
    hf_undo_begin(&function, &to);
    for (std::uint64_t* word : {&to->one, &to->other}) {
        hf_undo_log(word, sizeof *word);
        *const_cast<volatile std::uint64_t*>(word) = *word + 1;
    }
    hf_undo_commit();
}

class salvaged : public hf::crash::pool_program {
public:
    salvaged()
        : pool_program({.layout = "crash/salvage/1",
                        .engines = {hf::undo::engine(), hf::simpo::engine()}}) {}
    hf::open_options options() const override {
        hf::open_options o = options_;
        o.salvage = true;
        return o;
    }
    hf::open_options made_with() const override { return options_; }
    void setup(hf::pool& p) override {
        auto* const of = p.root<pair>();
        for (int i = 0; i < 3; ++i) count(of);
        damage(*p.internals().file);
    }
    unsigned operations(unsigned) const override { return 0; }
    void run(hf::pool&, unsigned, unsigned) override {}
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { count(p.root<pair>()); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const of = p.root<pair>();
        s.add(of->one);
        s.expect(of->one >= 3 && of->one == of->other, "a section that has returned, whole");
    }

protected:
    virtual void damage(hf::pool_file& file) const = 0;
    /// Stores a word of the pool that is in no log.
    static void put(hf::pool_file& file, std::uint64_t* to, std::uint64_t value) {
        file.medium().store_word(to, value);
        file.medium().fence();
    }
};

/// A lane says that a section is pending, and the header that the pool was closed: nothing is
/// rolled back.
class belied_close final : public salvaged {
    void damage(hf::pool_file& file) const override {
        constexpr std::uint32_t lane = 1; // no thread has it
        constexpr std::uint64_t epoch = 7, none = 0;
        const hf::fenced_medium pm(file.medium());
        hf::start_lane(file, lane, epoch - 1);
        const hf::begin_payload begin{epoch, 1, 1, hf::engine_undo, 0, 0};
        hf::lane_writer_in log(pm);
        log.start(hf::lane_start(file, lane, epoch));
        log.append(hf::record_kind::begin, 0, sizeof begin, &begin, sizeof begin);
        log.append(hf::record_kind::old_bytes, file.roots()->root_offset, sizeof none, &none,
                   sizeof none);
        pm.fence();
    }
};

/// A word names no block: what it names is given up, and the root object stays.
class bad_anchor final : public salvaged {
    void damage(hf::pool_file& file) const override {
        hf::root_words& words = *file.roots();
        put(file, &words.anchor(hf::engine_simpo), words.root_offset + 24);
        put(file, &words.migration_offset, 24);
    }
};

HF_CRASH_PROGRAM(belied_close, "salvage/belied close");
HF_CRASH_PROGRAM(bad_anchor, "salvage/bad anchor");

} // namespace
