// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `stats` and its variants. Names are memcached's if the meaning is the same; `stats holdfast` has
// the numbers that only a persistent store has.
#include "service.hpp"

#include <holdfast/statistics.hpp>

#include <event2/event.h>
#include <fmt/format.h>

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

namespace hf::kv {
namespace {

struct named_count {
    std::string_view name;
    count what;
};

constexpr named_count general_counts[] = {
    {"cmd_get", count::cmd_get},
    {"cmd_set", count::cmd_set},
    {"cmd_flush", count::cmd_flush},
    {"cmd_touch", count::cmd_touch},
    {"cmd_meta", count::cmd_meta},
    {"get_hits", count::get_hits},
    {"get_misses", count::get_misses},
    {"get_expired", count::get_expired},
    {"get_flushed", count::get_flushed},
    {"delete_misses", count::delete_misses},
    {"delete_hits", count::delete_hits},
    {"incr_misses", count::incr_misses},
    {"incr_hits", count::incr_hits},
    {"decr_misses", count::decr_misses},
    {"decr_hits", count::decr_hits},
    {"cas_misses", count::cas_misses},
    {"cas_hits", count::cas_hits},
    {"cas_badval", count::cas_badval},
    {"touch_hits", count::touch_hits},
    {"touch_misses", count::touch_misses},
    {"store_too_large", count::store_too_large},
    {"store_no_memory", count::store_no_memory},
    {"bytes_read", count::bytes_read},
    {"bytes_written", count::bytes_written},
    {"idle_kicks", count::idle_kicks},
    {"stalled_kicks", count::stalled_kicks},
    {"memory_kicks", count::memory_kicks},
};

constexpr named_count persistence_counts[] = {
    {"sections", count::sections},       {"ordering_points", count::ordering_points},
    {"fences", count::fences},           {"flushes", count::flushes},
    {"log_entries", count::log_entries}, {"log_bytes", count::log_bytes},
    {"pm_bytes", count::pm_bytes},
};

// Memcached's counters of machinery that is not here, so they stay 0. Monitors ask for all of them.
constexpr std::string_view never_happens[] = {"response_obj_oom",
                                              "response_obj_count",
                                              "response_obj_bytes",
                                              "read_buf_count",
                                              "read_buf_bytes",
                                              "read_buf_bytes_free",
                                              "read_buf_oom",
                                              "reserved_fds",
                                              "auth_cmds",
                                              "auth_errors",
                                              "listen_disabled_num",
                                              "time_in_listen_disabled_us",
                                              "conn_yields",
                                              "hash_power_level",
                                              "hash_bytes",
                                              "hash_is_expanding",
                                              "slab_reassign_rescues",
                                              "slab_reassign_chunk_rescues",
                                              "slab_reassign_evictions_nomem",
                                              "slab_reassign_inline_reclaim",
                                              "slab_reassign_busy_items",
                                              "slab_reassign_busy_deletes",
                                              "slab_reassign_running",
                                              "slabs_moved",
                                              "lru_crawler_running",
                                              "lru_crawler_starts",
                                              "lru_maintainer_juggles",
                                              "malloc_fails",
                                              "unexpected_napi_ids",
                                              "round_robin_fallback",
                                              "slab_global_page_pool",
                                              "expired_unfetched",
                                              "evicted_unfetched",
                                              "evicted_active",
                                              "crawler_reclaimed",
                                              "crawler_items_checked",
                                              "lrutail_reflocked",
                                              "moves_to_cold",
                                              "moves_to_warm",
                                              "moves_within_lru",
                                              "direct_reclaims",
                                              "lru_bumps_dropped"};
// The same of each class of sizes; and what is counted for the server as a whole, not for each.
constexpr std::string_view never_in_items[] = {
    "number_hot",        "number_warm",       "age_hot",
    "age_warm",          "evicted",           "evicted_nonzero",
    "evicted_time",      "outofmemory",       "tailrepairs",
    "reclaimed",         "expired_unfetched", "evicted_unfetched",
    "evicted_active",    "crawler_reclaimed", "crawler_items_checked",
    "lrutail_reflocked", "moves_to_cold",     "moves_to_warm",
    "moves_within_lru",  "direct_reclaims",   "hits_to_hot",
    "hits_to_warm",      "hits_to_cold",      "hits_to_temp"};
constexpr std::string_view never_in_slabs[] = {
    "free_chunks", "free_chunks_end", "get_hits", "cmd_set",    "delete_hits",
    "incr_hits",   "decr_hits",       "cas_hits", "cas_badval", "touch_hits"};
// Settings of machinery that is not here.
constexpr std::string_view switched_off[] = {
    "auth_enabled_sasl", "auth_enabled_ascii", "slab_reassign",
    "lru_crawler",       "temp_lru",           "lru_maintainer_thread",
    "lru_segmented",     "ext_drop_unread",    "inline_ascii_response"};
struct named_text {
    std::string_view name, text;
};
// How it is set: as memcached has it at first.
constexpr named_text idle_settings[] = {{"oldest", "0"},
                                        {"growth_factor", "2.00"}, // that of the classes here
                                        {"chunk_size", "48"},
                                        {"num_threads_per_udp", "0"},
                                        {"reqs_per_event", "20"},
                                        {"hashpower_init", "0"},
                                        {"slab_automove", "0"},
                                        {"slab_automove_ratio", "0.80"},
                                        {"slab_automove_window", "30"},
                                        {"slab_automove_freeratio", "0.010"},
                                        {"slab_chunk_max", "524288"},
                                        {"lru_crawler_sleep", "100"},
                                        {"lru_crawler_tocrawl", "0"},
                                        {"tail_repair_time", "0"},
                                        {"hash_algorithm", "xxh3"},
                                        {"hot_lru_pct", "10"},
                                        {"warm_lru_pct", "25"},
                                        {"hot_max_factor", "0.10"},
                                        {"warm_max_factor", "2.00"},
                                        {"temporary_ttl", "60"},
                                        {"read_buf_mem_limit", "0"},
                                        {"ext_item_size", "512"},
                                        {"ext_item_age", "4294967295"},
                                        {"ext_low_ttl", "0"},
                                        {"ext_recache_rate", "2000"},
                                        {"ext_wbuf_size", "4194304"},
                                        {"ext_compact_under", "0"},
                                        {"ext_drop_under", "0"},
                                        {"ext_max_sleep", "1000000"},
                                        {"ext_max_frag", "0.80"},
                                        {"num_napi_ids", "(null)"},
                                        {"memory_file", "(null)"}};
constexpr std::uint64_t page_bytes = 1 << 20; // memcached's, for those that multiply

std::uint64_t of(const counts& sums, count what) { return sums[static_cast<std::size_t>(what)]; }

std::string seconds(const timeval& t) { return fmt::format("{}.{:06}", t.tv_sec, t.tv_usec); }

void general(byte_buffer& out, service& s) {
    store& items = *s.items;
    const counts sums = items.counted().sums();
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    std::uint64_t bytes = 0;
    items.sample_classes(bytes);
    const std::uint32_t now = items.now();
    append_stat(out, "pid", static_cast<std::uint64_t>(::getpid()));
    append_stat(out, "uptime", now - s.started);
    append_stat(out, "time", now);
    append_stat(out, "version", version_text);
    append_stat(out, "libevent", event_get_version());
    append_stat(out, "pointer_size", 8 * sizeof(void*));
    append_stat(out, "rusage_user", seconds(used.ru_utime));
    append_stat(out, "rusage_system", seconds(used.ru_stime));
    append_stat(out, "max_connections", s.chosen.connections_max);
    append_stat(out, "curr_connections", s.curr_connections.load());
    append_stat(out, "total_connections", s.total_connections.load());
    append_stat(out, "rejected_connections", s.rejected_connections.load());
    append_stat(out, "connection_bytes", s.connection_bytes.load());
    for (const auto& c : general_counts) append_stat(out, c.name, of(sums, c.what));
    append_stat(out, "limit_maxbytes", items.pool().growth_limit());
    append_stat(out, "accepting_conns",
                std::uint64_t{s.curr_connections.load() < s.chosen.connections_max});
    append_stat(out, "threads", s.chosen.threads);
    append_stat(out, "bytes", bytes);
    append_stat(out, "curr_items", items.item_count());
    append_stat(out, "total_items", of(sums, count::total_items));
    append_stat(out, "evictions", of(sums, count::evictions));
    append_stat(out, "reclaimed", of(sums, count::reclaimed));
    append_stat(out, "connection_structures", s.curr_connections.load());
    const auto told = s.watching == nullptr ? watch_counts::totals{} : s.watching->counted();
    append_stat(out, "log_worker_dropped", told.dropped);
    append_stat(out, "log_worker_written", told.written);
    append_stat(out, "log_watcher_skipped", told.skipped);
    append_stat(out, "log_watcher_sent", told.sent);
    append_stat(out, "log_watchers", told.watchers);
    for (const std::string_view name : never_happens) append_stat(out, name, std::uint64_t{0});
    if (s.secured == nullptr) return;
    const auto secured = s.secured->counted();
    append_stat(out, "ssl_handshake_errors", secured.handshake_errors);
    if (s.chosen.secured.session_cache) append_stat(out, "ssl_new_sessions", secured.sessions);
    append_stat(out, "time_since_server_cert_refresh",
                static_cast<std::uint64_t>(now - secured.loaded_at));
}

void tls_lines(byte_buffer& out, const tls_settings& t) {
    constexpr std::string_view versions[] = {"tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3"};
    const auto text = [&](std::string_view name, const std::string& value) {
        append_stat(out, name, value.empty() ? std::string_view("NULL") : value);
    };
    append_stat(out, "ssl_enabled", t.enabled ? "yes" : "no");
    text("ssl_chain_cert", t.chain_cert);
    text("ssl_key", t.key);
    append_stat(out, "ssl_verify_mode", t.verify_mode);
    append_stat(out, "ssl_keyformat", t.key_format);
    text("ssl_ciphers", t.ciphers);
    text("ssl_ca_cert", t.ca_cert);
    append_stat(out, "ssl_wbuf_size", std::uint64_t{t.write_buffer_kb} << 10);
    append_stat(out, "ssl_session_cache", t.session_cache ? "yes" : "no");
    append_stat(out, "ssl_kernel_tls", "no");
    append_stat(out, "ssl_min_version", versions[t.min_version]);
}

void settings_lines(byte_buffer& out, service& s) {
    const settings& c = s.chosen;
    const char delimiter = s.prefixes.delimiter();
    append_stat(out, "maxbytes", s.items->pool().growth_limit());
    append_stat(out, "maxconns", c.connections_max);
    append_stat(out, "tcpport", fmt::to_string(c.unix_path.empty() ? c.tcp_port : 0));
    append_stat(out, "udpport", std::uint64_t{0});
    append_stat(out, "inter", c.addresses.empty() ? "NULL" : c.addresses);
    append_stat(out, "verbosity", static_cast<std::uint64_t>(s.verbosity.load()));
    append_stat(out, "evictions", s.items->evicts() ? "on" : "off");
    append_stat(out, "domain_socket", c.unix_path.empty() ? "NULL" : c.unix_path);
    append_stat(out, "umask", fmt::format("{:o}", c.unix_mask));
    append_stat(out, "num_threads", c.threads);
    append_stat(out, "stat_key_prefix", std::string_view(&delimiter, 1));
    append_stat(out, "detail_enabled", s.prefixes.counting() ? "yes" : "no");
    append_stat(out, "cas_enabled", "yes");
    append_stat(out, "tcp_backlog", c.backlog);
    append_stat(out, "binding_protocol",
                c.speaks == protocol::ascii    ? "ascii"
                : c.speaks == protocol::binary ? "binary"
                                               : "auto-negotiate");
    append_stat(out, "item_size_max", s.items->item_bytes_max());
    append_stat(out, "maxconns_fast", "yes");
    append_stat(out, "flush_enabled", c.flush_disabled ? "no" : "yes");
    append_stat(out, "shutdown_command", c.shutdown_enabled ? "yes" : "no");
    append_stat(out, "dump_enabled", c.dump_disabled ? "no" : "yes");
    append_stat(out, "watch_enabled", c.watch_disabled ? "no" : "yes");
    append_stat(out, "watcher_logbuf_size", c.watcher_bytes_max);
    append_stat(out, "worker_logbuf_size", c.journal_bytes_max);
    append_stat(out, "track_sizes", s.tracks_sizes ? "yes" : "no");
    for (const std::string_view name : switched_off) append_stat(out, name, "no");
    for (const auto& idle : idle_settings) append_stat(out, idle.name, idle.text);
    tls_lines(out, c.secured);
    append_stat(out, "idle_timeout", c.idle_timeout_s);
    append_stat(out, "request_timeout", c.request_timeout_s);
    append_stat(out, "buffer_limit", c.connection_bytes_max);
}

void items_lines(byte_buffer& out, service& s) {
    std::uint64_t bytes = 0;
    unsigned number = 1;
    for (const auto& c : s.items->sample_classes(bytes)) {
        append_stat(out, fmt::format("items:{}:number", number), c.items);
        append_stat(out, fmt::format("items:{}:age", number), c.oldest_age_s);
        append_stat(out, fmt::format("items:{}:mem_requested", number), c.item_bytes);
        append_stat(out, fmt::format("items:{}:number_cold", number), c.items); // there is one list
        for (const std::string_view name : never_in_items)
            append_stat(out, fmt::format("items:{}:{}", number, name), std::uint64_t{0});
        ++number;
    }
}

void slabs_lines(byte_buffer& out, service& s) {
    std::uint64_t bytes = 0;
    unsigned number = 0;
    for (const auto& c : s.items->sample_classes(bytes)) {
        ++number;
        append_stat(out, fmt::format("{}:chunk_size", number), c.bytes_max);
        const std::uint64_t a_page = std::max<std::uint64_t>(page_bytes / c.bytes_max, 1);
        append_stat(out, fmt::format("{}:chunks_per_page", number), a_page);
        append_stat(out, fmt::format("{}:total_pages", number), (c.items + a_page - 1) / a_page);
        append_stat(out, fmt::format("{}:total_chunks", number), c.items);
        append_stat(out, fmt::format("{}:used_chunks", number), c.items);
        for (const std::string_view name : never_in_slabs)
            append_stat(out, fmt::format("{}:{}", number, name), std::uint64_t{0});
    }
    append_stat(out, "active_slabs", number);
    append_stat(out, "total_malloced", s.items->pool().size_bytes());
}

// The sizes of items, once a client has asked to count them. Here a sample counts them, as in
// `stats items`, so older items are among them.
void sizes_lines(byte_buffer& out, service& s) {
    if (!s.tracks_sizes) return append_stat(out, "sizes_status", "disabled");
    std::uint64_t bytes = 0;
    for (const auto& c : s.items->sample_classes(bytes))
        append_stat(out, fmt::to_string(c.bytes_max), c.items);
}

void holdfast_lines(byte_buffer& out, service& s) {
    hf::pool& pool = s.items->pool();
    const recovery_report& recovered = pool.recovered();
    const std::string misplaced = hf::misplaced(pool);
    append_stat(out, "pool", pool.path());
    append_stat(out, "pool_file", misplaced.empty() ? std::string_view("in place") : misplaced);
    append_stat(out, "pool_bytes", pool.size_bytes());
    append_stat(out, "pool_bytes_max", pool.max_bytes());
    const status refused = pool.why_full();
    append_stat(out, "pool_growth",
                refused.ok() ? std::string_view("not refused") : refused.what());
    append_stat(out, "mode", name(pool.mode()));
    append_stat(out, "emulated", pool.emulated() ? "yes" : "no");
    append_stat(out, "engine", store::engine_name());
    append_stat(out, "generation", pool.generation());
    append_stat(out, "open_ms", fmt::format("{:.3f}", recovered.open_ms));
    append_stat(out, "recovered_sections", recovered.sections_pending);
    append_stat(out, "recovered_re_executed", recovered.re_executed);
    append_stat(out, "recovered_rolled_back", recovered.rolled_back);
    append_stat(out, "recovered_discarded", recovered.discarded);
    append_stat(out, "damaged_instances", s.items->damaged_instances());
    if (pool.mode() == mode::power) {
        const auto logged = pool.logged();
        append_stat(out, "disk_log_bytes", logged.bytes);
        append_stat(out, "disk_waits", logged.waits);
        append_stat(out, "disk_checkpoints", logged.checkpoints);
    }
    const counts sums = s.items->counted().sums();
    for (const auto& c : persistence_counts) append_stat(out, c.name, of(sums, c.what));
}

void detail(byte_buffer& out, std::string_view how, service& s) {
    if (how == "dump") return s.prefixes.append_to(out);
    if (how != "on" && how != "off") return out.append(reply::detail_usage);
    s.prefixes.count(how == "on");
    out.append(reply::ok);
}

} // namespace

void append_stats(byte_buffer& out, std::string_view words, service& serving) {
    const std::string_view which = next_word(words);
    if (which == "detail") return detail(out, next_word(words), serving);
    if (which == "sizes_enable" ||
        which == "sizes_disable") { // whose answer memcached does not end
        serving.tracks_sizes = which == "sizes_enable";
        return append_stat(out, "sizes_status", serving.tracks_sizes ? "enabled" : "disabled");
    }
    if (which.empty()) {
        general(out, serving);
    } else if (which == "settings") {
        settings_lines(out, serving);
    } else if (which == "items") {
        items_lines(out, serving);
    } else if (which == "slabs") {
        slabs_lines(out, serving);
    } else if (which == "holdfast") {
        holdfast_lines(out, serving);
    } else if (which == "reset") {
        serving.items->counted().reset();
        serving.prefixes.reset();
        out.append(reply::reset);
        return;
    } else if (which == "sizes") {
        sizes_lines(out, serving);
    } else {
        out.append(reply::error);
        return;
    }
    out.append(reply::end);
}

} // namespace hf::kv
