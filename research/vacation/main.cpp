// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast-vacation: a travel agency whose clients' requests survive kill -9.
//
//   $ holdfast-vacation agency.hf & sleep 1; kill -9 %1; holdfast-vacation agency.hf --requests 0
#include "../peer/builds.hpp"
#include "../peer/journal.hpp"
#include "../peer/measured.hpp"
#include "../peer/pmdk.hpp"
#include "agency.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace {

using namespace hf::apps::vacation;

struct settings {
    table_options tables;
    agency_options agency;
    std::uint64_t first = 0;
    std::uint64_t requests = 1'000'000;
    std::string journal;
};

int refuse(const std::string& why) {
    std::fprintf(stderr, "holdfast-vacation: %s\n", why.c_str());
    return 1;
}

int run(const settings& given) {
    volatile std::uint64_t* const answered = hf::apps::open_journal(given.journal);
    if (answered == nullptr) return refuse("cannot open " + given.journal);
    const auto opened = open_tables(given.tables);
    if (!opened) return refuse(opened.error().what());
    agency office(**opened, given.agency);
    std::puts("opens");
    std::fflush(stdout); // a test that kills it waits for the line
    if (const auto done = office.open_for_business(); !done.ok()) return refuse(done.what());
    const hf::apps::measured spent;
    for (std::uint64_t t = given.first; t < given.first + given.requests; ++t) {
        if (const auto done = office.request(t); !done.ok()) return refuse(done.what());
        *answered = t + 1;
    }
    nlohmann::ordered_json out;
    spent.add_to(out, given.requests);
    const agency::report seen = office.look();
    if (!seen.wrong.empty()) return refuse("inconsistent: " + seen.wrong);
    out["rows"] = seen.rows;
    out["customers"] = seen.customers;
    out["reservations"] = seen.reservations;
    out["digest"] = seen.digest;
    std::puts(out.dump().c_str());
    return 0;
}

void declare(CLI::App& app, settings& to, std::string& mode) {
    app.add_option("pool", to.tables.path, "The agency's file; made when missing")->required();
#define HF_NAME(build) #build,
    app.add_option("--engine", to.tables.engine)
        ->check(CLI::IsMember({HF_APPLICATION_BUILDS(HF_NAME) "mod", "pmdk", "volatile"}))
        ->capture_default_str();
    app.add_option("--tree", to.tables.tree, "Of engines with sections: red-black or AVL")
        ->check(CLI::IsMember({"rb", "avl"}))
        ->capture_default_str();
    app.add_option("--mode", mode, "What it survives: process (kill -9) or pmem (power loss)")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    app.add_option("--requests", to.requests)->capture_default_str();
    app.add_option("--first", to.first, "Number of the first request")->capture_default_str();
    app.add_option("--relations", to.agency.relations, "Rows of each map in the beginning")
        ->check(CLI::Range(1U, 1U << 24))
        ->capture_default_str();
    app.add_option("--queries", to.agency.queries, "Offers that a request looks at, at most")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    app.add_option("--query-percent", to.agency.query_percent, "Share of the rows asked for")
        ->check(CLI::Range(1U, 100U))
        ->capture_default_str();
    app.add_option("--user-percent", to.agency.user_percent, "Share of requests that reserve")
        ->check(CLI::Range(0U, 100U))
        ->capture_default_str();
    app.add_option("--seed", to.agency.seed)->capture_default_str();
    app.add_flag("--prefault", to.tables.prefault, "Touch the file's pages first");
    app.add_option("--journal", to.journal, "File to count the answered requests in");
}

} // namespace

int main(int argc, char** argv) {
    settings given;
    std::string mode = "process";
    CLI::App app("A travel agency over four recoverable maps: kill it, and look whether its books "
                 "balance",
                 "holdfast-vacation");
    declare(app, given, mode);
    CLI11_PARSE(app, argc, argv);
    given.tables.power = mode == "pmem";
    given.tables.rows = given.agency.relations;
    if (given.tables.engine == "pmdk") hf::apps::pmdk::restart_for_pmdk(given.tables.power, argv);
    return run(given);
}
