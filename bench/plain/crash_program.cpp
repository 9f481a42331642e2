// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of other people's structures, failed at every store (holdfast/author/crash.hpp), with
// caches that are lost with the power and with caches that survive. A failure leaves what a
// container of the standard library holds in volatile memory, before the operation or after it, and
// no block is lost.
#include "corpus.hpp"
#include "model.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/crash.hpp>
#include <holdfast/engines.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hf::bench::plain {
namespace {

struct root {
    std::byte bytes[root_bytes];
};

struct step {
    bool inserts;
    std::uint64_t key;
};
using steps = std::vector<step>;

/// A pool's elements, by key, and the blocks that they lie in.
struct seen {
    struct block {
        const std::byte* first;
        std::size_t bytes;
        bool has_element;
    };
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
    std::vector<block> blocks;
    bool in_blocks = true;

    static void see_block(void* to, const void* at, std::size_t bytes) {
        static_cast<seen*>(to)->blocks.push_back({static_cast<const std::byte*>(at), bytes, false});
    }
    static void see_element(void* to, const void* at, std::uint64_t key, std::uint64_t value) {
        auto* s = static_cast<seen*>(to);
        s->pairs.emplace_back(key, value);
        const auto* element = static_cast<const std::byte*>(at);
        const auto in = std::ranges::find_if(s->blocks, [&](const block& b) {
            return element >= b.first && element < b.first + b.bytes;
        });
        if (in != s->blocks.end()) in->has_element = true;
        else s->in_blocks = false;
    }
};

class plain_program final : public hf::crash::program {
public:
    plain_program(const subject& of, steps before, steps failed, steps after, bool eadr)
        : of_(of), before_(std::move(before)), failed_(std::move(failed)), after_(std::move(after)),
          eadr_(eadr) {}

    hf::open_options options() const override {
        hf::open_options o;
        o.layout = "crash/plain";
        o.create_bytes = o.max_bytes = hf::operator""_KiB(64);
        o.mode = hf::mode::pmem;
        o.expert.eadr = eadr_;
        o.max_threads = 1;
        o.engines = hf::engines_of_build();
        return o;
    }
    void setup(hf::pool& p) override {
        of_.create(p.root<root>(), 8);
        for (const step& one : before_) take(p, one);
    }
    unsigned operations(unsigned) const override { return static_cast<unsigned>(failed_.size()); }
    void run(hf::pool& p, unsigned, unsigned i) override { take(p, failed_[i]); }
    unsigned operations_after() const override { return static_cast<unsigned>(after_.size()); }
    void run_after(hf::pool& p, unsigned i) override { take(p, after_[i]); }

    void describe(hf::pool& p, hf::crash::state& s) override {
        const void* at = p.root<root>();
        seen all;
        hf::for_each_block(p, seen::see_block, &all);
        of_.visit(at, &all, seen::see_element);
        if (of_.is == shape::keyed) {
            s.expect(all.in_blocks, "elements lie in allocated blocks");
            std::ranges::sort(all.pairs);
        }
        for (const auto& [key, value] : all.pairs) {
            s.add(key);
            s.add(value);
        }
        // The blocks of tables belong to no element: their number is part of the state.
        s.add(static_cast<std::uint64_t>(
            std::ranges::count(all.blocks, false, &seen::block::has_element)));
        for (const seen::block& each : all.blocks)
            if (each.first != at) s.object(each.first); // the root is named already
        s.expect(is_of_model(at), "what a volatile container holds at one of these moments");
    }

private:
    static std::uint64_t value_of(const step& one) { return 40 + one.key % 64; }
    void take(hf::pool& p, const step& one) const {
        if (one.inserts) of_.insert(p.root<root>(), one.key, value_of(one));
        else of_.erase(p.root<root>(), one.key);
    }
    static void take(model& in, const step& one) {
        if (one.inserts) in.insert(one.key, value_of(one));
        else in.erase(one.key);
    }
    /// Whether the failed operations, each done or not yet, and those after them form a possible
    /// moment: a later operation is done only if the earlier ones are.
    bool is_of_model(const void* at) const {
        model now(of_.is);
        for (const step& one : before_) take(now, one);
        if (now.difference(of_, at).empty()) return true;
        for (std::size_t done = 0; done <= failed_.size(); ++done) {
            model then = now;
            for (std::size_t i = 0; i < after_.size(); ++i) {
                if (then.difference(of_, at).empty()) return true;
                take(then, after_[i]);
            }
            if (then.difference(of_, at).empty()) return true;
            if (done < failed_.size()) take(now, failed_[done]);
        }
        return false;
    }

    subject of_;
    steps before_, failed_, after_;
    bool eadr_;
};

steps inserting(std::initializer_list<std::uint64_t> keys) {
    steps all;
    for (const std::uint64_t key : keys) all.push_back({true, key});
    return all;
}
steps erasing(std::initializer_list<std::uint64_t> keys) {
    steps all;
    for (const std::uint64_t key : keys) all.push_back({false, key});
    return all;
}

void add_programs(const subject& of, const char* what, const steps& before, const steps& failed,
                  const steps& after) {
    for (const bool eadr : {false, true})
        hf::crash::add("plain/" + std::string(of.name) + " " + what + (eadr ? "/eadr" : "/adr"),
                       std::make_unique<plain_program>(of, before, failed, after, eadr));
}

[[maybe_unused]] const bool added = [] {
    const subjects all = HF_STRUCTURES_JOIN(hf_bench_plain_, HF_ENGINE)();
    for (const subject* of = all.first; of != all.first + all.count; ++of) {
#if defined(HF_BENCH_LIBRARY_STORES)
        // Its library stores in the pool by itself: what the checker does not see.
        if (std::string_view(of->name) == "libstdc++ unordered_map") continue;
#endif
        // A tree rotates, a deque's front stays where it is, a key comes again. Of nodes that three
        // kinds of links lead to, few, or the states of two failures are millions.
        const bool linked = std::string_view(of->name).starts_with("boost::intrusive");
        const steps there = linked ? inserting({10, 20}) : inserting({10, 20, 30, 40, 50});
        add_programs(*of, of->insert_name, there, inserting({60}), inserting({10}));
        if (of->erase_name != nullptr)
            add_programs(*of, of->erase_name, there, erasing({20}), inserting({25}));
        if (of->is == shape::keyed) add_programs(*of, "first", {}, inserting({7}), erasing({7}));
    }
    return true;
}();

} // namespace
} // namespace hf::bench::plain
