// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memcached_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hf::kv {
namespace {

// Words of -o that describe what is so anyway, or what no client could notice.
constexpr std::array<std::string_view, 5> granted = {"maxconns_fast", "modern", "no_modern",
                                                     "lru_maintainer", "lru_crawler"};
constexpr std::array<std::string_view, 46> without_meaning = {"no_maxconns_fast",
                                                              "hashpower",
                                                              "tail_repair_time",
                                                              "hash_algorithm",
                                                              "no_lru_crawler",
                                                              "lru_crawler_sleep",
                                                              "lru_crawler_tocrawl",
                                                              "read_buf_mem_limit",
                                                              "no_lru_maintainer",
                                                              "hot_lru_pct",
                                                              "warm_lru_pct",
                                                              "hot_max_factor",
                                                              "warm_max_factor",
                                                              "temporary_ttl",
                                                              "slab_chunk_max",
                                                              "no_hashexpand",
                                                              "slab_reassign",
                                                              "no_slab_reassign",
                                                              "slab_automove",
                                                              "no_slab_automove",
                                                              "slab_automove_ratio",
                                                              "slab_automove_window",
                                                              "slab_automove_freeratio",
                                                              "slab_sizes",
                                                              "no_inline_ascii_resp",
                                                              "inline_ascii_resp",
                                                              "no_chunked_items",
                                                              "resp_obj_mem_limit",
                                                              "ext_page_size",
                                                              "ext_wbuf_size",
                                                              "ext_threads",
                                                              "ext_item_size",
                                                              "ext_item_age",
                                                              "ext_low_ttl",
                                                              "ext_drop_unread",
                                                              "ext_recache_rate",
                                                              "ext_compact_under",
                                                              "ext_drop_under",
                                                              "ext_max_frag",
                                                              "ext_max_sleep",
                                                              "ext_path",
                                                              "no_drop_privileges",
                                                              "drop_privileges",
                                                              "sock_cookie_id",
                                                              "ssl_wbuf_size",
                                                              "ssl_kernel_tls"};

template <class Names> bool has(const Names& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

// All of the text, or nothing.
template <class Number> bool read(std::string_view text, Number& number) {
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), last, number);
    return parsed.ec == std::errc() && parsed.ptr == last;
}

// One of 'names', by itself or by its place among them.
template <std::size_t N>
std::uint32_t read_choice(std::string_view name, std::string_view text,
                          const std::array<std::string_view, N>& names) {
    std::uint32_t place = 0;
    if (read(text, place) && place < N && !names[place].empty()) return place;
    const auto at = std::ranges::find(names, text);
    if (at == names.end() || text.empty())
        throw cli::wrong_usage(fmt::format("-o: Invalid {}: \"{}\"", name, text));
    return static_cast<std::uint32_t>(at - names.begin());
}

// -o ssl_…; false: any other option.
bool read_tls(std::string_view name, std::string_view given, tls_settings& to) {
    if (name == "ssl_session_cache") {
        to.session_cache = true;
        return true;
    }
    for (const auto& [named, text] :
         {std::pair{"ssl_chain_cert", &to.chain_cert}, std::pair{"ssl_key", &to.key},
          std::pair{"ssl_ciphers", &to.ciphers}, std::pair{"ssl_ca_cert", &to.ca_cert}})
        if (name == named) {
            if (given.empty()) throw cli::wrong_usage(fmt::format("-o: Missing {} argument", name));
            *text = given;
            return true;
        }
    using names = std::array<std::string_view, 4>;
    if (name == "ssl_verify_mode")
        to.verify_mode = read_choice(name, given, names{"none", "request", "require", "once"});
    else if (name == "ssl_keyformat")
        to.key_format = read_choice(name, given, names{"", "PEM", "DER"});
    else if (name == "ssl_min_version")
        to.min_version =
            read_choice(name, given, names{"tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3"});
    else return false;
    return true;
}

// Judges one word of -o. Returns the meaning that it lacks, or nothing.
std::string judge_word(std::string_view word, settings& chosen) {
    const auto equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    if (read_tls(name, value, chosen.secured)) return {};
    if (name == "idle_timeout") {
        if (equals == std::string_view::npos)
            throw cli::wrong_usage("-o: Missing numeric argument for idle_timeout");
        if (!read(value, chosen.idle_timeout_s))
            throw cli::wrong_usage("-o: idle_timeout: not a number of seconds");
        return {};
    }
    for (const auto& [named, to] : {std::pair{"watcher_logbuf_size", &chosen.watcher_bytes_max},
                                    std::pair{"worker_logbuf_size", &chosen.journal_bytes_max}}) {
        if (name != named) continue;
        std::uint32_t kilobytes = 0;
        if (equals == std::string_view::npos)
            throw cli::wrong_usage(fmt::format("-o: Missing {} argument", name));
        if (!read(value, kilobytes))
            throw cli::wrong_usage(fmt::format("-o: {}: not a number of kilobytes", name));
        *to = std::size_t{kilobytes} << 10;
        return {};
    }
    if (name == "ssl_wbuf_size" && !read(value, chosen.secured.write_buffer_kb))
        throw cli::wrong_usage("-o: ssl_wbuf_size: not a number of kilobytes");
    if (name == "track_sizes") chosen.track_sizes = true;
    if (has(granted, name) || name == "track_sizes") return {};
    if (has(without_meaning, name)) return fmt::format("-o {} means nothing here", name);
    throw cli::wrong_usage(fmt::format("-o: Illegal suboption \"{}\"", name));
}

} // namespace

