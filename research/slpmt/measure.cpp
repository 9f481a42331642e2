// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/crash_proof.hpp>
#include <slpmt/measure.hpp>

#include <algorithm>
#include <utility>

namespace hf::slpmt {

namespace {

std::uint64_t bytes_per_core(const measured_case& what) {
    const std::uint64_t nodes = what.workload == "kv-rtree" ? 5 << 10 : 512; // bytes per key
    return round_up((1 << 20) + what.insertions * (what.value_bytes + nodes), 4096);
}

layout layout_of(const measured_case& what) {
    layout where;
    where.cores = what.parts.cores;
    where.bytes = where.heap() + what.parts.cores * bytes_per_core(what);
    return where;
}

/// A core's structure: they share nothing but caches and memory.
std::unique_ptr<workload> workload_of(const measured_case& what, unsigned core = 0) {
    layout where = layout_of(what);
    where.root_at = core * bytes_per_core(what);
    auto under = make_workload(what.workload, what.value_bytes, where);
    HF_ASSERT(under != nullptr);
    for (const auto& [name, how] : what.annotations) {
        const auto at = std::ranges::find(under->sites(), name, &site::name);
        HF_ASSERT(at != under->sites().end());
        at->now = how;
    }
    return under;
}

/// A machine's work between start and stop.
class measurement {
public:
    explicit measurement(machine& on) : on_(on) {}
    void start() {
        began_ = latest();
        lines_ = on_.memory().lines_written();
        accesses_ = on_.caches().counted().accesses;
    }
    void committed() {
        const std::uint64_t risk = on_.lazy_at_risk();
        got_.lazy_at_risk_max = std::max(got_.lazy_at_risk_max, risk);
        risk_ += risk;
        ++commits_;
    }
    void stop() { got_.ns = static_cast<double>(latest() - began_) / sim::ticks_per_ns; }
    /// When everything lazy is durable.
    measured done() {
        if (commits_ != 0)
            got_.lazy_at_risk_mean = static_cast<double>(risk_) / static_cast<double>(commits_);
        got_.pm_lines = on_.memory().lines_written() - lines_;
        got_.accesses = on_.caches().counted().accesses - accesses_;
        got_.wear_max = *std::ranges::max_element(on_.memory().wear());
        got_.counts = on_.counted();
        got_.caches = on_.caches().counted();
        return std::move(got_);
    }

private:
    sim::ticks latest() const { // of all cores
        sim::ticks last = 0;
        for (unsigned core = 0; core < on_.where().cores; ++core)
            last = std::max(last, on_.now_of(core));
        return last;
    }

    machine& on_;
    measured got_;
    sim::ticks began_ = 0;
    std::uint64_t lines_ = 0, accesses_ = 0, risk_ = 0, commits_ = 0;
};

/// Makes the structure, inserts, and lets everything lazy become durable. Reports to 'step' where
/// the measured part starts and stops, and each insertion's commit.
template <class Step> void run(const measured_case& what, workload& under, program& in,
                               Step&& step) {
    in.begin();
    under.create(in);
    in.commit();
    step(event_kind::start);
    for (std::uint64_t i = 0; i < what.insertions; ++i) {
        in.begin();
        under.insert(in, key_of(what.seed, i));
        in.commit();
        step(event_kind::commit);
        if (what.instructions_between != 0) in.compute(what.instructions_between);
    }
    step(event_kind::stop);
    for (int i = 0; i < 4; ++i) {
        in.begin();
        in.commit();
    }
}

} // namespace

namespace {

/// The same on several cores: the core that is furthest behind makes the next insertion.
void run_on_cores(const measured_case& what, machine& on, measurement& its,
                  std::vector<std::unique_ptr<workload>>& under) {
    std::vector<program> in;
    for (unsigned core = 0; core < what.parts.cores; ++core) {
        in.emplace_back(on, program::first_object(on.where()) + core * bytes_per_core(what));
        on.run_on(core);
        in.back().begin();
        under[core]->create(in.back());
        in.back().commit();
    }
    its.start();
    std::vector<std::uint64_t> done(what.parts.cores);
    for (std::uint64_t i = 0; i < what.insertions * what.parts.cores; ++i) {
        unsigned next = 0;
        while (done[next] == what.insertions) ++next;
        for (unsigned core = next; core < what.parts.cores; ++core)
            if (done[core] < what.insertions && on.now_of(core) < on.now_of(next)) next = core;
        on.run_on(next);
        in[next].begin();
        under[next]->insert(in[next], key_of(what.seed + next, done[next]++));
        in[next].commit();
        its.committed();
        in[next].compute(what.instructions_between);
    }
    its.stop();
    for (unsigned core = 0; core < what.parts.cores; ++core) {
        on.run_on(core);
        for (int i = 0; i < 4; ++i) {
            in[core].begin();
            in[core].commit();
        }
    }
}

} // namespace

measured measure(const measured_case& what) {
    std::vector<std::unique_ptr<workload>> under;
    for (unsigned core = 0; core < what.parts.cores; ++core)
        under.push_back(workload_of(what, core));
    machine on{what.how, what.parts, layout_of(what)};
    measurement its{on};
    if (what.parts.cores > 1) {
        run_on_cores(what, on, its, under);
    } else {
        program in{on};
        run(what, *under[0], in, [&](event_kind step) {
            if (step == event_kind::start) its.start();
            else if (step == event_kind::commit) its.committed();
            else its.stop();
        });
    }
    measured got = its.done();
    got.sites.assign(under[0]->sites().begin(), under[0]->sites().end());
    return got;
}

recorded record(const measured_case& what) {
    const auto under = workload_of(what);
    recorded made{layout_of(what), {}, {}};
    machine on{what.how, what.parts, made.where};
    program in{on};
    in.record(made);
    run(what, *under, in, [&](event_kind step) {
        if (step != event_kind::commit) made.add({step}); // the program has noted those
    });
    return made;
}

measured replay(const recorded& what, const technique& how, const sim::parameters& parts) {
    HF_ASSERT(what.where.cores == 1 && parts.cores == 1);
    machine on{how, parts, what.where};
    measurement its{on};
    bool measuring = false;
    std::vector<sim::ticks> done{0}; // of each load, from number 1
    for (const event& one : what.events) {
        switch (one.kind) {
        case event_kind::begin: on.begin(); break;
        case event_kind::commit:
            on.commit();
            if (measuring) its.committed();
            break;
        case event_kind::compute: on.compute(one.value); break;
        case event_kind::load: done.push_back(on.load(one.offset, done[one.value]).ready); break;
        case event_kind::store: on.store(one.offset, one.value, one.how); break;
        case event_kind::start:
            measuring = true;
            its.start();
            break;
        case event_kind::stop:
            measuring = false;
            its.stop();
            break;
        }
    }
    return its.done();
}

} // namespace hf::slpmt
