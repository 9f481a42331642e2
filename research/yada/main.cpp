// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast-yada: a mesh in a file, refined until no angle is too small. Kill it, start it again:
//
//   $ holdfast-yada mesh.hf --angle 30 & sleep 0.1; kill -9 %1; holdfast-yada mesh.hf --angle 30
#include "../peer/journal.hpp"
#include "../peer/measured.hpp"
#include "refinement.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace {

using namespace hf::apps::yada;

struct settings {
    mesh_options mesh;
    std::string engine = "auto";
    std::uint64_t seed = 1;
    std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
    std::string elements_file, journal;
};

/// CLI::Range lets 'nan' pass.
std::string is_number(const std::string& text) {
    return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is not a number" : "";
}

int refuse(const std::string& why) {
    std::fprintf(stderr, "holdfast-yada: %s\n", why.c_str());
    return 1;
}

void describe(nlohmann::ordered_json& out, const mesh& at, const mesh_report& seen) {
    out["elements"] = seen.elements;
    out["points"] = seen.points;
    out["segments"] = seen.segments;
    out["bad"] = seen.bad;
    out["sharp"] = seen.sharp;
    out["smallest_degrees"] = seen.smallest_degrees;
    out["processed"] = at.processed;
    out["left"] = at.left;
    out["digest"] = seen.digest;
}

int run(const settings& given) {
    volatile std::uint64_t* const answered = hf::apps::open_journal(given.journal);
    if (answered == nullptr) return refuse("cannot open " + given.journal);
    const auto opened = open_mesh(given.engine, given.mesh);
    if (!opened) return refuse(opened.error().what());
    refinement& work = **opened;
    std::puts("opens");
    std::fflush(stdout); // a test that kills it waits for the line
    while (work.seen().placed < given.mesh.points)
        if (work.place(input_point(given.seed, work.seen().placed)) == outcome::pool_full)
            return refuse("the pool is full: give another file, with fewer points");
    nlohmann::ordered_json out{{"engine", given.engine}, {"angle", given.mesh.degrees}};
    const mesh_report input = look(work.seen());
    if (!input.wrong.empty()) return refuse("inconsistent before refinement: " + input.wrong);
    describe(out["before"], work.seen(), input);
    const hf::apps::measured spent;
    std::uint64_t steps = 0;
    outcome how = outcome::refined;
    while (steps < given.steps && (how = work.refine()) != outcome::done) {
        if (how == outcome::pool_full) return refuse("the pool is full: no element was lost");
        *answered = work.seen().processed;
        ++steps;
    }
    nlohmann::ordered_json spent_on;
    spent.add_to(spent_on, steps);
    const mesh_report seen = look(work.seen());
    if (!seen.wrong.empty()) return refuse("inconsistent: " + seen.wrong);
    if (!given.elements_file.empty() && !write_elements(work.seen(), given.elements_file))
        return refuse("cannot write " + given.elements_file);
    describe(out["after"], work.seen(), seen);
    out.update(spent_on);
    std::puts(out.dump().c_str());
    return 0;
}

void declare(CLI::App& app, settings& to, std::string& mode) {
    app.add_option("pool", to.mesh.path, "The mesh's file; made when missing")->required();
    app.add_option("--engine", to.engine)->capture_default_str();
    app.add_option("--mode", mode, "What it survives: process (kill -9) or pmem (power loss)")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    app.add_option("--angle", to.mesh.degrees, "The smallest that is allowed, in degrees")
        ->check(CLI::Range(1.0, 33.0))
        ->check(is_number)
        ->capture_default_str();
    app.add_option("--points", to.mesh.points, "Of the input, in a square")
        ->check(CLI::Range(0U, 1U << 24))
        ->capture_default_str();
    app.add_option("--seed", to.seed, "Of the input")->capture_default_str();
    app.add_option("--steps", to.steps, "Elements to refine, at most");
    app.add_option("--elements", to.elements_file, "File to write the elements' corners to");
    app.add_option("--journal", to.journal, "File to count the refined elements in");
    app.add_flag("--prefault", to.mesh.prefault, "Touch the file's pages first");
}

} // namespace

int main(int argc, char** argv) {
    settings given;
    std::string mode = "process";
    CLI::App app("A Delaunay mesh in a file, refined until no angle is too small", "holdfast-yada");
    declare(app, given, mode);
    CLI11_PARSE(app, argc, argv);
    given.mesh.mode = mode == "pmem" ? hf::mode::pmem : hf::mode::process;
    return run(given);
}
