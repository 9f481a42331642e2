// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made once: of a client that repeats them, and of a program that is run again from
// its beginning. docs/guide/simpo.md is cut from it.
#include <cstdio>
// [include]
#include <holdfast/simpo/caller.hpp>
// [/include]
#include <holdfast/txfunc.hpp>

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

// [class]
class till {
public:
    static constexpr hf::simpo::class_name simpo_class{"till", 1};
    void put(unsigned cents) noexcept { has_ += cents; }
    unsigned take(unsigned cents) noexcept { // what it gave
        const unsigned given = cents < has_ ? cents : has_;
        has_ -= given;
        return given;
    }
    unsigned has() const noexcept { return has_; }

private:
    unsigned has_ = 0;
};
// [/class]

/// Receipt 1 and 2 of a terminal, which asks again until it has an answer.
int pay(hf::simpo::object<till> all) {
    // [caller]
    auto terminal = hf::simpo::caller<till>::of(all, 4711); // 'all' knows it from now on
    if (!terminal) return fail(terminal.error());
    terminal->defer<&till::put>(1, 500U); // its call 1; 'defer' and 'call' as of the object
    for (int asked = 0; asked < 3; ++asked) {
        const auto given = terminal->call<&till::take>(2, 120U); // its call 2, made once
        if (!given) return fail(given.error());
        std::printf("took %u\n", *given); // 120 each time, of this process and of the next
    }
    // [/caller]
    return 0;
}

/// A program that does the same whenever it is run, apart from the till's answers.
int save_up(hf::simpo::object<till> all) {
    // [retraced]
    auto mine = hf::simpo::retraced<till>::of(all, 1); // thread 1 of this program
    if (!mine) return fail(mine.error());
    unsigned spent = 0;
    for (unsigned day = 1; day <= 6; ++day) {
        mine->defer<&till::put>(10 * day);
        const auto given = mine->call<&till::take>(15U + spent % 7);
        if (!given) return fail(given.error());
        spent += *given;
        if (day == 4) hf::crash_point("fourth-day");
    }
    if (auto s = hf::simpo::retraced<till>::end(all, 1); !s.ok()) return fail(s); // all of it is done
    // [/retraced]
    std::printf("spent %u, %u are left\n", spent, all.call<&till::has>());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "till.hf",
                               {.layout = "till/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    auto all = hf::simpo::object<till>::find(*pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        // [create]
        all = hf::simpo::object<till>::create(
            *pool, "all", hf::simpo::object_options{.callers = 8, .results = 100});
    // [/create]
    if (!all) return fail(all.error());
    if (const int failed = pay(*all); failed != 0) return failed;
    return save_up(*all);
}
