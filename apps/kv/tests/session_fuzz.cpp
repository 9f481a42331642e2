// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes into a session over a store, beside a model that is a std::map (libFuzzer). An input is
// two bytes that choose how it is cut, how much output is taken at a time and how the clock runs,
// then the client's bytes. In these "$0" to "$9" mean the CAS numbers given out from here on, "$*"
// many bytes. Behind a byte of 0x80 a client uses the binary protocol, and three bytes each mean a
// packet (packets_of()), unless a second 0x80 says that they are the packets themselves. Checked
// for every input:
//
// (1) The replies are the model's, byte for byte, however the input is cut and the output taken;
//     those to `stats` are STAT lines and END.
// (2) A request needs no more room than its line and the largest item; the output passes its limit
//     by no more than one reply.
// (3) Afterwards the store is as before: stored items can be removed and take no memory.
#include "fuzz_pieces.hpp"
#include <kv/server/session.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf::kv;

constexpr std::uint32_t item_limit_bytes = 1024; // small, so that inputs pass it
constexpr std::size_t reply_bytes_max = 16384; // one item, all lines of `stats`, or some of a dump
constexpr std::uint32_t clock_start = 1'800'000'000; // only goes on, as flush_all expects

std::uint32_t clock_seconds = clock_start;
std::uint32_t fuzz_clock() { return clock_seconds; }

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stdout, "kv_session_fuzz: %s\n", what);
    std::fflush(stdout);
    std::abort();
}

std::unique_ptr<store> make_store() {
    const char* const memory = "/dev/shm";
    const std::string folder =
        ::access(memory, W_OK) == 0 ? memory : std::filesystem::temp_directory_path().string();
    store_options options;
    options.path = folder + "/holdfast-kv-fuzz-" + std::to_string(::getpid()) + ".hf";
    options.max_bytes = 8 << 20;
    options.item_bytes_max = item_limit_bytes;
    options.clock = fuzz_clock;
    auto opened = store::open(options);
    ::unlink(options.path.c_str()); // the mapping stays
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str());
    require(static_cast<bool>(opened), "no store");
    return std::move(*opened);
}

struct world {
    std::unique_ptr<store> items = make_store();
    service serving;
    thread_counts* counted = nullptr;
    std::uint64_t pool_bytes = 0;

    world() {
        serving.items = items.get();
        serving.started = clock_seconds;
        counted = &items->counted().join();
        pool_bytes = items->pool().size_bytes();
    }
};

world& the_world() {
    static world only;
    return only;
}

/// The expected output; 'stats_at' are offsets in 'text' where STAT lines and END belong, or such
/// packets.
struct expectation {
    std::string text;
    std::vector<std::size_t> stats_at;
};

/// A packet, by its parts.
struct said {
    unsigned code = 0, loud = 0; // loud: the code without the Q
    std::string opaque, extras, key, value;
    std::uint64_t cas = 0;
    bool quiet() const noexcept { return code != loud; }
    std::uint64_t number(std::size_t at, std::size_t bytes) const {
        return number_in(extras, at, bytes);
    }
    static std::uint64_t number_in(std::string_view text, std::size_t at, std::size_t bytes) {
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            all = all << 8 | static_cast<unsigned char>(text[at + i]);
        return all;
    }
    static std::string bytes_of(std::uint64_t number, std::size_t bytes) {
        std::string text;
        for (std::size_t i = bytes; i-- > 0;) text += static_cast<char>(number >> (8 * i) & 255);
        return text;
    }
    std::string answer(unsigned status, const std::string& their_extras,
                       const std::string& their_key, const std::string& their_value,
                       std::uint64_t their_cas = 0) const {
        return "\x81" + bytes_of(code, 1) + bytes_of(their_key.size(), 2) +
               bytes_of(their_extras.size(), 1) + bytes_of(0, 1) + bytes_of(status, 2) +
               bytes_of(their_extras.size() + their_key.size() + their_value.size(), 4) + opaque +
               bytes_of(their_cas, 8) + their_extras + their_key + their_value;
    }
    std::string refusal(unsigned status) const {
        static const std::map<unsigned, std::string> texts = {
            {1, "Not found"},         {2, "Data exists for key."},
            {3, "Too large."},        {4, "Invalid arguments"},
            {5, "Not stored."},       {6, "Non-numeric server-side value for incr or decr"},
            {0x81, "Unknown command"}};
        return answer(status, "", "", texts.at(status));
    }
};

