// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects of an open pool, by name.  SIMPO §3.4.1, the persistent object table
//
// (1) An object is made whole before a word of the superblock names it, and named before its block
//     is allocated. After a crash in between, an open allocates the block of what is named. An
//     object ends in the opposite order. If another object takes its word, its block is free before
//     the word names the other.
// (2) Constructors and conversions run without the lock: they may use the table, and other objects.
// (3) In a full pool the objects used least recently give their blocks to the object that asks for
//     one. Each has its file, durably, before a word names what is left of it, 256 bytes. It gets
//     another block before it is used again.
// (4) One such block of 256 bytes is kept for objects that come back. New objects take all the
//     rest, and an object that comes back needs its own 256 bytes until the object that makes room
//     for it has another block.
#pragma once

#include <simpo/core.hpp>
#include <simpo/past.hpp>
#include <simpo/swap_folder.hpp>

#include <holdfast/simpo/share.hpp>
#include <holdfast/simpo/table.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hf::simpo {

/// Null if the pool has none yet.
superblock* superblock_of(const pool_file& file);
std::span<std::uint64_t> object_words(superblock& super);
/// Bounds all that SIMPO has in the pool, and finds whether its logs can be replayed. Reads only.
/// Errors: corrupt, function_changed.
status inspect(const pool::impl& in);
/// Under salvage: gives up objects that inspect() refuses.
void give_up_unsound(pool::impl& in);
/// Whether the object is of this class. Errors: wrong_layout.
status check_shape(const pool_file& file, const object_head& h, const detail::class_shape& what);

class server;

class objects final : public engine_state, public detail::keeper {
public:
    explicit objects(pool::impl& in) noexcept;
    ~objects() override;
    status recover(engine_recovery& done);
    void settle() noexcept override;
    void settle_for_close() noexcept override;
    void end_own_work(bool stop) noexcept override;

    result<detail::core*> create(std::string_view name, const detail::class_shape& what,
                                 const object_options& how, detail::body construct, void* context);
    result<detail::core*> find(std::string_view name, const detail::class_shape& what);
    /// 'what': null, whatever it is.
    status destroy(std::string_view name, const detail::class_shape* what);
    result<detail::core*> remake(std::string_view name, const detail::class_shape& was,
                                 const detail::class_shape& what, const object_options& how,
                                 detail::make_from convert, void* context);
    result<std::vector<object_info>> list();

    status serve(const serve_options& how);
    status stop_serving();

    // past.cpp
    status keep_history(std::string_view name, const history_options& how);
    status end_history(std::string_view name);
    /// 'what': null, whatever it is.
    result<past_source> past(std::string_view name, const detail::class_shape* what,
                             const compression* packing);

    // swapping.cpp
    status swap_to(std::string folder, const swap_options& how);
    status swap_out(std::string_view name);
    status bring_back(detail::core& which) override;
    /// The folder of swapped-out objects. Errors: bad_argument: no folder was given.
    result<const swap_folder*> folder();
    /// Calls visit(block) for the superblock and each object's block.
    template <class Visit> void for_each_block(Visit&& visit) const {
        superblock* const super = superblock_of(*pool_->file);
        if (super == nullptr) return;
        visit(static_cast<const void*>(super));
        for (const std::uint64_t offset : object_words(*super))
            if (offset != 0) visit(static_cast<const void*>(pool_->at(offset)));
    }

private:
    status usable(bool writing) const;
    status no_object(std::string_view name) const;
    status is_destroyed() const;
    std::vector<std::unique_ptr<detail::core>>::iterator place_of(std::string_view name);
    template <class Fill, class Before>
    void* make_block(block made, std::uint64_t& word, Fill&& fill, Before&& before_named);
    result<object_head> head_of(std::string_view name, const detail::class_shape& what,
                                const object_options& how);
    object_head& put(const object_head& head, const void* copy, block at, std::uint64_t& word,
                     std::optional<block> instead);
    detail::core* place(std::unique_ptr<detail::core> made, object_head& head, block at,
                        std::uint64_t& word, std::optional<block> instead);
    block block_of(const detail::core& which);
    std::uint64_t& word_of(const detail::core& of) const;
    void free_block(block b) noexcept;
    block take_block(std::uint64_t bytes, purpose what = purpose::data);
    // swapping.cpp
    enum class room_for : std::uint8_t { made, coming };
    result<block> reserve(std::uint64_t bytes, room_for whom, std::unique_lock<std::mutex>& held);
    result<block> reserve_now(std::uint64_t bytes, room_for whom, bool& in_use);
    block take_remains(room_for whom);
    bool keep_spare() noexcept;
    detail::core* least_recently_used(const std::vector<const detail::core*>& but) const;
    status put_away(detail::core& which, room_for whom);
    status write_and_leave(detail::core& which, room_for whom);
    void remove_file(const object_head& of) const noexcept;
    result<std::uint64_t*> free_word();
    std::uint64_t new_salt() noexcept;

    pool::impl* pool_;
    std::mutex lock_;
    std::vector<std::unique_ptr<detail::core>> all_; // destroyed ones too: of handles
    std::uint64_t made_ = 0;                         // since the pool was opened
    std::optional<swap_folder> swap_;
    std::uint64_t opened_by_ = 0; // number of this open, for the folder; 0: none yet
    block spare_{};               // reserved (4); offset 0: there was no room for it
    std::mutex serving_;
    std::unique_ptr<server> server_; // of other processes; null: nobody asked for it
};

/// Errors: missing_engine, in_use.
result<objects*> objects_of(const pool& in);

} // namespace hf::simpo
