// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file that keeps an object's calls when the log gives their lines back.  SIMPO §3.3.1  docs/format/simpo.md
//
// (1) A file has its name when the object, as it was when its history began, is in it, durably.
//     Behind that it grows by pieces. A piece counts when its checks hold and it begins where the
//     one before it ends; behind the last one that counts there is nothing.
// (2) A call is in the pool's log or in a piece. One that a kill leaves in both has one position,
//     and counts once.
// (3) Calls are durable in the pool before a piece has them, and the piece is durable before the
//     index that frees their lines.
// (4) When the pool is opened, the file ends at the index, within the committed calls behind it, or
//     a log's length behind those, where the object goes on. Any other end is of another state.
// (5) Nothing that is read is believed: sizes are bounded, and what a check does not cover is not
//     used.
#pragma once

#include <pool/os_file.hpp>
#include <pool/pool_file.hpp>
#include <simpo/swap_folder.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::simpo {

namespace detail {
struct function;
}

class history_file {
public:
    /// That of the object which 'of' describes: beside the pool, in POOL.history. Reads and writes
    /// nothing. Throws std::bad_alloc.
    history_file(const std::string& pool_path, const object_head& of);
    /// The folder, with a slash at its end.
    static std::string folder_of(const std::string& pool_path);

    /// Makes the file. Requires: that the object's head has its number.
    status create(const os_file& pool, const object_head& of, const std::byte* copy, position at);
    /// Finds where it ends. Errors: corrupt (its beginning), io_error.
    status find_end(const os_file& pool);
    position end() const noexcept { return end_; }
    std::uint64_t calls() const noexcept { return calls_; }
    const std::string& path() const noexcept { return path_; }

    void pack_with(const compression* packing) noexcept { packing_ = packing; }
    const compression* packing() const noexcept { return packing_; }

    /// Adds pieces. The file is as it was if that fails. Requires: find_end().
    class writing;
    /// A call as it stands there; 'signature' is "count(f8)", or empty where it was not known.
    using visitor = std::function<bool(const record& call, std::string_view signature)>;
    /// Calls visit() for each record in its order, until that returns false. 'copy' gets the object
    /// as it was before them, if it is not null. Nobody need hold the pool.
    ///
    /// Errors:   corrupt; bad_argument: it is packed in another way than with 'packing'; io_error.
    status read(const pool_name& pool, const compression* packing, std::byte* copy,
                const visitor& visit);
    void remove() const noexcept;

private:
    status remove_own(const pool_name& pool) const;
    struct piece;
    /// Opens the file for a moment, and calls look(file).
    template <class Look> status looked(held how, Look&& look) const;
    status read_head(const os_file& file, const pool_name& pool) const;
    bool read_piece(const os_file& file, piece& out) const;
    bool body_holds(const piece& of) const noexcept;
    status unpack(const piece& of, const compression* packing, std::vector<std::byte>& to) const;
    status read_calls(const piece& of, const std::vector<std::byte>& body, const visitor& visit,
                      bool& goes_on) const;
    std::string path_;
    object_head of_;
    const compression* packing_ = nullptr;
    position end_ = 0;
    std::uint64_t end_bytes_ = 0, calls_ = 0;
};

/// Holds the file until it ends.
class history_file::writing {
public:
    /// Throws std::bad_alloc.
    explicit writing(history_file& to);
    /// Whether the piece has that function's name already.
    bool names(const record_head& function) const noexcept;
    /// 'f': null where names(), or where this build does not know it. A failure is in end().
    void add(const record& r, const detail::function* f);
    /// All of it is in the file on return, and the file ends at 'at'; durably if 'synced'.
    status end(position at, bool synced);

private:
    void put(position to);

    history_file* to_;
    std::unique_lock<std::mutex> turn_;
    std::optional<os_file> file_;
    status failed_;
    std::vector<std::byte> functions_, records_; // of the piece
    std::vector<record_head> known_;             // one of each function
    std::uint32_t calls_ = 0;
};

/// "count(f8)": a function's name, and the kind and size of each parameter.
std::string signature_of(const detail::function& f);
/// An argument for people, by the letters and sizes of a signature.
std::vector<std::string> readable(std::string_view signature, const record& call);

} // namespace hf::simpo