/// The parts of a packet of a command, by the protocol's specification; bit 0 of 'key': required,
/// bit 1: allowed.
struct packet_shape {
    unsigned loud, extras, key;
    bool value;
};
const std::map<unsigned, packet_shape>& packet_shapes() {
    static const std::map<unsigned, packet_shape> shapes = [] {
        std::map<unsigned, packet_shape> all;
        for (unsigned code : {0x00U, 0x0cU, 0x04U}) all[code] = {code, 0, 1, false};
        for (unsigned code : {0x01U, 0x02U, 0x03U}) all[code] = {code, 8, 1, true};
        for (unsigned code : {0x05U, 0x06U}) all[code] = {code, 20, 1, false};
        for (unsigned code : {0x07U, 0x0aU, 0x0bU, 0x20U}) all[code] = {code, 0, 0, false};
        for (unsigned code : {0x0eU, 0x0fU}) all[code] = {code, 0, 1, true};
        for (unsigned code : {0x1cU, 0x1dU, 0x23U}) all[code] = {code, 4, 1, true}; // not its own
        for (unsigned code : {0x21U, 0x22U}) all[code] = {code, 0, 1, true};
        all[0x08] = {0x08, 4, 0, false}; // or none
        all[0x10] = {0x10, 0, 2, true};  // not its own
        all[0x1b] = {0x1b, 4, 0, false};
        for (const auto& [quiet, loud] : {std::pair{0x09U, 0x00U},
                                          {0x0dU, 0x0cU},
                                          {0x18U, 0x08U},
                                          {0x19U, 0x0eU},
                                          {0x1aU, 0x0fU},
                                          {0x1eU, 0x1dU},
                                          {0x24U, 0x23U}})
            all[quiet] = all[loud];
        for (unsigned loud = 0x01; loud <= 0x07; ++loud) all[loud + 0x10] = all[loud];
        return all;
    }();
    return shapes;
}

/// Memcached's manual as a program, in volatile memory and without any cleverness.
class model {
public:
    model(store& like, std::uint64_t next_cas) : like_(&like), next_cas_(next_cas) {}

    /// Adds the replies to what 'bytes' completes to 'expected'.
    void receive(std::string_view bytes, expectation& expected) {
        arrived_ += bytes;
        while (!closed_ && step(expected)) {}
    }
    bool closed() const noexcept { return closed_; }
    const std::set<std::string, std::less<>>& keys() const noexcept { return keys_; }

private:
    struct entry {
        std::string value;
        std::uint32_t flags = 0;
        std::uint32_t exptime = 0, stored = 0;
        std::uint64_t cas = 0;
    };

    bool step(expectation& expected);
    bool step_packet(expectation& expected);
    void answer_packet(const said& by, expectation& expected);
    void write_packet(const said& by, expectation& expected);
    void count_packet(const said& by, expectation& expected);
    std::string_view execute(const request& r, std::string& number, bool& is_stats);
    std::string_view write(const request& r, std::string_view value);
    std::string_view write_framed(const request& r, std::string_view framed);
    void retrieve(const request& r, std::string& expected);
    std::string_view change_number(const request& r, std::string& number);
    void flush(std::int64_t delay_s);
    entry* live(std::string_view key);
    static std::uint32_t expiry(std::int64_t exptime) noexcept;

    store* like_;
    std::uint64_t next_cas_;
    std::string arrived_;
    std::size_t swallow_ = 0;
    std::map<std::string, entry, std::less<>> entries_;
    std::set<std::string, std::less<>> keys_; // ever stored
    std::uint32_t flush_due_ = 0;
    bool closed_ = false, decided_ = false, binary_ = false, tracks_sizes_ = false;
};

