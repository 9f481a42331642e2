// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_server: holdfast-kv, killed under load from several connections,
// restarted, and asked for every key. In between the pool is opened without the server, to compare
// the allocator's account with the items.  test/attacks/kill/README.md
#include "killer.hpp"
#include "server_process.hpp"
#include "workload.hpp"
#include <kv/store/items.hpp>
#include <kv/store/store.hpp>

#include <deque>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using namespace kill_test;
using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

struct settings {
    std::string server, directory = "/dev/shm";
    std::uint64_t seed = 1, kills = 40;
    double seconds = 0;
    unsigned connections = 4;
    std::uint64_t memory_mib = 64; // 4 makes the server evict
};

/// One connection's knowledge of its keys. It alone changes them, with several requests under way.
class connection {
public:
    connection(std::uint64_t seed, unsigned number, bool evicts)
        : seed_(seed), number_(number), evicts_(evicts) {}

    /// Changes keys until the server is gone.
    void load(const std::string& socket);
    /// Every key is as acknowledged, plus the first few, all or none of the requests that were
    /// under way: a connection's requests are answered in order. False: the server is gone.
    bool verify(const std::string& socket, journal& log);
    std::uint64_t acknowledged = 0;

private:
    static constexpr std::uint64_t keys = 60;
    struct entry {
        bool there = false;
        std::string value;
        bool operator==(const entry&) const = default;
    };
    enum class kind : std::uint8_t { set, append, remove };
    struct change {
        kind what;
        std::uint64_t key;
        std::string bytes;

        void apply(entry& to) const {
            if (what == kind::set) to = {true, bytes};
            else if (what == kind::remove) to = {};
            else if (to.there) to.value += bytes;
        }
    };
    std::string key(std::uint64_t k) const {
        return "key-" + std::to_string(number_) + "-" + std::to_string(k);
    }
    change draw();
    std::string request(const change& c) const;
    bool take_answer(text_client& server);
    /// Empty if 'found' agrees with what is known; else the difference.
    std::string difference(const std::vector<entry>& found) const;

    std::uint64_t seed_;
    unsigned number_;
    bool evicts_;
    std::uint64_t next_ = 0;
    std::vector<entry> known_{keys};
    std::deque<change> under_way_;
};

connection::change connection::draw() {
    const std::uint64_t r = mix(seed_, number_, next_++), limits[] = {20, 60, 300, 3000, 200000};
    const kind what = r % 10 < 6 ? kind::set : r % 10 < 8 ? kind::append : kind::remove;
    const unsigned large = (r >> 20) % 64; // one in 64 is larger than a chunk
    std::string bytes(what == kind::append ? 5 : 1 + (r >> 32) % limits[large == 0 ? 4 : large % 4],
                      ' ');
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>('a' + mix(r, i / 8) % 26);
    return {what, (r >> 8) % keys, bytes};
}

std::string connection::request(const change& c) const {
    if (c.what == kind::remove) return "delete " + key(c.key) + "\r\n";
    return (c.what == kind::set ? "set " : "append ") + key(c.key) + " 0 0 " +
           std::to_string(c.bytes.size()) + "\r\n" + c.bytes + "\r\n";
}

bool connection::take_answer(text_client& server) {
    std::string answer;
    if (!server.line(answer)) return false;
    entry& of = known_[under_way_.front().key];
    if (answer == "STORED" || answer == "DELETED") under_way_.front().apply(of);
    else if (answer == "NOT_FOUND" || answer == "NOT_STORED")
        of = {}; // as it was, unless evicted meanwhile
    under_way_.pop_front();
    ++acknowledged;
    return true;
}

void connection::load(const std::string& socket) {
    text_client server(socket);
    while (server.connected()) {
        std::string batch;
        for (std::uint64_t n = 1 + mix(seed_, number_, next_) % 40; n > 0; --n) {
            under_way_.push_back(draw());
            batch += request(under_way_.back());
        }
        if (!server.send(batch)) return;
        while (!under_way_.empty())
            if (!take_answer(server)) return;
    }
}

std::string connection::difference(const std::vector<entry>& found) const {
    for (std::uint64_t k = 0; k < keys; ++k) {
        if (found[k] == known_[k] || (evicts_ && !found[k].there)) continue;
        return key(k) + ": expected " +
               (known_[k].there ? known_[k].value.substr(0, 40) : "no such key") + ", found " +
               (found[k].there ? found[k].value.substr(0, 40) : "no such key");
    }
    return {};
}

