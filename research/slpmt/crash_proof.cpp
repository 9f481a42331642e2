// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/crash_proof.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

namespace hf::slpmt {
namespace {

layout layout_of(const proof_case& what) {
    layout where;
    where.log_lines = 2048;
    // A key takes its value and some nodes; a radix tree's nodes have 256 words.
    const std::uint64_t per_key = what.value_bytes + (what.workload == "kv-rtree" ? 5 << 10 : 256);
    where.bytes = round_up(where.heap() + (64 << 10) + (what.insertions + 8) * per_key, 4096);
    return where;
}

class prover {
public:
    explicit prover(const proof_case& what)
        : what_(what), where_(layout_of(what)),
          under_(make_workload(what.workload, what.value_bytes, where_)) {
        HF_ASSERT(under_ != nullptr);
        for (const auto& [name, how] : what.annotations) {
            const auto at = std::ranges::find(under_->sites(), name, &site::name);
            HF_ASSERT(at != under_->sites().end());
            at->now = how;
        }
        for (std::uint64_t i = 0; i < what.insertions + insertions_after; ++i) {
            keys_.push_back(key_of(what.seed, i));
            number_of_[keys_.back()] = i;
        }
    }

    proof run() {
        machine on{what_.how, what_.parts, where_};
        program in{on};
        crash_where_durable(on, [&] { crash(on); });
        in.begin();
        under_->create(in);
        in.commit();
        acknowledged_ = on.resolved();
        for (at_ = 0; at_ < what_.insertions && !done(); ++at_) {
            in.begin();
            under_->insert(in, keys_[at_]);
            in.commit();
            acknowledged_ = on.resolved();
        }
        crash_where_durable(on, {});
        return proof_;
    }
    std::span<site> sites() { return under_->sites(); }

private:
    /// With eADR stores are durable, and acceptances change nothing: a record stays in its buffer
    /// until it is accepted.
    void crash_where_durable(machine& on, std::function<void()> observer) const {
        if (what_.parts.memory.caches_persist) on.on_store(std::move(observer));
        else on.memory().on_acceptance(std::move(observer));
    }

    static constexpr std::uint64_t insertions_after = 3;
    static constexpr std::uint64_t created = 1; // the tag of the creation

    bool done() const { return what_.stop_at_first && proof_.violations != 0; }

    void violation(std::string_view when, const std::string& finding) {
        if (proof_.violations++ == 0)
            proof_.first = fmt::format("{} of {}, {}, insertion {}, acceptance {}: {}", when,
                                       what_.workload, what_.how.name, at_, proof_.points, finding);
    }

    void crash(machine& on) {
        if (done()) return;
        ++proof_.points;
        const std::vector<std::byte> crashed = on.after_power_failure();
        image of{crashed};
        const found what = recover_and_check(of, "crash");
        if (what_.interrupt_every != 0 && proof_.points % what_.interrupt_every == 0 && !done())
            interrupt(crashed, of.writes());
        if (what_.continue_every != 0 && proof_.points % what_.continue_every == 0 &&
            what.wrong.empty() && count_ != none)
            go_on({of.bytes().begin(), of.bytes().end()}, what.end);
    }

    /// upholds (1) and (2)
    found recover_and_check(image& of, std::string_view when) {
        const auto resolved = recover(of, where_, what_.how.redo, [&](image& i) {
            if (i.word(where_.heap()).value != 0) under_->recover(i);
        });
        if (!resolved) {
            violation(when, resolved.error().what());
            return {};
        }
        const std::uint64_t tag = resolved->front();
        if (tag < acknowledged_ || tag > acknowledged_ + 1)
            violation(when, fmt::format("expected transaction {} resolved or the next, found {}",
                                        acknowledged_, tag));
        count_ = tag < created ? none : at_count(tag);
        if (count_ == none) return {};
        found what = under_->check(of);
        compare(what);
        if (!what.wrong.empty()) violation(when, what.wrong);
        return what;
    }

