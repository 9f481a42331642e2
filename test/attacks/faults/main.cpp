// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no system call and no allocation of the library can fail, and no process die at one, with a
// worse result than a clear refusal. Method: every scenario is run once to number its calls and
// allocations, then once for each of them and each way it can fail, in a forked child on tmpfs.
//
// Required of every run:
// (1) It ends by itself, or aborts with one of the sentences of docs/internals/fault-injection.md.
// (2) A refusal reads "path: code: text", with the failed call's name and its error.
// (3) When the pool is closed, or refused, neither descriptors nor addresses are kept.
// (4) A refused open leaves the file as it was, unless the pool had been marked open before.
// (5) The pool opens afterwards and holds every acknowledged operation, none in part, with no block
//     leaked or lost. A creation leaves a whole pool, or nothing of the pool's name.
#include "inject.hpp"
#include "scenarios.hpp"
#include "script.hpp"
#include <base/assert.hpp>
#include <cli/command.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::faults {
namespace {

constexpr unsigned seconds_max = 20; // a run takes milliseconds

/// A child's report, in memory that outlives the child.
struct report {
    tally counts;
    progress made;
    bool opened, closed;
    bool changed_before; // the file, when the fault was injected
    errc code;
    char refusal[text_max];
    char fatal[text_max];
    char wrong[text_max];
};

struct totals {
    unsigned scenarios = 0, faults = 0, refused = 0, survived = 0, aborted = 0, killed = 0;
    unsigned failures = 0;
};

std::string directory;  // for this process alone
std::string path;       // of the pool
report* said = nullptr; // by the child that runs now
const scenario* running = nullptr;

// --- what must hold ---------------------------------------------------------------------------

void note_wrong(std::string_view text) {
    if (said->wrong[0] == 0) copy_text(said->wrong, text);
}

/// Reads the file without a call that could be counted.
bool file_is(std::string_view expected) {
    static char page[65536];
    const auto fd = static_cast<int>(::syscall(SYS_open, path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd < 0) return expected.empty();
    bool same = true;
    std::size_t at = 0;
    for (long n = 1; same && n > 0; at += static_cast<std::size_t>(n)) {
        n = ::syscall(SYS_pread64, fd, page, sizeof page, at);
        const auto count = static_cast<std::size_t>(std::max(n, 0L));
        same = at + count <= expected.size() && std::memcmp(page, expected.data() + at, count) == 0;
    }
    ::syscall(SYS_close, fd);
    return same && at == expected.size();
}

void look_at_the_file() { said->changed_before = !file_is(running->from.bytes); }

std::size_t descriptors_open() {
    std::size_t count = 0;
    DIR* all = ::opendir("/proc/self/fd");
    while (::readdir(all) != nullptr) ++count;
    ::closedir(all);
    return count;
}

/// Mappings where pools are mapped.
std::size_t pool_ranges() {
    std::ifstream maps{"/proc/self/maps"};
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        const std::uint64_t start = std::stoull(line, nullptr, 16);
        count += start >= 0x570000000000ULL && start < 0x5a0000000000ULL;
    }
    return count;
}

/// The words of a message by which a user recognises the failed call.
std::vector<std::string_view> words_of(call which) {
    switch (which) {
    case call::open: return {"open", "create", "boot identifier"};
    case call::lstat: return {"stat", "create"};
    case call::renameat2:
    case call::link:
    case call::linkat: return {"link", "already there"};
    case call::stat: return {"stat"};
    case call::fcntl: return {"lock", "open in another process", "open in process"};
    case call::fsync: return {"fsync", "fdatasync"};
    case call::pread: return {"read"};
    case call::read: return {"boot identifier"};
    case call::pwrite: return {"write"};
    case call::fallocate: return {"allocate"};
    case call::ftruncate: return {"truncate"};
    case call::madvise:
    case call::mmap: return {"map", "addresses", "reserve"};
    default: return {name(which)};
    }
}

bool says_one_of(std::string_view text, const std::vector<std::string_view>& words) {
    return std::ranges::any_of(words, [&](auto w) { return text.find(w) != text.npos; });
}

/// Upholds (2).
void check_refusal(const plan& given, std::string_view text, errc code) {
    const bool of_log = text.starts_with(path + "-power");
    const std::string head = fmt::format("{}{}: {}: ", path, of_log ? "-power" : "", name(code));
    const bool memory = given.what == action::fail_allocation;
    // Without memory that lasts not even the path can be named.
    if (!text.starts_with(head) && !(memory && given.lasting && text == "out of memory"))
        return note_wrong(fmt::format("unclear refusal: {}", text));
    if (running->refused_with != errc::ok && code == running->refused_with) return;
    if (!said->counts.injected) return note_wrong(fmt::format("refused without a fault: {}", text));
    if (memory) {
        if (text.find("out of memory") == text.npos)
            note_wrong(fmt::format("does not speak of memory: {}", text));
        return;
    }
    const call which = said->counts.injected_into;
    if (!says_one_of(text, words_of(which)))
        note_wrong(fmt::format("does not name {}: {}", name(which), text));
    const bool translated = code == errc::in_use || code == errc::address_taken || given.error < 0;
    if (!translated && text.find(std::strerror(given.error)) == text.npos)
        note_wrong(fmt::format("does not say '{}': {}", std::strerror(given.error), text));
}

/// The code of "PATH: CODE: TEXT"; errc::ok: it has none.
errc code_in(std::string_view refusal) {
    const std::size_t from = std::min(refusal.size(), path.size() + 2);
    const std::string_view found = refusal.substr(from, refusal.find(": ", from) - from);
    for (int code = 1; code <= static_cast<int>(errc::not_instrumented); ++code)
        if (name(static_cast<errc>(code)) == found) return static_cast<errc>(code);
    return errc::ok;
}

bool documented(std::string_view fatal) {
    return says_one_of(fatal, {"out of memory", "no room for the log of",
                               "nothing is promised that is not on the disk"});
}

/// Whether something lies beside the pool, and beside its log where it may have one.
bool anything_beside(mode open_in) {
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        if (entry.path() != path && (open_in != mode::power || entry.path() != path + "-power"))
            return true;
    return false;
}

/// Upholds (5). Null when it does.
const char* verify() {
    const scenario& s = *running;
    open_options options = s.options;
    options.creation = create::if_missing;
    // A creation leaves a whole pool or nothing.
    if (!s.from.bytes.empty() || said->opened) options.creation = create::never;
    auto p = pool::open(path, options);
    if (!p) {
        note_wrong(p.error().what());
        return "the pool does not open any more";
    }
    if (options.creation == create::if_missing && s.on == medium::named &&
        anything_beside(options.mode))
        return "a creation that was killed has left something";
    model found{};
    if (const char* wrong = examine(*p, found)) return wrong;
    for (const bool begun_too : {false, true})
        if (found == replay(s.from.holds, s.script, said->made, begun_too)) return nullptr;
    note_wrong(fmt::format("lists {} {}, version {}, blobs {}, loose {}", found.list_count[0],
                           found.list_count[1], found.version, found.blob_count, found.loose));
    return "the pool holds something else than what was acknowledged";
}

// --- one run ----------------------------------------------------------------------------------

void take_fatal(const char* text) { copy_text(said->fatal, text); }

void open_and_play(const plan& given) {
    const scenario& s = *running;
    arm(given, said->counts, look_at_the_file);
    {
        auto p = pool::open(path, s.options);
        if (p) {
            said->opened = true;
            perform(*p, s.engine, s.script, said->made);
        } else {
            said->code = p.error().code();
            copy_text(said->refusal, p.error().what());
        }
    }
    disarm();
    said->closed = true;
}

/// Then the range, and with it the lock, is kept until the process ends: nothing can be done.
bool unmapping_failed(const plan& given) {
    return given.what == action::fail_call && said->counts.injected &&
           said->counts.injected_into == call::munmap;
}

/// Upholds (2), (3) and (4).
void check_end(const plan& given, std::size_t descriptors, std::size_t ranges) {
    const scenario& s = *running;
    if (descriptors_open() != descriptors) note_wrong("a descriptor is kept");
    if (!unmapping_failed(given) && pool_ranges() != ranges)
        note_wrong("a range of addresses is kept");
    // The refusal of an allocation names its failed call; in a pool at its limit no call has
    // failed.
    if (said->made.refusal[0] != 0 &&
        !std::strstr(said->made.refusal, "would pass the pool's limit"))
        check_refusal(given, said->made.refusal, code_in(said->made.refusal));
    if (said->opened) {
        if (s.refused_with != errc::ok) note_wrong("opened what it must refuse");
        return;
    }
    check_refusal(given, said->refusal, said->code);
    const bool name_stays = said->counts.injected && said->counts.injected_into == call::unlink;
    // The log of a pool whose header may ask for it stays; the next open takes it.
    const bool log_stays = !s.from.bytes.empty();
    if (anything_beside(log_stays ? s.options.mode : mode::process) && !name_stays)
        note_wrong("another name is kept");
    if (s.from.bytes.empty()) return;
    if (!file_is(s.from.bytes) && !said->changed_before)
        note_wrong("refused before anything was written, and yet the file has changed");
}

[[noreturn]] void child(const plan& given) {
    ::alarm(seconds_max);
    // The library's output there is of no interest; the handler gets its last words.
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    set_fatal_handler(take_fatal);
    const std::size_t descriptors = descriptors_open(), ranges = pool_ranges();
    open_and_play(given);
    check_end(given, descriptors, ranges);
    // In the same process: whatever a refusal keeps would be in the way now.
    if (!unmapping_failed(given) && running->refused_with == errc::ok)
        if (const char* wrong = verify()) note_wrong(wrong);
    ::_exit(0);
}

std::string describe(const plan& given) {
    const char* then = given.lasting ? " and every later one" : "";
    switch (given.what) {
    case action::none: return "no fault";
    case action::fail_allocation: return fmt::format("allocation {}{} fails", given.at, then);
    case action::kill_before_call: return fmt::format("killed before call {}", given.at);
    case action::kill_after_call: return fmt::format("killed after call {}", given.at);
    case action::fail_call: break;
    }
    const char* how = given.error == short_transfer ? "transfers half"
                      : given.error == no_transfer  ? "transfers nothing"
                                                    : strerrorname_np(given.error);
    const char* into = said->counts.injected ? name(said->counts.injected_into) : "not reached";
    const std::string end =
        given.killed_at == 0 ? "" : fmt::format(", killed before call {}", given.killed_at);
    return fmt::format("call {} ({}){}: {}{}", given.at, into, then, how, end);
}

/// verify() in another process; empty when all is well.
std::string verify_anew() {
    if (running->refused_with != errc::ok) return {};
    const int how = in_child([] {
        ::alarm(seconds_max);
        if (const char* wrong = verify()) note_wrong(wrong);
    });
    if (!WIFEXITED(how)) return fmt::format("the next open died of signal {}", WTERMSIG(how));
    return said->wrong;
}

/// A creation that was killed may leave a file under a name of its own.
void clear_directory() {
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        std::filesystem::remove(entry.path());
}

/// Runs 'running' with a fault in a child; empty when all is as it should be.
std::string run(const plan& given, totals& sum) {
    clear_directory();
    put_in_place(running->from, path);
    pretend(running->on);
    *said = report{};
    const int how = in_child([&] { child(given); });
    const bool to_be_killed = given.what == action::kill_before_call ||
                              given.what == action::kill_after_call || given.killed_at != 0 ||
                              running->script.ends_with('K');
    if (WIFEXITED(how)) {
        if (WEXITSTATUS(how) != 0) return fmt::format("exit code {}", WEXITSTATUS(how));
        ++(said->opened ? sum.survived : sum.refused);
        if (!unmapping_failed(given) || said->wrong[0] != 0) return said->wrong;
        return verify_anew();
    }
    const int signal = WTERMSIG(how);
    if (signal == SIGABRT && said->fatal[0] != 0 && documented(said->fatal)) ++sum.aborted;
    else if (signal == SIGKILL && to_be_killed) ++sum.killed;
    else
        return fmt::format("died of {} ({}): {}", ::sigabbrev_np(signal),
                           signal == SIGALRM ? "did not end" : "undocumented", said->fatal);
    return verify_anew();
}

void run_and_tell(const plan& given, totals& sum, bool verbose) {
    const std::string wrong = run(given, sum);
    sum.faults += given.what != action::none;
    sum.failures += !wrong.empty();
    if (!wrong.empty()) fmt::print("FAILED {}: {}: {}\n", running->name, describe(given), wrong);
    else if (verbose)
        fmt::print("{}: {}: {}\n", running->name, describe(given),
                   said->fatal[0] != 0     ? said->fatal
                   : said->refusal[0] != 0 ? said->refusal
                                           : "survived");
}

/// Every fault of one scenario.
void run_scenario(totals& sum, bool verbose) {
    ++sum.scenarios;
    totals uncounted;
    run_and_tell({}, uncounted, verbose);
    sum.failures += uncounted.failures;
    if (said->counts.calls == 0 || said->counts.calls > order_max) {
        fmt::print("FAILED {}: {} calls were counted\n", running->name, said->counts.calls);
        ++sum.failures;
        return;
    }
    const auto counts = std::make_unique<tally>(said->counts);
    for (std::uint64_t at = 1; at <= counts->calls; ++at) {
        for (const int error : errors_of(counts->order[at - 1])) {
            run_and_tell({action::fail_call, at, error, false}, sum, verbose);
            // A signal does not come for ever, and half a transfer is no failure.
            if (error != EINTR && error != short_transfer)
                run_and_tell({action::fail_call, at, error, true}, sum, verbose);
        }
        if (!running->killed_too) continue;
        // A header that could not be made durable, and whatever is done about it cut short.
        for (std::uint64_t end = at + 1;
             counts->order[at - 1] == call::msync && end <= counts->calls; ++end)
            run_and_tell({action::fail_call, at, EIO, false, end}, sum, verbose);
        run_and_tell({action::kill_before_call, at}, sum, verbose);
        run_and_tell({action::kill_after_call, at}, sum, verbose);
    }
    for (std::uint64_t at = 1; at <= counts->allocations; ++at)
        for (const bool lasting : {false, true})
            run_and_tell({action::fail_allocation, at, 0, lasting}, sum, verbose);
}

int run_all(const std::string& prefix, bool verbose) {
    const auto start = std::chrono::steady_clock::now();
    totals sum;
    const std::vector<scenario> all = all_scenarios(path);
    for (const scenario& one : all) {
        if (!one.name.starts_with(prefix)) continue;
        running = &one;
        run_scenario(sum, verbose);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fmt::print("faults: scenarios={} injected={} refused={} survived={} aborted={} killed={} "
               "failures={} seconds={:.1f}\n",
               sum.scenarios, sum.faults, sum.refused, sum.survived, sum.aborted, sum.killed,
               sum.failures, took.count());
    return sum.failures == 0 && sum.scenarios > 0 ? 0 : 1;
}

} // namespace
} // namespace hf::faults

int main(int argc, char** argv) {
    using namespace hf::faults;
    const hf::cli::program app{
        "Fails every system call and every allocation of the library, one at a time"};
    std::string prefix, where = "/dev/shm";
    bool verbose = false;
    app.value("--scenario", prefix, "only scenarios whose names start so");
    app.value("--directory", where, "where the pool lies; tmpfs");
    app.flag("--verbose", verbose, "a line for every fault");
    if (const auto status = app.read_or_say(argc, argv)) return *status;
    directory = fmt::format("{}/hf_faults.{}", where, ::getpid());
    path = directory + "/pool.hf";
    std::filesystem::create_directory(directory);
    said = static_cast<report*>(
        ::mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (said == MAP_FAILED) return 2;
    ::setvbuf(stdout, nullptr, _IOLBF, 0);
    const int came = run_all(prefix, verbose);
    std::filesystem::remove_all(directory);
    return came;
}
