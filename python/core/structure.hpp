// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the structures, and their snapshots, have in common.
#pragma once

#include "calls.hpp"
#include "element.hpp"
#include "pool.hpp"
#include "sorted_key.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hf_python {

/// Goes through one version; an iterator.
class cursor final : public attachment {
public:
    enum class gives { elements, values, pairs };
    /// 'decode_key' makes a SortedMap's keys.
    using key_decoder = nb::object (*)(hf_bytes stored);
    cursor(nb::object owner, hf_mod_cursor* held, gives what, key_decoder decode_key = nullptr)
        : attachment(std::move(owner)), held_(held), what_(what), decode_key_(decode_key) {}
    ~cursor() override { detach(); }
    nb::object next();

private:
    void drop() noexcept override { hf_mod_cursor_close(std::exchange(held_, nullptr)); }
    hf_mod_cursor* held_;
    gives what_;
    key_decoder decode_key_;
};

template <class Calls> class structure;

/// A version.
template <class Calls> class snapshot final : public attachment {
public:
    using calls = Calls;
    snapshot(nb::object owner, typename Calls::snapshot* held)
        : attachment(std::move(owner)), held_(held) {}
    /// The current version.
    explicit snapshot(const structure<Calls>& of) : snapshot(of.owner(), of.pinned()) {}
    ~snapshot() override { detach(); }
    void close() {
        require_nothing_lent();
        detach();
    }

    template <class Work> auto read(Work&& work) const {
        require_attached();
        return work(const_cast<const typename Calls::snapshot*>(held_));
    }

private:
    void drop() noexcept override { Calls::close(std::exchange(held_, nullptr)); }
    typename Calls::snapshot* held_;
};

/// A handle.
template <class Calls> class structure final : public attachment {
public:
    using calls = Calls;
    structure(nb::object owner, const std::string& name, bool on_return)
        : attachment(std::move(owner)), name_(text_of("name", name)),
          waits_(on_return && in().waits_for_disk()) {
        hf_pool* const opened = in().await(pool::work::change); // it may be made
        check(commit(0, [&] { return Calls::open(opened, name_.c_str(), &held_); }));
        Calls::set_durability(held_, on_return ? HF_MOD_ON_RETURN : HF_MOD_BY_NEXT_SECTION);
    }
    ~structure() override { detach(); }
    void close() {
        if (usable()) await_turn();
        detach();
    }
    const char* name() const noexcept { return name_.c_str(); }

    typename Calls::snapshot* pinned() const {
        typename Calls::snapshot* taken = nullptr;
        check(Calls::take(held(), &taken));
        return taken;
    }
    /// 'work' gets the handle, or a snapshot when a change runs beside.
    template <class Work> auto read(Work&& work) const {
        if (in().joined() != nullptr || (!in().busy() && !in().beside()))
            return work(const_cast<const typename Calls::handle*>(held()));
        const snapshot<Calls> beside(owner(), pinned());
        return beside.read(work);
    }
    /// 'work' gets the handle, when no other change runs. No other thread comes between its steps,
    /// as it runs no Python code; the last one may be a commit().
    template <class Work> auto change(Work&& work) {
        await_turn();
        return work(held());
    }
    /// The step of a change that stores so many bytes, of so many elements: without the
    /// interpreter's lock where that takes longer than handing the lock over. Requires: within
    /// change().
    template <class Step> hf_status commit(std::size_t bytes, Step&& step, std::size_t count = 1) {
        constexpr std::size_t few_bytes = 128 << 10, few_count = 64;
        const bool short_work = bytes < few_bytes && count < few_count && !waits_;
        if (short_work || in().joined() != nullptr) return step();
        const nb::object kept = owner();
        const pool::absence away(in(), pool::work::change);
        return step();
    }
    template <class Work> void change_many(const encoded_list& elements, std::size_t count,
                                           Work&& work) {
        change([&](auto* to) { check(commit(elements.bytes(), [&] { return work(to); }, count)); });
    }

private:
    /// The structure's own handle, or this context's transaction's.
    typename Calls::handle* held() const {
        require_attached();
        const transaction* const joined = in().joined();
        if (joined == nullptr) return held_;
        if (joined_ != joined->number()) {
            Calls::close(std::exchange(in_transaction_, nullptr));
            joined_ = 0;
            check(Calls::open_in(joined->get(), name_.c_str(), &in_transaction_));
            joined_ = joined->number();
        }
        return in_transaction_;
    }
    void await_turn() {
        if (!in().refuses_change()) return;
        const nb::object kept = owner(); // another thread may close this meanwhile
        in().await(pool::work::change);
        require_attached();
    }
    void drop() noexcept override {
        Calls::close(std::exchange(held_, nullptr));
        Calls::close(std::exchange(in_transaction_, nullptr));
    }
    typename Calls::handle* held_ = nullptr;
    mutable typename Calls::handle* in_transaction_ = nullptr;
    mutable std::uint64_t joined_ = 0; // the transaction's number that this is of
    std::string name_;
    bool waits_; // for the disk, with each change
};