void memcached_options::declare(const cli::command& app, settings& chosen) {
    app.flag("-d,--daemon", chosen.daemon, "Serve from the background, once clients can connect");
    app.flag("-r,--enable-coredumps", chosen.core_files, "Allow core files of any size");
    app.flag("-A,--enable-shutdown", chosen.shutdown_enabled, "Obey the command shutdown");
    app.flag("-F,--disable-flush-all", chosen.flush_disabled, "Refuse the command flush_all");
    app.flag("-X,--disable-dumping", chosen.dump_disabled,
             "Refuse the command lru_crawler metadump");
    app.value("-o,--extended", extended_,
              "memcached's: idle_timeout=SECONDS, watcher_logbuf_size=KILOBYTES, "
              "worker_logbuf_size=KILOBYTES, ssl_chain_cert=FILE, ssl_key=FILE, "
              "ssl_keyformat=PEM|DER, ssl_verify_mode=0..3, ssl_ca_cert=FILE, ssl_ciphers=LIST, "
              "ssl_min_version=0..3, ssl_session_cache, track_sizes, and others that mean nothing")
        .separated_by(',');
    app.value("-B,--protocol", protocol_,
              "What clients speak: ascii, binary or auto, which is by the first byte of each")
        .show_default("auto");
    app.flag("-W,--disable-watch", chosen.watch_disabled, "Refuse the command watch");
    app.flag("-Z,--enable-ssl", chosen.secured.enabled,
             "TLS for clients over TCP, but those of a listener like notls:ADDR (-l); needs -o "
             "ssl_chain_cert=FILE, and ssl_key=FILE unless the key stands there, too");
    app.value("-D", delimiter_,
              "What ends a key's prefix; counts prefixes from the start (stats detail)")
        .type_name("CHAR");
    const std::string group = "Accepted as memcached does, without an effect";
    const auto word = [&](const char* names, std::string& to) {
        app.value(names, to).group(group);
    };
    app.flag("-C,--disable-cas", no_cas_).group(group);
    app.flag("-k,--lock-memory", lock_memory_).group(group);
    app.flag("-L,--enable-largepages", large_pages_).group(group);
    word("-R,--max-reqs-per-event", requests_);
    word("-f,--slab-growth-factor", factor_);
    word("-n,--slab-min-size", chunk_);
}

std::vector<std::string> memcached_options::judge(settings& chosen) const {
    std::vector<std::string> warnings;
    const auto none = [&](bool given, const char* what) {
        if (given) warnings.emplace_back(what);
    };
    std::uint32_t whole = 0;
    if (!requests_.empty() && (!read(requests_, whole) || whole == 0))
        throw cli::wrong_usage("-R: Number of requests per event must be greater than 0");
    if (!chunk_.empty() && (!read(chunk_, whole) || whole == 0))
        throw cli::wrong_usage("-n: Chunk size must be greater than 0");
    if (!factor_.empty() && !(std::strtod(factor_.c_str(), nullptr) > 1))
        throw cli::wrong_usage("-f: Factor must be greater than 1");
    if (!protocol_.empty() && protocol_ != "auto" && protocol_ != "ascii" && protocol_ != "binary")
        throw cli::wrong_usage("-B: should be one of auto, binary, or ascii, not " + protocol_);
    if (!delimiter_.empty()) chosen.prefix_delimiter = delimiter_.front();
    if (protocol_ == "ascii") chosen.speaks = protocol::ascii;
    if (protocol_ == "binary") chosen.speaks = protocol::binary;
    none(no_cas_, "-C: CAS numbers are always kept");
    none(lock_memory_, "-k: the pool's pages are the file system's, and stay unlocked");
    none(large_pages_, "-L: the file system decides on the size of the pool's pages");
    none(!requests_.empty(), "-R: turns are by bytes here, not by requests");
    none(!factor_.empty(), "-f: there are no slabs here");
    none(!chunk_.empty(), "-n: there are no slabs here");
    for (const std::string& word : extended_)
        if (std::string warning = judge_word(word, chosen); !warning.empty())
            warnings.push_back(std::move(warning));
    judge_tls(chosen);
    none(chosen.secured.enabled && !chosen.unix_path.empty(),
         "-Z: clients of the Unix socket speak no TLS");
    return warnings;
}

void memcached_options::judge_tls(const settings& chosen) {
    if (!chosen.secured.enabled) return;
    if (chosen.tcp_port == 0)
        throw cli::wrong_usage("-Z: You cannot enable SSL without a TCP port.");
    if (chosen.secured.chain_cert.empty())
        throw cli::wrong_usage("-Z: needs a certificate (-o ssl_chain_cert=FILE,ssl_key=FILE)");
}

} // namespace hf::kv
