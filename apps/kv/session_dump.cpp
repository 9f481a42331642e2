// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lru_crawler metadump: a line for every item, in memcached's format, between other clients' requests.
#include "journal.hpp"
#include "session.hpp"

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

} // namespace

// False: the output is full, more items are to come.
bool session::dump(const request& r, byte_buffer& out, std::size_t out_bytes_max) {
    if (serving_->chosen.dump_disabled) {
        out.append(reply::dump_refused);
        return true;
    }
    store& items = *serving_->items;
    if (dumped_ == nullptr) dumped_ = std::make_unique<store::place>(items);
    const auto show = [&](std::string_view key, const item_view& it) {
        if (key.size() > key_bytes_max) return; // damage, on a durable map
        const std::size_t bytes = item_overhead_bytes + key.size() + it.value.size();
        if ((r.delta >> size_class_of(bytes) & 1) != 0) append_line(out, key, it, bytes);
    };
    while (items.visit_next(*dumped_, show))
        if (out.size() >= out_bytes_max) return false;
    // Who takes the list for a complete one must not be told that it ends here.
    out.append(dumped_->damaged ? reply::dump_damaged : reply::end);
    dumped_.reset();
    return true;
}

} // namespace hf::kv
