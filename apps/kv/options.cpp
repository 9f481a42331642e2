// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "memcached_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <unistd.h>

namespace hf::kv {
namespace {

constexpr std::uint64_t item_bytes_least = 1U << 10, item_bytes_most = 1U << 30;
constexpr std::uint64_t megabytes_least = 4; // memcached starts with less
constexpr std::uint64_t buffer_bytes_least = 256ULL << 20;
constexpr std::uint32_t timeout_most_s = 1U << 30;
constexpr std::uint32_t threads_most = 60; // of the pool's 64 log lanes

// "1048576", "512k", "2m": as memcached's -I.
std::uint64_t parse_bytes(const std::string& text) {
    std::uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), last, number);
    const std::string_view unit(parsed.ptr, static_cast<std::size_t>(last - parsed.ptr));
    if (parsed.ec != std::errc() || number > item_bytes_most)
        throw CLI::ValidationError("not a size: " + text);
    if (unit == "k" || unit == "K") return number << 10;
    if (unit == "m" || unit == "M") return number << 20;
    if (!unit.empty()) throw CLI::ValidationError("not a size: " + text);
    return number;
}

std::uint32_t parse_mask(const std::string& text) {
    std::uint32_t mask = 0;
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), last, mask, 8);
    if (parsed.ec != std::errc() || parsed.ptr != last || mask > 0777)
        throw CLI::ValidationError("not an octal mask: " + text);
    return mask;
}

struct raw {
    std::uint64_t megabytes = 64;
    std::string item_max = "1m", unix_mask = "700", mode = "process", when_torn;
    int udp_port = 0;
    std::uint64_t buffer_megabytes = 0;
    bool no_evictions = false;
};

void declare(CLI::App& app, settings& chosen, raw& given) {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast); // as getopt
    app.set_version_flag("-V,--version", fmt::format("holdfast-kv {}", version_text));
    app.add_option("--pool", chosen.store.path, "Pool file with the items; made when missing")
        ->required()
        ->type_name("FILE");
    app.add_option(
           "--mode", given.mode,
           "What items survive: process (kill -9), pmem (power loss, on persistent memory) or "
           "power (power loss, on any disk)")
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    app.add_option("--when-torn", given.when_torn,
                   "What to do with a pool that a failure of the machine may have torn: refuse it, "
                   "salvage what is there, or discard it, which sets the file aside under a name "
                   "with a date and begins empty; default: discard in mode process, else refuse")
        ->check(CLI::IsMember({"refuse", "salvage", "discard"}));
    app.add_flag("--look-through", chosen.store.look_through,
                 "Look through all of the pool first, and refuse a damaged one");
    app.add_option("-p,--port", chosen.tcp_port, "TCP port; -1: any free one, 0: none")
        ->check(CLI::Range(-1, 65535))
        ->capture_default_str();
    app.add_option("-U,--udp-port", given.udp_port, "UDP port: 0, there is no UDP")
        ->capture_default_str();
    app.add_option("-s,--unix-socket", chosen.unix_path, "Unix socket to listen on instead of TCP")
        ->type_name("FILE");
    app.add_option("-a,--unix-mask", given.unix_mask, "Access mask of the Unix socket, octal")
        ->capture_default_str();
    app.add_option("-l,--listen", chosen.addresses, "Addresses to listen on, separated by commas")
        ->type_name("ADDR");
    app.add_option("-m,--memory-limit", given.megabytes,
                   "Megabytes the pool may grow to; a pool's own limit is raised, not lowered")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
        ->capture_default_str();
    app.add_flag("-M,--disable-evictions", given.no_evictions,
                 "Refuse to store when the pool is full");
    app.add_option("-I,--max-item-size", given.item_max, "Largest item, with k or m")
        ->capture_default_str();
    app.add_option("-t,--threads", chosen.threads, "Serving threads")
        ->check(CLI::Range(1U, threads_most))
        ->capture_default_str();
    app.add_option("-c,--conn-limit", chosen.connections_max, "Most connections at a time")
        ->check(CLI::Range(1U, 1U << 20))
        ->capture_default_str();
    app.add_option("-b,--listen-backlog", chosen.backlog, "Length of the queue of new connections")
        ->check(CLI::Range(1U, 1U << 16))
        ->capture_default_str();
    app.add_option("--request-timeout", chosen.request_timeout_s,
                   "Seconds without progress after which half a request, or a client that does not "
                   "read, is hung up on; 0: never")
        ->check(CLI::Range(0U, timeout_most_s))
        ->capture_default_str();
    app.add_option("--idle-timeout", chosen.idle_timeout_s,
                   "Seconds between requests after which a client is hung up on; 0: never")
        ->check(CLI::Range(0U, timeout_most_s))
        ->capture_default_str();
    app.add_option("--buffer-limit", given.buffer_megabytes,
                   "Megabytes that half-sent requests and unread replies of all clients may hold; "
                   "default: 256, and four of the largest items (-I)")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20));
    app.add_option("-P,--pidfile", chosen.pid_file, "File to write the process id to")
        ->type_name("FILE");
    app.add_option("-u,--user", chosen.user,
                   "User to become when started as root, who must name one; root itself is one")
        ->type_name("USER");
}

} // namespace

