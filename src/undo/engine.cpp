// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undo logging: the old bytes of every store, once a word; an unfinished section is rolled back.
// Its commit mark is durable before the section returns: a section without one is undone. Unless
// its stores are left to the next section (protocol.hpp, 4): then their sum says whether they are
// durable, and where they are not, that section's old bytes are put back, and then its own.
#include <base/assert.hpp>
#include <log/restore.hpp>
#include <log/word_log.hpp>
#include <pool/believed.hpp>
#include <pool/file_checks.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>
#include <undo/engine.hpp>

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace hf::undo {
namespace {

/// Calls 'visit(offset, bytes)' for each place in the log that the section stored to.
template <class Visit> void for_each_stored(const pending_section& section, Visit&& visit) {
    for (const record_view& r : section.records)
        if (r.kind == record_kind::old_bytes || (r.kind == record_kind::alloc && r.offset != 0))
            visit(r.offset, r.bytes);
}

std::uint64_t sum_now(const pool_file& file, const pending_section& section) {
    sum_of_stores all(section.begin.epoch);
    for_each_stored(section, [&](std::uint64_t offset, std::uint64_t bytes) {
        trace::announce(believed::checked, file.base() + offset, bytes);
        all.add(file.base() + offset, bytes);
    });
    return all.sum();
}

/// Makes a section durable that has made all its stores. Idempotent.
void complete(pool::impl& pool, const pending_section& section) {
    pool_file& file = *pool.file;
    const medium pm = file.medium();
    for_each_stored(section, [&](std::uint64_t offset, std::uint64_t bytes) {
        pm.flush(file.base() + offset, bytes);
    });
    heap& blocks = pool.blocks.durable();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    for (const record_view& r : section.records) {
        if (r.kind == record_kind::alloc && r.offset != 0)
            blocks.publish({r.offset, r.bytes}, dirty);
        if (r.kind != record_kind::free) continue;
        pool.blocks.find(r.offset); // its chunk's state must be known before it changes
        blocks.retract({r.offset, r.bytes}, dirty);
    }
    pm.fence();
}

class undo_engine final : public section_engine {
public:
    explicit undo_engine(const options& how) : how_(how) {}
    const options& how() const noexcept { return how_; }
    const engine_row& row() const noexcept override { return engine_rows::undo; }
    status check_options(const std::string& path) const override {
        if (how_.durable <= durability::on_return) return {};
        return refusal(path, errc::bad_argument,
                       no_such_value("undo::options::durable", "by_next_section or on_return",
                                     static_cast<unsigned>(how_.durable)));
    }
    /// Rolling back needs no function of this build.
    status check(const pool::impl& pool, const pending_section& section) const override {
        if (section.args.empty() || section.args.size() == sizeof(left_payload)) return {};
        return refusal(pool.file->path(), errc::corrupt,
                       fmt::format("log of lane {}: the begin record of a section of engine undo: "
                                   "expected 0 or {} bytes, found {}{}",
                                   section.lane, sizeof(left_payload), section.args.size(),
                                   last_way_out(*pool.file)));
    }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        HF_ASSERT_SLOW(current_section == nullptr);
        pool_file& file = *pool.file;
        lane_header* const header = lane_at(file, pending.lane);
        const pending_section* const earlier = pending.earlier.get();
        // The last section that returned is there, with all before it. 0: no section of the lane
        // has ever left its stores to the next one, so the lane has no sum.
        const bool returned = header->returned != 0 && header->returned == sum_now(file, pending);
        bool earlier_returned = returned;
        if (!returned) restore_old_bytes(file, pending, restored::everything);
        if (!returned && earlier != nullptr) { // upholds protocol.hpp (4)
            left_payload left;
            std::memcpy(&left, pending.args.data(), sizeof left);
            earlier_returned = left.sum == sum_now(file, *earlier);
            if (!earlier_returned) restore_old_bytes(file, *earlier, restored::everything);
        }
        if (earlier_returned && earlier != nullptr) complete(pool, *earlier);
        if (returned) complete(pool, pending); // it may have freed what that one took
        end_word_log(file.medium(), header);
        store_mark(file.medium(), header, pending.begin.epoch);
        file.medium().fence();
        release_blocks(pool, pending, returned);
        if (earlier != nullptr) release_blocks(pool, *earlier, earlier_returned);
        ++state.count[returned ? recovery_verb::replay : recovery_verb::roll_back];
    }

private:
    options how_;
};

} // namespace

engine_ptr engine() noexcept { return lasting_with<undo_engine>(options{}); }

engine_ptr engine(const options& how) { return std::make_shared<const undo_engine>(how); }

const options& options_of(const pool::impl& pool) noexcept {
    const hf::engine* const given = pool.given(engine_undo);
    HF_ASSERT_SLOW(given != nullptr);
    return static_cast<const undo_engine*>(given)->how();
}

} // namespace hf::undo
