// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LMDB: one write transaction per insertion, or per batch, one writer at a time. 'lmdb' is its
// synchronous default (on tmpfs an fdatasync costs next to nothing: quote it from a disk as well);
// 'lmdb-writemap-nosync' survives the process only, so it is the process mode's peer.
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include "peers.hpp"
#include "thread_own.hpp"

#include <cstring>
#include <lmdb.h>
#include <utility>

namespace hf::bench {
namespace {

class lmdb_map final : public map_under_test {
public:
    lmdb_map(const map_options& given, bool writemap_nosync)
        : value_bytes_(given.value_bytes), key_bytes_(key_bytes(given.which)),
          writemap_nosync_(writemap_nosync), file_(given.directory, "lmdb") {
        unsigned flags = MDB_NOSUBDIR;
        if (writemap_nosync) flags |= MDB_WRITEMAP | MDB_NOSYNC;
        require(mdb_env_create(&environment_));
        require(mdb_env_set_mapsize(environment_, 2 * pool_bytes(given)));
        require(mdb_env_open(environment_, file_.path().c_str(), flags, 0600));
        MDB_txn* transaction = nullptr;
        require(mdb_txn_begin(environment_, nullptr, 0, &transaction));
        require(mdb_dbi_open(transaction, nullptr, key_bytes_ == 8 ? MDB_INTEGERKEY : 0, &table_));
        require(mdb_txn_commit(transaction));
    }
    ~lmdb_map() override { mdb_env_close(environment_); }

    bool insert(std::uint64_t key, const void* value) noexcept override {
        return put(key, value, MDB_NOOVERWRITE);
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        return put(key, value, 0);
    }
    void begin_batch(std::uint64_t operations) noexcept override {
        if (operations > 1) require(mdb_txn_begin(environment_, nullptr, 0, &batch_));
    }
    void end_batch() noexcept override {
        if (MDB_txn* const transaction = std::exchange(batch_, nullptr))
            require(mdb_txn_commit(transaction));
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        MDB_txn* reader = begin_reading();
        if (reader == nullptr) return false;
        encoded_key room(key, 32);
        MDB_val k = key_in(key, room);
        MDB_val v{};
        const bool found = mdb_get(reader, table_, &k, &v) == 0;
        if (found) std::memcpy(value, v.mv_data, value_bytes_);
        end_reading(reader);
        return found;
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        MDB_txn* reader = begin_reading();
        MDB_cursor* cursor = nullptr;
        if (reader == nullptr || mdb_cursor_open(reader, table_, &cursor) != 0) return 0;
        encoded_key room(key, 32);
        MDB_val k = key_in(key, room);
        MDB_val v{};
        std::uint64_t seen = 0;
        for (int found = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE); found == 0 && seen < count;
             found = mdb_cursor_get(cursor, &k, &v, MDB_NEXT), ++seen)
            std::memcpy(value, v.mv_data, value_bytes_);
        mdb_cursor_close(cursor);
        end_reading(reader);
        return seen;
    }
    map_facts facts() const override {
        return {false, false, false,
                writemap_nosync_ ? "MDB_WRITEMAP|MDB_NOSYNC: survives the process only"
                                 : "fdatasync per transaction: survives power loss; next to free "
                                   "on tmpfs"};
    }

private:
    static void require(int code) {
        if (code != 0) give_up(std::string("lmdb: ") + mdb_strerror(code));
    }
    // Eight bytes as a number, which LMDB compares faster; 32 as bytes.
    MDB_val key_in(std::uint64_t& key, encoded_key& room) const noexcept {
        if (key_bytes_ == 8) return {sizeof key, &key};
        return {room.size, room.bytes.data()};
    }
    bool put(std::uint64_t key, const void* value, unsigned flags) noexcept {
        MDB_txn* transaction = batch_;
        const bool alone = transaction == nullptr;
        if (alone && mdb_txn_begin(environment_, nullptr, 0, &transaction) != 0) return false;
        encoded_key room(key, 32);
        MDB_val k = key_in(key, room);
        MDB_val v{value_bytes_, const_cast<void*>(value)};
        if (mdb_put(transaction, table_, &k, &v, flags) != 0) {
            if (alone) mdb_txn_abort(transaction);
            return false;
        }
        return !alone || mdb_txn_commit(transaction) == 0;
    }
    // A thread's reading transaction is made once and renewed, as its manual advises; in a batch
    // there is one.
    MDB_txn* begin_reading() noexcept {
        if (batch_ != nullptr) return batch_;
        MDB_txn*& reader = reader_.get();
        if (reader == nullptr)
            return mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader) == 0 ? reader
                                                                                  : nullptr;
        return mdb_txn_renew(reader) == 0 ? reader : nullptr;
    }

    void end_reading(MDB_txn* reader) noexcept {
        if (reader != batch_) mdb_txn_reset(reader);
    }

    std::size_t value_bytes_;
    std::size_t key_bytes_;
    bool writemap_nosync_;
    temporary_file file_;
    MDB_env* environment_ = nullptr;
    MDB_dbi table_ = 0;
    thread_own<MDB_txn> reader_;
    static inline thread_local MDB_txn* batch_ = nullptr; // the open one
};

} // namespace

std::unique_ptr<map_under_test> make_map_lmdb(const map_options& given) {
    return std::make_unique<lmdb_map>(given, false);
}
std::unique_ptr<map_under_test> make_map_lmdb_writemap_nosync(const map_options& given) {
    return std::make_unique<lmdb_map>(given, true);
}

} // namespace hf::bench
