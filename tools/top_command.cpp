// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "top_command.hpp"

#include "json.hpp"
#include "lost_bytes.hpp"
#include "metrics_server.hpp"
#include "pool_report.hpp"
#include "removed_files.hpp"
#include <log/lane.hpp>
#include <pool/file_checks.hpp>
#include <verify/read_file.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

namespace hf::tools {
namespace {

struct asked {
    std::string path;
    double interval_s = 1;
    std::uint64_t count = 0; // of lines; 0: until somebody ends it
    bool json = false;
    std::string serve; // address; empty: it prints
};

/// One opening of one file. A copy of a pool has its uuid, and may have been opened as often.
struct opening {
    std::array<std::uint8_t, sizeof pool_header::uuid> uuid{};
    std::uint64_t generation = 0;
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const opening&) const = default;
};

/// The file's numbers at one moment. A writer changes it meanwhile: each number is one that it had.
struct sample {
    std::chrono::steady_clock::time_point at;
    opening of;
    std::uint64_t pool_bytes = 0;
    std::string layout;
    // By lane: its last section known to be committed, and how many have ended a word log.
    std::vector<std::uint64_t> committed, ended;
    space blocks;
    hf::mode mode = hf::mode::process;
    bool in_use = false;
    std::string user; // or a process that works on an earlier file of this pool
};

/// Looks once for the process that has the pool open: 'before' has it.
result<sample> sample_of(const std::string& path, const verify::read_file& file,
                         const sample* before) {
    const std::span<const std::byte> bytes = file.bytes();
    const result<pool_header> found = header_of(path, bytes);
    if (!found) return found.error();
    const pool_header& header = *found;
    sample now;
    now.at = std::chrono::steady_clock::now();
    struct stat about{};
    if (::fstat(file.descriptor(), &about) != 0)
        return refusal(path, errc::io_error, fmt::format("fstat: {}", std::strerror(errno)));
    now.of = {std::to_array(header.uuid), header.generation, about.st_dev, about.st_ino};
    now.mode = static_cast<hf::mode>(header.mode);
    now.layout = {header.layout, ::strnlen(header.layout, sizeof header.layout)};
    const verify::pool_image pool(bytes, header);
    now.pool_bytes = pool.pool_bytes();
    for (std::uint32_t lane = 0; lane < header.lane_count; ++lane) {
        const std::uint64_t at = header.lanes_offset + lane * header.lane_bytes;
        now.committed.push_back(pool.word(at + offsetof(lane_header, committed)));
        now.ended.push_back(pool.word(at + offsetof(lane_header, ended)));
    }
    now.blocks = space_of(pool);
    now.in_use = file.in_use();
    const bool same = before != nullptr && before->in_use && before->of == now.of;
    if (now.in_use) now.user = same ? before->user : file.user();
    else now.user = working_on_removed(path);
    return now;
}

result<sample> take(const std::string& path, const sample* before) {
    const auto file = verify::read_file::look(path);
    if (!file) return file.error();
    const lost_as_zeroes lost(file->bytes());
    auto now = sample_of(path, *file, before);
    if (lost.any())
        return refusal(path, errc::truncated,
                       fmt::format("expected {} bytes, found that the file was cut, or its disk "
                                   "failed, while it was read",
                                   file->bytes().size()));
    return now;
}

/// A header write, or a growth, in the middle of a look shows what no file has: the next look does
/// not.
result<sample> take_whole(const std::string& path, const sample* before) {
    constexpr int tries_max = 5;
    for (int tries = 1;; ++tries) {
        auto taken = take(path, before);
        if (taken || tries == tries_max) return taken;
        const errc why = taken.error().code();
        if (why != errc::corrupt && why != errc::truncated) return taken;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

struct progress {
    std::uint64_t sections = 0, lanes = 0; // lanes in which sections have ended
};

/// Another opening, or a smaller number (somebody has copied a file over it): the time between is
/// unknown.
progress between(const sample& a, const sample& b) {
    progress out;
    if (a.of != b.of || a.committed.size() != b.committed.size()) return out;
    for (std::size_t lane = 0; lane < a.committed.size(); ++lane) {
        // The first section of a lane is beyond the gap that every open leaves.
        std::uint64_t here = 0;
        if (b.ended[lane] > a.ended[lane]) here = b.ended[lane] - a.ended[lane];
        if (b.committed[lane] > a.committed[lane])
            here += (b.committed[lane] - a.committed[lane]) % epoch_gap;
        out.sections += here;
        if (here != 0) ++out.lanes;
    }
    return out;
}

void print_heading() {
    fmt::print("{:>12} {:>6} {:>10} {:>12} {:>12} {:>12}  {}\n", "sections/s", "lanes", "blocks",
               "used MiB", "free MiB", "pool MiB", "open in");
}

std::uint64_t blocks_in(const sample& of) {
    std::uint64_t blocks = 0;
    for (const auto& [bytes, each] : of.blocks.sizes) blocks += each.used;
    return blocks;
}

void print(const sample& before, const sample& now, bool json) {
    const progress made = between(before, now);
    const double sections_per_second = static_cast<double>(made.sections) /
                                       std::chrono::duration<double>(now.at - before.at).count();
    if (json) {
        const json_text out{{"sections_per_second", sections_per_second},
                            {"lanes", made.lanes},
                            {"blocks", blocks_in(now)},
                            {"used_bytes", now.blocks.used_bytes},
                            {"free_bytes", now.blocks.free_bytes},
                            {"pool_bytes", now.pool_bytes},
                            {"generation", now.of.generation},
                            {"mode", name(now.mode)},
                            {"in_use", now.in_use},
                            {"user", now.user}};
        fmt::print("{}\n", out.text());
    } else {
        const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
        fmt::print("{:>12.0f} {:>6} {:>10} {:>12.2f} {:>12.2f} {:>12.2f}  {}\n",
                   sections_per_second, made.lanes, blocks_in(now), mib(now.blocks.used_bytes),
                   mib(now.blocks.free_bytes), mib(now.pool_bytes),
                   now.user.empty() ? "nobody" : now.user);
    }
    std::fflush(stdout);
}

[[noreturn]] void refuse(const status& why) {
    fmt::print(stderr, "{}\n", why.what());
    throw cli::leave{2};
}

/// What --serve answers: of each request another look at the file.
class watched {
public:
    explicit watched(std::string path) : path_(std::move(path)) {}
    std::string page() {
        metrics_page out({{"pool", path_}});
        auto now = take_whole(path_, before_ ? &*before_ : nullptr);
        out.add("holdfast_pool_readable", "gauge", "Whether the file is a pool.", now ? 1 : 0);
        if (!now) {
            say(now.error().what());
            return out.text();
        }
        said_.clear();
        if (before_ && before_->of == now->of) sections_ += between(*before_, *now).sections;
        else sections_ = 0;
        const auto gauge = [&](const char* name, const char* help, std::uint64_t value) {
            out.add(name, "gauge", help, static_cast<double>(value));
        };
        out.add("holdfast_sections_total", "counter",
                "Sections that have ended in log lanes since this exporter first saw this "
                "opening of the pool.",
                static_cast<double>(sections_));
        gauge("holdfast_blocks", "Blocks in use.", blocks_in(*now));
        gauge("holdfast_used_bytes", "Bytes of blocks in use.", now->blocks.used_bytes);
        gauge("holdfast_free_bytes", "Bytes of the pool outside of blocks in use.",
              now->blocks.free_bytes);
        gauge("holdfast_pool_bytes", "Size of the pool.", now->pool_bytes);
        gauge("holdfast_generation", "How often the pool was opened for writing.",
              now->of.generation);
        gauge("holdfast_in_use", "Whether a process has the pool open.", now->in_use ? 1 : 0);
        out.add("holdfast_pool_info", "gauge", "Layout, durability mode and user of the pool.", 1,
                {{"layout", now->layout}, {"mode", name(now->mode)}, {"user", now->user}});
        before_ = std::move(*now);
        return out.text();
    }

private:
    /// Once, however often it is asked; whether anybody can read it is of no interest.
    void say(std::string why) {
        if (why == said_) return;
        std::fputs((why + '\n').c_str(), stderr);
        said_ = std::move(why);
    }
    std::string path_, said_;
    std::optional<sample> before_;
    std::uint64_t sections_ = 0;
};

void top(const asked& a) {
    answer_lost_bytes();
    if (!a.serve.empty()) {
        watched pool(a.path);
        refuse({errc::io_error, serve_metrics(a.serve, [&] { return pool.page(); })});
    }
    constexpr std::uint64_t lines_a_heading = 20;
    auto before = take_whole(a.path, nullptr);
    if (!before) refuse(before.error());
    if (before->mode == mode::power && before->in_use)
        fmt::print(stderr, "{}: open in mode power: shown is its file, as of the last checkpoint\n",
                   a.path);
    for (std::uint64_t line = 0; a.count == 0 || line < a.count; ++line) {
        std::this_thread::sleep_for(std::chrono::duration<double>(a.interval_s));
        auto now = take_whole(a.path, &*before);
        if (!now) refuse(now.error());
        if (!a.json && line % lines_a_heading == 0) print_heading();
        print(*before, *now, a.json);
        *before = std::move(*now);
    }
}

} // namespace

void add_top_command(const cli::command& app, char**) {
    const auto a = std::make_shared<asked>();
    const cli::command command = app.subcommand("top", "a pool at work: sections a second, space");
    command.value("POOL", a->path, "the pool's file").required();
    const cli::option interval =
        command.value("--interval", a->interval_s, "seconds between two lines")
            .between(0.01, 86400.0)
            .check([](const std::string& text) { // nan is in every range
                return std::isnan(std::strtod(text.c_str(), nullptr))
                           ? "expected a number of seconds, found nan"
                           : "";
            })
            .show_default();
    const cli::option count =
        command.value("--count", a->count, "how many lines; 0: until it is ended")
            .between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
    const cli::option json = command.flag("--json", a->json, "print one JSON object a line");
    command
        .value("--serve", a->serve,
               "print nothing: answer http://ADDRESS:PORT/metrics for Prometheus")
        .type_name("ADDRESS:PORT")
        .check(wrong_in_address)
        .excludes(interval)
        .excludes(count)
        .excludes(json);
    command.footer("Sections that have ended are counted, in engines that have log lanes: not "
                   "MOD's updates, nor justdo's. Nobody waits for it.");
    command.callback([a] { top(*a); });
}

} // namespace hf::tools
