// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our red-black and AVL trees on libpmemobj's transactions: one lock, the value inside the node. A
// node's links lie together, apart from key and value; a transaction snapshots them once for each
// node that it changes, and no new one's.
#include "chained.hpp"
#include "peers.hpp"
#include "pmdk_pool.hpp"

#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

using namespace pmdk;

struct links {
    PMEMoid parent;
    PMEMoid child[2];
    std::uint64_t tag; // the balance's
};
struct node {
    links at;
    std::uint64_t key;
    std::byte value[];
};
struct root_object {
    PMEMoid top;
    std::uint64_t count;
};

bool same(PMEMoid a, PMEMoid b) { return a.off == b.off; }
bool none(PMEMoid a) { return a.off == 0; }
const links& look(PMEMoid at) { return direct<node>(at)->at; }
unsigned side_of(PMEMoid child) { return same(look(look(child).parent).child[1], child) ? 1U : 0U; }

/// A tree inside a transaction: whatever it changes has been snapshotted.
class changing_tree {
public:
    changing_tree(root_object* root, PMEMoid fresh) : root_(root) {
        known_[known_count_++] = fresh;
    }

    links& change(PMEMoid at) {
        links& its = direct<node>(at)->at;
        for (unsigned i = 0; i < known_count_; ++i)
            if (same(known_[i], at)) return its;
        snapshot(&its); // libpmemobj sees by itself that a range is there already
        if (known_count_ < known_.size()) known_[known_count_++] = at;
        return its;
    }
    void set_tag(PMEMoid at, std::uint64_t tag) {
        if (look(at).tag != tag) change(at).tag = tag;
    }
    /// Makes 'child' the child of 'parent', or the top.
    void hang(PMEMoid parent, unsigned side, PMEMoid child) {
        if (none(parent)) root_->top = child;
        else change(parent).child[side] = child;
        if (!none(child)) change(child).parent = parent;
    }
    /// Node goes down to 'side', its child on the other side takes its place.
    void rotate(PMEMoid at, unsigned side) {
        const PMEMoid riser = look(at).child[1 - side];
        const PMEMoid parent = look(at).parent;
        const unsigned place = none(parent) ? 0 : side_of(at);
        hang(at, 1 - side, look(riser).child[side]);
        hang(parent, place, riser);
        hang(riser, side, at);
    }

private:
    root_object* root_;
    std::array<PMEMoid, 16> known_;
    unsigned known_count_ = 0;
};

struct red_black {
    static constexpr std::uint64_t red = 0, black = 1;

    static bool is_red(PMEMoid at) { return !none(at) && look(at).tag == red; }
    static void inserted(changing_tree& tree, PMEMoid at) {
        for (;;) {
            PMEMoid parent = look(at).parent;
            if (none(parent)) return tree.set_tag(at, black);
            if (look(parent).tag == black) return;
            const PMEMoid above = look(parent).parent;
            const unsigned side = side_of(parent);
            const PMEMoid uncle = look(above).child[1 - side];
            if (!is_red(uncle)) {
                if (same(look(parent).child[1 - side], at)) {
                    tree.rotate(parent, side);
                    parent = at;
                }
                tree.rotate(above, 1 - side);
                tree.set_tag(parent, black);
                return tree.set_tag(above, red);
            }
            tree.set_tag(parent, black);
            tree.set_tag(uncle, black);
            tree.set_tag(above, red);
            at = above;
        }
    }
};

struct avl {
    static constexpr std::uint64_t even = 0;
    static constexpr std::uint64_t higher(unsigned side) { return 1 + side; }

