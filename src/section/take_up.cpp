// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section that recovery runs again: taken up where its log ends, and given up where it cannot go on.
#include <base/assert.hpp>
#include <open/registry.hpp>
#include <section/section.hpp>

#include <cstring>

namespace hf {

void section::take_up(const pending_section& from, first_run& first) {
    HF_ASSERT(first_ == nullptr);
    HF_ASSERT(from.lane == marks_.lane());
    HF_ASSERT(from.sound);
    HF_ASSERT_SLOW(idle());
    HF_ASSERT_SLOW(from.begin.epoch <= marks_.state().epoch);
    first_ = &first;
    function_ = registry::find_txfunc(from.begin.function_id, from.begin.function_version);
    engine_ = engine_of(from.begin.engine);
    HF_ASSERT(function_ != nullptr);
    HF_ASSERT(engine_ != nullptr); // engine::check has found them
    epoch_ = from.begin.epoch;     // the lane's next section stays above all that it may have used
    log_.go_on(medium_, from.end);
    log_begun_ = true;
    // A section that cannot be rolled back any more keeps nothing.
    keeping_ =
        pool_->keep_overwritten && engine_->sections == engine_sections::inputs && from.kept_known;
    if (!medium_.keeps_order() && is_ordered(marks_.header())) { // it may tear from here on
        medium_.store_word(&marks_.header().witness, lane_unordered);
        medium_.fence();
    }
    // Every offset is out of range from now on, and far_offset looks why: what a re-execution has
    // to be asked costs other sections nothing.
    range_bytes_ = 0;
    for (const record_view& r : from.records) {
        if (r.kind == record_kind::staged) prepared_.staged().push_back({{r.offset, r.bytes}});
        if (r.kind == record_kind::segment) blocks_.add_segment({r.offset, r.bytes});
        if (r.kind == record_kind::filled) {
            filled_payload what;
            std::memcpy(&what, r.payload, sizeof what);
            prepared_.add_logged(r.offset, what);
        }
        keeping_ = keeping_ && r.kind != record_kind::unkept;
    }
    // Changes the chain (lane.hpp, 2): a record that an earlier run wrote past the end of the valid
    // log cannot pass for one of this run.
    append(record_kind::resumed, pool_->file->generation(), 0);
    HF_ASSERT_SLOW(running());
}

void section::discard(std::span<const block> untaken) {
    HF_ASSERT(dirty_.empty());
    HF_ASSERT(blocks_.freed().empty());
    HF_ASSERT_SLOW(first_ != nullptr);
    HF_ASSERT_SLOW(running());
    prepared_.forget_filled();
    blocks_.take_back();
    blocks_.give_up_staged(untaken);
    settle_blocks();
    hf::store_mark(medium_, &marks_.header(), epoch_);
    fence();
    marks_.release_freed();
    HF_ASSERT_SLOW(idle());
}

void section::forsake() {
    HF_ASSERT_SLOW(first_ != nullptr);
    HF_ASSERT_SLOW(running());
    blocks_.keep_freed(); // would have taken effect at commit
    dirty_.flush_all(medium_);
}

} // namespace hf
