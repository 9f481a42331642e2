// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One access stream, twice: `count` runs it through the simulator's caches and prints what missed;
// `run` makes the same accesses as machine code, one instruction each and nothing beside them, for
// cachegrind to look at; `prepare` does all but that. LEVEL 2 is what of the stream misses the
// first level: what the second is given.
#include <base/line.hpp>
#include <sim/hierarchy.hpp>
#include <slpmt/measure.hpp>

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <sys/mman.h>

namespace {

using namespace hf;

struct memory_access {
    std::uint64_t offset;
    bool is_store;
};

/// Caches alone: nothing acts when lines move.
struct indifferent : sim::line_client {
    std::uint16_t to_second(unsigned, std::uint64_t, std::uint16_t) override { return 0; }
    std::uint16_t to_first(std::uint16_t) override { return 0; }
    bool leaves(unsigned, std::uint64_t, std::uint16_t, bool dirty) override { return dirty; }
    void asked_for(unsigned, std::uint64_t, bool) override {}
    void write_back(std::uint64_t) override {}
};

/// "none", a workload's name, or "random:KIB", loads and stores of words of so much memory.
std::vector<memory_access> stream_of(const std::string& name) {
    std::vector<memory_access> made;
    if (name == "none") return made;
    if (name.starts_with("random:")) {
        std::uint64_t random = 7;
        const std::uint64_t words = std::stoull(name.substr(7)) * 128;
        for (int i = 0; i < 40'000; ++i) {
            random = random * 6364136223846793005 + 1442695040888963407;
            made.push_back({(random >> 33) % words * 8, (random >> 20 & 3) == 0});
        }
        return made;
    }
    const slpmt::recorded trace =
        slpmt::record({.workload = name, .insertions = 250, .value_bytes = 256});
    for (const slpmt::event& one : trace.events)
        if (one.kind == slpmt::event_kind::load || one.kind == slpmt::event_kind::store)
            made.push_back({one.offset, one.kind == slpmt::event_kind::store});
    return made;
}

struct counted {
    std::vector<memory_access> missing; // the first level
    sim::hierarchy::counts counts;
};

counted through_caches(const std::vector<memory_access>& stream) {
    indifferent nobody;
    sim::hierarchy caches{sim::parameters{}, nobody};
    counted got;
    for (const memory_access& one : stream)
        if (caches.reach(0, one.offset / line_bytes, one.is_store).missed)
            got.missing.push_back(one);
    got.counts = caches.counted();
    return got;
}

/// Executes the accesses: add rax, [rdi + offset] and mov [rdi + offset], rax. (valgrind does not
/// count a load whose value nobody uses.)
void execute(const std::vector<memory_access>& stream, bool prepare_only) {
    constexpr std::uint64_t arena_bytes = 64 << 20;
    std::string code;
    for (const memory_access& one : stream) {
        const auto offset = static_cast<std::uint32_t>(one.offset);
        if (one.offset + 8 > arena_bytes) fatal("the arena is too small");
        code += one.is_store ? "\x48\x89\x87" : "\x48\x03\x87";
        code.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    }
    code += '\xc3';
    const std::size_t begin = prepare_only ? code.size() - 1 : 0;
    void* const at =
        ::mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Lower bits of the address choose the sets of both cache models: a multiple of 4 MiB is as
    // good as 0.
    auto* const arena =
        static_cast<std::byte*>(::mmap(nullptr, arena_bytes + (4 << 20), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (at == MAP_FAILED || arena == MAP_FAILED) fatal("no memory");
    std::memcpy(at, code.data(), code.size());
    if (::mprotect(at, code.size(), PROT_READ | PROT_EXEC) != 0) fatal("no executable memory");
    reinterpret_cast<void (*)(std::byte*)>(static_cast<std::byte*>(at) +
                                           begin)(reinterpret_cast<std::byte*>(
        round_up(reinterpret_cast<std::uintptr_t>(arena), std::uintptr_t{4} << 20)));
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) fatal("usage: cachegrind_stream count|run|prepare STREAM LEVEL");
    std::vector<memory_access> stream = stream_of(argv[2]);
    counted got = through_caches(stream);
    if (argv[1] == std::string_view("count"))
        fmt::print("accesses={} first_misses={} second_misses={}\n", stream.size(),
                   got.counts.first_misses, got.counts.second_misses);
    else
        execute(argv[3] == std::string_view("2") ? got.missing : stream,
                argv[1] == std::string_view("prepare"));
    return 0;
}
