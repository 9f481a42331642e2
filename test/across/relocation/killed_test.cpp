// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: sections that are killed at any step of theirs, in a pool that is mapped elsewhere or at
// its place, are recovered wherever the pool is mapped next, also after a kill in recovery.
// Method: a child works, and kills itself at the k-th event that the persistence layer announces,
// for every third k. The next one opens the pool, and dies likewise; the last one looks. Where each
// of them maps the pool follows from k.
#include "fixture.hpp"
#include <trace/trace.hpp>

#include <csignal>

namespace {

using namespace relocation_test;
using hf::relocation;

std::uint64_t events_left = 0; // before the child dies; 0: it lives
void count_down(const hf::trace::event&, const void*, std::size_t) {
    if (events_left != 0 && --events_left == 0) ::kill(::getpid(), SIGKILL);
}

relocation place(std::uint64_t k, unsigned bit) {
    return (k >> bit & 1) != 0 ? relocation::always : relocation::never;
}

class Killed : public Relocation {
protected:
    /// Opens the pool in a child, which dies at the k-th event and else returns what 'work' does.
    /// Nothing: it died.
    template <class Work>
    std::optional<bool> in_child(std::uint64_t k, relocation where, Work&& work) const {
        const pid_t child = ::fork();
        if (child == 0) {
            const hf::trace::listening listens(count_down);
            bool good = false;
            {
                events_left = k;
                auto pool = try_open(original, where);
                if (!pool) std::fprintf(stderr, "%s\n", pool.error().what().c_str());
                good = pool && (where == relocation::never || pool->relocated()) &&
                       work(pool->root<content>());
                events_left = 0;
            }
            ::_exit(good ? 0 : 1);
        }
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) return {};
        EXPECT_TRUE(WIFEXITED(how)) << "signal " << WTERMSIG(how);
        return WIFEXITED(how) && WEXITSTATUS(how) == 0;
    }
};

TEST_P(Killed, AtEveryStepTheyAreWholeWhereverThePoolIsMappedNext) {
    const auto work = [](content* in) {
        const std::uint64_t key = in->hash.size();
        push(in, in->links);
        return in->hash.insert(key_of(key), value_of(key)) &&
               in->leaves.insert(key_of(key), value_of(key));
    };
    // Any of the three sections may be the last.
    const auto look = [](content* in) {
        const std::uint64_t links = in->links, hashed = in->hash.size(), leaves = in->leaves.size();
        const bool in_turn = links == hashed ? hashed == leaves || hashed == leaves + 1
                                             : links == hashed + 1 && hashed == leaves;
        return in_turn && holds_list(in, links) && holds(in->hash, hashed) &&
               holds(in->leaves, leaves);
    };
    std::uint64_t killed = 0, killed_again = 0;
    for (std::uint64_t k = 1;; k += 3) { // all bits of it change
        remove(original);
        ASSERT_EQ(in_child(0, relocation::never, work), true);
        const auto first = in_child(k, place(k, 0), work);
        if (first) {
            EXPECT_TRUE(*first) << k;
            break;
        }
        ++killed;
        const auto again = in_child(k % 7 + 1, place(k, 1), look);
        if (again) ASSERT_TRUE(*again) << "step " << k << ", recovery step " << k % 7 + 1;
        else ++killed_again;
        ASSERT_EQ(in_child(0, place(k, 2), look), true) << "step " << k;
    }
    std::printf("killed %llu times, and %llu times in recovery\n",
                static_cast<unsigned long long>(killed),
                static_cast<unsigned long long>(killed_again));
    EXPECT_GT(killed, 15u);
}

INSTANTIATE_TEST_SUITE_P(In, Killed, modes_of_build(), name_of_mode);

} // namespace
