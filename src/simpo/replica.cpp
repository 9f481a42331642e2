// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A replica of an object: it follows a stream of calls, or leads (holdfast/simpo/replica.hpp).
// docs/format/simpo.md has what a call in the stream looks like.
#include <pool/file_checks.hpp>
#include <simpo/core.hpp>
#include <simpo/functions.hpp>

#include <holdfast/simpo/replica.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <sys/random.h>

namespace hf::simpo::detail {
namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr std::uint64_t stream_caller = ~0ULL; // the caller whose calls are those of the stream
constexpr std::size_t calls_a_read = 1000;
constexpr unsigned number_bits = 40;
constexpr std::uint64_t entry_magic = 0x3130'6c6c'6163'6668; // "hfcall01"

/// Precedes a call's arguments in the stream. Where a leader begins, it stands alone.
struct entry_head {
    std::uint64_t magic; // entry_magic
    std::uint64_t before_epoch,
        before_number;           // position of the call before it; 0, 0: the first one
    std::uint64_t function;      // its identifier; 0: a leader begins
    std::uint32_t schema;        // of its parameters
    std::uint16_t version;       // of the function
    std::uint16_t words;         // of arguments, which follow
    std::uint64_t object_bytes;  // of the class
    std::uint32_t class_version; // of class_name
    std::uint32_t reserved;      // zero
};
static_assert(sizeof(entry_head) == 56 && std::is_trivially_copyable_v<entry_head>);
static_assert(std::has_unique_object_representations_v<entry_head>, "no padding");

std::uint64_t call_number(stream_position at) noexcept {
    return at.epoch << number_bits | at.number;
}
stream_position position_of_call(std::uint64_t number) noexcept {
    return {number >> number_bits, number & ((1ULL << number_bits) - 1)};
}
bool countable(stream_position at) noexcept {
    return at.epoch >> (64 - number_bits) == 0 && at.number >> number_bits == 0;
}
std::string text(stream_position at) { return fmt::format("{}-{}", at.epoch, at.number); }

} // namespace

class replication {
public:
    replication(core& on, call_stream& through, const replica_options& how,
                stream_position last) noexcept
        : on_(on), stream_(through), lease_(how.lease), last_(last), seen_(last) {}

    bool leads() const noexcept { return leads_.load(std::memory_order_acquire); }
    result<bool> step(milliseconds wait) {
        const std::scoped_lock held(lock_);
        if (leads()) return renew();
        return follow(wait);
    }
    status call(const function& f, const std::uint64_t* arguments, std::uint64_t* result);
    status confirm() {
        if (!leads()) return not_leading();
        const std::scoped_lock held(lock_);
        return still_leading();
    }

private:
    status refuse(errc code, std::string_view what) const {
        return {code, fmt::format("object \"{}\": {}: {}", on_.name(), name(code), what)};
    }
    status not_leading() const {
        return refuse(errc::conflict, "expected to lead, found that another replica does: ask it");
    }
    /// Requires: last < seen_.
    status lost(stream_position last) const {
        return refuse(
            errc::conflict,
            fmt::format("expected a stream that goes to {}, found one that ends at {}: it "
                        "has lost calls that this pool has",
                        text(seen_), text(last)));
    }
    void stop_leading() noexcept { leads_.store(false, std::memory_order_release); }
    status still_leading();
    result<bool> renew();
    result<bool> follow(milliseconds wait);
    result<bool> take_over(std::uint64_t epoch);
    result<std::size_t> take(milliseconds wait);
    result<bool> passed_unseen(stream_position last);
    std::string entry_of(const function* f, const std::uint64_t* arguments) const;
    status make(const call_stream::entry& each);

    core& on_;
    call_stream& stream_;
    const milliseconds lease_;
    std::mutex lock_;
    std::atomic<bool> leads_{false};
    std::uint64_t epoch_ = 0; // of its own leading
    stream_position last_;    // call that this object has
    stream_position seen_;    // entry. While it leads, this is the stream's last one
    std::uint64_t next_ = 0;  // number of its next call, while it leads
    clock::time_point renewed_;
};

/// Asks the stream. Requires: the lock.
status replication::still_leading() {
    if (!leads()) return not_leading();
    const auto last = stream_.last();
    if (last && *last == seen_) return {}; // (5): its calls are all those of the stream
    stop_leading();
    if (!last) return last.error();
    return *last < seen_ ? lost(*last) : not_leading();
}

