// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_clobber, kill_undo, kill_redo, kill_mod, kill_simpo: the kill test of one engine.  test/attacks/kill/README.md
#include "harness.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace kill_test;

struct request {
    std::vector<workload*> workloads = kill_test::workloads();
    std::vector<hf::mode> modes{hf::mode::process, hf::mode::pmem};
    plan each;
    bool kills_given = false;
};

int usage() {
    std::fputs(
        "options: [--kills N | --seconds S] [--seed N] [--threads 1-8, default in turn] [--mode "
        "process|pmem|power]\n"
        "         [--workload map|bank|blob|grid|locked|containers|mod|cache|simpo|structures|retraced|swap|history]\n"
        "         [--dir DIRECTORY]\n"
        "         [--every-ms N, else at any moment] [--records N, of map: that are there "
        "besides]\n"
        "N kills, or S seconds, are shared by all combinations chosen.\n",
        stderr);
    return 2;
}

bool parse(int argc, char** argv, request& out) {
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        if (i + 1 == argc) return false;
        const char* const text = argv[i + 1];
        if (name == "--kills")
            out.each.kills = std::strtoull(text, nullptr, 10), out.kills_given = true;
        else if (name == "--seconds") out.each.seconds = std::atof(text);
        else if (name == "--every-ms") out.each.every_ms = std::atof(text);
        else if (name == "--records") out.each.records = std::strtoull(text, nullptr, 10);
        else if (name == "--seed") out.each.seed = std::strtoull(text, nullptr, 10);
        else if (name == "--threads") out.each.threads = static_cast<unsigned>(std::atoi(text));
        else if (name == "--dir") out.each.directory = text;
        else if (name == "--mode")
            out.modes = {std::strcmp(text, "pmem") == 0    ? hf::mode::pmem
                         : std::strcmp(text, "power") == 0 ? hf::mode::power
                                                           : hf::mode::process};
        else if (name == "--workload")
            std::erase_if(out.workloads,
                          [&](workload* w) { return std::strcmp(w->name(), text) != 0; });
        else return false;
    }
    std::erase_if(out.workloads, [&](workload* w) { return !w->fill(out.each.records); });
    return out.each.threads <= threads_max && !out.workloads.empty();
}

void print(const char* what, const char* mode, const plan& plan, const outcome& o) {
    const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "kill: %-4s %-7s %-7s threads=%u seed=%llu pools=%llu kills=%llu recovery_kills=%llu "
        "acknowledged=%llu lost=%llu pending=%llu re_executed=%llu resumed=%llu rolled_back=%llu "
        "discarded=%llu failures=%llu\n",
        what, engine_name(), mode, plan.threads, n(plan.seed), n(o.pools), n(o.kills),
        n(o.recovery_kills), n(o.acknowledged), n(o.lost), n(o.pending), n(o.re_executed),
        n(o.resumed), n(o.rolled_back), n(o.discarded), n(o.failures));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    request asked;
    if (!parse(argc, argv, asked)) return usage();
    const std::uint64_t combinations = asked.workloads.size() * asked.modes.size();
    if (asked.each.seconds > 0 && !asked.kills_given) asked.each.kills = 0;
    asked.each.seconds /= static_cast<double>(combinations);
    asked.each.kills = (asked.each.kills + combinations - 1) / combinations;
    outcome all;
    for (hf::mode mode : asked.modes)
        for (workload* w : asked.workloads) {
            plan one = asked.each;
            one.what = w;
            one.mode = mode;
            const char* const mode_name = hf::name(mode).data();
            const outcome found = run(one);
            print(w->name(), mode_name, one, found);
            if (found.failures != 0)
                std::printf(
                    "repeat: %s --workload %s --mode %s --seed %llu --threads %u --kills %llu\n",
                    argv[0], w->name(), mode_name, static_cast<unsigned long long>(one.seed),
                    one.threads, static_cast<unsigned long long>(found.kills));
            all += found;
        }
    if (has_sections())
        for (hf::mode mode : asked.modes) {
            plan one = asked.each;
            one.mode = mode;
            all.failures += kill_between_debit_and_credit(one);
        }
    print("all", "", asked.each, all);
    // A run whose kills never met an unfinished section would prove nothing.
    const std::uint64_t met = has_sections() ? all.pending - all.discarded : all.pending;
    if (all.failures == 0 && all.kills >= 100 && met == 0) {
        std::puts("FAILED: no kill met an unfinished section");
        return 1;
    }
    return all.failures == 0 ? 0 : 1;
}
