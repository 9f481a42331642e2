// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least that an in-place insertion can cost: floors to compare with, not maps to use. Bump
// allocation, no free, no recovery. In process mode their fences order only.
//
//   floor-2f  one log line stored non-temporally and fenced, then the node and its link flushed and
//             fenced: durable on return
//   floor-1f  the node flushed and fenced, then its link flushed: durable by the next one's fence. A
//             value is replaced under a log line, whose fence is the only one
#include "chained.hpp"
#include "mapped_file.hpp"
#include "peers.hpp"
#include "thread_own.hpp"
#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

class floor_map final : public map_under_test {
    struct node {
        node* next;
        std::uint64_t key;
        std::byte value[];
    };
    struct alignas(64) log_line {
        std::uint64_t words[8];
    };
    static constexpr std::uint64_t log_bytes = 4096; // per thread

public:
    floor_map(const map_options& given, unsigned fences)
        : fences_(fences), value_bytes_(given.value_bytes),
          buckets_each_(buckets_per_instance(given.keys)),
          domain_(given.mode == hf::mode::process ? domain::process : domain::adr), file_(given),
          bytes_(file_.size()), base_(file_.bytes()) {
        buckets_ = reinterpret_cast<node**>(base_);
        next_ = round_up(buckets_each_ * lock_count * sizeof(node*), line_bytes);
    }

    bool insert(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        if (search(at, key) != nullptr) return false;
        node* fresh = bump(sizeof(node) + value_bytes_);
        if (fresh == nullptr) return false;
        if (fences_ == 2) log_insertion(at, fresh, key);
        fresh->next = buckets_[at.bucket];
        fresh->key = key;
        std::memcpy(fresh->value, value, value_bytes_);
        persist::flush(domain_, fresh, sizeof(node) + value_bytes_);
        if (fences_ == 1) persist::fence(domain_); // the node before its link
        buckets_[at.bucket] = fresh;
        persist::flush(domain_, &buckets_[at.bucket], sizeof(node*));
        if (fences_ == 2) persist::fence(domain_);
        persist::thread_counters().pm_bytes += sizeof(node) + value_bytes_ + sizeof(node*);
        return true;
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::shared_lock held{locks_[at.instance]};
        const node* found = search(at, key);
        if (found != nullptr) std::memcpy(value, found->value, value_bytes_);
        return found != nullptr;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        node* found = search(at, key);
        if (found == nullptr) return false;
        std::byte* log = reinterpret_cast<std::byte*>(
            own_log()); // the new value, to be written again after a crash
        persist::copy(domain_, log, value, value_bytes_);
        persist::fence(domain_);
        std::memcpy(found->value, value, value_bytes_);
        persist::flush(domain_, found->value, value_bytes_);
        if (fences_ == 2) persist::fence(domain_);
        return true;
    }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    map_facts facts() const override {
        return {domain_ != domain::process, true, true,
                fences_ == 2 ? "no recovery: a floor, not a map"
                             : "no recovery, updates durable by the next one's fence: a floor"};
    }

private:
    void log_insertion(const chained_place& at, const node* fresh, std::uint64_t key) noexcept {
        const log_line entry{{1, reinterpret_cast<std::uint64_t>(&buckets_[at.bucket]),
                              reinterpret_cast<std::uint64_t>(buckets_[at.bucket]),
                              reinterpret_cast<std::uint64_t>(fresh), key, 0, 0, 0}};
        persist::copy(domain_, own_log(), &entry, sizeof entry);
        persist::fence(domain_);
        persist::counters& count = persist::thread_counters();
        ++count.log_entries;
        count.log_bytes += sizeof entry;
        count.pm_bytes += sizeof entry;
    }
    node* search(const chained_place& at, std::uint64_t key) const noexcept {
        node* each = buckets_[at.bucket];
        while (each != nullptr && each->key != key) each = each->next;
        return each;
    }
    node* bump(std::uint64_t bytes) noexcept {
        const std::uint64_t at = next_.fetch_add(round_up(bytes, 16), std::memory_order_relaxed);
        return at + bytes <= bytes_ ? reinterpret_cast<node*>(base_ + at) : nullptr;
    }
    log_line* own_log() noexcept {
        log_line*& mine = own_log_.get();
        if (mine == nullptr) {
            const std::uint64_t room = next_.fetch_add(log_bytes, std::memory_order_relaxed);
            mine = reinterpret_cast<log_line*>(base_ + round_up(room, line_bytes));
        }
        return mine;
    }

    unsigned fences_; // of an operation
    std::size_t value_bytes_;
    std::uint64_t buckets_each_;
    domain domain_;
    mapped_file file_;
    std::uint64_t bytes_;
    std::byte* base_;
    node** buckets_ = nullptr;
    std::atomic<std::uint64_t> next_{0};
    instance_locks locks_;
    thread_own<log_line> own_log_;
};

} // namespace

std::unique_ptr<map_under_test> make_map_floor_1f(const map_options& given) {
    return std::make_unique<floor_map>(given, 1);
}
std::unique_ptr<map_under_test> make_map_floor_2f(const map_options& given) {
    return std::make_unique<floor_map>(given, 2);
}

} // namespace hf::bench
