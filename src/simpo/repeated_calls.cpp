// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made once however often they are repeated: those of an object's callers.
#include <pool/file_checks.hpp>
#include <simpo/core.hpp>

#include <fmt/format.h>

#include <cstring>

namespace hf::simpo::detail {

/// Requires: the lock.
status core::unknown_caller(std::uint64_t id) {
    promise_done(); // it may have been dismissed just now
    return refusal(
        pool_->file->path(), errc::not_found,
        fmt::format(
            "object \"{}\" has no caller {}: it was dismissed, or never added by caller::of",
            head_->name, id));
}

status core::add_caller(std::uint64_t id) {
    check_usable("caller::of");
    check_writable("caller::of");
    if (id == 0)
        return refusal(pool_->file->path(), errc::bad_argument,
                       "caller::of: expected an identifier from 1 on, found 0");
    const held here(*this);
    be_here();
    if (callers().find(id) != nullptr) return promise_done(), status{};
    if (callers().shape().callers == 0 || callers().room() == nullptr)
        return refusal(
            pool_->file->path(), errc::limit_reached,
            fmt::format(
                "object \"{}\": expected at most {} callers, found one more: dismiss another, or "
                "remake the object with more (object_options::callers)",
                head_->name, head_->callers));
    commit(record_kind::add_caller, nullptr, nullptr, {id, 0});
    if (log_.half_full()) make_resilient();
    return {};
}

status core::dismiss(std::uint64_t id) {
    check_usable("caller::dismiss");
    check_writable("caller::dismiss");
    const held here(*this);
    be_here();
    if (id == 0 || callers().find(id) == nullptr) return unknown_caller(id);
    commit(record_kind::dismiss, nullptr, nullptr, {id, 0});
    if (log_.half_full()) make_resilient();
    return {};
}

result<std::uint64_t> core::last_of(std::uint64_t id) {
    check_usable("caller::last");
    const held here(*this);
    be_here();
    make_pending();
    promise_done();
    if (log_.half_full()) make_resilient();
    const caller_entry* const by = id == 0 ? nullptr : callers().find(id);
    if (by == nullptr) return unknown_caller(id);
    return by->last;
}

void core::defer_once(const function& f, operation which, const std::uint64_t* arguments) {
    check_usable("caller::defer");
    check_writable("caller::defer");
    log_deferred(record_kind::deferred_once, f, arguments, 0, which);
}

/// Whether there is a place for the result of a call that has not been made.
status core::keepable(const function& f, const caller_entry& by, operation which, bool all) const {
    const std::string& path = pool_->file->path();
    if (f.result_words > head_->result_words)
        return refusal(
            path, errc::bad_argument,
            fmt::format(
                "{}::{}: found a result of {} bytes, and object \"{}\" expected at most {}: "
                "remake it with a larger object_options::result_bytes",
                f.class_text, f.text, f.result_words * word_bytes, head_->name,
                head_->result_words * word_bytes));
    if (!all || !callers().full(by)) return {};
    return refusal(
        path, errc::limit_reached,
        fmt::format(
            "object \"{}\": expected at most {} results of a caller, found one more, of call {} "
            "of caller {}: remake it with more (object_options::results)",
            head_->name, head_->results, which.number, which.caller));
}

/// The call's answer from when it was made.
status core::answer(const function& f, operation which, const std::uint64_t* arguments,
                    std::uint64_t* result) const {
    const std::string& path = pool_->file->path();
    const caller_entry* const by = callers().find(which.caller);
    const result_head* const kept = callers().result_of(*by, which.number);
    if (kept == nullptr)
        return refusal(
            path, errc::not_found,
            fmt::format(
                "object \"{}\": the result of call {} of caller {} is not kept: "
                "the caller's last call was {}, and object_options::results says how many are kept",
                head_->name, which.number, which.caller, by->last));
    if (kept->what != sum_of_call(f.id, f.schema, f.version, arguments, f.words) ||
        f.result_words > head_->result_words)
        return refusal(
            path, errc::bad_argument,
            fmt::format(
                "object \"{}\": call {} of caller {} was made before: expected that function and "
                "its arguments again, found {}::{}, or others: a new call needs a greater number",
                head_->name, which.number, which.caller, f.class_text, f.text));
    std::memcpy(result, kept + 1, f.result_words * word_bytes);
    return {};
}

void core::call_all_once(std::span<one_call> calls) {
    check_usable("caller::call");
    check_writable("caller::call");
    const held here(*this);
    be_here();
    const one_call* last = nullptr; // of the new ones: its record ends their group
    bool repeated = false;
    for (one_call& each : calls) {
        const std::uint64_t id = each.which.caller;
        const caller_entry* const by = id == 0 ? nullptr : callers().find(id);
        if (by == nullptr) {
            each.said = unknown_caller(id);
        } else if (each.which.number <= by->last) {
            repeated = true;
        } else if (each.said = keepable(*each.f, *by, each.which, each.all); each.said.ok()) {
            if (last != nullptr) join_group(*last);
            last = &each;
        }
    }
    if (last != nullptr) {
        commit(record_kind::instant_once, last->f, last->arguments, last->which);
    } else if (repeated) {
        make_pending(); // it was made, and what was logged since ends its group here all the same
        promise_done();
    }
    if (log_.half_full()) make_resilient();
    for (one_call& each : calls)
        if (each.said.ok()) each.said = answer(*each.f, each.which, each.arguments, each.result);
}

/// Logs a call that is not the last of its group; without room it is. Requires: the lock.
void core::join_group(const one_call& c) {
    if (log_.append(record_kind::joined_once, c.f, c.arguments, 0, c.which)) return;
    commit(record_kind::instant_once, c.f, c.arguments, c.which);
    if (log_.half_full()) make_resilient();
}

status add_caller(core& on, std::uint64_t id) { return on.add_caller(id); }
status dismiss(core& on, std::uint64_t id) { return on.dismiss(id); }
result<std::uint64_t> last_of(core& on, std::uint64_t id) { return on.last_of(id); }
void defer_once(core& on, const function& f, operation which, const std::uint64_t* arguments) {
    on.defer_once(f, which, arguments);
}
status call_once(core& on, const function& f, operation which, const std::uint64_t* arguments,
                 bool all, std::uint64_t* result) {
    one_call it{&f, which, arguments, result, all, {}};
    on.call_all_once({&it, 1});
    return it.said;
}

} // namespace hf::simpo::detail
