// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What engine justdo gives pool::open. Its sections are in no lane: they are its own state, found
// by inspect(), and resumed when everything else is recovered.
#include <base/assert.hpp>
#include <justdo/engine.hpp>
#include <justdo/threads.hpp>

#include <fmt/format.h>

namespace hf::justdo {
namespace {

class justdo_engine final : public hf::engine {
public:
    explicit justdo_engine(const options& how) : how_(how) {}
    const options& how() const noexcept { return how_; }
    const engine_row& row() const noexcept override { return engine_rows::justdo; }
    status inspect(const pool::impl& in) const override { return justdo::inspect(in); }
    void give_up_unsound(pool::impl& in) const override { justdo::give_up_unsound(in); }
    void withdraw(pool::impl& in) const override;
    status settle(pool::impl& in) const override;
    result<std::unique_ptr<engine_state>> attach(pool::impl& in) const override;

private:
    options how_;
};

/// Two threads may have been allocating in one fresh chunk, and either one's bit may have persisted
/// alone. So all blocks are withdrawn before any is claimed.
void justdo_engine::withdraw(pool::impl& in) const {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return;
    for (const std::uint64_t offset : thread_words(*super)) {
        if (offset == 0) continue;
        withdraw_anchor(in, offset, super->thread_bytes);
        const thread its(in, offset, super->thread_bytes);
        const auto withdraw = [&](block b) { withdraw_anchor(in, b.offset, b.bytes); };
        its.for_each_block(withdraw);
        withdraw(its.held());
    }
}

/// Makes it certain that threads' blocks and what their sections allocate are allocated; what they
/// free belongs to nobody yet. Ends the sections that are given up.
status justdo_engine::settle(pool::impl& in) const {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return {};
    const hf::medium pm = in.file->medium();
    const bool given_up = in.file->was_clean() || in.recovery == recovery_policy::roll_back;
    // A process that was killed may only have stored the words: durable before their blocks are
    // settled.
    pm.persist(super, in.file->shape().chunk_bytes);
    for (std::uint64_t& offset : thread_words(*super)) {
        if (offset == 0) continue;
        if (status s =
                settle_anchor(in, "engine justdo: a thread's block", offset, super->thread_bytes);
            !s.ok()) {
            if (!salvages(in, s)) return s;
            in.file->warn(fmt::format("{}: salvaged: {}", in.file->path(), s.what()));
            pm.store_word(&offset, 0); // nothing of it is believed
            continue;
        }
        thread(in, offset, super->thread_bytes).believe(!given_up);
    }
    pm.fence();
    for (const std::uint64_t offset : thread_words(*super)) {
        if (offset == 0) continue;
        thread its(in, offset, super->thread_bytes);
        status grown;
        its.for_each_block([&](block b) {
            if (grown.ok())
                grown = settle_anchor(in, "engine justdo: a block that a thread's has grown by",
                                      b.offset, b.bytes);
        });
        if (!grown.ok()) {
            if (!salvages(in, grown)) return grown;
            in.file->warn(fmt::format("{}: salvaged: {}", in.file->path(), grown.what()));
            its.give_up_growth();
        }
        if (!its.pending()) continue;
        const status settled = its.settle_held();
        const bool salvaged = salvages(in, settled);
        if (!given_up && !settled.ok() && !salvaged) return settled;
        if (!given_up && !salvaged) continue;
        its.give_up();
        in.file->warn(
            fmt::format("{}: salvaged: engine justdo: the section of the thread at {:#x} is given "
                        "up and stays half done",
                        in.file->path(), offset));
    }
    pm.fence();
    return {};
}

result<std::unique_ptr<engine_state>> justdo_engine::attach(pool::impl& in) const {
    auto state = std::make_unique<threads>(in);
    engine_recovery done{name()};
    const bool to_the_end = how_.open_waits || in.needs_sections_ended();
    if (status s = state->recover(done, to_the_end); !s.ok()) {
        if (!salvages(in, s)) return s;
        state->free_locks();
        give_up_all(in, s); // in the pool; what ran is thrown away
        state = std::make_unique<threads>(in);
        done = engine_recovery{name()};
        if (status again = state->recover(done, to_the_end); !again.ok()) return again;
    }
    if (done.sections_pending != 0) in.report.add(done);
    return std::unique_ptr<engine_state>(std::move(state));
}

} // namespace

engine_ptr engine() noexcept { return lasting_with<justdo_engine>(options{}); }

engine_ptr engine(const options& how) { return std::make_shared<const justdo_engine>(how); }

const options& options_of(const pool::impl& pool) noexcept {
    const hf::engine* const given = pool.given(engine_justdo);
    HF_ASSERT_SLOW(given != nullptr);
    return static_cast<const justdo_engine*>(given)->how();
}

} // namespace hf::justdo
