// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "memcached_options.hpp"
#include <cli/command.hpp>

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
        throw cli::wrong_usage("not a size: " + text);
    if (unit == "k" || unit == "K") return number << 10;
    if (unit == "m" || unit == "M") return number << 20;
    if (!unit.empty()) throw cli::wrong_usage("not a size: " + text);
    return number;
}

std::uint32_t parse_mask(const std::string& text) {
    std::uint32_t mask = 0;
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), last, mask, 8);
    if (parsed.ec != std::errc() || parsed.ptr != last || mask > 0777)
        throw cli::wrong_usage("not an octal mask: " + text);
    return mask;
}

struct raw {
    std::uint64_t megabytes = 64;
    std::string item_max = "1m", unix_mask = "700", mode = "process", when_torn;
    int udp_port = 0;
    std::uint64_t buffer_megabytes = 0;
    bool no_evictions = false;
};

void declare(const cli::program& app, settings& chosen, raw& given) {
    app.last_value_counts();
    app.version("-V,--version", fmt::format("holdfast-kv {}", version_text));
    app.value("--pool", chosen.store.path, "Pool file with the items; made when missing")
        .required()
        .type_name("FILE");
    app.value("--mode", given.mode,
              "What items survive: process (kill -9), pmem (power loss, on persistent memory) or "
              "power (power loss, on any disk)")
        .one_of({"process", "pmem", "power"})
        .show_default();
    app.value("--when-torn", given.when_torn,
              "What to do with a pool that a failure of the machine may have torn: refuse it, "
              "salvage what is there, or discard it, which sets the file aside under a name with "
              "a date and begins empty; default: discard in mode process, else refuse")
        .one_of({"refuse", "salvage", "discard"});
    app.flag("--look-through", chosen.store.look_through,
             "Look through all of the pool first, and refuse a damaged one");
    app.value("-p,--port", chosen.tcp_port, "TCP port; -1: any free one, 0: none")
        .between(-1, 65535)
        .show_default();
    app.value("-U,--udp-port", given.udp_port, "UDP port: 0, there is no UDP").show_default();
    app.value("-s,--unix-socket", chosen.unix_path, "Unix socket to listen on instead of TCP")
        .type_name("FILE");
    app.value("-a,--unix-mask", given.unix_mask, "Access mask of the Unix socket, octal")
        .show_default();
    app.value("-l,--listen", chosen.addresses, "Addresses to listen on, separated by commas")
        .type_name("ADDR");
    app.value("-m,--memory-limit", given.megabytes,
              "Megabytes the pool may grow to; a pool's own limit is raised, not lowered")
        .between(std::uint64_t{1}, std::uint64_t{1} << 20)
        .show_default();
    app.flag("-M,--disable-evictions", given.no_evictions, "Refuse to store when the pool is full");
    app.value("-I,--max-item-size", given.item_max, "Largest item, with k or m").show_default();
    app.value("-t,--threads", chosen.threads, "Serving threads")
        .between(1U, threads_most)
        .show_default();
    app.value("-c,--conn-limit", chosen.connections_max, "Most connections at a time")
        .between(1U, 1U << 20)
        .show_default();
    app.value("-b,--listen-backlog", chosen.backlog, "Length of the queue of new connections")
        .between(1U, 1U << 16)
        .show_default();
    app.value("--request-timeout", chosen.request_timeout_s,
              "Seconds without progress after which half a request, or a client that does not "
              "read, is hung up on; 0: never")
        .between(0U, timeout_most_s)
        .show_default();
    app.value("--idle-timeout", chosen.idle_timeout_s,
              "Seconds between requests after which a client is hung up on; 0: never")
        .between(0U, timeout_most_s)
        .show_default();
    app.value("--buffer-limit", given.buffer_megabytes,
              "Megabytes that half-sent requests and unread replies of all clients may hold; "
              "default: 256, and four of the largest items (-I)")
        .between(std::uint64_t{1}, std::uint64_t{1} << 20);
    app.value("-P,--pidfile", chosen.pid_file, "File to write the process id to").type_name("FILE");
    app.value("-u,--user", chosen.user,
              "User to become when started as root: needed then, and root itself is allowed")
        .type_name("USER");
}

} // namespace

command_line parse_command_line(int argc, char** argv) {
    command_line line;
    raw given;
    const cli::program app("A memcached-protocol server whose items survive kill -9",
                           "holdfast-kv");
    memcached_options others;
    declare(app, line.chosen, given);
    others.declare(app, line.chosen);
    app.value("--engine", line.engine,
              "What makes changes failure-atomic: sections, whose log suits the mode (auto), or a "
              "durable map (mod). Neither opens the other's pools")
        .one_of({"auto", "mod"});
    app.count("-v,--verbose", line.verbosity, "Say what happens; -vv: also what clients send");
    try {
        app.read(argc, argv);
        line.warnings = others.judge(line.chosen);
        if (given.megabytes < megabytes_least) {
            line.warnings.push_back(
                fmt::format("-m {}: a pool takes {} at least", given.megabytes, megabytes_least));
            given.megabytes = megabytes_least;
        }
        if (given.udp_port != 0)
            throw cli::wrong_usage("-U: there is no UDP here; only 0 is accepted");
        const std::uint64_t item_bytes_max = parse_bytes(given.item_max);
        if (item_bytes_max < item_bytes_least || item_bytes_max > item_bytes_most)
            throw cli::wrong_usage("-I: from 1k to 1024m, not " + given.item_max);
        if (item_bytes_max > given.megabytes << 19)
            throw cli::wrong_usage("-I: at most half of the memory limit (-m)");
        line.chosen.store.item_bytes_max = static_cast<std::uint32_t>(item_bytes_max);
        if (given.buffer_megabytes != 0 && given.buffer_megabytes << 20 < 2 * item_bytes_max)
            throw cli::wrong_usage("--buffer-limit: at least two of the largest items (-I)");
        line.chosen.connection_bytes_max = given.buffer_megabytes != 0
                                               ? given.buffer_megabytes << 20
                                               : std::max(buffer_bytes_least, 4 * item_bytes_max);
        line.chosen.unix_mask = parse_mask(given.unix_mask);
        // A server of bytes from anywhere is root only where somebody said so.
        if (line.chosen.user.empty() && ::geteuid() == 0)
            throw cli::wrong_usage("can't run as root without the -u switch: -u USER");
        if (line.chosen.tcp_port == 0 && line.chosen.unix_path.empty())
            throw cli::wrong_usage("-p 0 without -s: nothing to listen on");
    } catch (const cli::leave& answered) { // --help, --version
        line.exit_code = answered.status;
        return line;
    } catch (const cli::wrong_usage& wrong) {
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