command_line parse_command_line(int argc, char** argv) {
    command_line line;
    raw given;
    CLI::App app("A memcached-protocol server whose items survive kill -9", "holdfast-kv");
    memcached_options others;
    declare(app, line.chosen, given);
    others.declare(app, line.chosen);
    app.add_option("--engine", line.engine,
                   "What makes changes failure-atomic: the logs of clobber or undo, or the durable "
                   "map of mod. Pools of mod are not those of the others")
        ->check(CLI::IsMember({"clobber", "undo", "mod"}));
    app.add_flag("-v,--verbose", line.verbosity, "Say what happens; -vv: also what clients send");
    try {
        app.parse(argc, argv);
        line.warnings = others.judge(line.chosen);
        if (given.megabytes < megabytes_least) {
            line.warnings.push_back(
                fmt::format("-m {}: a pool takes {} at least", given.megabytes, megabytes_least));
            given.megabytes = megabytes_least;
        }
        if (given.udp_port != 0)
            throw CLI::ValidationError("-U: there is no UDP here; only 0 is accepted");
        const std::uint64_t item_bytes_max = parse_bytes(given.item_max);
        if (item_bytes_max < item_bytes_least || item_bytes_max > item_bytes_most)
            throw CLI::ValidationError("-I: from 1k to 1024m, not " + given.item_max);
        if (item_bytes_max > given.megabytes << 19)
            throw CLI::ValidationError("-I: at most half of the memory limit (-m)");
        line.chosen.store.item_bytes_max = static_cast<std::uint32_t>(item_bytes_max);
        if (given.buffer_megabytes != 0 && given.buffer_megabytes << 20 < 2 * item_bytes_max)
            throw CLI::ValidationError("--buffer-limit: at least two of the largest items (-I)");
        line.chosen.connection_bytes_max = given.buffer_megabytes != 0
                                               ? given.buffer_megabytes << 20
                                               : std::max(buffer_bytes_least, 4 * item_bytes_max);
        line.chosen.unix_mask = parse_mask(given.unix_mask);
        // A server of bytes from anywhere is root only where somebody said so.
        if (line.chosen.user.empty() && ::geteuid() == 0)
            throw CLI::ValidationError("can't run as root without the -u switch: -u USER");
        if (line.chosen.tcp_port == 0 && line.chosen.unix_path.empty())
            throw CLI::ValidationError("-p 0 without -s: nothing to listen on");
    } catch (const CLI::Success& asked) { // --help, --version
        line.exit_code = app.exit(asked);
        return line;
    } catch (const CLI::ParseError& wrong) {
        std::fprintf(stderr, "holdfast-kv: %s (see --help)\n", wrong.what());
        line.exit_code = 2;
        return line;
    }
    line.chosen.store.max_bytes = given.megabytes << 20;
    line.chosen.store.mode = given.mode == "pmem"    ? mode::pmem
                             : given.mode == "power" ? mode::power
                                                     : mode::process;
    line.chosen.store.evict = !given.no_evictions;
    // A cache comes back by itself; where items were to survive a power cut, somebody decides.
    if (given.when_torn.empty())
        given.when_torn = line.chosen.store.mode == mode::process ? "discard" : "refuse";
    line.chosen.store.torn = given.when_torn == "discard"   ? when_torn::discard
                             : given.when_torn == "salvage" ? when_torn::salvage
                                                            : when_torn::refuse;
    return line;
}

} // namespace hf::kv
