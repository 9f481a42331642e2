// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes into a session over a store, beside a model that is a std::map (libFuzzer). An input is
// two bytes that choose how it is cut, how much output is taken at a time and how the clock runs,
// then what a client sent; in it "$0" to "$9" stand for the CAS numbers given out from here on,
// "$*" for many bytes. Checked of every input:
//
// (1) The replies are the model's, byte for byte, however the input is cut and the output taken;
//     those to `stats` are STAT lines and END.
// (2) A request needs no more room than its line and the largest item; the output passes its limit
//     by no more than one reply.
// (3) Afterwards the store is as before: what was stored can be removed and takes no memory.
#include "fuzz_pieces.hpp"
#include "session.hpp"

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
constexpr std::size_t reply_bytes_max = 16384; // one item, what `stats` says, some lines of a dump
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

/// What is to be said; 'stats_at' are offsets in 'text' where STAT lines and END belong.
struct expectation {
    std::string text;
    std::vector<std::size_t> stats_at;
};

/// What memcached's manual says, in volatile memory and without any cleverness.
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
    bool closed_ = false;
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
    // What grows is a new item, stored now.
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
    case verb::dump: is_stats = true; return {};
    case verb::version: number = "VERSION " + std::string(version_text) + "\r\n"; return number;
    case verb::stats: {
        std::string_view words = r.keys;
        const std::string_view which = next_word(words);
        if (which == "reset") return reply::reset;
        if (which == "sizes" || which == "conns") return reply::end;
        is_stats = which.empty() || which == "settings" || which == "items" || which == "slabs" ||
                   which == "holdfast";
        return is_stats ? std::string_view() : reply::error;
    }
    default: closed_ = true; return {};
    }
}

std::string_view model::write_framed(const request& r, std::string_view framed) {
    const bool ended = framed.ends_with("\r\n");
    return ended ? write(r, framed.substr(0, r.value_bytes)) : reply::bad_chunk;
}

// One request or what else is at the front; false: it has not arrived.
bool model::step(expectation& expected) {
    const std::size_t passed = std::min(swallow_, arrived_.size());
    swallow_ -= passed;
    arrived_.erase(0, passed);
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
        const std::size_t line = held_.find('\n', p.consumed) - p.consumed + 1;
        require(p.wanted == 0 || (p.wanted > held_.size() - p.consumed &&
                                  p.wanted <= line + item_limit_bytes + 2),
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

// Takes the lines of statistics, or of a dump, and END from the front; false: that is not what stands there.
bool take_stats(std::string_view& received) {
    while (received.starts_with("STAT ") || received.starts_with("key=")) {
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
        if (!take_stats(received)) return false;
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

void clean_up(world& in, const model& beside) {
    in.items->flush_all(0); // a delayed one would reach into the next input
    for (const std::string& key : beside.keys()) in.items->remove(key, *in.counted);
    in.serving.verbosity = 0;
    static std::uint32_t inputs = 0;
    if (++inputs % 64 != 0) return;
    require(in.items->item_count() == 0, "(3) an item stayed behind");
    require(in.items->pool().size_bytes() == in.pool_bytes, "(3) the pool has grown");
}

// The model knows classic commands only; meta commands are compared with memcached's
// (meta_answers_test.py). Their names lose a letter, wherever a request may be taken to begin.
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

// What -vv would say about the bytes is of no interest; sanitizers write to the descriptor, and
// libFuzzer remembers the stream it found.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
    stderr = std::fopen("/dev/null", "w");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    world& in = the_world();
    const std::uint64_t cas = next_cas(in);
    const std::string input =
        classic(expand({reinterpret_cast<const char*>(data) + 2, size - 2}, cas));
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