    static void inserted(changing_tree& tree, PMEMoid at) {
        for (PMEMoid parent = look(at).parent; !none(parent); parent = look(at).parent) {
            const unsigned side = side_of(at);
            const std::uint64_t tag = look(parent).tag;
            if (tag == higher(1 - side)) return tree.set_tag(parent, even);
            if (tag == higher(side)) return lower(tree, parent, side);
            tree.set_tag(parent, higher(side));
            at = parent;
        }
    }

private:
    static void lower(changing_tree& tree, PMEMoid at, unsigned side) {
        const PMEMoid child = look(at).child[side];
        if (look(child).tag == higher(side)) {
            tree.rotate(at, 1 - side);
            tree.set_tag(at, even);
            return tree.set_tag(child, even);
        }
        const PMEMoid inner = look(child).child[1 - side];
        const std::uint64_t tag = look(inner).tag;
        tree.rotate(child, side);
        tree.rotate(at, 1 - side);
        tree.set_tag(at, tag == higher(side) ? higher(1 - side) : even);
        tree.set_tag(child, tag == higher(1 - side) ? higher(side) : even);
        tree.set_tag(inner, even);
    }
};

template <class Balance> class pmdk_tree final : public map_under_test {
public:
    explicit pmdk_tree(const map_options& given)
        : value_bytes_(given.value_bytes), file_(given), root_(file_.root<root_object>()) {}

    bool insert(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        PMEMoid parent = OID_NULL;
        unsigned side = 0;
        for (PMEMoid each = root_->top; !none(each); each = look(each).child[side]) {
            const std::uint64_t its = direct<node>(each)->key;
            if (its == key) return false;
            side = its < key ? 1 : 0;
            parent = each;
        }
        return in_transaction(file_.pool(), [&] {
            const PMEMoid fresh = pmemobj_tx_alloc(sizeof(node) + value_bytes_, 2);
            auto* made = direct<node>(fresh);
            made->at = {OID_NULL, {OID_NULL, OID_NULL}, 0};
            made->key = key;
            std::memcpy(made->value, value, value_bytes_);
            snapshot(root_);
            changing_tree tree(root_, fresh);
            tree.hang(parent, side, fresh);
            Balance::inserted(tree, fresh);
            ++root_->count;
        });
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        const node* found = search(key);
        if (found != nullptr) std::memcpy(value, found->value, value_bytes_);
        return found != nullptr;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        node* found = search(key);
        return found != nullptr && in_transaction(file_.pool(), [&] {
                   snapshot(found->value, value_bytes_);
                   std::memcpy(found->value, value, value_bytes_);
               });
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        PMEMoid first = OID_NULL;
        for (PMEMoid each = root_->top; !none(each);) {
            const bool below = direct<node>(each)->key < key;
            if (!below) first = each;
            each = look(each).child[below ? 1 : 0];
        }
        std::uint64_t seen = 0;
        for (; !none(first) && seen < count; first = next(first), ++seen)
            std::memcpy(value, direct<node>(first)->value, value_bytes_);
        return seen;
    }
    map_facts facts() const override { return file_.facts(); }
    std::optional<reopened> state() const override { return file_.state(); }

private:
    node* search(std::uint64_t key) const noexcept {
        auto* each = direct<node>(root_->top);
        while (each != nullptr && each->key != key)
            each = direct<node>(each->at.child[each->key < key ? 1 : 0]);
        return each;
    }
    static PMEMoid next(PMEMoid at) noexcept {
        if (!none(look(at).child[1])) {
            at = look(at).child[1];
            while (!none(look(at).child[0])) at = look(at).child[0];
            return at;
        }
        PMEMoid above = look(at).parent;
        while (!none(above) && same(look(above).child[1], at)) {
            at = above;
            above = look(at).parent;
        }
        return above;
    }

    std::size_t value_bytes_;
    pool_file file_;
    root_object* root_;
    lock_line lock_;
};

} // namespace

std::unique_ptr<map_under_test> make_pmdk_rbtree(const map_options& given) {
    return std::make_unique<pmdk_tree<red_black>>(given);
}
std::unique_ptr<map_under_test> make_pmdk_avl(const map_options& given) {
    return std::make_unique<pmdk_tree<avl>>(given);
}

} // namespace hf::bench
