// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that finds no memory to begin with is not taken for the one before it, which has
//           happened. Method: a
// thread's first section of an engine needs memory; a child whose allocations fail begins one,
// behind a section of another engine.
#include <section/list_sections.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <ostream>
#include <string>

namespace {
bool memory_left = true;
}

void* operator new(std::size_t bytes) {
    void* const made = memory_left ? std::malloc(bytes) : nullptr;
    if (made == nullptr) throw std::bad_alloc();
    return made;
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }

namespace {

using namespace hf;
using namespace hf::list_sections;

struct beginning {
    const char* name;
    int (*begin)(const hf_txfunc*, const void*);
};
void PrintTo(const beginning& one, std::ostream* to) { *to << one.name; }

/// Without memory, behind a section of another engine.
void begin_behind_another(const std::string& path, const beginning& one) {
    open_options o;
    o.layout = "no_memory_test/1";
    o.create_bytes = 1_MiB;
    o.engines = {clobber::engine(), redo::engine(), selective::engine(), undo::engine()};
    auto p = pool::open(path, o);
    list* l = p->root<list>();
    push(one.begin != hf_clobber_begin, l, 1);
    memory_left = false;
    one.begin(&pop_desc, &l);
}

class NoMemoryDeathTest : public ::testing::TestWithParam<beginning> {};

TEST_P(NoMemoryDeathTest, NamesNoSectionThatHasNotBegun) {
    const std::string path = "/dev/shm/hf_no_memory_test." + std::to_string(::getpid());
    EXPECT_DEATH(begin_behind_another(path, GetParam()),
                 std::string("out of memory in ") + GetParam().name + "\n");
    ::unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Engines, NoMemoryDeathTest,
                         ::testing::Values(beginning{"hf_clobber_begin", hf_clobber_begin},
                                           beginning{"hf_redo_begin", hf_redo_begin},
                                           beginning{"hf_selective_begin", hf_selective_begin},
                                           beginning{"hf_undo_begin", hf_undo_begin}),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
