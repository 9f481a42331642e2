// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What pool and allocator offer outside sections: the root, blocks taken and given back at once,
// staged blocks adopted and not, large blocks, growth.
#include <base/assert.hpp>
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>

#include <cstring>

namespace {

struct root {
    std::uint64_t* slots[8];
};

class counted_blocks : public hf::crash::pool_program {
public:
    counted_blocks() : pool_program({.layout = "crash/pool", .engines = {hf::clobber::engine()}}) {}
    /// A program that loses a pointer in a failure reaches no block.
    void describe(hf::pool& p, hf::crash::state& s) override { reach_all(p, s); }
};

/// The root comes into being, zero-filled.
class root_made final : public counted_blocks {
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { p.root<root>(); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        // Asking for the root would make it.
        if (hf::account(p).blocks == 0) return s.add(0);
        const root* r = p.root<root>();
        for (const std::uint64_t* slot : r->slots) s.expect(slot == nullptr, "the root is zero");
        s.add(0); // made or not, it reads as zeros
    }
};

/// Blocks outside sections: each call counts when it returns.
class blocks_at_once final : public counted_blocks {
public:
    explicit blocks_at_once(std::size_t bytes) : bytes_(bytes) {}
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool&, unsigned, unsigned i) override {
        if (i == 0 || i == 1 || i == 3) taken_[i] = hf_alloc(bytes_);
        if (i == 2) hf_free(taken_[0]);
    }

private:
    std::size_t bytes_;
    void* taken_[4] = {};
};

/// A staged block belongs to nobody until a section adopts it.
class staged final : public counted_blocks {
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        auto block = hf::staged::in(p, 200);
        std::memset(text_, 'a' + static_cast<int>(i), sizeof text_);
        hf::staged::copy(p, block->get(), text_, sizeof text_);
        hf::staged::persist(p, block->get(), sizeof text_);
        if (i != 1) hf::staged::adopt(block->release());
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        s.add(hf::account(p).blocks);
        hf::for_each_block(
            p,
            [](void* to, const void* block, std::size_t) {
                auto& seen = *static_cast<hf::crash::state*>(to);
                seen.object(block);
                const auto* text = static_cast<const char*>(block);
                for (int i = 1; i < 200; ++i)
                    seen.expect(text[i] == text[0], "an adopted block is whole");
            },
            &s);
    }
    char text_[200];
};

/// The pool grows because it must; then the new extent serves.
class growth final : public counted_blocks {
public:
    growth() { options_.max_bytes = hf::operator""_KiB(96); }

private:
    // Four of the ten chunks that a pool of 64 KiB has for blocks stay free.
    void setup(hf::pool&) override {
        for (int i = 0; i < 3; ++i) hf_alloc(8192);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool&, unsigned, unsigned) override {
        if (hf_alloc(8192) == nullptr) hf::fatal("the pool has not grown");
    }
};

/// The last extent becomes longer by a chunk each time, as the limit of growth does: the first time
/// it is begun.
class lengthening final : public counted_blocks {
public:
    lengthening() { options_.max_bytes = 2 * options_.create_bytes; }

private:
    static constexpr std::uint64_t chunk = 4096;

    void setup(hf::pool& p) override {
        if (!p.limit_growth(p.size_bytes()).ok()) hf::fatal("there is no limit");
        while (hf_alloc(chunk) != nullptr) {}
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        const std::uint64_t tables = i == 0 ? chunk : 0;
        if (!p.limit_growth(p.size_bytes() + tables + chunk).ok()) hf::fatal("there is no limit");
        if (hf_alloc(chunk) == nullptr) hf::fatal("the pool has not grown");
    }
};

/// Large blocks are freed and their space is given back: what is not free, durably, keeps its
/// content. Then it serves again.
class trimmed final : public counted_blocks {
    static constexpr std::size_t bytes = 8192;
    static constexpr std::uint64_t mark = 0x5472'696d'6d65'6421;

    void setup(hf::pool& p) override {
        for (auto& block : taken_) block = make(p.domain());
    }
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0 || i == 2) hf_free(taken_[i]);
        if (i == 1 || i == 3)
            if (const auto given = p.trim(); !given || *given == 0)
                hf::fatal("nothing was given back");
        if (i == 4 && hf_alloc(bytes) == nullptr) hf::fatal("what is free does not serve again");
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        s.add(hf::account(p).blocks);
        struct seen {
            hf::crash::state* s;
            unsigned marked = 0, blocks = 0;
        } all{&s};
        hf::for_each_block(
            p,
            [](void* to, const void* block, std::size_t size) {
                auto& found = *static_cast<seen*>(to);
                found.s->object(block);
                if (size != bytes) return;
                const auto* words = static_cast<const std::uint64_t*>(block);
                ++found.blocks;
                if (words[0] == mark && words[bytes / 8 - 1] == mark) ++found.marked;
            },
            &all);
        // The fresh one is there when both others are gone.
        s.expect(all.marked + (all.marked == 1 ? 1 : 0) >= all.blocks,
                 "a block that is allocated keeps its content");
    }
    static void* make(hf::domain d) {
        auto* const words = static_cast<std::uint64_t*>(hf_alloc(bytes));
        for (const std::size_t at : {std::size_t{0}, bytes / 8 - 1}) {
            words[at] = mark;
            hf::persist::persist(d, &words[at], sizeof mark);
        }
        return words;
    }
    void* taken_[3] = {};
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("pool/root", std::make_unique<root_made>());
    hf::crash::add("alloc/small", std::make_unique<blocks_at_once>(48));
    hf::crash::add("alloc/large", std::make_unique<blocks_at_once>(8192));
    hf::crash::add("alloc/staged", std::make_unique<staged>());
    hf::crash::add("alloc/trimmed", std::make_unique<trimmed>());
    hf::crash::add("pool/growth", std::make_unique<growth>());
    hf::crash::add("pool/lengthening", std::make_unique<lengthening>());
    return true;
}();

} // namespace