/// What a look into a structure found.
struct looked {
    bool there = false;
    hf_bytes bytes{};
};

/// Takes out what 'look' finds, by 'go', in one step; nothing when it finds nothing. The object is
/// made before: what cannot be made stays.
template <class Calls, class Look, class Go>
nb::object taken(structure<Calls>& from, Look&& look, Go&& go) {
    const auto take_out = [&](auto* at, auto& found) {
        check(from.commit(0, [&] { return go(at, found); }));
    };
    for (;;) {
        bool gone = false;
        const auto seen = from.change([&](auto* at) -> std::optional<half_decoded> {
            auto found = look(at);
            if (!found.there) return {};
            half_decoded half(found.bytes);
            gone = !half.needs_python();
            if (gone) take_out(at, found);
            return half;
        });
        if (!seen) return {};
        nb::object made = seen->whole(form::plain); // the caller's alone now
        if (gone) return made;
        from.change([&](auto* at) { // other threads ran meanwhile
            auto found = look(at);
            gone = found.there && seen->is(found.bytes);
            if (gone) take_out(at, found);
        });
        if (gone) return made;
    }
}

template <class Calls> inline constexpr cursor::key_decoder key_decoder_of = nullptr;
template <> inline constexpr cursor::key_decoder key_decoder_of<ordered_map_calls> = &decoded_key;

/// A cursor through the current version of 'of'.
template <class Source> cursor* iterate(const Source& of, cursor::gives what) {
    hf_mod_cursor* made = nullptr;
    of.read([&](const auto* from) { check(Source::calls::iterate(from, &made)); });
    return new cursor(of.owner(), made, what, key_decoder_of<typename Source::calls>);
}

template <class Source> std::uint64_t count(const Source& of) {
    return of.read([](const auto* from) { return Source::calls::count(from); });
}

void bind_map(nb::module_& to);
void bind_sorted_map(nb::module_& to);
void bind_set(nb::module_& to);
void bind_vector(nb::module_& to);
void bind_stack_and_queue(nb::module_& to);

/// What every snapshot and structure can do.
template <class Source> void bind_reading(nb::class_<Source>& to) {
    to.def("close", &Source::close);
    to.def("__len__", &count<Source>);
    to.def("__bool__", [](const Source& of) { return count(of) != 0; });
    to.def("__iter__", [](const Source& of) { return iterate(of, cursor::gives::elements); });
    to.def_prop_ro("pool", [](const Source& of) {
        of.in();
        return of.owner();
    });
}

template <class Calls> void bind_snapshot(nb::class_<snapshot<Calls>>& to) {
    to.def(nb::init<const structure<Calls>&>());
    bind_reading(to);
}

template <class Calls> void bind_structure(nb::class_<structure<Calls>>& to) {
    using self = structure<Calls>;
    to.def(nb::init<nb::object, const std::string&, bool>());
    bind_reading(to);
    to.def_prop_ro("name", &self::name);
    to.def("clear", [](self& of) {
        of.change([&](auto* at) { // looks at every node
            check(of.commit(0, [&] { return Calls::clear(at); }, Calls::count(at)));
        });
    });
}

} // namespace hf_python