    std::uint64_t at_count(std::uint64_t tag) const { return tag - first_tag_ + first_count_; }

    void compare(found& what) const {
        if (!what.wrong.empty()) return;
        std::vector<bool> seen(keys_.size());
        for (const std::uint64_t key : what.keys) {
            const auto number = number_of_.find(key);
            if (number == number_of_.end() || number->second >= count_ || seen[number->second])
                what.wrong = fmt::format("key {:#x} is not to be there, or twice", key);
            else seen[number->second] = true;
        }
        if (what.wrong.empty() && what.keys.size() != count_)
            what.wrong = fmt::format("expected {} keys, found {}", count_, what.keys.size());
    }

    /// upholds (3)
    void interrupt(const std::vector<std::byte>& crashed,
                   const std::vector<std::pair<std::uint64_t, std::uint64_t>>& writes) {
        image half{crashed};
        const std::uint64_t wanted = count_;
        for (const auto& [offset, value] : writes) {
            half.put(offset, value);
            if (&offset == &writes.back().first) return; // the last one resolves
            ++proof_.interrupted;
            image again{{half.bytes().begin(), half.bytes().end()}};
            recover_and_check(again, "crash of the recovery");
            if (count_ != wanted)
                violation("crash of the recovery", "another transaction is resolved");
            if (done()) return;
        }
    }

    /// upholds (4)
    void go_on(std::vector<std::byte> recovered, std::uint64_t end) {
        machine on{what_.how, what_.parts, where_, recovered};
        program in{on, std::max(round_up(end, 16), program::first_object(where_))};
        const auto before = std::tuple{acknowledged_, first_tag_, first_count_, at_};
        first_tag_ = acknowledged_ = on.resolved();
        at_ = first_count_ = count_;
        const auto crash_again = [&] {
            if (done()) return;
            ++proof_.continued;
            image of{on.after_power_failure()};
            recover_and_check(of, "second crash");
        };
        crash_where_durable(on, crash_again);
        for (std::uint64_t i = 0; i < insertions_after; ++i, ++at_) {
            in.begin();
            under_->insert(in, keys_[at_]);
            in.commit();
            acknowledged_ = on.resolved();
        }
        std::tie(acknowledged_, first_tag_, first_count_, at_) = before;
    }

    static constexpr std::uint64_t none = ~std::uint64_t{0};
    const proof_case& what_;
    const layout where_;
    const std::unique_ptr<workload> under_;
    std::vector<std::uint64_t> keys_;
    std::unordered_map<std::uint64_t, std::uint64_t> number_of_;
    std::uint64_t acknowledged_ = 0, first_tag_ = created, first_count_ = 0, count_ = none, at_ = 0;
    proof proof_;
};

} // namespace

std::uint64_t key_of(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t z = (seed << 32) + (i + 1) * 0x9e3779b97f4a7c15; // SplitMix64: no two alike
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) | 1;
}

sim::parameters small_caches() {
    sim::parameters parts;
    parts.l1 = {256, 2, 4};
    parts.l2 = {1 << 10, 2, 12};
    parts.l3 = {4 << 10, 4, 40};
    return parts;
}

proof prove(const proof_case& what) { return prover{what}.run(); }

std::vector<std::string> blame(const proof_case& what) {
    proof_case quick = what;
    quick.stop_at_first = true;
    prover all{quick};
    all.run();
    std::vector<std::string> found;
    for (const site& one : all.sites()) {
        if (one.now == eager_logged) continue;
        proof_case without = quick;
        without.annotations.emplace_back(one.name, eager_logged);
        if (prove(without).violations != 0) continue;
        found.push_back(fmt::format(
            "{}:{}: store '{}' is {}{}{}",
            std::filesystem::path(one.where.file_name()).filename().string(), one.where.line(),
            one.name, one.now.lazy ? "lazy" : "", one.now.lazy && one.now.log_free ? ", " : "",
            one.now.log_free ? "log-free" : ""));
    }
    return found;
}

} // namespace hf::slpmt
