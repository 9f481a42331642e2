// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least that an in-place update of a stack, queue or array can cost: floors to compare with.
// Lists of nodes from a volatile free list, no recovery. In process mode their fences order only.
//
//   floor-2f  one log line stored non-temporally and fenced, then what it changes flushed and
//             fenced: durable on return
//   floor-1f  an array's element is stored, flushed and fenced: durable on return. All else is
//             durable by the next one's fence: a list's node flushed and fenced, then what names it
//             flushed; two elements that change places flushed behind a log line's fence
#include "../containers/sequences.hpp"
#include "../temporary_file.hpp"
#include "mapped_file.hpp"
#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

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

template <class Kind> class floor : public Kind {
public:
    floor(const sequence_options& given, unsigned fences)
        : fences_(fences),
          domain_(given.file.mode == hf::mode::process ? domain::process : domain::adr),
          file_(file_options(given)), log_(file_.bytes()), ends_(new(log_ + line_bytes) ends{}) {}
    map_facts facts() const override {
        return {domain_ != domain::process, true, true,
                fences_ == 2 ? "no recovery: a floor, no container"
                             : "no recovery, one fence an update: a floor"};
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

    /// The changes of an operation are flushed, for its last fence or the next one's.
    void finish() noexcept {
        if (fences_ == 2) persist::fence(domain_);
    }

    unsigned fences_; // of an operation
    domain domain_;
    mapped_file file_;
    std::byte* log_;
    ends* ends_;
};

class floor_list final : public floor<list_under_test> {
public:
    floor_list(const sequence_options& given, unsigned fences)
        : floor(given, fences), queue_(given.which == sequence::queue),
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
        if (fences_ == 2) log(made, value, reinterpret_cast<std::uint64_t>(ends_->back));
        *made = {queue_ ? nullptr : ends_->next, value};
        persist::flush(domain_, made, sizeof *made);
        if (fences_ == 1) persist::fence(domain_); // the node before what names it
        node*& link = !queue_ || ends_->count == 0 ? ends_->next : ends_->back->next;
        link = made;
        persist::flush(domain_, &link, sizeof link);
        ends_->back = made;
        ++ends_->count;
        persist::flush(domain_, ends_, sizeof *ends_);
        finish();
        return true;
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (ends_->count == 0) return false;
        node* gone = ends_->next;
        value = gone->value;
        if (fences_ == 2) log(gone, value, reinterpret_cast<std::uint64_t>(gone->next));
        else persist::fence(domain_); // for the last one
        ends_->next = gone->next;
        --ends_->count;
        persist::flush(domain_, ends_, sizeof *ends_);
        finish();
        free_.push_back(gone);
        return true;
    }

private:
    bool queue_;
    node* bump_;
    std::vector<node*> free_;
};

class floor_array final : public floor<vector_under_test> {
public:
    floor_array(const sequence_options& given, unsigned fences)
        : floor(given, fences), elements_(reinterpret_cast<std::uint64_t*>(first_free())) {}
    bool push(std::uint64_t value) noexcept override {
        elements_[ends_->count++] = value;
        return true;
    }
    bool get(std::uint64_t index, std::uint64_t& value) noexcept override {
        value = elements_[index];
        return true;
    }
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        if (fences_ == 2) log(&elements_[index], elements_[index], value);
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
        finish();
        return true;
    }

private:
    std::uint64_t* elements_;
};

std::unique_ptr<sequence_under_test> make_floor(const sequence_options& given, unsigned fences) {
    if (indexed(given.which)) return std::make_unique<floor_array>(given, fences);
    return std::make_unique<floor_list>(given, fences);
}

} // namespace

std::unique_ptr<sequence_under_test> make_sequence_floor_1f(const sequence_options& given) {
    return make_floor(given, 1);
}
std::unique_ptr<sequence_under_test> make_sequence_floor_2f(const sequence_options& given) {
    return make_floor(given, 2);
}

} // namespace hf::bench
