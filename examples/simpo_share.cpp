// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several processes that write one object: start any number of them, each with a number of its own,
// and kill any. docs/guide/simpo.md is cut from it.
#include <cstdio>
#include <cstdlib>
#include <string>
// [include]
#include <holdfast/simpo/share.hpp>
// [/include]

namespace {

class till {
public:
    static constexpr hf::simpo::class_name simpo_class{"till", 1};
    void put(unsigned cents) noexcept { has_ += cents; }
    unsigned take(unsigned cents) noexcept { // what it gave
        const unsigned given = cents < has_ ? cents : has_;
        has_ -= given;
        return given;
    }

private:
    unsigned has_ = 0;
};

// [join]
hf::status create(hf::pool& pool) { // called in the process that serves, before it does
    auto all = hf::simpo::object<till>::find(pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        all = hf::simpo::object<till>::create(pool, "all",
                                              hf::simpo::object_options{.callers = 8});
    return all ? hf::status{} : all.error();
}

hf::status pay(const std::string& path, std::uint64_t terminal) {
    auto here = hf::simpo::client::join(
        path, {.layout = "till/1", .engines = {hf::simpo::engine()}}, create);
    if (!here) return here.error();
    auto all = hf::simpo::remote<till>::of(*here, "all", terminal); // as caller 'terminal'
    if (!all) return all.error();
    const auto last = all->last();
    if (!last) return last.error();
    for (std::uint64_t call = *last + 1; call <= 1000; ++call) { // this terminal's calls
        if (call % 10 != 0) {
            if (auto s = all->defer<&till::put>(call, 5U); !s.ok()) return s;
            continue;
        }
        const auto given = all->call<&till::take>(call, 40U); // survives, with the nine before it
        if (!given) return given.error();
    }
    return {};
}
// [/join]

} // namespace

int main(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : "shared.hf";
    const std::uint64_t terminal = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    // [again]
    hf::status s;
    do s = pay(path, terminal);
    while (s.code() == hf::errc::io_error); // the process that served has ended: another one does
    // [/again]
    if (!s.ok()) return std::puts(s.what().c_str()), 1;
    std::printf("terminal %llu: all paid\n", static_cast<unsigned long long>(terminal));
    return 0;
}