std::uint32_t model::expiry(std::int64_t exptime) noexcept {
    if (exptime < 0) return 1;
    if (exptime > 0 && exptime <= 60 * 60 * 24 * 30)
        return clock_seconds + static_cast<std::uint32_t>(exptime);
    return exptime > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(exptime);
}

model::entry* model::live(std::string_view key) {
    if (flush_due_ != 0 && flush_due_ <= clock_seconds) {
        std::erase_if(entries_, [&](const auto& e) { return e.second.stored < flush_due_; });
        flush_due_ = 0;
    }
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    const std::uint32_t until = found->second.exptime;
    if (until == 0 || until > clock_seconds) return &found->second;
    entries_.erase(found);
    return nullptr;
}

void model::flush(std::int64_t delay_s) {
    live("");
    flush_due_ = delay_s > 0 ? expiry(delay_s) : 0;
    if (flush_due_ > clock_seconds) return;
    flush_due_ = 0;
    ++next_cas_;
    entries_.clear();
}

std::string_view model::write(const request& r, std::string_view value) {
    entry* const old = live(r.key);
    if (r.what == verb::append || r.what == verb::prepend) {
        if (old == nullptr || like_->too_large(r.key.size(), old->value.size() + value.size()))
            return reply::not_stored;
        old->value.insert(r.what == verb::append ? old->value.size() : 0, value);
        old->stored = clock_seconds;
        old->cas = next_cas_++;
        return reply::stored;
    }
    const std::uint64_t cas = next_cas_++;
    if (r.what == verb::add && old != nullptr) return reply::not_stored;
    if (r.what == verb::replace && old == nullptr) return reply::not_stored;
    if (r.what == verb::cas && old == nullptr) return reply::not_found;
    if (r.what == verb::cas && old->cas != r.cas) return reply::exists;
    keys_.emplace(r.key);
    entries_[std::string(r.key)] = {std::string(value), r.flags, expiry(r.exptime), clock_seconds,
                                    cas};
    return reply::stored;
}

std::string_view model::change_number(const request& r, std::string& number) {
    entry* const old = live(r.key);
    if (old == nullptr) return reply::not_found;
    std::uint64_t is = 0;
    if (!may_be_number(old->value.size()) || !parse_number(old->value, is))
        return reply::not_a_number; // memcached takes a number that more than twenty bytes hold
    if (r.what == verb::incr) is += r.delta;
    else is = is < r.delta ? 0 : is - r.delta;
    number = std::to_string(is);
    const std::size_t length = old->value.size();
    // An item that grows counts as new, stored now.
    if (number.size() > length) old->stored = clock_seconds;
    old->value = number;
    if (old->value.size() < length) old->value.resize(length, ' ');
    old->cas = next_cas_++;
    number += "\r\n";
    return number;
}

void model::retrieve(const request& r, std::string& expected) {
    std::string_view keys = r.keys;
    for (auto key = next_word(keys); !key.empty(); key = next_word(keys)) {
        entry* const found = live(key);
        if (found == nullptr) continue;
        if (r.touches) found->exptime = expiry(r.exptime);
        expected += "VALUE ";
        expected += key;
        expected += ' ' + std::to_string(found->flags) + ' ' + std::to_string(found->value.size());
        if (r.with_cas) expected += ' ' + std::to_string(found->cas);
        expected += "\r\n" + found->value + "\r\n";
    }
    expected += reply::end;
}

