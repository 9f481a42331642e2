// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long the write-back of a line takes on this machine by how many are under way (MOD §3,
// Fig. 4): 320 lines in the first-level cache, changed, flushed, and a fence after each N flushes.
// The time of all, by 320. Amdahl's law is fitted to it: of a flush alone, a share is serial.
// Prints one JSON object.
#include <holdfast/author/persist.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t line_bytes = 64, array_lines = 1 << 16;
constexpr std::uint64_t measured_lines = 320; // 20 KB: as in the paper, they fit into the cache
constexpr unsigned at_once[] = {1, 2, 4, 8, 16, 32, 64};

char* array_in(const std::string& folder) {
    std::string name = folder + "/holdfast-flushes-XXXXXX";
    const int file = ::mkstemp(name.data());
    if (file < 0 || ::ftruncate(file, array_lines * line_bytes) != 0) return nullptr;
    ::unlink(name.c_str());
    void* const at =
        ::mmap(nullptr, array_lines * line_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

/// ns a line, of one pass over lines that were just changed.
double pass(const std::vector<char*>& lines, unsigned flushes_a_fence, char value) {
    using clock = std::chrono::steady_clock;
    for (char* each : lines) *each = value;
    const auto begun = clock::now();
    unsigned under_way = 0;
    for (char* each : lines) {
        hf::persist::flush(hf::domain::adr, each, 1);
        if (++under_way == flushes_a_fence) hf::persist::fence(hf::domain::adr), under_way = 0;
    }
    if (under_way != 0) hf::persist::fence(hf::domain::adr);
    return std::chrono::duration<double, std::nano>(clock::now() - begun).count() /
           double(lines.size());
}

/// The serial share f that fits ns(N) = ns(1) * (f + (1 - f) / N) with the least squares.
double serial_share(const std::vector<double>& ns) {
    double over = 0, under = 0;
    for (std::size_t i = 1; i < ns.size(); ++i) {
        const double parallel = 1.0 / at_once[i];
        over += (ns[i] / ns[0] - parallel) * (1 - parallel);
        under += (1 - parallel) * (1 - parallel);
    }
    return over / under;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Latency of a flush by how many are under way (MOD, Fig. 4)"};
    std::string folder = "/dev/shm";
    unsigned passes = 2001;
    app.add_option("--dir", folder, "where the array goes");
    app.add_option("--passes", passes, "of which the median counts")
        ->check(CLI::Range(1, 1'000'000));
    CLI11_PARSE(app, argc, argv);
    char* const array = array_in(folder);
    if (array == nullptr) return std::fprintf(stderr, "no array in %s\n", folder.c_str()), 1;
    std::vector<std::size_t> places(array_lines);
    std::iota(places.begin(), places.end(), 0);
    std::ranges::shuffle(places, std::mt19937{1});
    std::vector<char*> lines;
    for (std::uint64_t i = 0; i < measured_lines; ++i)
        lines.push_back(array + places[i] * line_bytes);
    std::vector<double> ns;
    for (const unsigned flushes : at_once) {
        std::vector<double> each;
        for (unsigned i = 0; i < passes; ++i)
            each.push_back(pass(lines, flushes, static_cast<char>(i)));
        std::ranges::nth_element(each, each.begin() + passes / 2);
        ns.push_back(each[passes / 2]);
    }
    const nlohmann::ordered_json out{
        {"name", "flushes"}, {"instruction", hf::persist::flush_instruction()},
        {"passes", passes},  {"at_once", at_once},
        {"ns_a_line", ns},   {"serial_percent", 100 * serial_share(ns)}};
    std::printf("%s\n", out.dump().c_str());
    return 0;
}
