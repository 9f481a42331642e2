// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mix.hpp"

#include "workload.hpp"

#include <algorithm>

namespace hf::bench {
namespace {

constexpr std::uint32_t scan_length_max = 100;

class planner {
public:
    planner(const plan_options& options, unsigned worker)
        : options_(options), worker_(worker),
          own_(share_of(options.records, options.threads, worker)), random_(worker + 1),
          scattered_(std::max<std::uint64_t>(1, options.records)) {
        if (which() == distribution::latest) newest_.emplace(std::max<std::uint64_t>(1, own_));
    }

    operation next() {
        const mix& m = options_.operations;
        // A map that is not loaded first has nothing to read at first.
        unsigned draw = options_.records + own_ == 0 ? 100 : static_cast<unsigned>(random_() % 100);
        const auto within = [&](unsigned share) {
            if (draw < share) return true;
            draw -= share;
            return false;
        };
        if (draw == 100) return insertion();
        if (within(m.read)) return {existing(), operation_kind::read, 0};
        if (within(m.update)) return {existing(), operation_kind::update, 0};
        if (within(m.read_modify_write)) return {existing(), operation_kind::read_modify_write, 0};
        if (within(m.scan))
            return {existing(), operation_kind::scan,
                    static_cast<std::uint32_t>(1 + random_() % scan_length_max)};
        return insertion();
    }

private:
    distribution which() const {
        return options_.operations.latest ? distribution::latest : options_.which;
    }
    std::uint64_t key_of_own(std::uint64_t item) const {
        return scrambled(item * options_.threads + worker_);
    }
    operation insertion() {
        const operation made{key_of_own(own_++), operation_kind::insert, 0};
        if (newest_ && own_ > 1) newest_->grow();
        return made;
    }
    std::uint64_t existing() {
        if (newest_) return key_of_own((*newest_)(random_));
        if (options_.records == 0) return key_of_own(random_() % own_);
        if (which() == distribution::uniform) return scrambled(random_() % options_.records);
        return scrambled(scattered_(random_));
    }

    plan_options options_;
    unsigned worker_;
    std::uint64_t own_; // this thread's items that exist
    generator random_;
    scrambled_zipfian scattered_;
    std::optional<skewed_latest> newest_;
};

} // namespace

std::optional<mix> ycsb_mix(std::string_view name) {
    if (name == "ycsb-a") return mix{.read = 50, .update = 50};
    if (name == "ycsb-b") return mix{.read = 95, .update = 5};
    if (name == "ycsb-c") return mix{.read = 100};
    if (name == "ycsb-d") return mix{.read = 95, .latest = true};
    if (name == "ycsb-e") return mix{.scan = 95};
    if (name == "ycsb-f") return mix{.read = 50, .read_modify_write = 50};
    return std::nullopt;
}

std::vector<operation> plan_load(const plan_options& options, unsigned worker) {
    std::vector<operation> all(share_of(options.records, options.threads, worker));
    for (std::uint64_t i = 0; i < all.size(); ++i)
        all[i] = {scrambled(i * options.threads + worker), operation_kind::insert, 0};
    return all;
}

std::vector<operation> plan(const plan_options& options, unsigned worker) {
    planner next(options, worker);
    std::vector<operation> all(share_of(options.ops, options.threads, worker));
    for (operation& one : all) one = next.next();
    return all;
}

} // namespace hf::bench