result<bool> replication::renew() {
    if (clock::now() - renewed_ < lease_ / 3) return true;
    if (status s = still_leading(); !s.ok()) {
        if (s.code() == errc::conflict) return false;
        return s;
    }
    if (status s = stream_.keep_lease(epoch_, lease_); !s.ok()) return stop_leading(), s;
    renewed_ = clock::now();
    return true;
}

result<bool> replication::follow(milliseconds wait) {
    const auto came = take(wait);
    if (!came) return came.error();
    if (*came != 0) return false;
    const auto last = stream_.last();
    if (!last) return last.error();
    if (*last < seen_) return lost(*last);
    if (*last > seen_) {
        const auto passed = passed_unseen(*last);
        if (!passed || !*passed) return passed;
    }
    const auto alive = stream_.has_lease(last->epoch);
    if (!alive) return alive.error();
    if (*alive) return false;
    return take_over(last->epoch + 1);
}

result<bool> replication::take_over(std::uint64_t epoch) {
    const stream_position first{epoch, 0};
    if (!countable(first))
        return refuse(errc::limit_reached,
                      fmt::format("expected an epoch below 2^24, found {}: leave the stream, and "
                                  "begin another one",
                                  epoch));
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random)
        return refuse(errc::io_error, fmt::format("getrandom: {}", std::strerror(errno)));
    if (status s = stream_.keep_lease(epoch, lease_); !s.ok()) return s;
    const auto mine = stream_.append(first, entry_of(nullptr, nullptr), seen_); // upholds (5)
    if (!mine) return mine.error();
    if (!*mine) return false; // another one was first, or the leader is alive
    renewed_ = clock::now();
    seen_ = first;
    next_ = (random >> (65 - number_bits)) + 1;
    epoch_ = epoch;
    leads_.store(true, std::memory_order_release);
    return true;
}

/// The stream has gone to `last`. Whether this replica passes that entry without seeing it: it is
/// trimmed, and no call can be before it. False: entries have come meanwhile.
result<bool> replication::passed_unseen(stream_position last) {
    const auto came = take(milliseconds{0});
    if (!came) return came.error();
    if (*came != 0) return false;
    if (seen_ != stream_position{} || last != stream_position{1, 0})
        return refuse(
            errc::conflict,
            fmt::format("expected the entries behind {} in the stream, found none of them "
                        "and that it goes to {}: it was trimmed; make this pool from a "
                        "copy of another replica's",
                        text(seen_), text(last)));
    seen_ = last; // the first leader had made no call
    return true;
}

/// Makes the calls that have come; how many entries it were.
result<std::size_t> replication::take(milliseconds wait) {
    const auto came = stream_.read(seen_, calls_a_read, wait);
    if (!came) return came.error();
    status s;
    for (const call_stream::entry& each : *came) {
        s = make(each);
        if (!s.ok()) break;
        seen_ = each.at;
    }
    if (!came->empty()) on_.sync();
    if (!s.ok()) return s;
    return came->size();
}

/// What the stream gets of a call, or, without a function, of a leader that begins.
std::string replication::entry_of(const function* f, const std::uint64_t* arguments) const {
    entry_head head{};
    head.magic = entry_magic;
    head.before_epoch = last_.epoch;
    head.before_number = last_.number;
    head.object_bytes = on_.head().object_bytes;
    head.class_version = on_.head().class_version;
    if (f != nullptr) {
        head.function = f->id;
        head.schema = f->schema;
        head.version = f->version;
        head.words = f->words;
    }
    std::string entry(sizeof head + head.words * sizeof(std::uint64_t), '\0');
    std::memcpy(entry.data(), &head, sizeof head);
    if (f != nullptr)
        std::memcpy(entry.data() + sizeof head, arguments, f->words * sizeof(std::uint64_t));
    return entry;
}