std::string_view model::execute(const request& r, std::string& number, bool& is_stats) {
    switch (r.what) {
    case verb::incr:
    case verb::decr: return change_number(r, number);
    case verb::touch: {
        entry* const found = live(r.key);
        if (found == nullptr) return reply::not_found;
        found->exptime = expiry(r.exptime);
        return reply::touched;
    }
    case verb::remove:
        if (live(r.key) == nullptr) return reply::not_found;
        entries_.erase(entries_.find(r.key));
        return reply::deleted;
    case verb::flush_all: flush(r.exptime); return reply::ok;
    case verb::verbosity: return reply::ok;
    case verb::shutdown: return reply::shutdown_refused;
    case verb::memory_limit:
        return r.delta << 20 <= like_->pool().max_bytes() ? reply::ok : reply::limit_refused;
    case verb::refresh_certs: return reply::no_tls;
    case verb::dump: is_stats = true; return {};
    case verb::connections: return reply::end;   // of a session without a socket
    case verb::watch: closed_ = true; return {}; // others take over
    case verb::version: number = "VERSION " + std::string(version_text) + "\r\n"; return number;
    case verb::stats: {
        std::string_view words = r.keys;
        const std::string_view which = next_word(words);
        if (which == "reset") return reply::reset;
        if (which == "sizes" && !tracks_sizes_) return "STAT sizes_status disabled\r\nEND\r\n";
        if (which == "sizes_enable" || which == "sizes_disable") {
            tracks_sizes_ = which == "sizes_enable";
            return tracks_sizes_ ? "STAT sizes_status enabled\r\n"
                                 : "STAT sizes_status disabled\r\n";
        }
        if (which == "detail") {
            const std::string_view how = next_word(words);
            is_stats = how == "dump";
            if (is_stats) return {};
            return how == "on" || how == "off" ? reply::ok : reply::detail_usage;
        }
        is_stats = which.empty() || which == "settings" || which == "items" || which == "slabs" ||
                   which == "sizes" || which == "holdfast";
        return is_stats ? std::string_view() : reply::error;
    }
    default: closed_ = true; return {};
    }
}

std::string_view model::write_framed(const request& r, std::string_view framed) {
    const bool ended = framed.ends_with("\r\n");
    return ended ? write(r, framed.substr(0, r.value_bytes)) : reply::bad_chunk;
}

void model::write_packet(const said& by, expectation& expected) {
    request r;
    constexpr verb verbs[] = {verb::set, verb::add, verb::replace};
    r.what = by.loud == 0x0e ? verb::append : by.loud == 0x0f ? verb::prepend : verbs[by.loud - 1];
    r.key = by.key;
    if (by.loud < 0x0e) {
        r.flags = static_cast<std::uint32_t>(by.number(0, 4));
        r.exptime = static_cast<std::int64_t>(by.number(4, 4));
    }
    unsigned status = 0;
    if (by.cas != 0 && by.loud < 0x0e) {
        r.what = verb::cas;
        r.cas = by.cas;
    } else if (by.cas != 0) {
        const entry* const old = live(by.key);
        if (old != nullptr && old->cas != by.cas) status = 2;
    }
    if (status == 0) {
        const std::string_view result = write(r, by.value);
        if (result == reply::not_found) status = 1;
        if (result == reply::exists) status = 2;
        if (result == reply::not_stored) status = by.loud == 2 ? 2 : by.loud == 3 ? 1 : 5;
    }
    if (status != 0) expected.text += by.refusal(status);
    else if (!by.quiet())
        expected.text +=
            by.answer(0, "", "", "", live(by.key) == nullptr ? next_cas_ - 1 : live(by.key)->cas);
}

void model::count_packet(const said& by, expectation& expected) {
    entry* const old = live(by.key);
    std::string number;
    if (old == nullptr && by.number(16, 4) == 0xffffffff) {
        expected.text += by.refusal(1);
        return;
    }
    std::uint64_t cas = 0;
    if (old == nullptr) {
        number = std::to_string(by.number(8, 8));
        cas = next_cas_;
        keys_.emplace(by.key);
        entries_[by.key] = {number, 0, expiry(static_cast<std::int64_t>(by.number(16, 4))),
                            clock_seconds, next_cas_++};
    } else {
        request r;
        r.what = by.loud == 5 ? verb::incr : verb::decr;
        r.key = by.key;
        r.delta = by.number(0, 8);
        const bool differs = !old->value.empty() && by.cas != 0 && by.cas != old->cas;
        const std::string_view result = differs ? std::string_view() : change_number(r, number);
        if (differs || result == reply::not_a_number) {
            expected.text += by.refusal(differs ? 2 : 6);
            return;
        }
        cas = old->cas;
    }
    std::uint64_t value = 0;
    require(parse_number(number, value), "the model counts");
    if (!by.quiet()) expected.text += by.answer(0, "", "", said::bytes_of(value, 8), cas);
}

