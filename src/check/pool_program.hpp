// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The base of this repository's crash programs. It has a small pool, whose options a program may
// change; a lock for threads that take turns; and a look at every block, for programs that may lose
// some.
#pragma once

#include <holdfast/author/blocks.hpp>
#include <holdfast/author/crash.hpp>

#include <cstdint>
#include <sched.h>
#include <string>
#include <utility>
#include <vector>

namespace hf::crash {

class pool_program : public program {
public:
    open_options options() const override { return options_; }

protected:
    /// A pool that does not grow.
    struct pool_options {
        std::string layout;
        std::vector<engine_ptr> engines;
        std::uint64_t bytes = 64_KiB;
        hf::mode mode = hf::mode::pmem;
        bool eadr = false;
        std::uint32_t max_threads = 2;
    };
    explicit pool_program(pool_options made) {
        options_.layout = std::move(made.layout);
        options_.create_bytes = options_.max_bytes = made.bytes;
        options_.mode = made.mode;
        options_.engines = std::move(made.engines);
        options_.max_threads = made.max_threads;
        options_.expert.eadr = made.eadr;
    }

    /// Runs 'body' while no other thread of the program runs one: a lock that lies in no pool.
    template <class Body> void in_turn(Body&& body) {
        while (taken_) ::sched_yield();
        taken_ = true;
        body();
        taken_ = false;
    }

    /// Shows how many blocks there are, and names each as reached: a failure may lose the program's
    /// pointers to some. The checker names the root itself.
    static void reach_all(pool& p, state& s, const void* root = nullptr) {
        struct looking {
            state* seen;
            const void* root;
        } looking{&s, root};
        s.add(account(p).blocks);
        for_each_block(
            p,
            [](void* to, const void* block, std::size_t) {
                const auto* l = static_cast<struct looking*>(to);
                if (block != l->root) l->seen->object(block);
            },
            &looking);
    }

    open_options options_; // constructors of programs change it, nothing else does

private:
    bool taken_ = false; // threads under the checker take turns: no atomic needed
};

} // namespace hf::crash
