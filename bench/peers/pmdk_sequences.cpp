// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libpmemobj's stack, queue and vector: linked lists, as those that the MOD paper compares with,
// and an array.
//
//   pmdk          one transaction per operation. The root's ends and its count lie side by side, so
//                 that one range is snapshotted of it; of an array only the element is.
//   pmdk-actions  reserve and publish, its cheaper interface, with one 8-byte action for each word;
//                 an element of an array is set in place by pmemobj_persist, which is
//                 failure-atomic for 8 bytes
#include "../containers/sequences.hpp"
#include "pmdk_pool.hpp"

#include <utility>

namespace hf::bench {
namespace {

using namespace pmdk;

constexpr std::uint64_t node_type = 1, array_type = 2;

struct node {
    PMEMoid next;
    std::uint64_t value;
};
struct stack_root {
    PMEMoid top;
    std::uint64_t count;
};
struct queue_root { // the count between the ends: next to what changes with it
    PMEMoid front;
    std::uint64_t count;
    PMEMoid back;
};
struct array_root {
    PMEMoid elements;
    std::uint64_t count;
};

template <class Root, class Kind> class pmdk_sequence : public Kind {
public:
    explicit pmdk_sequence(const sequence_options& given)
        : file_(file_options(given)), root_(file_.template root<Root>()) {}
    map_facts facts() const override { return file_.facts(); }
    std::optional<memory_use> memory() override { return file_.memory(root_->count); }

protected:
    PMEMobjpool* pool() const noexcept { return file_.pool(); }
    PMEMoid new_node(PMEMoid next, std::uint64_t value) noexcept { // in a transaction
        const PMEMoid made = pmemobj_tx_alloc(sizeof(node), node_type);
        *direct<node>(made) = {next, value};
        return made;
    }
    PMEMoid reserved_node(pobj_action* action, PMEMoid next, std::uint64_t value) noexcept {
        const PMEMoid made = pmemobj_reserve(pool(), action, sizeof(node), node_type);
        if (OID_IS_NULL(made)) return made;
        *direct<node>(made) = {next, value};
        pmemobj_flush(pool(), direct<node>(made), sizeof(node)); // publish fences
        return made;
    }
    std::size_t set_word(pobj_action* actions, std::size_t used, std::uint64_t* word,
                         std::uint64_t value) noexcept {
        if (*word != value) pmemobj_set_value(pool(), &actions[used++], word, value);
        return used;
    }
    std::size_t set_link(pobj_action* actions, std::size_t used, PMEMoid* link,
                         PMEMoid value) noexcept {
        used = set_word(actions, used, &link->off, value.off);
        return set_word(actions, used, &link->pool_uuid_lo, value.pool_uuid_lo);
    }

    pool_file file_;
    Root* root_;
};

class pmdk_stack final : public pmdk_sequence<stack_root, list_under_test> {
public:
    using pmdk_sequence::pmdk_sequence;
    bool push(std::uint64_t value) noexcept override {
        return in_transaction(pool(), [&] {
            const PMEMoid made = new_node(root_->top, value);
            snapshot(root_);
            root_->top = made;
            ++root_->count;
        });
    }
    bool pop(std::uint64_t& value) noexcept override {
        const PMEMoid top = root_->top;
        if (OID_IS_NULL(top)) return false;
        value = direct<node>(top)->value;
        return in_transaction(pool(), [&] {
            snapshot(root_);
            root_->top = direct<node>(top)->next;
            --root_->count;
            pmemobj_tx_free(top);
        });
    }
};

class pmdk_queue final : public pmdk_sequence<queue_root, list_under_test> {
public:
    using pmdk_sequence::pmdk_sequence;
    bool push(std::uint64_t value) noexcept override {
        return in_transaction(pool(), [&] {
            const PMEMoid made = new_node(OID_NULL, value);
            PMEMoid* last = &root_->front;
            if (root_->count != 0) last = &direct<node>(root_->back)->next;
            snapshot(last);
            *last = made;
            snapshot_bytes(&root_->count, sizeof root_->count + sizeof root_->back);
            root_->back = made;
            ++root_->count;
        });
    }
    bool pop(std::uint64_t& value) noexcept override {
        const PMEMoid front = root_->front;
        if (root_->count == 0) return false;
        value = direct<node>(front)->value;
        return in_transaction(pool(), [&] {
            snapshot_bytes(&root_->front, sizeof root_->front + sizeof root_->count);
            root_->front = direct<node>(front)->next;
            --root_->count;
            pmemobj_tx_free(front);
        });
    }
};

class stack_of_actions final : public pmdk_sequence<stack_root, list_under_test> {
public:
    using pmdk_sequence::pmdk_sequence;
    bool push(std::uint64_t value) noexcept override {
        pobj_action actions[4];
        const PMEMoid made = reserved_node(&actions[0], root_->top, value);
        if (OID_IS_NULL(made)) return false;
        return publish(actions, 1, made, root_->count + 1);
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (root_->count == 0) return false;
        pobj_action actions[4];
        const node* top = direct<node>(root_->top);
        value = top->value;
        pmemobj_defer_free(pool(), root_->top, &actions[0]);
        return publish(actions, 1, top->next, root_->count - 1);
    }

private:
    bool publish(pobj_action* actions, std::size_t used, PMEMoid top,
                 std::uint64_t count) noexcept {
        used = set_link(actions, used, &root_->top, top);
        used = set_word(actions, used, &root_->count, count);
        return pmemobj_publish(pool(), actions, used) == 0;
    }
};

class queue_of_actions final : public pmdk_sequence<queue_root, list_under_test> {
public:
    using pmdk_sequence::pmdk_sequence;
    bool push(std::uint64_t value) noexcept override {
        pobj_action actions[6];
        const PMEMoid made = reserved_node(&actions[0], OID_NULL, value);
        if (OID_IS_NULL(made)) return false;
        PMEMoid* last = &root_->front;
        if (root_->count != 0) last = &direct<node>(root_->back)->next;
        std::size_t used = set_link(actions, 1, last, made);
        used = set_link(actions, used, &root_->back, made);
        used = set_word(actions, used, &root_->count, root_->count + 1);
        return pmemobj_publish(pool(), actions, used) == 0;
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (root_->count == 0) return false;
        pobj_action actions[4];
        const node* front = direct<node>(root_->front);
        value = front->value;
        pmemobj_defer_free(pool(), root_->front, &actions[0]);
        std::size_t used = set_link(actions, 1, &root_->front, front->next);
        used = set_word(actions, used, &root_->count, root_->count - 1);
        return pmemobj_publish(pool(), actions, used) == 0;
    }
};

// The array has its full size before the clock starts; push counts the elements that are filled.
class pmdk_array : public pmdk_sequence<array_root, vector_under_test> {
public:
    explicit pmdk_array(const sequence_options& given) : pmdk_sequence(given) {
        if (pmemobj_zalloc(pool(), &root_->elements, given.elements * sizeof(std::uint64_t),
                           array_type) != 0)
            pool_file::fail("pmemobj_zalloc");
        elements_ = direct<std::uint64_t>(root_->elements);
    }
    bool push(std::uint64_t value) noexcept override {
        elements_[root_->count] = value;
        pmemobj_persist(pool(), &elements_[root_->count], sizeof value);
        ++root_->count;
        pmemobj_persist(pool(), &root_->count, sizeof root_->count);
        return true;
    }
    bool get(std::uint64_t index, std::uint64_t& value) noexcept override {
        value = elements_[index];
        return true;
    }

protected:
    std::uint64_t* elements_;
};

class pmdk_vector final : public pmdk_array {
public:
    using pmdk_array::pmdk_array;
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        return in_transaction(pool(), [&] {
            snapshot(&elements_[index]);
            elements_[index] = value;
        });
    }
    bool swap(std::uint64_t one, std::uint64_t other) noexcept override {
        return in_transaction(pool(), [&] {
            snapshot(&elements_[one]);
            snapshot(&elements_[other]);
            std::swap(elements_[one], elements_[other]);
        });
    }
};

class vector_of_actions final : public pmdk_array {
public:
    using pmdk_array::pmdk_array;
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        elements_[index] = value;
        pmemobj_persist(pool(), &elements_[index], sizeof value);
        return true;
    }
    bool swap(std::uint64_t one, std::uint64_t other) noexcept override {
        pobj_action actions[2];
        pmemobj_set_value(pool(), &actions[0], &elements_[one], elements_[other]);
        pmemobj_set_value(pool(), &actions[1], &elements_[other], elements_[one]);
        return pmemobj_publish(pool(), actions, 2) == 0;
    }
};

} // namespace

std::unique_ptr<sequence_under_test> make_sequence_pmdk(const sequence_options& given) {
    if (given.which == sequence::stack) return std::make_unique<pmdk_stack>(given);
    if (given.which == sequence::queue) return std::make_unique<pmdk_queue>(given);
    return std::make_unique<pmdk_vector>(given);
}
std::unique_ptr<sequence_under_test> make_sequence_pmdk_actions(const sequence_options& given) {
    if (given.which == sequence::stack) return std::make_unique<stack_of_actions>(given);
    if (given.which == sequence::queue) return std::make_unique<queue_of_actions>(given);
    return std::make_unique<vector_of_actions>(given);
}

} // namespace hf::bench
