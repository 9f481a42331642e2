// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mod_use.hpp"

namespace hf::hostile {
namespace {

using numbers = mod::vector<std::uint64_t>;
using texts = mod::vector<std::string>;
using stack = mod::stack<std::uint64_t>;
using pile = mod::stack<std::string>;
using queue = mod::queue<std::uint64_t>;
using line = mod::queue<std::string>;

std::uint64_t element(std::uint64_t n, std::uint64_t*) { return n; }
std::string element(std::uint64_t n, std::string*) { return std::string(n % 90, 's'); }

template <class Vector> bool filled_vector(const pool& in, const char* name, std::uint64_t count) {
    using type = typename Vector::value_type;
    auto made = Vector::open(in, {name});
    for (std::uint64_t n = 0; n < count; ++n)
        if (!made || !made->push_back(element(n, static_cast<type*>(nullptr))).ok()) return false;
    // Relaxed nodes come from parts.
    return made && made->update([](auto& all) {
                           all.erase(13, 40);
                           all.insert(5, element(77, static_cast<type*>(nullptr)));
                       })
                       .ok();
}
template <class Sequence> bool filled(const pool& in, const char* name, std::uint64_t count) {
    using type = typename Sequence::value_type;
    auto made = Sequence::open(in, {name});
    for (std::uint64_t n = 0; n < count; ++n)
        if (!made || !made->push(element(n, static_cast<type*>(nullptr))).ok()) return false;
    for (std::uint64_t n = 0; n < count / 3; ++n)
        if (!made->pop()) return false;
    return true;
}

template <class Vector> void use_vector(mod_user& by, Vector& of) {
    using type = typename Vector::value_type;
    const type some = element(30, static_cast<type*>(nullptr));
    by.all_of(of);
    for (std::uint64_t n = 0; n < 20 && n < of.size(); ++n)
        by.looked_at += sizeof(of[of.size() - 1 - n]) + sizeof(of[n * 7 % of.size()]);
    for (std::uint64_t n = 0; n < 20 && n * 5 < of.size(); ++n) by.ended(of.set(n * 5, some));
    const auto before = of.snapshot();
    for (std::uint64_t n = 0; n < 10 && n < of.size(); ++n) by.ended(of.set(n, some));
    for (std::uint64_t n = 0; n < 20; ++n) by.ended(of.push_back(some));
    for (std::uint64_t n = 0; n < 10 && !of.empty(); ++n) by.ended(of.pop_back());
    by.all_of(before);
    by.ended(of.update([&](auto& all) {
        if (all.size() > 60) all.erase(20, 50);
        if (all.size() > 10) all.insert(7, some);
        all.push_back(some);
    }));
    by.ended(of.update([&](auto& all) {
        if (all.size() > 30) all.slice(9, all.size() - 8);
    }));
    const auto twice = before.append(before);
    by.looked_at += twice.size();
    by.all_of(of);
}

template <class Sequence> void use_sequence(mod_user& by, const char* name) {
    using type = typename Sequence::value_type;
    auto of = by.opened<Sequence>(name);
    if (!of) return;
    by.all_of(*of);
    const auto before = of->snapshot();
    for (std::uint64_t n = 0; n < 150; ++n) {
        by.ended(of->push(element(n, static_cast<type*>(nullptr))));
        if (n % 3 == 0) continue;
        by.ended(of->pop());
    }
    by.all_of(before);
    by.ended(of->update([](auto& all) {
        for (unsigned n = 0; n < 60; ++n) (void)all.pop();
    }));
    by.all_of(*of);
    by.still_good(name);
    by.ended(of->clear());
    by.ended(of->push(element(3, static_cast<type*>(nullptr))));
    by.still_good(name);
}

template <class Vector> void use_and_clear(mod_user& by, const char* name) {
    auto of = by.opened<Vector>(name);
    if (!of) return;
    use_vector(by, *of);
    by.still_good(name);
    by.ended(of->clear());
    by.ended(of->push_back({}));
    by.all_of(*of);
}

} // namespace

bool fill_sequences(const pool& in) {
    return filled_vector<numbers>(in, "vector", 700) && filled_vector<texts>(in, "lines", 120) &&
           filled<stack>(in, "stack", 100) && filled<pile>(in, "pile", 40) &&
           filled<queue>(in, "queue", 2000) && filled<line>(in, "line", 150);
}

void use_sequences(mod_user& by) {
    use_and_clear<numbers>(by, "vector");
    use_and_clear<texts>(by, "lines");
    use_sequence<stack>(by, "stack");
    use_sequence<pile>(by, "pile");
    use_sequence<queue>(by, "queue");
    use_sequence<line>(by, "line");
}

bool fill_shared(const pool& in) {
    if (!filled_vector<numbers>(in, "vector", 700) || !filled_vector<texts>(in, "lines", 120))
        return false;
    auto from = numbers::open(in, {"vector"}), to = numbers::open(in, {"copy"});
    auto lines = texts::open(in, {"lines"});
    if (!from || !to || !lines) return false;
    for (unsigned times = 0; times < 3; ++times)
        if (!to->append(from->snapshot()).ok() || !lines->append(lines->snapshot()).ok())
            return false;
    return from->push_back(1).ok() && from->set(3, 4).ok();
}

void use_shared(mod_user& by) {
    use_and_clear<numbers>(by, "vector");
    use_and_clear<numbers>(by, "copy");
    use_and_clear<texts>(by, "lines");
}

} // namespace hf::hostile
