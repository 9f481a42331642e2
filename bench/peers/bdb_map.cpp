// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Berkeley DB with its transactional store, as a B-tree ('bdb') or a hash ('bdb-hash'). One
// transaction per operation, whose log is synced (on tmpfs next to free); '-nosync' writes the log
// to the kernel without waiting (DB_TXN_WRITE_NOSYNC) and survives the process only.
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include "peers.hpp"

#include <cstring>
#include <db.h>

namespace hf::bench {
namespace {

DBT dbt(void* data, std::size_t bytes, u_int32_t flags = 0) {
    DBT made{};
    made.data = data;
    made.size = made.ulen = static_cast<u_int32_t>(bytes);
    made.flags = flags;
    return made;
}

class bdb_map final : public map_under_test {
public:
    bdb_map(const map_options& given, bool hash, bool sync)
        : value_bytes_(given.value_bytes), key_bytes_(key_bytes(given.which)), sync_(sync),
          file_(given.directory, "bdb") {
        file_.make_directory();
        require(db_env_create(&environment_, 0));
        require(environment_->set_cachesize(environment_, 0, 512U << 20, 1));
        require(environment_->set_lg_bsize(environment_, 16U << 20));
        require(environment_->set_lg_max(environment_, 256U << 20));
        require(environment_->log_set_config(environment_, DB_LOG_AUTO_REMOVE, 1));
        require(environment_->set_lk_detect(environment_, DB_LOCK_DEFAULT));
        if (!sync) require(environment_->set_flags(environment_, DB_TXN_WRITE_NOSYNC, 1));
        require(environment_->open(environment_, file_.path().c_str(),
                                   DB_CREATE | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK |
                                       DB_INIT_MPOOL | DB_PRIVATE | DB_THREAD,
                                   0600));
        require(db_create(&table_, environment_, 0));
        if (hash) require(table_->set_h_nelem(table_, static_cast<u_int32_t>(given.keys)));
        require(table_->open(table_, nullptr, "map", nullptr, hash ? DB_HASH : DB_BTREE,
                             DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0600));
    }
    ~bdb_map() override {
        table_->close(table_, DB_NOSYNC);
        environment_->close(environment_, 0);
    }
    bool insert(std::uint64_t key, const void* value) noexcept override {
        return put(key, value, DB_NOOVERWRITE);
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        return put(key, value, 0);
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        encoded_key bytes(key, key_bytes_);
        DBT k = dbt(bytes.bytes.data(), bytes.size);
        DBT v = dbt(value, value_bytes_, DB_DBT_USERMEM);
        int code;
        do code = table_->get(table_, nullptr, &k, &v, 0);
        while (code == DB_LOCK_DEADLOCK);
        return code == 0;
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        DBC* cursor = nullptr;
        if (table_->cursor(table_, nullptr, &cursor, DB_READ_COMMITTED) != 0) return 0;
        encoded_key bytes(key, key_bytes_);
        DBT k = dbt(bytes.bytes.data(), bytes.size, DB_DBT_USERMEM);
        k.ulen = static_cast<u_int32_t>(bytes.bytes.size());
        DBT v = dbt(value, value_bytes_, DB_DBT_USERMEM);
        std::uint64_t seen = 0;
        // Each step copies: none beyond the last.
        while (seen < count && cursor->get(cursor, &k, &v, seen == 0 ? DB_SET_RANGE : DB_NEXT) == 0)
            ++seen;
        cursor->close(cursor);
        return seen;
    }
    map_facts facts() const override {
        return {false, false, false,
                sync_ ? "log synced per transaction: survives power loss; next to free on tmpfs"
                      : "DB_TXN_WRITE_NOSYNC: survives the process only"};
    }

private:
    static void require(int code) {
        if (code != 0) give_up(std::string("bdb: ") + db_strerror(code));
    }
    // Outside of a transaction of the caller's, a put is one.
    bool put(std::uint64_t key, const void* value, u_int32_t flags) noexcept {
        encoded_key bytes(key, key_bytes_);
        DBT k = dbt(bytes.bytes.data(), bytes.size);
        DBT v = dbt(const_cast<void*>(value), value_bytes_);
        int code;
        do code = table_->put(table_, nullptr, &k, &v, flags);
        while (code == DB_LOCK_DEADLOCK);
        return code == 0;
    }

    std::size_t value_bytes_;
    std::size_t key_bytes_;
    bool sync_;
    temporary_file file_;
    DB_ENV* environment_ = nullptr;
    DB* table_ = nullptr;
};

} // namespace

std::unique_ptr<map_under_test> make_map_bdb(const map_options& given) {
    return std::make_unique<bdb_map>(given, false, true);
}
std::unique_ptr<map_under_test> make_map_bdb_nosync(const map_options& given) {
    return std::make_unique<bdb_map>(given, false, false);
}
std::unique_ptr<map_under_test> make_map_bdb_hash(const map_options& given) {
    return std::make_unique<bdb_map>(given, true, true);
}
std::unique_ptr<map_under_test> make_map_bdb_hash_nosync(const map_options& given) {
    return std::make_unique<bdb_map>(given, true, false);
}

} // namespace hf::bench
