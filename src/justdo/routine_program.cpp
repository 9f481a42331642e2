// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine justdo by its library interface (holdfast/author/justdo/routine.hpp), in every persistence
// domain: the paper's transfers, with one thread and with two that go in opposite directions; a
// list, whose nodes are allocated and freed; a loop over calls of another routine. Two threads'
// sections may be pending together.
#include "justdo_sections.hpp"

#include <examples/justdo_transfer.hpp>

#include <cstdlib>
#include <string>

namespace {

using hf::justdo::object;

using hf::justdo::variant;

class routine_program : public hf::justdo::crash_program {
public:
    using crash_program::crash_program;

protected:
    static object made(hf::pool& p) {
        const auto root = hf::justdo::root::in(p);
        if (!root) std::abort();
        auto mine = root->new_object();
        if (!mine) std::abort();
        return *mine;
    }
};

/// From the first account to the second; the second thread's go back.
class transfers final : public routine_program {
    using routine_program::routine_program;
    using bank = justdo_bank::bank;

    static void move(hf::pool& p, std::uint64_t from, std::int64_t amount) {
        made(p).call<justdo_bank::transfer>({p.root<bank>(), from, 1 - from, amount});
    }
    void setup(hf::pool& p) override {
        for (auto& a : p.root<bank>()->accounts) a.balance = 100;
        hf::persist::persist(p.domain(), p.root<bank>(), sizeof(bank));
    }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 2 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        move(p, thread, 10 + 3 * thread + i);
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { move(p, 1, 1); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const b = p.root<bank>();
        for (const auto& a : b->accounts) s.add(static_cast<std::uint64_t>(a.balance));
        s.expect(justdo_bank::total(b) == 800, "no money is lost or made");
        add_own_blocks(p, s);
    }
};

struct node {
    node* next;
    std::uint64_t value;
};
struct list {
    hf::mutex lock;
    node* head;
    std::uint64_t count;
    std::uint64_t sum;
};

struct push {
    static constexpr const char* name = "push";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        list* on;
        std::uint64_t value;
    };
    struct locals {
        node* fresh;
    };
    struct returns {
        bool pushed;
    };
    static void run(object& jd, const arguments& given, const locals& my, returns& out) {
        list& on = *given.on;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(on.lock));
        HF_JUSTDO_STEP(allocate(my.fresh));
        if (my.fresh != nullptr) {
            *my.fresh = {on.head, given.value};
            jd.written(my.fresh);
            HF_JUSTDO_STEP(store(&on.head, my.fresh));
            HF_JUSTDO_STEP(store(&on.count, on.count + 1));
        }
        HF_JUSTDO_STEP(unlock(on.lock));
        HF_JUSTDO_END;
        out.pushed = true;
    }
};

struct pop {
    static constexpr const char* name = "pop";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        list* on;
    };
    struct locals {
        node* first;
    };
    struct returns {};
    static void run(object& jd, const arguments& given, const locals& my, returns&) {
        list& on = *given.on;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(on.lock));
        HF_JUSTDO_STEP(set(my.first, on.head));
        if (my.first != nullptr) {
            HF_JUSTDO_STEP(store(&on.head, my.first->next));
            HF_JUSTDO_STEP(store(&on.count, on.count - 1));
            HF_JUSTDO_STEP(free(my.first));
        }
        HF_JUSTDO_STEP(unlock(on.lock));
        HF_JUSTDO_END;
    }
};

/// The first thread pushes, the second one pops; one alone does both.
class lists : public routine_program {
    using routine_program::routine_program;
    void setup(hf::pool& p) override { made(p).call<push>({p.root<list>(), 1}); }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 3 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        auto* const on = p.root<list>();
        if (thread == 1 || i == 1) made(p).call<pop>({on});
        else made(p).call<push>({on, 2 + i});
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { made(p).call<push>({p.root<list>(), 9}); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const on = p.root<list>();
        std::uint64_t nodes = 0;
        for (const node* n = on->head; n != nullptr && ++nodes < 9; n = n->next) {
            s.add(n->value);
            s.object(n);
        }
        s.add(on->sum);
        s.expect(nodes == on->count, "the count is that of the nodes");
        add_own_blocks(p, s);
    }
};

/// Adds a value to the sum, and returns the sum.
struct add {
    static constexpr const char* name = "add";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        list* to;
        std::uint64_t value;
    };
    struct locals {};
    struct returns {
        std::uint64_t sum;
    };
    static void run(object& jd, const arguments& given, const locals&, returns& out) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(store(&given.to->sum, given.to->sum + given.value));
        HF_JUSTDO_END;
        out.sum = given.to->sum;
    }
};

/// Adds i * i for i below 'upto', each by a call; pushes nothing.
struct add_squares {
    static constexpr const char* name = "add_squares";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        list* to;
        std::uint64_t upto;
    };
    struct locals {
        std::uint64_t i, last;
    };
    struct returns {
        std::uint64_t sum;
    };
    static void run(object& jd, const arguments& given, const locals& my, returns& out) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.to->lock));
        while (my.i < given.upto) {
            HF_JUSTDO_CALL(out.sum = jd.call<add>({given.to, my.i * my.i}).sum);
            HF_JUSTDO_STEP(set(my.last, out.sum));
            HF_JUSTDO_STEP(set(my.i, my.i + 1));
        }
        HF_JUSTDO_STEP(store(&given.to->sum, given.to->sum + 1000 * my.last));
        HF_JUSTDO_STEP(unlock(given.to->lock));
        HF_JUSTDO_END;
    }
};

class calls final : public lists {
    using lists::lists;
    void setup(hf::pool& p) override { p.root<list>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        made(p).call<add_squares>({p.root<list>(), 3});
    }
};

template <class Program> void add_program(const char* name, unsigned threads) {
    for (const variant& how : hf::justdo::variants)
        hf::crash::add(std::string("routine/") + name + "/" + how.name,
                       std::make_unique<Program>(how, threads));
}
[[maybe_unused]] const bool added = [] {
    add_program<transfers>("transfer", 1);
    add_program<lists>("list", 1);
    add_program<calls>("calls", 1);
    add_program<transfers>("two transfers", 2);
    add_program<lists>("push and pop", 2);
    return true;
}();

} // namespace