// A packet that is whole and has its command's shape.
void model::answer_packet(const said& by, expectation& expected) {
    const bool touches = by.loud == 0x1c || by.loud == 0x1d || by.loud == 0x23;
    if (touches || by.loud == 0x00 || by.loud == 0x0c) {
        entry* const found = live(by.key);
        const bool with_key = by.loud == 0x0c || by.loud == 0x23;
        if (found == nullptr) {
            if (by.quiet()) return;
            expected.text += with_key ? by.answer(1, "", by.key, "") : by.refusal(1);
            return;
        }
        if (touches) found->exptime = expiry(static_cast<std::int64_t>(by.number(0, 4)));
        expected.text += by.answer(0, said::bytes_of(found->flags, 4), with_key ? by.key : "",
                                   by.loud == 0x1c ? "" : found->value, found->cas);
        return;
    }
    switch (by.loud) {
    case 0x04: {
        const entry* const found = live(by.key);
        const unsigned status = found == nullptr ? 1 : by.cas != 0 && by.cas != found->cas ? 2 : 0;
        if (status == 0) entries_.erase(by.key);
        if (status != 0) expected.text += by.refusal(status);
        else if (!by.quiet()) expected.text += by.answer(0, "", "", "");
        return;
    }
    case 0x05:
    case 0x06: count_packet(by, expected); return;
    case 0x07: closed_ = true; break;
    case 0x08: flush(by.extras.empty() ? 0 : static_cast<std::int64_t>(by.number(0, 4))); break;
    case 0x0b: expected.text += by.answer(0, "", "", std::string(version_text)); return;
    case 0x10: {
        request r;
        r.what = verb::stats;
        r.keys = by.key;
        std::string unused;
        bool is_stats = false;
        const std::string_view text = execute(r, unused, is_stats);
        if (text == reply::error || text == reply::detail_usage) expected.text += by.refusal(1);
        else if (is_stats) expected.stats_at.push_back(expected.text.size());
        else if (text.starts_with("STAT ")) { // of sizes, which are not counted, or will be
            const std::size_t name = text.find(' ', 5);
            expected.text +=
                by.answer(0, "", std::string(text.substr(5, name - 5)),
                          std::string(text.substr(name + 1, text.find('\r') - name - 1)));
            if (text.ends_with(reply::end)) break;
        } else break;
        return;
    }
    case 0x20:
    case 0x21:
    case 0x22: expected.text += by.refusal(0x81); return;
    default: break;
    }
    if (!by.quiet()) expected.text += by.answer(0, "", "", "");
}

// As step(), of a client that speaks the binary protocol.
bool model::step_packet(expectation& expected) {
    if (arrived_.empty()) return false;
    closed_ = arrived_[0] != '\x80';
    if (closed_ || arrived_.size() < 24) return false;
    said by;
    by.code = static_cast<unsigned char>(arrived_[1]);
    by.opaque = arrived_.substr(12, 4);
    const std::size_t keys = said::number_in(arrived_, 2, 2),
                      extras = said::number_in(arrived_, 4, 1);
    const std::size_t body = said::number_in(arrived_, 8, 4), front = 24 + keys + extras;
    by.cas = said::number_in(arrived_, 16, 8);
    if (arrived_.size() < front) return false;
    by.extras = arrived_.substr(24, extras);
    by.key = arrived_.substr(24 + extras, keys);
    const auto found = packet_shapes().find(by.code);
    const std::size_t values = body - keys - extras;
    std::size_t used = front;
    unsigned refused = 0;
    if (keys + extras > body) refused = 0x81;
    else if (keys > key_bytes_max) refused = 4;
    if (refused == 0 && found == packet_shapes().end()) {
        expected.text += by.refusal(0x81);
        swallow_ = values;
    } else if (refused == 0) {
        const packet_shape& shape = found->second;
        by.loud = shape.loud;
        const bool extras_fit = extras == shape.extras || (shape.loud == 0x08 && extras == 0);
        const bool key_fits = shape.key == 2 || (keys > 0) == (shape.key == 1);
        if (!extras_fit || !key_fits || (values > 0 && !shape.value)) refused = 4;
        else if (!shape.value || by.loud == 0x10 || by.loud >= 0x1c) {
            answer_packet(by, expected);
            // After SASL's commands it is skipped; behind stat, touch and gat it is the next
            // request.
            if (by.loud == 0x21 || by.loud == 0x22) swallow_ = values;
        } else if (like_->too_large(keys, values)) {
            if (by.loud == 0x01) entries_.erase(by.key);
            expected.text += by.refusal(3);
            swallow_ = values;
        } else if (arrived_.size() < front + values) return false;
        else {
            used += values;
            by.value = arrived_.substr(front, values);
            write_packet(by, expected);
        }
    }
    if (refused != 0) {
        expected.text += by.refusal(refused);
        closed_ = true;
    }
    arrived_.erase(0, used);
    return true;
}

