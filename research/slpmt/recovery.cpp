// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <slpmt/recovery.hpp>

#include <algorithm>
#include <ranges>

namespace hf::slpmt {
namespace {

void write(image& of, const record& one) {
    for (unsigned i = 0; i < one.words(); ++i) {
        const std::uint64_t offset = (one.word + i) * word_bytes;
        if (of.word(offset).value != one.values[i]) of.put(offset, one.values[i]);
    }
}

void resolve(image& of, const log_layout& log, const resolution& last) {
    // A tag that no record carries: those of the interrupted transaction lie where the next one's
    // will, and a redo log would be replayed from there.
    const resolution mark{last.tag + 2, last.next, last.next};
    const std::uint64_t at = log.slot_line(mark.tag) * line_bytes;
    // The tag makes it the newest, so the tag is written last.
    of.put(at + offsetof(resolution, start), mark.start);
    of.put(at + offsetof(resolution, next), mark.next);
    of.put(at + offsetof(resolution, tag), mark.tag);
}

} // namespace

result<progress> recover(image& of, const layout& where, bool redo,
                         const std::function<void(image&)>& repair) {
    std::vector<resolution> last;
    for (unsigned core = 0; core < where.cores; ++core) {
        const log_layout log = where.log_of(core);
        last.push_back(newest(of.bytes(), log));
        const auto interrupted = read_log(of.bytes(), log, last[core].next, last[core].tag + 1);
        if (!interrupted) return interrupted.error();
        for (const logged& one : std::views::reverse(*interrupted)) // upholds (1)
            if (one.old == redo) write(of, one.what);
        if (!redo) continue;
        const auto done = read_log(of.bytes(), log, last[core].start, last[core].tag);
        if (!done) return done.error();
        for (const logged& one : *done) // upholds (2)
            if (!one.old) write(of, one.what);
    }
    repair(of);
    for (unsigned core = 0; core < where.cores; ++core) // upholds (3)
        resolve(of, where.log_of(core), last[core]);
    progress resolved;
    for (const resolution& one : last) resolved.push_back(one.tag);
    return resolved;
}

} // namespace hf::slpmt
