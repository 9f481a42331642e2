// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RocksDB: one Put per operation, or one write of a batch, which does not look whether the key is
// there. 'rocksdb' syncs its write-ahead log (on tmpfs that costs next to nothing: quote it from a
// disk as well); 'rocksdb-nosync' leaves the log to the kernel and survives the process only.
// Defaults otherwise, compression off: the values are noise.
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include "peers.hpp"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstring>
#include <optional>

namespace hf::bench {
namespace {

class rocksdb_map final : public map_under_test {
public:
    rocksdb_map(const map_options& given, bool sync)
        : value_bytes_(given.value_bytes), key_bytes_(key_bytes(given.which)), sync_(sync),
          file_(given.directory, "rocksdb") {
        rocksdb::Options options;
        options.create_if_missing = true;
        options.compression = rocksdb::kNoCompression;
        rocksdb::DB* opened = nullptr;
        const rocksdb::Status status = rocksdb::DB::Open(options, file_.path(), &opened);
        if (!status.ok()) give_up("rocksdb: " + status.ToString());
        database_.reset(opened);
    }
    bool insert(std::uint64_t key, const void* value) noexcept override {
        const encoded_key bytes(key, key_bytes_);
        const rocksdb::Slice stored{static_cast<const char*>(value), value_bytes_};
        if (batch_) return batch_->Put(slice(bytes), stored).ok();
        return database_->Put(durable(sync_), slice(bytes), stored).ok();
    }
    void begin_batch(std::uint64_t operations) noexcept override {
        if (operations > 1) batch_.emplace();
    }
    void end_batch() noexcept override {
        if (batch_ && !database_->Write(durable(sync_), &*batch_).ok())
            give_up("rocksdb: a batch was not written");
        batch_.reset();
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        return insert(key, value);
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        if (!show_batch()) return false;
        const encoded_key bytes(key, key_bytes_);
        rocksdb::PinnableSlice found;
        if (!database_->Get({}, database_->DefaultColumnFamily(), slice(bytes), &found).ok())
            return false;
        std::memcpy(value, found.data(), value_bytes_);
        return true;
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        if (!show_batch()) return 0;
        const encoded_key bytes(key, key_bytes_);
        const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator({}));
        std::uint64_t seen = 0;
        for (at->Seek(slice(bytes)); at->Valid() && seen < count; at->Next(), ++seen)
            std::memcpy(value, at->value().data(), value_bytes_);
        return seen;
    }
    map_facts facts() const override {
        return {false, false, false,
                sync_ ? "log synced per write: survives power loss; next to free on tmpfs"
                      : "log not synced: survives the process only"};
    }

private:
    static rocksdb::WriteOptions durable(bool sync) {
        rocksdb::WriteOptions how;
        how.sync = sync;
        return how;
    }
    /// A thread finds what it has put into its batch.
    bool show_batch() noexcept {
        if (!batch_ || batch_->Count() == 0) return true;
        const bool written = database_->Write(durable(false), &*batch_).ok();
        batch_->Clear();
        return written;
    }
    static rocksdb::Slice slice(const encoded_key& key) {
        return {reinterpret_cast<const char*>(key.bytes.data()), key.size};
    }

    std::size_t value_bytes_;
    std::size_t key_bytes_;
    bool sync_;
    temporary_file file_;
    std::unique_ptr<rocksdb::DB> database_;
    static inline thread_local std::optional<rocksdb::WriteBatch> batch_;
};

} // namespace

std::unique_ptr<map_under_test> make_map_rocksdb(const map_options& given) {
    return std::make_unique<rocksdb_map>(given, true);
}
std::unique_ptr<map_under_test> make_map_rocksdb_nosync(const map_options& given) {
    return std::make_unique<rocksdb_map>(given, false);
}

} // namespace hf::bench
