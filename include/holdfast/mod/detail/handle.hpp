// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all containers share: a handle of a root, versions, batches. A container adds its own
// updates, and reads by the functions of its structure.
#pragma once

#include <holdfast/author/mod/store.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace hf::mod::detail {

/// Several updates that become one version. Reads see the updates before them. When the pool is
/// full, further updates change nothing, and the commit reports it.
class batch_base {
public:
    /// Continues the version that 'word' names: for sections over several structures.
    batch_base(shadow& work, std::uint64_t word) noexcept : work_(&work), word_(word) {}
    /// The pool is full: this batch will not be committed.
    bool failed() const noexcept { return work_->failed(); }

    std::uint64_t word() const noexcept { return word_; }
    const std::byte* base() const noexcept { return work_->base(); }

protected:
    shadow* work_;
    std::uint64_t word_;
};

/// A value: what a container was at some time, or what it may become. Updates return other versions
/// and leave this one as it is.
///
/// Cost:     the new nodes of the handle's update; nodes of versions never committed are given
///           back.
/// Ordering: 0.
/// Errors:   none; when the pool was full, the commit reports it.
template <class Self, class Batch> class version_base : public mod::version {
public:
    /// Empty, and of no container: only for reading and assigning.
    version_base() noexcept = default;
    /// A version from a root, or from an update of another version.
    explicit version_base(mod::version of) noexcept : mod::version(std::move(of)) {}

    [[nodiscard]] Self clear() const {
        return update([](Batch& to) { to.clear(); });
    }
    /// Several at once: change(batch&).
    template <class Change> [[nodiscard]] Self update(Change&& change) const {
        return Self(updated([&](shadow& work, std::uint64_t word) {
            Batch to(work, word);
            change(to);
            return to.word();
        }));
    }
};

/// A named container in a pool. Each container's header says what its members promise and cost.
template <class Batch, class Version> class handle {
public:
    using batch = Batch;
    using version = Version;

    status clear() {
        return update([](batch& to) { to.clear(); });
    }
    template <class Change> status update(Change&& change) {
        auto writing = root_->write();
        batch to(writing.work(), writing.word());
        if constexpr (std::is_void_v<std::invoke_result_t<Change, batch&>>) change(to);
        else if (!change(to)) return {};
        return finish(writing, to);
    }

    version snapshot() const { return version(root_->read()); }
    void refresh() const { root_->refresh(); }
    status commit(const version& next) { return root_->commit(next); }

    durability when_durable() const noexcept { return root_->when_durable(); }
    void set_durability(durability wanted) noexcept { root_->set_durability(wanted); }
    /// For store::commit of several.
    mod::root* its_root() const noexcept { return root_; }

    std::uint64_t word() const noexcept { return root_->word(); }
    const std::byte* base() const noexcept { return root_->base(); }

protected:
    explicit handle(mod::root& at) noexcept : root_(&at) {}

    template <class Self>
    static result<Self> opened(const pool& in, const place& at, const kind& what,
                               std::uint64_t shape) {
        const result<mod::root*> found = store::in(in).open(at, what, shape);
        if (!found) return found.error();
        return Self(**found);
    }
    static status finish(mod::root::writing& writing, const batch& to) {
        if (to.word() == writing.word() && !to.failed()) return {}; // nothing was changed
        return writing.commit(to.word());
    }
    /// One update, and its result.
    template <class Change>
    auto change(Change&& once) -> result<std::invoke_result_t<Change, batch&>> {
        auto writing = root_->write();
        batch to(writing.work(), writing.word());
        const auto done = once(to);
        if (status committed = finish(writing, to); !committed.ok()) return committed;
        return done;
    }

    mod::root* root_;
};

} // namespace hf::mod::detail
