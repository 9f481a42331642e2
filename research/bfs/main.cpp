// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast-bfs: a breadth-first search that goes on where it was killed.
//
//   $ holdfast-bfs search.hf & sleep 1; kill -9 %1; holdfast-bfs search.hf
#include "../peer/pmdk.hpp"
#include "search.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>

namespace {

using namespace hf::apps::bfs;

int run(const state_options& options, const graph_description& wanted) {
    const graph searched(wanted);
    auto state = open_state(options, wanted);
    if (!state) {
        std::fprintf(stderr, "holdfast-bfs: %s\n", state.error().what().c_str());
        return 1;
    }
    const bool continued = (*state)->begun();
    std::puts(continued ? "continues" : "begins");
    std::fflush(stdout); // a test that kills it waits for the line
    const auto start = std::chrono::steady_clock::now();
    const auto found = search(searched, **state);
    if (!found) {
        std::fprintf(stderr, "holdfast-bfs: %s\n", found.error().what().c_str());
        return 1;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    nlohmann::ordered_json out;
    out["continued"] = continued;
    out["reached"] = found->reached;
    out["depth"] = found->depth;
    out["checksum"] = found->checksum;
    out["pushed"] = found->pushed;
    out["popped"] = found->popped;
    out["seconds"] = seconds.count();
    std::puts(out.dump().c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    state_options options;
    graph_description wanted;
    std::string mode = "process";
    CLI::App app("Breadth-first search with a durable queue: kill it, and start it again",
                 "holdfast-bfs");
    app.add_option("pool", options.path, "The search's file; made when missing")->required();
    app.add_option("--engine", options.engine)
        ->check(CLI::IsMember({"mod", "pmdk", "volatile"}))
        ->capture_default_str();
    app.add_option("--mode", mode, "What it survives: process (kill -9) or pmem (power loss)")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    app.add_option("--nodes", wanted.nodes, "Of the graph, which is made anew in every run")
        ->check(CLI::Range(1U, 1U << 30))
        ->capture_default_str();
    app.add_option("--edges", wanted.edges)->check(CLI::Range(0U, 1U << 30))->capture_default_str();
    app.add_option("--seed", wanted.seed, "Of the graph")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    options.power = mode == "pmem";
    if (options.engine == "pmdk") hf::apps::pmdk::restart_for_pmdk(options.power, argv);
    return run(options, wanted);
}
