// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One section that takes very many blocks, as a bulk load does, gives some up again and frees very
// many. The section ends, and its re-execution ends. (Each block used to look at all before it,
// which took hours.)
#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

constexpr std::uint64_t nodes = 200'000;

struct node {
    node* next;
    std::uint64_t value;
};
struct list {
    node* head;
};

bool dies = false;

void load(const void* packed) {
    list* l = *static_cast<list* const*>(packed);
    node* last = nullptr;
    for (std::uint64_t i = 0; i < nodes; ++i) {
        auto* fresh = static_cast<node*>(hf_alloc(sizeof(node)));
        hf_note_store(fresh, sizeof(node));
        *fresh = {last, i};
        last = fresh;
        if (i % 4 == 0) hf_free(hf_alloc(48)); // given up again
    }
    hf_clobber_log(&l->head, 8);
    l->head = last;
    if (dies) ::kill(::getpid(), SIGKILL);
}
void unload(const void* packed) {
    list* l = *static_cast<list* const*>(packed);
    for (node* n = l->head; n != nullptr; n = n->next) hf_free(n);
    hf_clobber_log(&l->head, 8);
    l->head = nullptr;
    if (dies) ::kill(::getpid(), SIGKILL);
}
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc load_desc{HF_ABI_VERSION, 8, 1006, 1, "load", "here", schema, 1, load};
const hf_txfunc unload_desc{HF_ABI_VERSION, 8, 1007, 1, "unload", "here", schema, 1, unload};

void run(const hf_txfunc& function, list* l) {
    hf_clobber_begin(&function, &l);
    function.re_execute(&l);
    hf_clobber_commit();
}

std::uint64_t length(const list* l) {
    std::uint64_t n = 0;
    for (const node* at = l->head; at != nullptr; at = at->next) ++n;
    return n;
}

TEST(ManyBlocks, OneSectionTakesAndFreesThemAndSoDoesItsReExecution) {
    hf_txfunc_register(&load_desc);
    hf_txfunc_register(&unload_desc);
    const std::string path = "/dev/shm/hf_many_blocks_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    open_options options;
    options.layout = "many_blocks_test/1";
    options.create_bytes = 64_MiB;
    options.max_bytes = 256_MiB;
    options.engines = {clobber::engine()};
    for (const hf_txfunc* last : {&load_desc, &unload_desc}) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = pool::open(path, options);
            if (!p) ::_exit(2);
            if (last == &unload_desc && length(p->root<list>()) != nodes) ::_exit(3);
            dies = true;
            run(*last, p->root<list>());
            ::_exit(4);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
        auto p = pool::open(path, options);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        const std::uint64_t there = last == &load_desc ? nodes : 0;
        EXPECT_EQ(length(p->root<list>()), there);
        EXPECT_EQ(account(*p).blocks, there + 1);
        if (last == &unload_desc) { // in one process, without a failure
            run(load_desc, p->root<list>());
            run(unload_desc, p->root<list>());
            EXPECT_EQ(account(*p).blocks, 1U);
        }
    }
    ::unlink(path.c_str());
}

} // namespace