// One request, or other bytes at the front; false: it has not arrived.
bool model::step(expectation& expected) {
    const std::size_t passed = std::min(swallow_, arrived_.size());
    swallow_ -= passed;
    arrived_.erase(0, passed);
    if (!decided_ && !arrived_.empty()) {
        decided_ = true;
        binary_ = arrived_[0] == '\x80';
    }
    if (binary_) return step_packet(expected);
    const std::size_t end = arrived_.find('\n');
    if (end == std::string::npos) {
        if (arrived_.empty() || may_be_long(arrived_)) return false;
        expected.text += reply::line_too_long;
        closed_ = true;
        return false;
    }
    const std::string line(without_end(std::string_view(arrived_).substr(0, end + 1)));
    const request r = parse(line);
    require(r.key.size() <= key_bytes_max, "(1) a key beyond the limit");
    std::size_t used = end + 1;
    std::string number;
    std::string_view answer = r.reply;
    if (carries_value(r.what)) {
        const std::size_t framed_bytes = std::size_t{r.value_bytes} + 2;
        if (like_->too_large(r.key.size(), r.value_bytes)) {
            if (r.what == verb::set) entries_.erase(std::string(r.key));
            swallow_ = framed_bytes;
            answer = reply::too_large;
        } else if (arrived_.size() - used < framed_bytes) {
            return false;
        } else {
            answer = write_framed(r, std::string_view(arrived_).substr(used, framed_bytes));
            used += framed_bytes;
        }
    } else if (r.what == verb::retrieve) {
        retrieve(r, expected.text);
        answer = {};
    } else if (r.what == verb::meta) { // only ones that are refused, see classic()
        meta_request m;
        parse_meta(r.keys, m);
        answer = m.asks.reply;
        swallow_ = m.passed_over_bytes;
    } else if (r.what != verb::reply) {
        bool is_stats = false;
        answer = execute(r, number, is_stats);
        if (is_stats) expected.stats_at.push_back(expected.text.size());
    }
    if (!r.noreply) expected.text += answer;
    arrived_.erase(0, used);
    return true;
}

/// A connection without a socket: keeps what was not consumed, takes the output when it is full.
class client {
public:
    client(world& in, std::size_t out_bytes_max)
        : talk_(in.serving, *in.counted, 1), out_bytes_max_(out_bytes_max) {}

    bool closed() const noexcept { return closed_; }

    void send(std::string_view bytes, std::string& received) {
        held_ += bytes;
        for (bool paused = true; paused && !closed_;) {
            // In a block of exactly its size, for the sanitizer; a vector would keep more.
            const std::unique_ptr<char[]> block(new char[held_.size()]);
            std::memcpy(block.get(), held_.data(), held_.size());
            const auto p = talk_.run({block.get(), held_.size()}, out_, out_bytes_max_);
            check(p);
            held_.erase(0, p.consumed);
            paused = p.paused;
            closed_ = p.close;
            received += out_.view();
            out_.clear();
        }
    }

private:
    void check(const session::progress& p) const {
        require(p.consumed <= held_.size(), "(2) consumed more than there was");
        const std::size_t begin = talk_.speaks() == protocol::binary
                                      ? binary::header_bytes + 65535 + 255
                                      : held_.find('\n', p.consumed) - p.consumed + 1;
        require(p.wanted == 0 || (p.wanted > held_.size() - p.consumed &&
                                  p.wanted <= begin + item_limit_bytes + 2),
                "(2) more is wanted than the largest item");
        require(out_.size() <= out_bytes_max_ + reply_bytes_max, "(2) the output passed its limit");
        require(!p.paused || out_.size() >= out_bytes_max_, "(2) paused without need");
    }