/// Logs the call. It survives when the object is synced.
status replication::make(const call_stream::entry& each) {
    entry_head head{};
    if (each.call.size() < sizeof head || !countable(each.at))
        return refuse(errc::corrupt,
                      fmt::format("entry {} of the stream: expected a call, found {} bytes",
                                  text(each.at), each.call.size()));
    std::memcpy(&head, each.call.data(), sizeof head);
    if (head.magic != entry_magic ||
        each.call.size() != sizeof head + head.words * sizeof(std::uint64_t) ||
        head.words + 2U > argument_words_max)
        return refuse(
            errc::corrupt,
            fmt::format("entry {} of the stream: expected a call, found another program's {} "
                        "bytes, or another version's",
                        text(each.at), each.call.size()));
    const stream_position before{head.before_epoch, head.before_number};
    if (before != last_) // upholds (4)
        return refuse(errc::conflict,
                      fmt::format("expected the call behind {} in the stream, found {}, which is "
                                  "behind {}: make this pool from a copy of another replica's",
                                  text(last_), text(each.at), text(before)));
    if (each.at.number == 0) return {}; // a leader begins
    if (head.object_bytes != on_.head().object_bytes ||
        head.class_version != on_.head().class_version)
        return refuse(
            errc::wrong_layout,
            fmt::format("entry {} of the stream: expected a call of the class's version {}, "
                        "{} bytes, found version {}, {} bytes",
                        text(each.at), on_.head().class_version, on_.head().object_bytes,
                        head.class_version, head.object_bytes));
    record_head of{};
    of.function = head.function;
    of.schema = head.schema;
    of.version = head.version;
    of.words = static_cast<decltype(of.words)>(head.words);
    std::string why;
    const function* const f = find_function(on_.head(), of, &why);
    if (f == nullptr)
        return refuse(
            errc::function_changed,
            fmt::format(
                "entry {} of the stream: expected a call of a function of this build, found {}",
                text(each.at), why));
    std::array<std::uint64_t, argument_words_max> arguments{};
    std::memcpy(arguments.data(), each.call.data() + sizeof head,
                head.words * sizeof(std::uint64_t));
    on_.defer_once(*f, {stream_caller, call_number(each.at)}, arguments.data()); // upholds (3)
    last_ = each.at;
    return {};
}

status replication::call(const function& f, const std::uint64_t* arguments, std::uint64_t* result) {
    if (!leads()) return not_leading();
    const std::scoped_lock held(lock_);
    if (!leads()) return not_leading();
    if (f.result_words > on_.head().result_words)
        return refuse(
            errc::bad_argument,
            fmt::format("{}: expected a result of at most {} bytes, found {}: remake it with a "
                        "larger object_options::result_bytes",
                        f.text, on_.head().result_words * sizeof *result,
                        f.result_words * sizeof *result));
    const stream_position at{epoch_, next_};
    if (!countable(at))
        return stop_leading(),
               refuse(errc::limit_reached,
                      fmt::format("expected a leader's calls below number 2^40, found {}: another "
                                  "leader begins",
                                  at.number));
    const auto taken = stream_.append(at, entry_of(&f, arguments), seen_); // upholds (1), (5)
    if (!taken || !*taken) {
        stop_leading(); // if it is there all the same, following finds it
        return taken ? not_leading() : taken.error();
    }
    if (status s = call_once(on_, f, {stream_caller, call_number(at)}, arguments, false, result);
        !s.ok())
        return stop_leading(), s;
    last_ = seen_ = at;
    ++next_;
    if (clock::now() - renewed_ >= lease_ / 3 && stream_.keep_lease(epoch_, lease_).ok())
        renewed_ = clock::now();
    return {};
}

std::shared_ptr<replication> replicate(core& on, call_stream& through, const replica_options& how,
                                       std::uint64_t last) {
    return std::make_shared<replication>(on, through, how, position_of_call(last));
}
result<std::uint64_t> last_in_stream(core& on) {
    if (status s = on.add_caller(stream_caller); !s.ok()) return s;
    return on.last_of(stream_caller);
}
status leave_stream(core& on) {
    const status s = on.dismiss(stream_caller);
    return s.code() == errc::not_found ? status{} : s;
}
result<bool> step(replication& of, milliseconds wait) { return of.step(wait); }
bool leads(const replication& of) noexcept { return of.leads(); }
status call_through(replication& of, const function& f, const std::uint64_t* arguments,
                    std::uint64_t* result) {
    return of.call(f, arguments, result);
}
status confirm(replication& of) { return of.confirm(); }

} // namespace hf::simpo::detail
