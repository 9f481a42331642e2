// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lock_based.hpp"

#include "holdfast_map.hpp"
#include <structures/growing_vector.hpp>
#include <structures/list_map.hpp>
#include <structures/locked_stack.hpp>
#include <structures/sorted_list.hpp>
#include <structures/two_lock_queue.hpp>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {
namespace {

using word = std::uint64_t;

word word_at(const void* value) {
    word own = 0;
    std::memcpy(&own, value, sizeof own);
    return own;
}

// The steps of an operation on each structure; nobody plans a step that a structure does not have.
struct queue_steps {
    structures::two_lock_queue<word> of;
    bool insert(word, const void* value) noexcept { return of.enqueue(word_at(value)); }
    void remove() noexcept {
        word gone = 0;
        of.dequeue(&gone);
    }
    void overwrite(word, const void*) noexcept {}
};
struct stack_steps {
    structures::locked_stack<word> of;
    bool insert(word, const void* value) noexcept { return of.push(word_at(value)); }
    void remove() noexcept {
        word gone = 0;
        of.pop(&gone);
    }
    void overwrite(word, const void*) noexcept {}
};
struct priority_steps {
    structures::sorted_list<word, word> of;
    bool insert(word key, const void* value) noexcept { return of.insert(key, word_at(value)); }
    void remove() noexcept {
        word key = 0, gone = 0;
        of.remove_min(&key, &gone);
    }
    void overwrite(word, const void*) noexcept {}
};
template <std::size_t ValueBytes> struct map_steps {
    using value = value_of<ValueBytes>;
    structures::list_map<word, value, std::size_t{1} << 20> of;
    bool insert(word key, const void* bytes) noexcept {
        return of.insert(key, *static_cast<const value*>(bytes));
    }
    void remove() noexcept {}
    void overwrite(word key, const void* bytes) noexcept {
        of.replace(key, *static_cast<const value*>(bytes));
    }
};
struct vector_steps {
    structures::growing_vector of;
    bool insert(word, const void* value) noexcept { return of.push_back(word_at(value)); }
    void remove() noexcept {}
    void overwrite(word index, const void* value) noexcept { of.set(index, word_at(value)); }
};

/// Steps: the pool's root.
template <class Steps> class lock_based_of final : public lock_based_under_test {
public:
    explicit lock_based_of(const map_options& given)
        : file_(given.directory, HF_BENCH_BUILD_TEXT), pool_(open(given)),
          steps_(pool_.root<Steps>()) {
        if (steps_ == nullptr) give_up("the pool is full");
    }
    bool insert(word key, const void* value) noexcept override {
        return steps_->insert(key, value);
    }
    void remove() noexcept override { steps_->remove(); }
    void overwrite(word key, const void* value) noexcept override { steps_->overwrite(key, value); }
    map_facts facts() const override {
        return {pool_.emulated(), true, true, note_of_build(pool_.mode())};
    }
    bool check() const override { return steps_->of.check(); }

private:
    hf::pool open(const map_options& given) {
        hf::open_options options;
        options.layout = "bench/lock_based/1";
        options.create_bytes = pool_bytes(given) + (sizeof(Steps) + 4095) / 4096 * 4096;
        options.max_bytes = 4 * options.create_bytes;
        options.mode = given.mode;
        options.expert.prefault = given.prefault;
        options.engines = engines_of_build();
        options.expert.seal = false; // nobody opens it again
        auto opened = hf::pool::open(file_.path(), options);
        if (!opened) give_up(opened.error().what());
        return std::move(*opened);
    }

    temporary_file file_;
    hf::pool pool_;
    Steps* steps_;
};

template <class Steps> std::unique_ptr<lock_based_under_test> made(const map_options& given) {
    return std::make_unique<lock_based_of<Steps>>(given);
}

std::unique_ptr<lock_based_under_test> map_of(const map_options& given) {
    switch (given.value_bytes) {
    case 1: return made<map_steps<1>>(given);
    case 8: return made<map_steps<8>>(given);
    case 64: return made<map_steps<64>>(given);
    case 256: return made<map_steps<256>>(given);
    case 1000: return made<map_steps<1000>>(given); // a section takes 1 KB of arguments
    default: give_up("--value-bytes is 1, 8, 64, 256 or 1000");
    }
}

} // namespace
} // namespace HF_STRUCTURES_ENGINE

std::unique_ptr<lock_based_under_test>
HF_STRUCTURES_JOIN(make_lock_based_, HF_BENCH_BUILD)(const lock_based_options& given) {
    switch (given.which) {
    case lock_based::queue: return made<queue_steps>(given.file);
    case lock_based::stack: return made<stack_steps>(given.file);
    case lock_based::priority: return made<priority_steps>(given.file);
    case lock_based::map: return map_of(given.file);
    case lock_based::vector: return made<vector_steps>(given.file);
    }
    return nullptr;
}

} // namespace hf::bench