    session talk_;
    std::size_t out_bytes_max_;
    std::string held_;
    byte_buffer out_;
    bool closed_ = false;
};

// Takes packets of statistics and the one that ends them.
bool take_stat_packets(std::string_view& received) {
    while (received.size() >= 24 && received[0] == '\x81' && received[1] == '\x10') {
        const std::size_t body = said::number_in(received, 8, 4);
        if (received.size() < 24 + body) return false;
        received.remove_prefix(24 + body);
        if (body == 0) return true;
    }
    return false;
}

// Takes the lines of statistics, or of a dump, and END from the front; false if the front differs.
bool take_stats(std::string_view& received) {
    while (received.starts_with("STAT ") || received.starts_with("PREFIX ") ||
           received.starts_with("ITEM ") || received.starts_with("key=")) {
        const auto end = received.find('\n');
        if (end == std::string_view::npos) return false;
        received.remove_prefix(end + 1);
    }
    if (!received.starts_with(reply::end)) return false;
    received.remove_prefix(reply::end.size());
    return true;
}

bool as_expected(std::string_view received, const expectation& expected) {
    std::size_t said = 0;
    for (std::size_t at : expected.stats_at) {
        const std::string_view literal = std::string_view(expected.text).substr(said, at - said);
        if (!received.starts_with(literal)) return false;
        received.remove_prefix(literal.size());
        said = at;
        if (!(received.starts_with('\x81') ? take_stat_packets(received) : take_stats(received)))
            return false;
    }
    return received == std::string_view(expected.text).substr(said);
}

[[noreturn]] void differ(const std::string& received, const std::string& expected) {
    std::printf("--- the session says\n%s\n--- the model\n%s\n---\n", received.c_str(),
                expected.c_str());
    require(false, "(1) not the model's replies");
    std::abort();
}

// The CAS number the store will give out next.
std::uint64_t next_cas(world& in) {
    request r;
    r.what = verb::set;
    r.key = "probe";
    change done;
    require(in.items->write(r, "x", *in.counted, done) == outcome::stored, "(3) the store is full");
    std::uint64_t cas = 0;
    in.items->get(r.key, *in.counted, [&](const item_view& found) { cas = found.cas; });
    in.items->remove(r.key, *in.counted);
    return cas + 1;
}

// "$0" to "$9": CAS numbers from 'base' on. "$*": many bytes, for long lines and large values.
std::string expand(std::string_view input, std::uint64_t base) {
    std::string text;
    for (std::size_t at = 0; at < input.size(); ++at) {
        const char sign = input[at] == '$' && at + 1 < input.size() ? input[at + 1] : '\0';
        if (sign == '*') text.append(600, 'v');
        else if (sign >= '0' && sign <= '9')
            text += std::to_string(base + static_cast<std::uint64_t>(sign - '0'));
        else {
            text += input[at];
            continue;
        }
        ++at;
    }
    return text;
}

