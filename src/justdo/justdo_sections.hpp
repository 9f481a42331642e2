// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What crash programs of engine justdo have in common: a small pool, in every persistence domain;
// the engine's own blocks are reachable.
#pragma once

#include <check/pool_program.hpp>
#include <justdo/inspect.hpp>
#include <justdo/resume.hpp>

#include <holdfast/justdo.hpp>

#include <algorithm>
#include <string>

namespace hf::justdo {

struct variant {
    const char* name;
    hf::mode mode;
    bool eadr;
    bool backwards = false; // in which order sections are resumed
};
inline constexpr variant variants[] = {{"adr", hf::mode::pmem, false},
                                       {"eadr", hf::mode::pmem, true},
                                       {"process", hf::mode::process, false}};

class crash_program : public hf::crash::pool_program {
public:
    crash_program(variant how, unsigned threads)
        : pool_program({.layout = "crash/justdo",
                        .engines = {engine()},
                        .mode = how.mode,
                        .eadr = how.eadr}),
          how_(how), threads_(threads) {}

    hf::open_options options() const override {
        // The next open asks for this order.
        resume_order = [backwards = how_.backwards](auto& sections) {
            if (backwards) std::ranges::reverse(sections);
        };
        places_in_use = places_;
        return options_;
    }
    unsigned threads() const override { return threads_; }

protected:
    static void add_own_blocks(hf::pool& p, hf::crash::state& s) {
        hf::pool::impl& pool = p.internals();
        auto* const super = superblock_of(*pool.file);
        if (super == nullptr) return;
        s.object(super);
        for (const std::uint64_t offset : thread_words(*super)) {
            if (offset == 0) continue;
            s.object(pool.at(offset));
            const auto& its = *static_cast<const thread_block*>(pool.at(offset));
            for (const std::uint64_t first : {its.more_locks, its.more_frames})
                for_each_more(pool, first, [&](const more_head& more) { s.object(&more); });
        }
    }
    const variant how_;
    const unsigned threads_;
    places_used places_;
};

} // namespace hf::justdo
