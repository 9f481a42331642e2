// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <open/pool_impl.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/statistics.hpp>

#include <map>

namespace hf {

statistics statistics_of(const pool& of) {
    const pool::impl& pool = of.internals();
    statistics out;
    const persist::counters done = persist::process_counters();
    out.sections = done.sections;
    out.ordering_points = done.ordering_points;
    out.flushes = done.flushes;
    out.log_entries = done.log_entries;
    out.log_bytes = done.log_bytes;
    out.pm_bytes = done.pm_bytes;

    out.size_bytes = pool.file->size_bytes();
    out.max_bytes = pool.file->shape().max_bytes;
    const heap& blocks = pool.blocks.durable();
    std::map<std::uint64_t, std::uint64_t> classes;
    blocks.for_each([&](block b) {
        ++classes[b.bytes];
        ++out.blocks;
        out.used_bytes += b.bytes;
    });
    std::uint64_t heap_bytes = 0;
    for (unsigned i = 0; i < blocks.extent_count(); ++i) {
        heap_bytes += blocks.extent_at(i).chunks * blocks.chunk_bytes();
        out.metadata_bytes += blocks.extent_at(i).metadata_bytes;
    }
    out.free_bytes = heap_bytes > out.used_bytes ? heap_bytes - out.used_bytes : 0;
    for (const auto& [bytes, count] : classes) out.classes.push_back({bytes, count});

    out.generation = pool.file->generation();
    out.sections_recovered = pool.report.sections_pending;
    out.open_ms = pool.report.open_ms;
    return out;
}

std::string misplaced(const pool& of) { return of.internals().file->misplaced(); }

} // namespace hf
