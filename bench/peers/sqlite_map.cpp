// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SQLite with a write-ahead log, prepared statements, one connection per thread and one transaction
// per operation, or per batch. 'sqlite' has synchronous=FULL, which syncs the log at each commit
// (on tmpfs next to free); 'sqlite-normal' syncs at checkpoints only: what it committed survives
// the process, and power loss leaves the database whole but takes the newest transactions.
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include "chained.hpp"
#include "peers.hpp"
#include "thread_own.hpp"

#include <cstring>
#include <mutex>
#include <sqlite3.h>
#include <vector>

namespace hf::bench {
namespace {

class connection {
public:
    connection(const std::string& path, bool full, bool integer_keys)
        : integer_keys_(integer_keys) {
        if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) fail();
        sqlite3_busy_timeout(database_, 60'000); // ms; another thread's connection is being made
        run("PRAGMA journal_mode=WAL");
        run(full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
        run("PRAGMA cache_size=-262144"); // 256 MiB
        run(integer_keys ? "CREATE TABLE IF NOT EXISTS map(key INTEGER PRIMARY KEY, value BLOB)"
                         : "CREATE TABLE IF NOT EXISTS map(key BLOB PRIMARY KEY, value BLOB) "
                           "WITHOUT ROWID");
        insert = prepare("INSERT INTO map VALUES(?1, ?2)");
        update = prepare("UPDATE map SET value = ?2 WHERE key = ?1");
        find = prepare("SELECT value FROM map WHERE key = ?1");
        scan = prepare("SELECT value FROM map WHERE key >= ?1 ORDER BY key LIMIT ?2");
        begin = prepare("BEGIN IMMEDIATE");
        commit = prepare("COMMIT");
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() {
        for (sqlite3_stmt* each : {insert, update, find, scan, begin, commit})
            sqlite3_finalize(each);
        sqlite3_close(database_);
    }
    // The text lives as long as 'key'.
    void bind_key(sqlite3_stmt* to, const encoded_key& key, std::uint64_t number) const {
        if (integer_keys_) // signed, in the same order
            sqlite3_bind_int64(to, 1, static_cast<sqlite3_int64>(number ^ std::uint64_t{1} << 63));
        else sqlite3_bind_blob(to, 1, key.bytes.data(), static_cast<int>(key.size), SQLITE_STATIC);
    }
    bool changed_one() const { return sqlite3_changes(database_) == 1; }

    sqlite3_stmt* insert;
    sqlite3_stmt* update;
    sqlite3_stmt* find;
    sqlite3_stmt* scan;
    sqlite3_stmt* begin;
    sqlite3_stmt* commit;
    std::unique_lock<std::mutex> batch; // held: the thread has one open

private:
    [[noreturn]] void fail() const { give_up(std::string("sqlite: ") + sqlite3_errmsg(database_)); }
    void run(const char* statement) const {
        if (sqlite3_exec(database_, statement, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
    }
    sqlite3_stmt* prepare(const char* statement) const {
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v3(database_, statement, -1, SQLITE_PREPARE_PERSISTENT, &made,
                               nullptr) != SQLITE_OK)
            fail();
        return made;
    }

    bool integer_keys_;
    sqlite3* database_ = nullptr;
};

class sqlite_map final : public map_under_test {
public:
    sqlite_map(const map_options& given, bool full)
        : value_bytes_(given.value_bytes), key_bytes_(key_bytes(given.which)), full_(full),
          file_(given.directory, "sqlite") {
        file_.make_directory();
        mine(); // makes the table before others come
    }
    bool insert(std::uint64_t key, const void* value) noexcept override {
        connection& own = mine();
        return write(own, own.insert, key, value);
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        connection& own = mine();
        return write(own, own.update, key, value);
    }
    void begin_batch(std::uint64_t operations) noexcept override {
        if (operations <= 1) return;
        connection& own = mine();
        own.batch = std::unique_lock(writing_);
        if (sqlite3_step(own.begin) != SQLITE_DONE || sqlite3_reset(own.begin) != SQLITE_OK)
            give_up("sqlite: no batch was begun");
    }
    void end_batch() noexcept override {
        connection& own = mine();
        if (!own.batch) return;
        if (sqlite3_step(own.commit) != SQLITE_DONE || sqlite3_reset(own.commit) != SQLITE_OK)
            give_up("sqlite: a batch was not committed");
        own.batch = {};
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        connection& own = mine();
        const encoded_key bytes(key, key_bytes_);
        own.bind_key(own.find, bytes, key);
        return read_all(own.find, value) == 1;
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        connection& own = mine();
        const encoded_key bytes(key, key_bytes_);
        own.bind_key(own.scan, bytes, key);
        sqlite3_bind_int64(own.scan, 2, static_cast<sqlite3_int64>(count));
        return read_all(own.scan, value);
    }
    map_facts facts() const override {
        return {false, false, false,
                full_ ? "WAL, synchronous=FULL: survives power loss; next to free on tmpfs"
                      : "WAL, synchronous=NORMAL: survives the process only"};
    }

private:
    connection& mine() noexcept {
        connection*& own = own_.get();
        if (own == nullptr) {
            const std::lock_guard held{connecting_};
            connections_.push_back(
                std::make_unique<connection>(file_.path() + "/map", full_, key_bytes_ == 8));
            own = connections_.back().get();
        }
        return *own;
    }
    // SQLite has one writer at a time; it would wait for its turn by sleeping.
    bool write(connection& own, sqlite3_stmt* what, std::uint64_t key, const void* value) noexcept {
        const encoded_key bytes(key, key_bytes_);
        own.bind_key(what, bytes, key);
        sqlite3_bind_blob(what, 2, value, static_cast<int>(value_bytes_), SQLITE_STATIC);
        std::unique_lock held{writing_, std::defer_lock};
        if (!own.batch) held.lock();
        const bool done = sqlite3_step(what) == SQLITE_DONE && own.changed_one();
        return sqlite3_reset(what) == SQLITE_OK && done;
    }
    std::uint64_t read_all(sqlite3_stmt* what, void* value) noexcept {
        std::uint64_t seen = 0;
        for (; sqlite3_step(what) == SQLITE_ROW; ++seen)
            std::memcpy(value, sqlite3_column_blob(what, 0), value_bytes_);
        sqlite3_reset(what);
        return seen;
    }

    std::size_t value_bytes_;
    std::size_t key_bytes_;
    bool full_;
    temporary_file file_;
    thread_own<connection> own_;
    std::mutex connecting_;
    std::mutex writing_;
    std::vector<std::unique_ptr<connection>> connections_;
};

} // namespace

std::unique_ptr<map_under_test> make_map_sqlite(const map_options& given) {
    return std::make_unique<sqlite_map>(given, true);
}
std::unique_ptr<map_under_test> make_map_sqlite_normal(const map_options& given) {
    return std::make_unique<sqlite_map>(given, false);
}

} // namespace hf::bench
