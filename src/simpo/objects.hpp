// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects of an open pool, by name.  SIMPO §3.4.1, the persistent object table
//
// (1) An object is made whole before a word of the superblock names it, and named before its block is
//     allocated: an open cures a crash in between. It ends in the opposite order; where another one takes its name,
//     its block is free before the word names the other.
// (2) Constructors and conversions run without the lock: they may use the table, and other objects.
#pragma once

#include <simpo/core.hpp>

#include <holdfast/simpo/table.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace hf::simpo {

/// Null: there is none yet.
superblock* superblock_of(const pool_file& file);
std::span<std::uint64_t> object_words(superblock& super);
/// Bounds all that SIMPO has in the pool, and finds whether its logs can be replayed. Reads only.
/// Errors: corrupt, function_changed.
status inspect(const pool::impl& in);
/// Whether the object is of this class. Errors: wrong_layout.
status check_shape(const pool_file& file, const object_head& h, const detail::class_shape& what);

class objects final : public engine_state {
public:
    explicit objects(pool::impl& in) noexcept : pool_(&in) {}
    void recover(engine_recovery& done);
    void settle() noexcept override;

    result<detail::core*> create(std::string_view name, const detail::class_shape& what,
                                 const object_options& how, detail::body construct, void* context);
    result<detail::core*> find(std::string_view name, const detail::class_shape& what);
    /// 'what': null, whatever it is.
    status destroy(std::string_view name, const detail::class_shape* what);
    result<detail::core*> remake(std::string_view name, const detail::class_shape& was,
                                 const detail::class_shape& what, const object_options& how,
                                 detail::make_from convert, void* context);
    result<std::vector<object_info>> list();
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
    std::vector<std::unique_ptr<detail::core>>::iterator place_of(std::string_view name);
    template <class Fill, class Before>
    void* make_block(std::uint64_t bytes, std::uint64_t& word, Fill&& fill, Before&& before_named);
    result<object_head> head_of(std::string_view name, const detail::class_shape& what,
                                const object_options& how);
    template <class Before>
    result<detail::core*> place(std::unique_ptr<detail::core> made, object_head& head,
                                std::uint64_t& word, Before&& before_named);
    std::uint64_t& word_of(const detail::core& of) const;
    void free_block(block b) noexcept;
    result<std::uint64_t*> free_word();
    std::uint64_t new_salt() noexcept;

    pool::impl* pool_;
    std::mutex lock_;
    std::vector<std::unique_ptr<detail::core>> all_; // destroyed ones too: of handles
    std::uint64_t made_ = 0;                         // since the pool was opened
};

/// Errors: missing_engine, in_use.
result<objects*> objects_of(const pool& in);

} // namespace hf::simpo