// Three bytes a packet: its code; the contents of its parts; its faults, and the CAS number that it
// names.
std::string packets_of(std::string_view input, std::uint64_t base) {
    std::string text;
    for (std::size_t at = 0; at + 3 <= input.size(); at += 3) {
        const auto byte = [&](std::size_t i) {
            return static_cast<unsigned>(static_cast<unsigned char>(input[at + i]));
        };
        const unsigned code = byte(0), parts = byte(1), wrong = byte(2);
        const auto found = packet_shapes().find(code);
        const packet_shape shape =
            found == packet_shapes().end() ? packet_shape{code, 0, 2, true} : found->second;
        constexpr std::string_view keys[] = {"a", "b", "items", "a key\r\n"};
        std::string key(shape.key == 0 ? std::string_view() : keys[parts & 3]), extras, value;
        if (shape.extras == 20)
            extras = said::bytes_of(parts >> 3 & 3, 8) + said::bytes_of(parts, 8) +
                     said::bytes_of((parts & 4) != 0 ? ~0U : 0U, 4);
        else if (shape.extras != 0) extras = said::bytes_of(parts >> 2 & 3, shape.extras);
        constexpr std::size_t many[] = {0, 1, 600, 2000};
        if (shape.value) value.assign(many[parts >> 4 & 3], (parts & 64) != 0 ? '7' : 'v');
        if ((wrong & 16) != 0) key.assign((wrong & 32) != 0 ? 251 : 0, 'k');
        if ((wrong & 64) != 0) extras += (wrong & 32) != 0 ? "more" : "x";
        const unsigned cas = wrong & 15; // from 10 on: none
        std::size_t body = extras.size() + key.size() + value.size();
        if ((wrong & 128) != 0) body = (wrong & 32) != 0 ? body + 1 : body / 2;
        text += "\x80" + said::bytes_of(code, 1) + said::bytes_of(key.size(), 2) +
                said::bytes_of(extras.size(), 1) + std::string(3, '\0') + said::bytes_of(body, 4) +
                "oPaQ" + said::bytes_of(cas == 0 || cas >= 10 ? 0 : base + cas - 1, 8) + extras +
                key + value;
    }
    return text;
}

// The client's bytes, of either protocol.
std::string classic(std::string text);
std::string sent_by(std::string_view input, std::uint64_t base) {
    if (!input.starts_with('\x80')) return classic(expand(input, base));
    const bool raw = input.size() > 1 && input[1] == '\x80';
    return raw ? std::string(input.substr(1)) : packets_of(input.substr(1), base);
}

void clean_up(world& in, const model& beside) {
    in.items->flush_all(0); // a delayed one would reach into the next input
    for (const std::string& key : beside.keys()) in.items->remove(key, *in.counted);
    in.serving.verbosity = 0;
    in.serving.tracks_sizes = false;
    in.serving.prefixes.count(false);
    in.serving.prefixes.reset();
    static std::uint32_t inputs = 0;
    if (++inputs % 64 != 0) return;
    require(in.items->item_count() == 0, "(3) an item stayed behind");
    require(in.items->pool().size_bytes() == in.pool_bytes, "(3) the pool has grown");
}

// The model has classic commands only; meta commands are compared with memcached's
// (meta_answers_test.py). Their names lose a letter, wherever a request may seem to begin.
std::string classic(std::string text) {
    constexpr std::string_view other = "stats ite"; // ms
    for (std::size_t at = text.find('m'); at < text.size(); at = text.find('m', at + 1)) {
        const bool meta = at + 1 < text.size() &&
                          std::string_view("gsdae").find(text[at + 1]) != std::string_view::npos;
        if (meta && !std::string_view(text).substr(0, at).ends_with(other)) text[at] = 'n';
    }
    return text;
}

} // namespace

// The output of -vv about the bytes is of no interest; sanitizers write to the descriptor, and
// libFuzzer remembers the stream it found.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
    stderr = std::fopen("/dev/null", "w");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    world& in = the_world();
    const std::uint64_t cas = next_cas(in);
    const std::string input = sent_by({reinterpret_cast<const char*>(data) + 2, size - 2}, cas);
    hf::kv::fuzz::pieces cut(data[0], data[1]);
    constexpr std::size_t limits[] = {1, 100, 4096, 256 << 10};
    client talking(in, limits[data[1] & 3]);
    model beside(*in.items, cas);
    const bool clock_runs = (data[1] & 4) != 0;
    for (std::size_t at = 0; at < input.size() && !talking.closed();) {
        const std::string_view piece =
            std::string_view(input).substr(at, cut.next(input.size() - at));
        at += piece.size();
        std::string received;
        expectation expected;
        talking.send(piece, received);
        beside.receive(piece, expected);
        if (!as_expected(received, expected)) differ(received, expected.text);
        require(talking.closed() == beside.closed(), "(1) hung up, or should have");
        if (clock_runs && cut.draw() % 4 == 0) clock_seconds += cut.draw() % 4;
    }
    clean_up(in, beside);
    return 0;
}