bool connection::verify(const std::string& socket, journal& log) {
    text_client server(socket);
    if (!server.connected()) return false;
    std::vector<entry> found(keys);
    for (std::uint64_t k = 0; k < keys; ++k)
        if (!server.get(key(k), found[k].there, found[k].value)) return false;
    std::string differs = difference(found);
    for (const std::string first = differs; !differs.empty(); differs = difference(found)) {
        if (under_way_.empty()) {
            ++log.lost;
            log.fail("lost: %s", first.c_str());
            break;
        }
        under_way_.front().apply(known_[under_way_.front().key]);
        under_way_.pop_front();
    }
    under_way_.clear();
    known_ = found;
    return true;
}

/// In a child: recover the pool without the server and compare items with blocks.
int check_pool(const std::string& path, hf::mode mode, std::uint64_t memory_mib, journal& log) {
    using namespace hf::kv;
    store_options options;
    options.path = path;
    options.mode = mode;
    options.max_bytes = memory_mib << 20;
    auto opened = store::open(options);
    if (!opened) return log.fail("%s", opened.error().what().c_str()), 1;
    hf::pool& pool = (*opened)->pool();
    const hf::recovery_report& report = pool.recovered();
    log.pending += report.sections_pending, log.re_executed += report.re_executed;
    log.rolled_back += report.rolled_back, log.discarded += report.discarded;
    kv_root& root = *pool.root<kv_root>();
    block_census census(pool);
    if (!census.reach(&root, sizeof root)) log.fail("the root is in no block of its own");
    for (const instance& in : root.instances) {
        if (!hf::structures::check(&in.table)) log.fail("a table's invariants do not hold");
        for (void* segment : in.table.segments)
            if (segment != nullptr && !census.reach(segment, 8))
                log.fail("a segment is in no block of its own");
        hf::structures::for_each(&in.table, [&](hf::structures::hash_node* node) {
            const auto* it = reinterpret_cast<const item*>(node);
            if (!census.reach(it, item_bytes(it->key_bytes, it->value_bytes)))
                log.fail("item %.*s is in no block of its own", it->key_bytes, it->bytes());
        });
    }
    census.report_leaks(pool, log);
    return log.failures == 0 ? 0 : 1;
}

class session {
public:
    session(const settings& given, hf::mode mode);
    ~session();
    bool run(); // false: a claim did not hold
    std::uint64_t kills = 0, recovery_kills = 0;
    journal* log;
    std::uint64_t acknowledged() const {
        std::uint64_t sum = 0;
        for (const connection& c : clients_) sum += c.acknowledged;
        return sum;
    }

private:
    std::unique_ptr<server_process> start() const;
    void kill_under_load();
    void check_between_servers();
    std::uint64_t random() {
        return mix(settings_.seed, 0x73657276 + static_cast<std::uint64_t>(mode_), ++draws_);
    }
    void sleep_below(std::uint64_t limit_us) {
        std::this_thread::sleep_for(microseconds(random() % limit_us));
    }

    settings settings_;
    hf::mode mode_;
    std::string pool_, socket_;
    std::vector<connection> clients_;
    std::uint64_t draws_ = 0;
};

