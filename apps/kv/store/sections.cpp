// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sections.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>

namespace hf::kv {

HF_TXFUNC void initialise(kv_root* root, std::uint64_t seed) noexcept { root->seed = seed; }

HF_TXFUNC void insert_item(structures::hash_table* table, item* fresh) noexcept {
    hf::staged::adopt(fresh);
    hf::crash_point("kv_insert");
    structures::link(table, &fresh->node);
}

// [replace]
HF_TXFUNC void replace_item(structures::hash_table* table, item* old, item* fresh) noexcept {
    hf::staged::adopt(fresh);
    hf_free(old); // takes effect at the commit; logged here, it shares a fence with what is above
    structures::replace(table, &old->node, &fresh->node);
    hf::crash_point("kv_replace");
}
// [/replace]

HF_TXFUNC void remove_item(structures::hash_table* table, item* old) noexcept {
    hf_free(old);
    structures::unlink(table, &old->node);
    hf::crash_point("kv_remove");
}

HF_TXFUNC void set_exptime(item* of, std::uint32_t exptime) noexcept { of->exptime = exptime; }

HF_TXFUNC void set_state(item* of, std::uint32_t exptime, std::uint8_t marks,
                         std::uint64_t cas) noexcept {
    of->exptime = exptime;
    of->marks = marks;
    hf::crash_point("kv_state");
    of->cas = cas;
}

HF_TXFUNC void set_number(item* of, std::uint64_t number, std::uint64_t cas,
                          std::uint32_t exptime) noexcept {
    char* const digits = of->bytes() + of->key_bytes;
    const std::uint32_t room = of->value_bytes;
    std::uint32_t length = 1;
    for (std::uint64_t rest = number / 10; rest != 0; rest /= 10) ++length;
    for (std::uint32_t at = length; at-- > 0; number /= 10)
        digits[at] = static_cast<char>('0' + number % 10);
    for (std::uint32_t at = length; at < room; ++at) digits[at] = ' ';
    hf::crash_point("kv_number");
    of->cas = cas;
    if (of->exptime != exptime) of->exptime = exptime;
}

HF_TXFUNC void set_flush(kv_root* root, std::uint64_t cas, std::uint64_t times) noexcept {
    root->flush_cas = cas;
    root->flush_times = times;
}

} // namespace hf::kv
