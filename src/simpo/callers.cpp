// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <simpo/callers.hpp>

#include <algorithm>
#include <cstring>

namespace hf::simpo {

caller_entry* caller_table::find(std::uint64_t id) const noexcept {
    caller_entry* const end = entries() + shape_.callers;
    caller_entry* const found =
        std::find_if(entries(), end, [&](const caller_entry& each) { return each.id == id; });
    return found == end ? nullptr : found;
}

void caller_table::add(std::uint64_t id) noexcept {
    caller_entry* const place = room();
    if (id == 0 || place == nullptr || find(id) != nullptr) return;
    *place = {id, 0, 0, 0}; // results of another one lie there still: none is its own
}

void caller_table::dismiss(std::uint64_t id) noexcept {
    if (caller_entry* const found = id == 0 ? nullptr : find(id)) *found = {};
}

result_head& caller_table::slot(const caller_entry& of, std::uint64_t result) const noexcept {
    const auto which = static_cast<std::uint64_t>(&of - entries());
    HF_ASSERT_SLOW(which < shape_.callers);
    const std::uint64_t place = which * shape_.results + result % shape_.results; // upholds (3)
    return *reinterpret_cast<result_head*>(at_ + shape_.callers * sizeof(caller_entry) +
                                           place * shape_.result_bytes());
}

const result_head* caller_table::result_of(const caller_entry& of,
                                           std::uint64_t number) const noexcept {
    std::uint64_t first = of.results - std::min<std::uint64_t>(of.results, shape_.results);
    for (std::uint64_t end = of.results; first < end;) { // numbers grow from one to the next
        const std::uint64_t middle = first + (end - first) / 2;
        const result_head& here = slot(of, middle);
        if (here.number == number) return &here;
        if (here.number < number) first = middle + 1;
        else end = middle;
    }
    return nullptr;
}

result_head& caller_table::next_result(caller_entry& of) noexcept { return slot(of, of.results++); }

std::uint64_t sum_of_call(std::uint64_t function, std::uint32_t schema, std::uint16_t version,
                          const std::uint64_t* arguments, std::uint8_t words) noexcept {
    const std::uint64_t its[] = {function, schema, version};
    return checksum(arguments, words * word_bytes, checksum(its, sizeof its, object_magic));
}

namespace {

/// An instant call, whose result is kept.
void make_for_result(std::byte* object, caller_table& callers, caller_entry& by, const record& r,
                     const detail::function& f) noexcept {
    result_head& kept = callers.next_result(by);
    auto* const words = reinterpret_cast<std::uint64_t*>(&kept + 1);
    kept = {r.arguments[1], sum_of_call(r.head.function, r.head.schema, r.head.version,
                                        r.call_arguments(), r.head.words)};
    std::memset(words, 0, callers.shape().result_words * word_bytes);
    if (f.answer != nullptr && f.result_words <= callers.shape().result_words)
        f.answer(object, r.call_arguments(), words);
    else f.run(object, r.call_arguments()); // a log that no build of ours has written
}

} // namespace

void make_operation(std::byte* object, caller_table callers, const record& r,
                    const detail::function* f) noexcept {
    const auto kind = static_cast<record_kind>(r.head.kind);
    if (kind == record_kind::add_caller) return callers.add(r.arguments[0]);
    if (kind == record_kind::dismiss) return callers.dismiss(r.arguments[0]);
    if (f == nullptr) return; // a log that no build of ours has written
    caller_entry* const by = r.arguments[0] == 0 ? nullptr : callers.find(r.arguments[0]);
    const std::uint64_t number = r.arguments[1];
    if (by == nullptr || number <= by->last) return; // (2): it has been made
    if (kind == record_kind::instant_once || kind == record_kind::joined_once)
        make_for_result(object, callers, *by, r, *f);
    else f->run(object, r.call_arguments());
    by->last = number;
}

} // namespace hf::simpo