session::session(const settings& given, hf::mode mode) : settings_(given), mode_(mode) {
    const std::string stem = given.directory + "/hf_kill_kv." + std::to_string(::getpid());
    pool_ = stem + ".hf";
    socket_ = stem + ".sock";
    void* shared =
        ::mmap(nullptr, sizeof(journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) std::perror("mmap"), std::exit(2);
    log = ::new (shared) journal{};
    for (unsigned c = 0; c < given.connections; ++c)
        clients_.emplace_back(given.seed, c, given.memory_mib < 16);
}

session::~session() {
    if (log->failures == 0) ::unlink(pool_.c_str());
    ::unlink(socket_.c_str());
    ::munmap(log, sizeof(journal));
}

std::unique_ptr<server_process> session::start() const {
    return std::make_unique<server_process>(
        std::vector<std::string>{settings_.server, "--pool", pool_, "-u", "root", "-s", socket_,
                                 "-t", "3", "-m", std::to_string(settings_.memory_mib), "--mode",
                                 mode_ == hf::mode::pmem ? "pmem" : "process"});
}

void session::kill_under_load() {
    auto server = start();
    if (!server->wait_until_ready())
        return log->fail("the server does not start: %s", server->said().c_str());
    for (connection& c : clients_)
        if (!c.verify(socket_, *log))
            return log->fail("the server went away while it was only read");
    if (log->failures != 0) return;
    std::vector<std::thread> threads;
    for (connection& c : clients_) threads.emplace_back([&] { c.load(socket_); });
    sleep_below(random() % 8 == 0 ? 60000 : 12000);
    if (!server->kill())
        log->fail("the server ended before it was killed: %s", server->said().c_str());
    ++kills;
    for (std::thread& t : threads) t.join();
}

void session::check_between_servers() {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(120);
        ::_exit(check_pool(pool_, mode_, settings_.memory_mib, *log));
    }
    int how = 0;
    while (::waitpid(child, &how, 0) < 0 && errno == EINTR) {}
    if (!WIFEXITED(how)) log->fail("the check ended by signal %d", WTERMSIG(how));
}

bool session::run() {
    const auto begin = clock::now();
    while (settings_.kills != 0
               ? kills < settings_.kills
               : std::chrono::duration<double>(clock::now() - begin).count() < settings_.seconds) {
        kill_under_load();
        // While it starts, and so recovers: it has items by now.
        while (log->failures == 0 && random() % 3 == 0) {
            auto starting = start();
            sleep_below(15000);
            if (!starting->kill())
                log->fail("the server ended while it started: %s", starting->said().c_str());
            ++recovery_kills;
        }
        if (log->failures == 0) check_between_servers();
        if (log->failures != 0) {
            std::printf("FAILED at kill %llu (seed %llu):\n%skept: %s\n",
                        static_cast<unsigned long long>(kills),
                        static_cast<unsigned long long>(settings_.seed), log->text, pool_.c_str());
            return false;
        }
    }
    return true;
}

} // namespace

int main(int argc, char** argv) {
    settings given;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const char* const text = argv[i + 1];
        if (name == "--server") given.server = text;
        else if (name == "--kills") given.kills = std::strtoull(text, nullptr, 10);
        else if (name == "--seconds") given.seconds = std::atof(text) / 4, given.kills = 0;
        else if (name == "--seed") given.seed = std::strtoull(text, nullptr, 10);
        else if (name == "--dir") given.directory = text;
        else given.server.clear(), i = argc;
    }
    if (given.server.empty()) {
        std::fputs("options: --server holdfast-kv [--kills N | --seconds S] [--seed N] [--dir "
                   "DIRECTORY]\n",
                   stderr);
        return 2;
    }
    given.kills = (given.kills + 3) / 4;
    kill_on_time();
    const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::uint64_t kills = 0, acknowledged = 0, lost = 0, failures = 0;
    for (hf::mode mode : {hf::mode::process, hf::mode::pmem})
        for (std::uint64_t memory_mib : {64, 4}) { // the second evicts
            settings one = given;
            one.memory_mib = memory_mib;
            session s(one, mode);
            (void)s.run();
            std::printf("kill: server %-7s %-7s memory_mib=%llu connections=%u seed=%llu "
                        "kills=%llu recovery_kills=%llu acknowledged=%llu lost=%llu pending=%llu "
                        "re_executed=%llu rolled_back=%llu discarded=%llu failures=%llu\n",
                        hf::kv::store::engine_name(), mode == hf::mode::pmem ? "pmem" : "process",
                        n(memory_mib), one.connections, n(one.seed), n(s.kills),
                        n(s.recovery_kills), n(s.acknowledged()), n(s.log->lost), n(s.log->pending),
                        n(s.log->re_executed), n(s.log->rolled_back), n(s.log->discarded),
                        n(s.log->failures));
            std::fflush(stdout);
            kills += s.kills, acknowledged += s.acknowledged(), lost += s.log->lost,
                failures += s.log->failures;
        }
    std::printf("kill: all server %s kills=%llu acknowledged=%llu lost=%llu failures=%llu\n",
                hf::kv::store::engine_name(), n(kills), n(acknowledged), n(lost), n(failures));
    return failures == 0 ? 0 : 1;
}
