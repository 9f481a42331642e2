// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least that a logged in-place update of a stack, queue or array can cost: one log line stored
// non-temporally and fenced, then what it changes flushed and fenced. Lists of nodes from a
// volatile free list, no recovery: a floor to compare with. In process mode its fences order only.
#include "../containers/sequences.hpp"
#include "../temporary_file.hpp"
#include "mapped_file.hpp"
#include <base/line.hpp>

#include <holdfast/persist.hpp>

#include <utility>
#include <vector>

namespace hf::bench {
namespace {

struct node {
    node* next;
    std::uint64_t value;
};
struct ends {
    node* next; // stack's top, queue's front
    node* back; // queue's
    std::uint64_t count;
};

template <class Kind> class floor_2f : public Kind {
public:
    explicit floor_2f(const sequence_options& given)
        : domain_(given.file.mode == hf::mode::process ? domain::process : domain::adr),
          file_(file_options(given)), log_(file_.bytes()), ends_(new(log_ + line_bytes) ends{}) {}
    map_facts facts() const override {
        return {domain_ != domain::process, true, true, "no recovery: a floor, no container"};
    }

protected:
    void log(const void* what, std::uint64_t one, std::uint64_t other) noexcept {
        const std::uint64_t entry[8] = {1, reinterpret_cast<std::uint64_t>(what), one, other};
        persist::copy(domain_, log_, entry, sizeof entry);
        persist::fence(domain_);
        persist::counters& count = persist::thread_counters();
        ++count.log_entries;
        count.log_bytes += sizeof entry;
    }
    std::byte* first_free() const noexcept { return log_ + 2 * line_bytes; }

    domain domain_;
    mapped_file file_;
    std::byte* log_;
    ends* ends_;
};

class floor_list final : public floor_2f<list_under_test> {
public:
    explicit floor_list(const sequence_options& given)
        : floor_2f(given), queue_(given.which == sequence::queue),
          bump_(reinterpret_cast<node*>(first_free())) {}
    bool push(std::uint64_t value) noexcept override {
        node* made = bump_;
        if (free_.empty()) {
            if (!file_.holds(bump_ + 1)) return false;
            ++bump_;
        } else {
            made = free_.back();
            free_.pop_back();
        }
        log(made, value, reinterpret_cast<std::uint64_t>(ends_->back));
        *made = {queue_ ? nullptr : ends_->next, value};
        persist::flush(domain_, made, sizeof *made);
        node*& link = !queue_ || ends_->count == 0 ? ends_->next : ends_->back->next;
        link = made;
        persist::flush(domain_, &link, sizeof link);
        ends_->back = made;
        ++ends_->count;
        persist::flush(domain_, ends_, sizeof *ends_);
        persist::fence(domain_);
        return true;
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (ends_->count == 0) return false;
        node* gone = ends_->next;
        value = gone->value;
        log(gone, value, reinterpret_cast<std::uint64_t>(gone->next));
        ends_->next = gone->next;
        --ends_->count;
        persist::flush(domain_, ends_, sizeof *ends_);
        persist::fence(domain_);
        free_.push_back(gone);
        return true;
    }

private:
    bool queue_;
    node* bump_;
    std::vector<node*> free_;
};

class floor_array final : public floor_2f<vector_under_test> {
public:
    explicit floor_array(const sequence_options& given)
        : floor_2f(given), elements_(reinterpret_cast<std::uint64_t*>(first_free())) {}
    bool push(std::uint64_t value) noexcept override {
        elements_[ends_->count++] = value;
        return true;
    }
    bool get(std::uint64_t index, std::uint64_t& value) noexcept override {
        value = elements_[index];
        return true;
    }
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        log(&elements_[index], elements_[index], value);
        elements_[index] = value;
        persist::flush(domain_, &elements_[index], sizeof value);
        persist::fence(domain_);
        return true;
    }
    bool swap(std::uint64_t one, std::uint64_t other) noexcept override {
        log(&elements_[one], other, elements_[one]);
        std::swap(elements_[one], elements_[other]);
        persist::flush(domain_, &elements_[one], sizeof *elements_);
        persist::flush(domain_, &elements_[other], sizeof *elements_);
        persist::fence(domain_);
        return true;
    }

private:
    std::uint64_t* elements_;
};

} // namespace

std::unique_ptr<sequence_under_test> make_sequence_floor_2f(const sequence_options& given) {
    if (indexed(given.which)) return std::make_unique<floor_array>(given);
    return std::make_unique<floor_list>(given);
}

} // namespace hf::bench
