// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A B+tree on libpmemobj's transactions: nodes of as many slots as ours, ordered by a slot_order
// (structures/bptree.hpp), a lock per node and lock coupling. A slot out of use is added without
// a snapshot, so an insertion snapshots one order, 16 bytes; of a fresh leaf only the slots in use
// are flushed. Its users would take PMEMrwlock, which is slower.
#include "../workload.hpp"
#include "chained.hpp"
#include "peers.hpp"
#include "pmdk_pool.hpp"
#include <structures/slot_order.hpp>

#include <cstring>
#include <mutex>
#include <new>
#include <shared_mutex>

namespace hf::bench {
namespace {

using namespace pmdk;

using tree_key = std::array<unsigned char, 32>;
using tree_value = std::array<std::byte, 256>;

bool below(const tree_key& a, const tree_key& b) noexcept {
    return std::memcmp(a.data(), b.data(), a.size()) < 0;
}

struct node_base {
    std::byte before[48];
    hf::shared_mutex lock;
    std::byte after[48];
};
template <class Entry, unsigned Slots> struct keyed_node : node_base {
    static constexpr unsigned slots = Slots;
    structures::slot_order<Slots> order;
    tree_key keys[Slots];
    Entry entries[Slots];

    const tree_key& key_at(unsigned position) const { return keys[order.slot[position]]; }
    const Entry& entry_at(unsigned position) const { return entries[order.slot[position]]; }
    /// The first position from 'low' on whose key is not below 'key'.
    unsigned first_from(const tree_key& key, unsigned low = 0) const {
        unsigned high = order.count;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (below(key_at(middle), key)) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};
using leaf = keyed_node<tree_value, 15>;
using inner = keyed_node<PMEMoid, 31>;

struct root_object {
    node_base self; // its lock is that of the two below
    PMEMoid top;
    std::uint64_t height; // levels of inner nodes
};

unsigned child_for(const inner& in, const tree_key& key) {
    const unsigned at = in.first_from(key, 1); // the first separator means nothing
    return at < in.order.count && !below(key, in.key_at(at)) ? at : at - 1;
}
bool has(const leaf& in, unsigned position, const tree_key& key) {
    return position < in.order.count && !below(key, in.key_at(position));
}
node_base* base(PMEMoid at) { return direct<node_base>(at); }
leaf* as_leaf(node_base* at) { return static_cast<leaf*>(at); }
inner* as_inner(node_base* at) { return static_cast<inner*>(at); }

template <class T> void add_unused(T* object) {
    pmemobj_tx_xadd_range_direct(object, sizeof(T), POBJ_XADD_NO_SNAPSHOT);
}

// In a transaction.
template <class Node> PMEMoid new_node() {
    const PMEMoid fresh = pmemobj_tx_xalloc(sizeof(Node), 2, POBJ_XALLOC_NO_FLUSH);
    ::new (static_cast<void*>(&base(fresh)->lock)) hf::shared_mutex{};
    return fresh;
}
template <class Node, class Entry>
void fill(Node* in, unsigned slot, const tree_key& key, const Entry& entry) {
    in->keys[slot] = key;
    in->entries[slot] = entry;
}
template <class Node> void flush_used(PMEMobjpool* pool, Node* fresh) {
    pmemobj_flush(pool, &fresh->order, sizeof fresh->order);
    for (unsigned i = 0; i < fresh->order.count; ++i) {
        const unsigned slot = fresh->order.slot[i];
        pmemobj_flush(pool, &fresh->keys[slot], sizeof fresh->keys[slot]);
        pmemobj_flush(pool, &fresh->entries[slot], sizeof fresh->entries[slot]);
    }
}
template <class Node, class Entry>
void insert_entry(Node* in, unsigned position, const tree_key& key, const Entry& entry) {
    const unsigned slot = in->order.free_slot();
    add_unused(&in->keys[slot]);
    add_unused(&in->entries[slot]);
    snapshot(&in->order);
    fill(in, slot, key, entry);
    in->order = in->order.with(position, slot);
}

class pmdk_bptree final : public map_under_test {
public:
    explicit pmdk_bptree(const map_options& given)
        : file_(given), root_(file_.root<root_object>()) {
        if (file_.reopened()) free_locks();
    }

    bool insert(std::uint64_t number, const void* value) noexcept override {
        const tree_key key = key_bytes_of<32>(number);
        for (std::uint64_t level = 0;; ++level)
            switch (insert_below(level, key, *static_cast<const tree_value*>(value))) {
            case outcome::again: break;
            case outcome::changed: return true;
            case outcome::unchanged: return false;
            }
    }
    bool update(std::uint64_t number, const void* value) noexcept override {
        const tree_key key = key_bytes_of<32>(number);
        const exclusive at = descend_exclusive(key, 0);
        if (at.held == nullptr) return false;
        leaf* in = as_leaf(at.held);
        const unsigned position = in->first_from(key);
        if (!has(*in, position, key)) return false;
        return in_transaction(file_.pool(), [&] {
            tree_value* old = &in->entries[in->order.slot[position]];
            snapshot(old);
            std::memcpy(old, value, sizeof *old);
        });
    }
    bool find(std::uint64_t number, void* value) noexcept override {
        const tree_key key = key_bytes_of<32>(number);
        tree_key beyond;
        const shared at = descend_shared(key, 0, beyond);
        if (at.held == nullptr) return false;
        const leaf* in = as_leaf(at.held);
        const unsigned position = in->first_from(key);
        if (!has(*in, position, key)) return false;
        std::memcpy(value, &in->entry_at(position), sizeof(tree_value));
        return true;
    }
    std::uint64_t scan(std::uint64_t number, std::uint64_t count, void* value) noexcept override {
        tree_key next = key_bytes_of<32>(number);
        std::uint64_t seen = 0;
        const auto visit = [&](const leaf& in) {
            for (unsigned i = in.first_from(next); i < in.order.count && seen < count; ++i, ++seen)
                std::memcpy(value, &in.entry_at(i), sizeof(tree_value));
        };
        for (bool more = true; more && seen < count;) {
            tree_key beyond{};
            const shared at = descend_shared(next, 1, beyond);
            if (at.held == nullptr) break;
            if (at.level == 0) {
                visit(*as_leaf(at.held));
            } else {
                const inner& in = *as_inner(at.held);
                for (unsigned i = child_for(in, next); i < in.order.count && seen < count; ++i) {
                    leaf* each = as_leaf(base(in.entry_at(i)));
                    const std::shared_lock held{each->lock};
                    visit(*each);
                }
            }
            more = beyond != tree_key{};
            next = beyond;
        }
        return seen;
    }
    map_facts facts() const override { return file_.facts(); }
    std::optional<reopened> state() const override { return file_.state(); }

private:
    enum class outcome : std::uint8_t { changed, unchanged, again };
    template <class Lock> struct grip {
        Lock lock;
        node_base* held; // null: the tree itself
        std::uint64_t level;
    };
    using shared = grip<std::shared_lock<hf::shared_mutex>>;
    using exclusive = grip<std::unique_lock<hf::shared_mutex>>;

    // To the node on 'level', or the top if that is lower; 'beyond' gets the first separator behind
    // what is below it, if there is one.
    shared descend_shared(const tree_key& key, std::uint64_t level, tree_key& beyond) {
        shared at{std::shared_lock{root_->self.lock}, nullptr, root_->height};
        if (root_->top.off == 0) return at;
        at.held = base(root_->top);
        at.lock = std::shared_lock{at.held->lock};
        for (; at.level > level; --at.level) {
            const inner& in = *as_inner(at.held);
            const unsigned position = child_for(in, key);
            if (position + 1U < in.order.count) beyond = in.key_at(position + 1);
            at.held = base(in.entry_at(position));
            at.lock = std::shared_lock{at.held->lock};
        }
        return at;
    }
    // To the node on 'level', held exclusively; the tree itself when it is not that high.
    exclusive descend_exclusive(const tree_key& key, std::uint64_t level) {
        {
            std::shared_lock above{root_->self.lock};
            if (root_->top.off != 0 && level <= root_->height) {
                node_base* at = base(root_->top);
                for (std::uint64_t here = root_->height; here > level; --here) {
                    above = std::shared_lock{at->lock};
                    at = base(as_inner(at)->entry_at(child_for(*as_inner(at), key)));
                }
                return {std::unique_lock{at->lock}, at, level};
            }
        }
        std::unique_lock whole{root_->self.lock};
        return {std::move(whole), nullptr, root_->height + 1};
    }

    outcome insert_below(std::uint64_t level, const tree_key& key, const tree_value& value) {
        exclusive at = descend_exclusive(key, level);
        if (at.held == nullptr && root_->top.off == 0)
            return add_top(key, value) ? outcome::changed : outcome::unchanged;
        if (at.held != nullptr && at.level > 0 && as_inner(at.held)->order.full())
            return outcome::again;
        while (at.level > 0)
            if (!step_down(at, key)) return outcome::unchanged;
        leaf* in = as_leaf(at.held);
        const unsigned position = in->first_from(key);
        if (has(*in, position, key)) return outcome::unchanged;
        if (in->order.full()) return outcome::again;
        const bool done =
            in_transaction(file_.pool(), [&] { insert_entry(in, position, key, value); });
        return done ? outcome::changed : outcome::unchanged;
    }

    // From a node with room to its child, which is split before if it has none.
    bool step_down(exclusive& at, const tree_key& key) {
        inner* parent = at.held == nullptr ? nullptr : as_inner(at.held);
        const unsigned position = parent == nullptr ? 0 : child_for(*parent, key);
        node_base* child = base(parent == nullptr ? root_->top : parent->entry_at(position));
        const std::uint64_t level = at.level - 1;
        std::unique_lock held{child->lock};
        const bool is_leaf = level == 0;
        if (is_leaf ? as_leaf(child)->order.full() : as_inner(child)->order.full()) {
            node_base* right = is_leaf ? split(parent, position, as_leaf(child))
                                       : split(parent, position, as_inner(child));
            if (right == nullptr) return false;
            const tree_key& first =
                is_leaf ? as_leaf(right)->key_at(0) : as_inner(right)->key_at(0);
            if (!below(key, first)) {
                held = std::unique_lock{right->lock};
                child = right;
            }
        }
        at = {std::move(held), child, level};
        return true;
    }

    template <class Node> node_base* split(inner* parent, unsigned position, Node* left) {
        const unsigned middle = left->order.count / 2;
        const tree_key separator = left->key_at(middle);
        PMEMoid right = OID_NULL;
        const bool done = in_transaction(file_.pool(), [&] {
            right = new_node<Node>();
            auto* made = direct<Node>(right);
            made->order = left->order.from(middle);
            for (unsigned i = 0; i < made->order.count; ++i) {
                const unsigned slot = made->order.slot[i];
                fill(made, slot, left->keys[slot], left->entries[slot]);
            }
            flush_used(file_.pool(), made);
            snapshot(&left->order);
            left->order = left->order.first(middle);
            if (parent != nullptr) insert_entry(parent, position + 1, separator, right);
            else add_level(separator, right);
        });
        return done ? base(right) : nullptr;
    }

    // In a transaction: the top becomes one of two children.
    void add_level(const tree_key& separator, PMEMoid right) {
        const PMEMoid top = new_node<inner>();
        auto* made = direct<inner>(top);
        made->order = structures::slot_order<inner::slots>{}.with(0, 0).with(1, 1);
        fill(made, 0, separator, root_->top);
        fill(made, 1, separator, right);
        flush_used(file_.pool(), made);
        set_top(top, root_->height + 1);
    }
    bool add_top(const tree_key& key, const tree_value& value) {
        return in_transaction(file_.pool(), [&] {
            const PMEMoid top = new_node<leaf>();
            auto* made = direct<leaf>(top);
            made->order = structures::slot_order<leaf::slots>{}.with(0, 0);
            fill(made, 0, key, value);
            flush_used(file_.pool(), made);
            set_top(top, 0);
        });
    }
    void set_top(PMEMoid top, std::uint64_t height) {
        snapshot(&root_->top);
        snapshot(&root_->height);
        root_->top = top;
        root_->height = height;
    }

    // A killed process leaves them held. PMEMrwlock would notice; it is not part of a pool's
    // opening there either.
    void free_locks() {
        ::new (static_cast<void*>(&root_->self.lock)) hf::shared_mutex{};
        if (root_->top.off != 0) free_locks_below(root_->top, root_->height);
    }
    static void free_locks_below(PMEMoid at, std::uint64_t level) {
        ::new (static_cast<void*>(&base(at)->lock)) hf::shared_mutex{};
        if (level == 0) return;
        const inner& in = *as_inner(base(at));
        for (unsigned i = 0; i < in.order.count; ++i) free_locks_below(in.entry_at(i), level - 1);
    }

    pool_file file_;
    root_object* root_;
};

} // namespace

std::unique_ptr<map_under_test> make_pmdk_bptree(const map_options& given) {
    return std::make_unique<pmdk_bptree>(given);
}

} // namespace hf::bench
