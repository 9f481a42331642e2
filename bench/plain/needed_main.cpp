// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_plain_needed [--only NAME] [--ops N] [--records N] [--golden FILE]: for each operation of
// the corpus and of Holdfast's own structures, what engine clobber logs and what recovery needs
// (needed.hpp).
//
// --golden: compares with the lines of a file; HOLDFAST_GOLDEN_WRITE=1 writes it.
#include "../temporary_file.hpp"
#include "corpus.hpp"
#include "model.hpp"
#include "needed.hpp"
#include "structures.hpp"

#include <holdfast/author/persist.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace hf::bench::plain {
namespace {

struct options {
    std::string only;
    std::string golden;
    std::uint64_t ops = 1000, records = 1000;
};

struct line {
    std::string name;
    needs of = {};
    std::uint64_t fences = 0;
    /// Its library stores to the pool by functions that are not traced.
    bool stores_unseen = false;

    void add(const needs& before, const needs& now) {
        for (const auto each : {&needs::sections, &needs::stores, &needs::overwritten,
                                &needs::entries, &needs::logged, &needs::needed_entries,
                                &needs::needed, &needs::missing, &needs::unstored})
            of.*each += now.*each - before.*each;
    }
};

std::uint64_t key_of(std::uint64_t number) { return (number + 1) * 0x9e3779b97f4a7c15; }

[[noreturn]] void stop(const std::string& why) {
    fmt::print(stderr, "bench_plain_needed: {}\n", why);
    std::exit(1);
}

template <class Operation>
void measure(line& to, std::uint64_t first, std::uint64_t count, const Operation& one) {
    const needs before = thread_needs();
    const std::uint64_t fences = persist::thread_counters().fences;
    for (std::uint64_t i = first; i < first + count; ++i) one(i);
    to.add(before, thread_needs());
    to.fences += persist::thread_counters().fences - fences;
}

/// The operations of one subject, in a pool of its own: fills it, then inserts and removes the
/// oldest by turns.
std::vector<line> run(const subject& of, const options& how) {
    const temporary_file file("/dev/shm", "needed");
    hf::open_options open;
    open.layout = "bench/needed/1";
    open.max_threads = 1;
    open.mode = hf::mode::pmem;
    open.engines = {hf::clobber::engine()};
    auto pool = hf::pool::open(file.path(), open);
    if (!pool) stop(pool.error().what());
    struct root {
        std::byte bytes[root_bytes];
    };
    void* at = pool->root<root>();
    const std::uint64_t records = of.erase == nullptr ? 1 : std::min(how.records, of.elements_max);
    model should(of.is);
    line filling, inserted, erased;
    inserted.name = fmt::format("{}, {}", of.name, of.insert_name);
    if (of.erase != nullptr) erased.name = fmt::format("{}, {}", of.name, of.erase_name);
    inserted.stores_unseen = std::string_view(of.name) == "libstdc++ unordered_map";
    of.create(at, 2 * records);
    const auto insert = [&](std::uint64_t i) {
        of.insert(at, key_of(i), i % 128);
        should.insert(key_of(i), i % 128);
    };
    const auto erase = [&](std::uint64_t i) {
        of.erase(at, key_of(i));
        should.erase(key_of(i));
    };
    measure(filling, 0, records, insert);
    for (std::uint64_t done = 0; done < how.ops;) {
        const std::uint64_t count = std::min({std::uint64_t{100}, how.ops - done, records});
        measure(inserted, records + done, count, insert);
        if (of.erase != nullptr) measure(erased, done, count, erase);
        done += count;
    }
    if (const std::string other = should.difference(of, at); !other.empty()) stop(other);
    std::vector<line> lines{inserted};
    if (of.erase != nullptr) lines.push_back(erased);
    return lines;
}

std::string table_of(const std::vector<line>& lines) {
    std::string out = "| operation, a section | words overwritten | words logged | needed | "
                      "entries logged | needed | fences |\n|---|---|---|---|---|---|---|\n";
    for (const line& each : lines) {
        const auto per = [&](std::uint64_t events) {
            return static_cast<double>(events) / static_cast<double>(each.of.sections);
        };
        out +=
            fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", each.name,
                        per(each.of.overwritten), per(each.of.logged), per(each.of.needed),
                        per(each.of.entries), per(each.of.needed_entries), per(each.fences));
    }
    return out;
}

int compare(const std::string& path, const std::string& table) {
    if (std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr) {
        std::ofstream(path) << table;
        return 0;
    }
    std::ostringstream there;
    there << std::ifstream(path).rdbuf();
    if (there.str() == table) return 0;
    fmt::print("{} says:\n{}but it is:\n{}When that is meant: HOLDFAST_GOLDEN_WRITE=1\n", path,
               there.str(), table);
    return 1;
}

int run_all(const options& how) {
    std::vector<line> lines;
    for (const subjects& some : {hf_bench_plain_structures(), hf_bench_plain_clobber()})
        for (const subject* of = some.first; of != some.first + some.count; ++of) {
            if (std::string_view(of->name).find(how.only) == std::string_view::npos) continue;
            for (line& each : run(*of, how)) lines.push_back(std::move(each));
        }
    if (lines.empty()) stop("no subject has '" + how.only + "' in its name");
    for (const line& each : lines) {
        if (each.of.missing != 0)
            stop(fmt::format("{}: {} bytes of inputs were overwritten without a log entry",
                             each.name, each.of.missing));
        if (each.of.unstored != 0 && !each.stores_unseen)
            stop(fmt::format("{}: {} bytes were logged and not stored to", each.name,
                             each.of.unstored));
    }
    const std::string table = table_of(lines);
    if (!how.golden.empty()) return compare(how.golden, table);
    fmt::print("{}", table);
    return 0;
}

} // namespace
} // namespace hf::bench::plain

int main(int argc, char** argv) {
    hf::bench::plain::options how;
    CLI::App app{"What engine clobber logs, and what recovery needs."};
    app.add_option("--only", how.only, "subjects whose name has this");
    app.add_option("--ops", how.ops, "operations of a kind")->check(CLI::Range(1, 10'000'000));
    app.add_option("--records", how.records, "elements there before")
        ->check(CLI::Range(1, 10'000'000));
    app.add_option("--golden", how.golden, "compare with this file");
    CLI11_PARSE(app, argc, argv);
    return hf::bench::plain::run_all(how);
}
