// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool_report.hpp"

#include "json.hpp"
#include <base/engines.hpp>
#include <base/names.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>
#include <verify/image.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::tools {
namespace {

using verify::depth;
using verify::report;
using verify::verdict;

constexpr std::size_t sizes_shown_max = 64; // of blocks, to people

/// Text of a stored field, whatever is in it.
std::string text_in(const char* field, std::size_t capacity) {
    std::string out(field, strnlen(field, capacity));
    std::ranges::replace_if(out, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return out;
}

std::string hex(std::span<const std::byte> bytes, std::size_t most) {
    std::string out;
    for (const std::byte b : bytes.first(std::min(bytes.size(), most)))
        out += fmt::format("{:02x}", static_cast<unsigned>(b));
    return bytes.size() > most ? out + "…" : out;
}

std::string uuid_of(const pool_header& h) {
    return hex(std::as_bytes(std::span(h.uuid)), sizeof h.uuid);
}

std::uint64_t pool_bytes(const pool_header& h) {
    const extent& last = h.extents[h.extent_count - 1];
    return last.offset_bytes + last.size_bytes;
}

const char* state_of(const report& r) {
    if (r.header.open != 0) return "open, or not closed cleanly";
    switch (r.seal) {
    case seal_state::intact: return "closed and sealed";
    case seal_state::damaged: return "closed, with a damaged seal";
    default: return "closed, unsealed";
    }
}

/// "push (list.cpp:7)", when this build has the function.
std::string function_name(const begin_payload& of) {
    const hf_txfunc* known = registry::find_txfunc(of.function_id, of.function_version);
    return known == nullptr ? std::string()
                            : fmt::format("{} ({})", readable_name(known->name), known->where);
}

json_text to_json(const pool_header& h) {
    json_text out{{"layout", text_in(h.layout, sizeof h.layout)},
                  {"layout_hash", h.layout_hash},
                  {"uuid", uuid_of(h)},
                  {"format_version", h.format_version},
                  {"generation", h.generation},
                  {"mode", name(static_cast<hf::mode>(h.mode))},
                  {"open", h.open != 0},
                  {"engines", engine_names(h.engines)},
                  {"base_address", h.base_address},
                  {"pool_bytes", pool_bytes(h)},
                  {"max_bytes", h.max_bytes},
                  {"chunk_bytes", h.chunk_bytes},
                  {"lane_count", h.lane_count},
                  {"lane_bytes", h.lane_bytes}};
    if (is_migrating(h)) {
        out.add("next_layout", text_in(h.next_layout, sizeof h.next_layout));
        out.add("next_layout_hash", h.next_layout_hash);
    }
    json_text extents = json_text::array();
    for (std::uint32_t i = 0; i < h.extent_count; ++i)
        extents.push({{"offset", h.extents[i].offset_bytes},
                      {"bytes", h.extents[i].size_bytes},
                      {"laid_out_bytes", h.laid_out_bytes[i]}});
    out.add("extents", extents);
    return out;
}

json_text to_json(const std::string& path, const report& r, depth how) {
    json_text findings = json_text::array();
    for (const verify::finding& f : r.findings)
        findings.push({{"offset", f.offset},
                       {"where", f.where},
                       {"expected", f.expected},
                       {"found", f.found}});
    json_text out{{"file", path},
                  {"verdict", name_of(r.outcome)},
                  {"file_bytes", r.file_bytes},
                  {"findings", findings},
                  {"findings_left_out", r.findings_left_out},
                  {"notes", r.notes}};
    if (!r.has_header) return out;
    out.add("pool", to_json(r.header));
    out.add("state", state_of(r));
    json_text pending = json_text::array();
    for (const verify::lane_summary& l : r.pending)
        pending.push({{"lane", l.lane},
                      {"engine", engine_names(l.begin.engine)},
                      {"function", l.begin.function_id},
                      {"name", function_name(l.begin)},
                      {"epoch", l.begin.epoch},
                      {"records", l.records}});
    out.add("pending", pending);
    json_text resumable = json_text::array();
    for (const verify::resumable_section& s : r.resumable)
        resumable.push({{"thread", s.thread},
                        {"function", s.function_id},
                        {"version", s.function_version},
                        {"depth", s.depth},
                        {"point", s.point},
                        {"locks", s.locks}});
    out.add("resumable", resumable);
    json_text objects = json_text::array();
    for (const verify::persistent_object& o : r.objects)
        objects.push({{"offset", o.offset},
                      {"name", o.name},
                      {"class", o.class_text},
                      {"version", o.class_version},
                      {"bytes", o.object_bytes},
                      {"log_bytes", o.log_bytes},
                      {"callers", o.callers},
                      {"groups", o.groups},
                      {"calls", o.calls},
                      {"swapped_out", o.swapped_out}});
    out.add("objects", objects);
    if (how >= depth::tables) {
        out.add("blocks", r.blocks);
        out.add("block_bytes", r.block_bytes);
        out.add("large_blocks", r.large_blocks);
        out.add("heap_bytes", r.heap_bytes);
        out.add("metadata_bytes", r.metadata_bytes);
    }
    if (how == depth::deep) {
        out.add("blocks_verified", r.blocks_verified);
        out.add("blocks_damaged", r.blocks_damaged);
    }
    return out;
}

void print_findings(const std::string& path, const report& r) {
    for (const verify::finding& f : r.findings)
        fmt::print("{}: {} at {:#x}: expected {}, found {}\n", path, f.where, f.offset, f.expected,
                   f.found);
    if (r.findings_left_out > 0) fmt::print("{}: and {} more\n", path, r.findings_left_out);
    for (const std::string& note : r.notes) fmt::print("{}: {}\n", path, note);
    for (const verify::lane_summary& l : r.pending)
        fmt::print("{}: lane {}: a pending section of {}, function {:#x} {}, {} records\n", path,
                   l.lane, engine_names(l.begin.engine), l.begin.function_id,
                   function_name(l.begin), l.records);
    for (const verify::resumable_section& s : r.resumable)
        fmt::print("{}: thread {:#x}: a section of justdo to be resumed, function {:#x} version "
                   "{:#x}, resume point {} of frame {}, {} locks\n",
                   path, s.thread, s.function_id, s.function_version, s.point, s.depth, s.locks);
}

std::string summary(const report& r, depth how) {
    std::string out(name_of(r.outcome));
    if (!r.has_header || how < depth::tables) return out;
    out += fmt::format(": {} blocks, {} bytes", r.blocks, r.block_bytes);
    if (how == depth::deep) out += fmt::format("; {} verified", r.blocks_verified);
    if (r.blocks_damaged > 0) out += fmt::format(", {} damaged", r.blocks_damaged);
    return out;
}

/// Prints blocks and lanes as they come: a pool may have more blocks than fit in memory as text.
class printing_visitor final : public verify::table_visitor {
public:
    printing_visitor(std::span<const std::byte> file, bool json) : file_(file), json_(json) {}
    void on_block(block b) override {
        const bool there = b.offset <= file_.size() && b.bytes <= file_.size() - b.offset;
        const std::string hash =
            there ? fmt::format("{:016x}", XXH3_64bits(file_.data() + b.offset, b.bytes)) : "cut";
        if (json_)
            fmt::print("{}{{\"offset\":{},\"bytes\":{},\"xxh3\":\"{}\"}}", separator(), b.offset,
                       b.bytes, hash);
        else fmt::print("block {:#x} {} bytes {}\n", b.offset, b.bytes, hash);
    }
    void on_fault(const verify::table_fault& f) override {
        if (!json_) fmt::print("chunk {:#x}: entry and bits disagree\n", f.chunk_offset);
    }

private:
    const char* separator() { return std::exchange(first_, false) ? "" : ","; }
    std::span<const std::byte> file_;
    bool json_, first_ = true;
};

json_text to_json(const verify::lane_image& lane) {
    json_text out{{"lane", lane.lane}, {"committed", lane.committed}, {"pending", lane.pending}};
    if (!lane.pending) return out;
    out.add("begin", {{"engine", engine_names(lane.begin.engine)},
                      {"function", lane.begin.function_id},
                      {"name", function_name(lane.begin)},
                      {"version", lane.begin.function_version},
                      {"epoch", lane.begin.epoch},
                      {"arguments", hex(lane.args, lane.args.size())}});
    json_text records = json_text::array();
    for (const verify::lane_record& r : lane.records)
        records.push({{"kind", verify::name_of(r.kind)},
                      {"offset", r.offset},
                      {"bytes", r.bytes},
                      {"payload", hex(r.payload, r.payload.size())}});
    out.add("records", records);
    return out;
}

void print_lane(const verify::lane_image& lane) {
    fmt::print("lane {}: committed {:#x}{}\n", lane.lane, lane.committed,
               lane.pending ? ", a section is pending" : "");
    if (!lane.pending) return;
    fmt::print("  begin      {} function {:#x} {} version {:#x} epoch {:#x} arguments {}\n",
               engine_names(lane.begin.engine), lane.begin.function_id, function_name(lane.begin),
               lane.begin.function_version, lane.begin.epoch, hex(lane.args, 64));
    for (const verify::lane_record& r : lane.records)
        fmt::print("  {:10} {:#x} {} bytes {}\n", verify::name_of(r.kind), r.offset, r.bytes,
                   hex(r.payload, 32));
}

} // namespace

result<pool_header> header_of(const std::string& path, std::span<const std::byte> file) {
    const header_copies copies = verify::read_headers(file);
    if (!copies.any_valid())
        return refusal(path, copies.any_pool() ? errc::corrupt : errc::not_a_pool,
                       copies.any_pool() ? "no header copy verifies"
                                         : "the file does not start with a pool header");
    const pool_header& header = copies.chosen();
    if (status s = check_header(path, header, file.size()); !s.ok()) return s;
    return header;
}

space space_of(const verify::pool_image& pool) {
    struct counting final : verify::table_visitor {
        space seen;
        void on_block(block b) override {
            blocks_of_size& of = seen.sizes[b.bytes];
            ++of.used;
            seen.used_bytes += b.bytes;
            const verify::extent_image* in = pool->extent_of(b.offset);
            if (in == nullptr) return;
            const std::uint64_t chunk_bytes = pool->chunk_bytes();
            const std::uint64_t chunk = b.offset - (b.offset - in->data_offset) % chunk_bytes;
            if (!pool->is_slab(b.bytes)) chunks_used += b.bytes / chunk_bytes;
            else if (chunk != last) { // they come in address order
                ++chunks_used;
                ++of.chunks;
                of.free += chunk_bytes / b.bytes;
            }
            last = chunk;
        }
        void on_fault(const verify::table_fault&) override { ++seen.faults; }
        const verify::pool_image* pool = nullptr;
        std::uint64_t last = 0, chunks_used = 0;
    } blocks;
    blocks.pool = &pool;
    walk_tables(pool, blocks);
    std::uint64_t chunks = 0;
    for (const verify::extent_image& e : pool.extents()) chunks += e.chunks;
    blocks.seen.free_chunks = chunks > blocks.chunks_used ? chunks - blocks.chunks_used : 0;
    for (auto& [bytes, of] : blocks.seen.sizes) of.free = of.free > of.used ? of.free - of.used : 0;
    std::uint64_t heap_bytes = 0;
    for (std::uint32_t i = 0; i < pool.header().extent_count; ++i)
        heap_bytes += pool.header().extents[i].size_bytes;
    blocks.seen.free_bytes =
        heap_bytes > blocks.seen.used_bytes ? heap_bytes - blocks.seen.used_bytes : 0;
    return std::move(blocks.seen);
}

void print_info(const std::string& path, const report& r, const space& blocks, bool json) {
    if (json) {
        json_text out = to_json(path, r, depth::structure);
        out.add("used_bytes", blocks.used_bytes);
        out.add("free_bytes", blocks.free_bytes);
        out.add("disk_bytes", blocks.disk_bytes);
        out.add("free_chunks", blocks.free_chunks);
        json_text by_bytes = json_text::array();
        for (const auto& [bytes, of] : blocks.sizes)
            by_bytes.push({{"block_bytes", bytes},
                           {"blocks", of.used},
                           {"used_bytes", bytes * of.used},
                           {"free_blocks", of.free}});
        out.add("blocks_by_bytes", by_bytes);
        fmt::print("{}\n", out.text());
        return;
    }
    print_findings(path, r);
    if (!r.has_header) return;
    const pool_header& h = r.header;
    fmt::print("layout      {} (hash {:#x})\n", text_in(h.layout, sizeof h.layout), h.layout_hash);
    if (is_migrating(h))
        fmt::print("migrating   to {} (hash {:#x})\n", text_in(h.next_layout, sizeof h.next_layout),
                   h.next_layout_hash);
    fmt::print("state       {}\n", state_of(r));
    fmt::print("opened      {} times, last in {} mode\n", h.generation,
               name(static_cast<hf::mode>(h.mode)));
    if (h.engines != 0) // closed, it needs those of its containers and objects alone
        fmt::print("engines     {}\n", engine_names(h.engines));
    fmt::print("size        {} bytes, at most {}; the file has {}\n", pool_bytes(h), h.max_bytes,
               r.file_bytes);
    fmt::print("heap        {} extents, chunks of {} bytes\n", h.extent_count, h.chunk_bytes);
    fmt::print("used        {} bytes in blocks; {} free, the heap's tables included\n",
               blocks.used_bytes, blocks.free_bytes);
    std::size_t shown = 0;
    for (const auto& [bytes, of] : blocks.sizes)
        if (++shown <= sizes_shown_max)
            fmt::print("            {:10} blocks of {} bytes{}\n", of.used, bytes,
                       of.free > 0 ? fmt::format(", and room for {}", of.free) : "");
    if (shown > sizes_shown_max)
        fmt::print("            and of {} sizes more\n", shown - sizes_shown_max);
    fmt::print("            {:10} chunks without a block\n", blocks.free_chunks);
    fmt::print("on disk     {} bytes\n", blocks.disk_bytes);
    for (const verify::persistent_object& o : r.objects)
        fmt::print("object      {}: class {} of version {}, {} bytes, a log of {}{}\n", o.name,
                   o.class_text, o.class_version, o.object_bytes, o.log_bytes,
                   o.swapped_out   ? "; swapped out to a file"
                   : o.groups == 0 ? ""
                                   : fmt::format("; {} calls in {} groups to be made again",
                                                 o.calls, o.groups));
    fmt::print("log lanes   {} of {} bytes\n", h.lane_count, h.lane_bytes);
    fmt::print("address     {:#x}", h.base_address);
    if ((h.required_features & feature_relocated) != 0)
        fmt::print(" (left open, with logs made at {:#x})", h.mapped_address);
    fmt::print("\n");
    fmt::print("uuid        {}\n", uuid_of(h));
    fmt::print("format      {}\n", h.format_version);
}

void print_verdict(const std::string& path, const report& r, depth how, bool json) {
    if (json) {
        fmt::print("{}\n", to_json(path, r, how).text());
        return;
    }
    print_findings(path, r);
    fmt::print("{}: {}\n", path, summary(r, how));
}

void print_dump(std::span<const std::byte> file, const pool_header& header, bool json) {
    const verify::pool_image pool(file, header);
    const root_words roots = pool.roots();
    if (json)
        fmt::print("{{\"root_offset\":{},\"root_bytes\":{},\"blocks\":[", roots.root_offset,
                   roots.root_bytes);
    else fmt::print("root {:#x} {} bytes\n", roots.root_offset, roots.root_bytes);
    printing_visitor blocks(file, json);
    walk_tables(pool, blocks);
    if (json) fmt::print("],\"lanes\":[");
    std::uint64_t budget = verify::log_budget(pool);
    for (std::uint32_t l = 0; l < header.lane_count; ++l) {
        const verify::lane_image lane = verify::read_lane(pool, l, budget);
        if (json) fmt::print("{}{}", l == 0 ? "" : ",", to_json(lane).text());
        else print_lane(lane);
    }
    if (json) fmt::print("]}}\n");
}

void print_repair(const std::string& path, const verify::repair_plan& plan, const report& found,
                  bool json) {
    if (json) {
        json_text out{{"repaired", plan.possible && !plan.nothing_to_do()},
                      {"done", plan.done},
                      {"lost", plan.lost},
                      {"afterwards", to_json(path, found, depth::deep)}};
        fmt::print("{}\n", out.text());
        return;
    }
    for (const std::string& line : plan.done) fmt::print("{}: {}\n", path, line);
    for (const std::string& line : plan.lost) fmt::print("{}: not mended: {}\n", path, line);
    if (plan.possible && plan.nothing_to_do()) fmt::print("{}: nothing to change\n", path);
    print_verdict(path, found, depth::deep, false);
}

} // namespace hf::tools
