// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What SIMPO gives pool::open. Its logs are in no lane: they are its own state, found by inspect(),
// and replayed when everything else is recovered.
#include <base/assert.hpp>
#include <simpo/objects.hpp>

#include <fmt/format.h>

#include <atomic>
#include <new>

namespace hf::simpo {
namespace {

class simpo_engine final : public hf::engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::simpo; }
    const char* read_beside() const noexcept override { return "persistent objects"; }
    status inspect(const pool::impl& in) const override { return simpo::inspect(in); }
    void give_up_unsound(pool::impl& in) const override { simpo::give_up_unsound(in); }
    void withdraw(pool::impl& in) const override;
    status settle(pool::impl& in) const override;
    result<std::unique_ptr<engine_state>> attach(pool::impl& in) const override;
};

/// Calls visit(block) for each object.
template <class Visit> void for_each_object(pool::impl& in, Visit&& visit) {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return;
    for (const std::uint64_t offset : object_words(*super))
        if (offset != 0) visit(block_of(in, offset));
}

/// Withdraws all blocks before it claims any: the only bit of one may be in another one's chunk.
void simpo_engine::withdraw(pool::impl& in) const {
    for_each_object(in, [&](block b) { withdraw_anchor(in, b.offset, b.bytes); });
}

status simpo_engine::settle(pool::impl& in) const {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return {};
    // A process that was killed may only have stored the words: durable before their blocks are
    // settled.
    in.file->medium().persist(super, in.file->shape().chunk_bytes);
    for (std::uint64_t& word : object_words(*super)) {
        if (word == 0) continue;
        const block b = block_of(in, word);
        status s = settle_anchor(in, "SIMPO: an object", b.offset, b.bytes);
        if (s.ok()) continue;
        if (!salvages(in, s)) return s;
        in.file->warn(fmt::format("{}: salvaged: {}: it is given up", in.file->path(), s.what()));
        in.file->medium().store_word(&word, 0);
    }
    in.file->medium().fence();
    return {};
}

result<std::unique_ptr<engine_state>> simpo_engine::attach(pool::impl& in) const {
    auto all = std::make_unique<objects>(in);
    if (in.file->reads_beside()) return std::unique_ptr<engine_state>(std::move(all)); // view.hpp
    engine_recovery done{name()};
    if (status s = all->recover(done); !s.ok()) return s;
    if (done.sections_pending != 0) in.report.add(done);
    // Lets views in. In a pool with MOD, MOD does so when it is recovered, too.
    if (in.file->lets_read() && (in.engine_bits & engine_mod) == 0)
        std::atomic_ref(in.file->words_for_readers()->ready)
            .store(in.file->generation(), std::memory_order_seq_cst);
    return std::unique_ptr<engine_state>(std::move(all));
}

} // namespace

engine_ptr engine() noexcept {
    static const simpo_engine only;
    return lasting(only);
}

} // namespace hf::simpo
