// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kills failure-atomic functions at every instruction, over the runtime as users have it.
//
// The functions are the oracle's scenarios (compiler/test/oracle): written against the compiler's
// analysis, or drawn at random. For each:
//
// 1. The states that may be found are made first: before, after one call, after two.
// 2. A child opens the pool and makes both calls, the second one instruction by instruction
//    (single_step.hpp): the first one takes thousands to attach the thread. Whenever the file has
//    changed, it is what a SIGKILL here would leave.
// 3. Each of these is written to the file and opened, as the next process would. The root object
//    and every allocated block must be byte for byte what they are in a state that is not older
//    than the last call that had returned. With --elsewhere another program does that first, which
//    has its own code and constants at other addresses.
// 4. The pool must go on working: the next call must take and free as many blocks as it would have,
//    wherever they lie now, and leave what the next process finds again.
#include "oracle.hpp"
#include "single_step.hpp"
#include <cli/command.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

/// Whether a lock is at that offset of the application's part: its word names the open in which it
/// was taken. Programs with locks define it.
extern "C" __attribute__((weak)) bool stepping_is_lock(std::size_t offset) noexcept;

namespace {

constexpr unsigned runs = 2;
// They free a part of the root object, which the oracle's heap forgives; or they link by distances,
// which differ where a block does.
constexpr std::array<std::string_view, 6> left_out = {
    "remove_odd", "append_growing", "append_in_place", "near_push", "near_cut", "near_steps"};
oracle::scenario* scenarios = nullptr;

/// Names the pool of another process, which this one is only to open.
constexpr const char* opens = "HOLDFAST_STEPPING_OPENS";
std::string pool_path() {
    const char* const others = std::getenv(opens);
    return others != nullptr ? others : fmt::format("/dev/shm/holdfast-stepping-{}.hf", ::getpid());
}

struct options {
    std::string file = pool_path();
    bool pmem = false;
    bool from_first = false;
    bool elsewhere = false;
    std::string unlike;
    std::string only;
};

options chosen;

hf::pool opened(hf::create creation) {
    hf::open_options how{.layout = "stepping/1",
                         .create_bytes = 128 << 10,
                         .max_bytes = 128 << 10,
                         .creation = creation,
                         .mode = chosen.pmem ? hf::mode::pmem : hf::mode::process,
                         .engines = {hf::clobber::engine(), hf::justdo::engine(),
                                     hf::redo::engine(), hf::undo::engine()},
                         .max_threads = 2,
                         .expert = {.seal = false}};
    auto pool = hf::pool::open(chosen.file, how);
    if (!pool) {
        fmt::print("{}\n", pool.error().what());
        std::exit(1);
    }
    hf::justdo::wait(*pool);
    return std::move(*pool);
}

/// The part of a pool that an application can see, wherever its blocks lie: a section that had
/// stored nothing yet may get other blocks when it is re-executed. The root object, then every
/// block in the order in which a walk over aligned words meets it; each word that leads to a block
/// is replaced by the block's number.
struct contents {
    std::vector<std::uint64_t> words;
    std::size_t unreached = 0; // blocks
    bool operator==(const contents&) const = default;
};

contents contents_of(hf::pool& pool) {
    const hf::pool::impl& in = pool.internals();
    const std::byte* const base = in.file->base();
    std::map<std::uint64_t, std::uint64_t> bytes; // of the blocks, by offset
    in.blocks.durable().for_each([&](hf::block b) { bytes[b.offset] = b.bytes; });

    contents all;
    std::vector<std::uint64_t> order; // of the walk: offsets
    std::map<std::uint64_t, std::size_t> number;
    const auto meet = [&](std::uint64_t offset) {
        const auto [at, is_new] = number.try_emplace(offset, order.size());
        if (is_new) order.push_back(offset);
        return at->second;
    };
    meet(static_cast<std::uint64_t>(oracle::pool - base));
    for (std::size_t i = 0; i < order.size(); ++i) {
        all.words.push_back(bytes[order[i]]);
        for (std::uint64_t at = 0; at < bytes[order[i]]; at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, base + order[i] + at, sizeof word);
            if (i == 0 && stepping_is_lock != nullptr && stepping_is_lock(at)) word = 0;
            const std::uint64_t offset = word - reinterpret_cast<std::uint64_t>(base);
            auto block = bytes.upper_bound(offset);
            if (block != bytes.begin() && offset - (--block)->first < block->second)
                word = meet(block->first) << 32 | (offset - block->first);
            all.words.push_back(word);
        }
    }
    all.unreached = bytes.size() - order.size();
    return all;
}

stepping::image read_file() {
    stepping::image bytes;
    const int fd = ::open(chosen.file.c_str(), O_RDONLY | O_CLOEXEC);
    bytes.resize(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
    if (::pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        std::exit(1);
    ::close(fd);
    return bytes;
}

/// The same file, so that it is not taken for a copy of a pool in use.
void write_file(const stepping::image& bytes) {
    const int fd = ::open(chosen.file.c_str(), O_WRONLY | O_CLOEXEC);
    if (::pwrite(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) ||
        ::ftruncate(fd, static_cast<off_t>(bytes.size())) != 0)
        std::exit(1);
    ::close(fd);
}

constexpr int same_addresses = 3;

/// The work of such a process.
int open_elsewhere() {
    if (fmt::format("{}", fmt::ptr(&chosen)) == chosen.unlike) return same_addresses;
    opened(hf::create::never);
    return 0;
}

/// Whether another process, with this program at other addresses, could open the pool.
bool opened_elsewhere() {
    std::string file = fmt::format("{}={}", opens, chosen.file);
    std::string unlike = fmt::format("--unlike={}", fmt::ptr(&chosen));
    std::string name = "stepping", mode = "--pmem";
    std::array<char*, 4> words{name.data(), unlike.data(), chosen.pmem ? mode.data() : nullptr,
                               nullptr};
    std::array<char*, 2> environment{file.data(), nullptr};
    for (unsigned tries = 0; tries < 8; ++tries) {
        pid_t child = 0;
        int how = 0;
        if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(),
                          environment.data()) != 0 ||
            ::waitpid(child, &how, 0) != child || !WIFEXITED(how))
            return false;
        if (WEXITSTATUS(how) != same_addresses) return WEXITSTATUS(how) == 0;
    }
    fmt::print("a program has the same addresses in every process here: randomize_va_space\n");
    return false;
}

