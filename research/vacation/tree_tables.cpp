// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency on four red-black or AVL trees, each order one failure-atomic section of plain code.
// CMakeLists.txt builds this file once for each engine. Source: Clobber §5.7.
//
// A customer's reservations are a list, the newest first.
#include "../peer/builds.hpp"
#include "requests.hpp"
#include <structures/avl_tree.hpp>
#include <structures/rb_tree.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <mutex>
#include <utility>

namespace hf::apps::vacation::HF_APPLICATION_BUILD {
namespace {

struct booking {
    reservation what;
    booking* next;
};
struct account {
    std::uint64_t bill;
    booking* list;
};

/// The pool's root.
template <template <class, class> class Tree> struct books {
    hf::mutex lock; // held by every order
    std::byte apart[64];
    Tree<identifier, offer> offers[all_kinds.size()];
    Tree<identifier, account> customers;
};

/// The books within a section. 'full': a step found no room, and has changed nothing.
template <template <class, class> class Tree> class section_steps {
public:
    explicit section_steps(books<Tree>* in) noexcept : in_(in) {}
    bool full() const noexcept { return full_; }

    bool find(kind what, identifier id, offer& found) noexcept {
        const offer* row = map(what).find_in_section(id);
        if (row != nullptr) found = *row;
        return row != nullptr;
    }
    void put(kind what, identifier id, const offer& row) noexcept {
        if (!map(what).put_in_section(id, row)) full_ = true;
    }
    void erase(kind what, identifier id) noexcept { map(what).take_in_section(id); }

    template <class F> bool each_reservation(identifier id, F f) noexcept {
        const account* of = in_->customers.find_in_section(id);
        if (of == nullptr) return false;
        for (const booking* each = of->list; each != nullptr; each = each->next) f(each->what);
        return true;
    }
    bool book(identifier id, std::span<const reservation> more) noexcept {
        account* of = in_->customers.find_in_section(id);
        booking* const old = of != nullptr ? of->list : nullptr;
        booking* list = old;
        std::uint64_t price = 0;
        for (const reservation& each : more) {
            booking* made = hf::make<booking>(each, list);
            if (made == nullptr) return give_back(list, old);
            list = made;
            price += each.price;
        }
        if (of == nullptr)
            return in_->customers.put_in_section(id, {price, list}) || give_back(list, nullptr);
        if (more.empty()) return true;
        of->bill += price;
        of->list = list;
        return true;
    }
    void erase_customer(identifier id) noexcept {
        give_back_from(in_->customers.find_in_section(id)->list, nullptr);
        in_->customers.take_in_section(id);
    }

private:
    Tree<identifier, offer>& map(kind what) noexcept {
        return in_->offers[static_cast<std::size_t>(what)];
    }
    static void give_back_from(booking* first, const booking* end) noexcept {
        while (first != end) hf::destroy(std::exchange(first, first->next));
    }
    bool give_back(booking* first, const booking* end) noexcept {
        give_back_from(first, end);
        full_ = true;
        return false;
    }

    books<Tree>* in_;
    bool full_ = false;
};

template <template <class, class> class Tree>
HF_TXFUNC bool carry_out_all(books<Tree>* in, order given) noexcept {
    section_steps<Tree> steps(in);
    carry_out(steps, given);
    return !steps.full();
}

template <template <class, class> class Tree> class tree_tables final : public tables {
public:
    tree_tables(hf::pool opened, books<Tree>* at) : pool_(std::move(opened)), books_(at) {}

    status carry_out(const order& given) override {
        const std::scoped_lock held{books_->lock};
        return carry_out_all(books_, given) ? status{} : pool_.why_full();
    }
    bool has_customer(identifier id) override { return books_->customers.find(id, nullptr); }
    void for_each(kind what,
                  const std::function<void(identifier, const offer&)>& visit) const override {
        books_->offers[static_cast<std::size_t>(what)].for_each(visit);
    }
    void for_each_customer(
        const std::function<void(identifier, std::uint64_t, std::span<const reservation>)>& visit)
        const override {
        std::vector<reservation> list;
        books_->customers.for_each([&](identifier id, const account& one) {
            list.clear();
            for (const booking* each = one.list; each != nullptr; each = each->next)
                list.push_back(each->what);
            visit(id, one.bill, list);
        });
    }

private:
    hf::pool pool_;
    books<Tree>* books_;
};

template <template <class, class> class Tree>
result<std::unique_ptr<tables>> open_books(const table_options& options) {
    open_options how;
    how.layout = "holdfast-vacation/" + options.tree;
    how.root_bytes = sizeof(books<Tree>);
    how.create_bytes = 64_MiB + options.rows * 2048ULL;
    how.max_bytes = 8 * how.create_bytes;
    how.mode = options.power ? mode::pmem : mode::process;
    how.engines = engines_of_build();
    how.expert.prefault = options.prefault;
    how.expert.seal = false;
    auto opened = pool::open(options.path, how);
    if (!opened) return opened.error();
    const auto root = opened->find_root<books<Tree>>();
    if (!root) return root.error();
    return std::unique_ptr<tables>(std::make_unique<tree_tables<Tree>>(std::move(*opened), *root));
}

} // namespace

result<std::unique_ptr<tables>> open_trees(const table_options& options) {
    if (options.tree == "rb") return open_books<structures::rb_tree>(options);
    if (options.tree == "avl") return open_books<structures::avl_tree>(options);
    return status(errc::bad_argument, "no such tree: " + options.tree + " (rb, avl)");
}

} // namespace hf::apps::vacation::HF_APPLICATION_BUILD
