// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lru_crawler metadump and stats cachedump: a line for every item, in memcached's formats, between
// other clients' requests.
#include "session.hpp"
#include <kv/protocol/journal.hpp>

namespace hf::kv {
namespace {

void append_line(byte_buffer& out, std::string_view key, const item_view& it, std::size_t bytes) {
    out.append("key=");
    append_encoded(out, key);
    out.append(" exp=");
    if (it.exptime == 0) out.append("-1");
    else append_number(out, it.exptime);
    out.append(" la=");
    append_number(out, it.last_access);
    out.append(" cas=");
    append_number(out, it.cas);
    out.append(it.fetched ? " fetch=yes cls=" : " fetch=no cls=");
    append_number(out, size_class_of(bytes));
    out.append(" size=");
    append_number(out, bytes);
    out.append("\n"); // alone, as memcached
}

void append_item(byte_buffer& out, std::string_view key, const item_view& it) {
    out.append("ITEM ");
    out.append(key);
    out.append(" [");
    append_number(out, it.value.size());
    out.append(" b; ");
    append_number(out, it.exptime);
    out.append(" s]\r\n");
}

// The class that `stats items` numbers so, as a bit; the numbers are those of classes that have
// items now.
std::uint64_t class_numbered(store& items, std::uint64_t number) {
    std::uint64_t bytes = 0;
    const auto classes = items.sample_classes(bytes);
    if (number == 0 || number > classes.size()) return 0;
    return std::uint64_t{1} << size_class_of(classes[number - 1].bytes_max);
}

} // namespace

// False: the output is full, and items remain.
bool session::dump(const request& r, byte_buffer& out, std::size_t out_bytes_max) {
    if (serving_->chosen.dump_disabled) {
        out.append(r.lists ? reply::list_refused : reply::dump_refused);
        return true;
    }
    constexpr std::size_t list_bytes_max = 2 << 20; // of stats cachedump, as memcached
    store& items = *serving_->items;
    if (dumped_ == nullptr) {
        dumped_ = std::make_unique<dump_state>(items);
        dumped_->classes = r.lists ? class_numbered(items, r.delta) : r.delta;
        dumped_->lines_left = r.lists && r.initial != 0 ? r.initial : UINT64_MAX;
        dumped_->bytes_left = r.lists ? list_bytes_max : SIZE_MAX;
    }
    dump_state& state = *dumped_;
    const auto show = [&](std::string_view key, const item_view& it) {
        if (key.size() > key_bytes_max) return; // damage, on a durable map
        const std::size_t bytes = item_overhead_bytes + key.size() + it.value.size();
        if ((state.classes >> size_class_of(bytes) & 1) == 0 || state.lines_left == 0) return;
        const std::size_t before = out.size();
        if (r.lists) append_item(out, key, it);
        else append_line(out, key, it, bytes);
        const std::size_t line = out.size() - before;
        --state.lines_left;
        if (state.bytes_left < line) state.lines_left = 0;
        else state.bytes_left -= line;
    };
    while (state.classes != 0 && state.lines_left != 0 && items.visit_next(state.at, show))
        if (out.size() >= out_bytes_max) return false;
    // A client that takes the list for complete must not see its end here.
    out.append(state.at.damaged ? reply::dump_damaged : reply::end);
    dumped_.reset();
    return true;
}

} // namespace hf::kv