struct tally {
    unsigned functions = 0, failures = 0;
    std::uint64_t instructions = 0, kills = 0;
};

class stepped_scenario {
public:
    stepped_scenario(const oracle::scenario& s, const stepping::image& empty_pool, tally& count)
        : s_(s), count_(count) {
        write_file(empty_pool);
        {
            hf::pool pool = opened(hf::create::never);
            s.prepare();
            states_.push_back(contents_of(pool));
        }
        const stepping::image prepared = read_file();
        {
            hf::pool pool = opened(hf::create::never);
            for (unsigned i = 0; i < runs; ++i) {
                s.run();
                states_.push_back(contents_of(pool));
            }
        }
        write_file(prepared);
    }

    void explore() {
        std::optional<hf::pool> in_child;
        const stepping::recording all = stepping::record(
            chosen.file, [&] { in_child.emplace(opened(hf::create::never)); },
            {.at_full_speed = chosen.from_first ? 0U : 1U, .all = runs}, s_.run);
        ++count_.functions;
        count_.instructions += all.instructions;
        if (!all.failure.empty()) {
            fail({all.instructions, 0, {}}, all.failure.c_str());
            return;
        }
        stepping::image killed = all.start;
        for (const stepping::moment& m : all.moments) {
            advance(killed, m);
            write_file(killed);
            ++count_.kills;
            if (!recovered(m)) return;
        }
    }

private:
    bool recovered(const stepping::moment& m) {
        if (chosen.elsewhere && !opened_elsewhere())
            return fail(m, "another process cannot open it");
        unsigned state = m.acknowledged; // found: the last call, or the one that was under way
        {
            hf::pool pool = opened(hf::create::never);
            const contents found = contents_of(pool);
            if (found != states_[state] && (state == runs || found != states_[++state]))
                return fail(m, "neither the state before the call nor the one after it");
            if (state == runs) return true;
            s_.run();
            if (contents_of(pool) != states_[++state])
                return fail(m, "the next call after recovery goes wrong");
        }
        hf::pool pool = opened(hf::create::never);
        return contents_of(pool) == states_[state] || fail(m, "the next call is not found again");
    }

    bool fail(const stepping::moment& m, const char* what) {
        ++count_.failures;
        fmt::print("FAIL {}: killed after instruction {}, {} calls had returned: {}\n", s_.name,
                   m.instruction, m.acknowledged, what);
        return false;
    }

    const oracle::scenario& s_;
    tally& count_;
    std::vector<contents> states_; // before the first call, and after each
};

/// The pool stays where it was made, and its root object with it.
std::byte* make_pool() {
    if (std::getenv(opens) != nullptr) return nullptr;
    ::unlink(chosen.file.c_str());
    hf::pool pool = opened(hf::create::always_new);
    struct application {
        std::byte bytes[oracle::heap_bytes];
    };
    return pool.root<application>()->bytes;
}

} // namespace

namespace oracle {

std::byte* const pool = make_pool();

scenario::scenario(const char* name, void (*prepare)(), void (*run)())
    : name(name), prepare(prepare), run(run), next(scenarios) {
    scenarios = this;
}

} // namespace oracle

extern "C" {
unsigned long oracle_digest(oracle::digested d) noexcept {
    return d.x[0] * 3 + (d.x[1] ^ d.x[2]) + d.x[3];
}
void* oracle_place(std::size_t offset) noexcept { return oracle::pool + offset; }
oracle::digested oracle_spread(unsigned long from) noexcept {
    return {{from, from * 3, from * 5, from * 7}};
}
}

int main(int argc, char** argv) {
    const hf::cli::program app{"Kills failure-atomic functions at every instruction."};
    app.flag("--pmem", chosen.pmem, "in mode pmem: one section's mark is left to the next");
    app.flag("--from-first", chosen.from_first, "steps through the first call as well");
    app.flag("--elsewhere", chosen.elsewhere, "another process opens the pool first");
    app.value("--unlike", chosen.unlike, "").group("");
    app.value("--only", chosen.only, "the scenario of this name");
    if (const auto status = app.read_or_say(argc, argv)) return *status;

    if (!chosen.unlike.empty()) return open_elsewhere();
    const stepping::image empty_pool = read_file();
    tally count;
    for (const oracle::scenario* s = scenarios; s != nullptr; s = s->next)
        if (std::ranges::find(left_out, s->name) == left_out.end() &&
            (chosen.only.empty() || chosen.only == s->name))
            stepped_scenario(*s, empty_pool, count).explore();
    ::unlink(chosen.file.c_str());
    fmt::print("stepping: functions={} instructions={} kills={} failures={}\n", count.functions,
               count.instructions, count.kills, count.failures);
    return count.failures == 0 && count.functions > 0 ? 0 : 1;
}
