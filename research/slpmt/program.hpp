// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface for workloads: objects whose loads and stores the machine executes, memory for new
// ones, and the annotations of stores.
#pragma once

#include <slpmt/machine.hpp>
#include <slpmt/objects.hpp>
#include <slpmt/trace_file.hpp>

#include <source_location>
#include <string>
#include <string_view>

namespace hf::slpmt {

/// A store of a workload's source that may be annotated: every store names one.
struct site {
    std::string_view name;
    operands by_hand;                       // what its author says
    operands now = by_hand;                 // what is tried
    std::source_location where = {};        // of the store, when it has been executed
    std::uint64_t stores = 0, to_fresh = 0; // how many; how many to memory of the same transaction
};

class program : public readable<program> {
public:
    /// Objects are made from `next` on; the root lies where the heap begins.
    program(machine& on, std::uint64_t next) : on_(on), next_(next) {}
    explicit program(machine& on) : program(on, first_object(on.where())) {}
    static constexpr std::uint64_t root_bytes = 256;
    static std::uint64_t first_object(const layout& where) { return where.heap() + root_bytes; }

    /// From here on the program's work is recorded. A word is then ready "at" the number of its
    /// load, which the next address takes along: the times of a recorded run mean nothing.
    void record(recorded& to) { record_ = &to; }
    machine::loaded word(std::uint64_t offset, sim::ticks ready) const {
        if (record_ == nullptr) return on_.load(offset, ready);
        record_->add({event_kind::load, {}, offset, ready});
        return {on_.load(offset).value, record_->counts.loads};
    }

    template <class T, class M, class V>
    void set(ref<T> in, M T::* member, V value, site& how,
             std::source_location where = std::source_location::current()) {
        store(in.at + offset_of(member), word_of(value), how, where);
    }
    template <class T, class M, std::size_t N, class V>
    void set(ref<T> in, M (T::*member)[N], std::uint64_t i, V value, site& how,
             std::source_location where = std::source_location::current()) {
        HF_ASSERT(i < N);
        store(in.at + offset_of(member) + i * sizeof(M), word_of(value), how, where);
    }
    template <class M, class V>
    void put(ref<M> array, std::uint64_t i, V value, site& how,
             std::source_location where = std::source_location::current()) {
        store(array.at + i * sizeof(M), word_of(value), how, where);
    }

    /// New memory, of garbage. Which memory is in use, the collector finds out after a crash:
    /// making an object costs instructions and no store.
    template <class T> ref<T> make(std::uint64_t count = 1) {
        const std::uint64_t at = next_;
        next_ += (count * sizeof(T) + 15) / 16 * 16;
        if (next_ > on_.where().bytes) fatal("slpmt: the simulated memory is full");
        compute(allocation_instructions);
        return {at, 0};
    }
    void compute(std::uint64_t instructions) {
        note({event_kind::compute, {}, 0, instructions});
        on_.compute(instructions);
    }

    /// Called before a transaction begins: objects made from here on are fresh to it.
    void begin() {
        fresh_ = next_;
        note({event_kind::begin});
        on_.begin();
    }
    void commit() {
        note({event_kind::commit});
        on_.commit();
    }
    machine& on() { return on_; }
    std::uint64_t next() const { return next_; }

private:
    static constexpr std::uint64_t allocation_instructions = 40;
    void store(std::uint64_t offset, std::uint64_t value, site& how,
               const std::source_location& where) {
        how.where = where;
        ++how.stores;
        how.to_fresh += offset >= fresh_;
        note({event_kind::store, how.now, offset, value});
        on_.store(offset, value, how.now);
    }
    void note(const event& one) {
        if (record_ != nullptr) record_->add(one);
    }

    machine& on_;
    std::uint64_t next_;
    std::uint64_t fresh_ = 0;
    recorded* record_ = nullptr; // null: nothing is recorded
};

} // namespace hf::slpmt
