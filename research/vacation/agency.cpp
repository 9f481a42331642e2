// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agency.hpp"

#include "../../apps/hash.hpp"
#include "../peer/builds.hpp"
#include "requests.hpp"

#include <map>
#include <utility>

namespace hf::apps::vacation {
namespace {

template <class T> std::uint64_t digest_of(identifier id, std::uint64_t what, const T& value) {
    return apps::hash_of(&value, sizeof value, id * 8 + what);
}

} // namespace

#define HF_DECLARE(build)                                                                          \
    namespace build_##build {                                                                      \
        result<std::unique_ptr<tables>> open_trees(const table_options& options);                  \
    }
HF_APPLICATION_BUILDS(HF_DECLARE)

result<std::unique_ptr<tables>> open_tables(const table_options& options) {
    if (options.engine == "mod") return open_mod(options);
    if (options.engine == "pmdk") return open_pmdk(options);
    if (options.engine == "volatile") {
        auto opened = open_volatile(options);
        if (!opened) return opened.error();
        return std::unique_ptr<tables>(std::move(*opened));
    }
#define HF_CHOOSE(build)                                                                           \
    if (options.engine == #build) return build_##build::open_trees(options);
    HF_APPLICATION_BUILDS(HF_CHOOSE)
    return status(errc::bad_argument, "no such engine: " + options.engine);
}

status stepwise_tables::carry_out(const order& given) {
    return run([&](transaction& in) { vacation::carry_out(in, given); });
}

bool stepwise_tables::has_customer(identifier id) {
    bool known = false;
    const status looked =
        run([&](transaction& in) { known = in.each_reservation(id, [](const reservation&) {}); });
    return looked.ok() && known;
}

status agency::open_for_business() {
    if (tables_.has_customer(opened)) return {};
    for (identifier first = 1; first <= options_.relations; first += rows_at_a_time)
        if (const status filled = tables_.carry_out({order::work::fill, first, options_});
            !filled.ok())
            return filled;
    return {};
}

status agency::request(std::uint64_t t) {
    return tables_.carry_out({order::work::request, t, options_});
}

agency::report agency::look() const {
    report seen;
    std::map<std::pair<kind, identifier>, std::uint32_t> used;
    const auto expect = [&seen](bool holds, const char* what, identifier id) {
        if (!holds && seen.wrong.empty()) seen.wrong = what + (" " + std::to_string(id));
    };
    tables_.for_each_customer(
        [&](identifier id, std::uint64_t bill, std::span<const reservation> list) {
            ++seen.customers;
            seen.reservations += list.size();
            seen.digest += digest_of(id, 3, bill);
            for (const reservation& each : list) {
                seen.digest += digest_of(id, 4, each);
                ++used[{each.what, each.id}];
                bill -= each.price;
            }
            expect(bill == 0, "bill of customer", id);
        });
    for (const kind what : all_kinds)
        tables_.for_each(what, [&](identifier id, const offer& row) {
            ++seen.rows;
            seen.digest += digest_of(id, static_cast<std::uint64_t>(what), row);
            expect(row.used + row.free == row.total, "total of row", id);
            const auto found = used.extract({what, id});
            expect(row.used == (found ? found.mapped() : 0), "reservations of row", id);
        });
    for (const auto& left : used) expect(false, "reserved row that is gone", left.first.second);
    return seen;
}

} // namespace hf::apps::vacation
