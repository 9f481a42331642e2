// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// simpo_applications NAME: SIMPO's applications (§4.2, §4.3), native and persistent in turns,
// killed halfway and gone on with. Prints one JSON object. A program of its own: a BLAS starts
// threads in whatever it is linked with.
#include "driver.hpp"
#include "numeric.hpp"
#include "recovery.hpp"
#include "structures.hpp"
#include "training.hpp"
#if defined(HF_WITH_BZ2)
#include "zip.hpp"
#endif
#if defined(HF_WITH_BDB)
#include "stock_level.hpp"
#endif

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <zlib.h>

namespace hf::bench {

digit_images read_digits(const std::string& path) {
    const gzFile file = ::gzopen(path.c_str(), "rb");
    if (file == nullptr)
        give_up("no " + path +
                ": it is in Debian's python3-sklearn and in the wheel of scikit-learn");
    digit_images out;
    std::array<char, 1024> line;
    while (out.count < digit_images::count_max &&
           ::gzgets(file, line.data(), static_cast<int>(line.size())) != nullptr) {
        const char* at = line.data();
        const char* const end = at + std::strlen(at);
        for (std::size_t i = 0; i <= digit_images::pixels; ++i) {
            std::uint8_t value = 0;
            const auto [next, wrong] = std::from_chars(at, end, value);
            if (wrong != std::errc{} || value > 16) give_up(path + ": not 65 numbers in a line");
            (i < digit_images::pixels ? out.pixel[out.count][i] : out.shows[out.count]) = value;
            at = next == end ? next : next + 1;
        }
        ++out.count;
    }
    ::gzclose(file);
    if (out.count == 0) give_up(path + ": empty");
    return out;
}

namespace {

using nlohmann::ordered_json;

std::string digits_path(const app_settings& how) {
    return how.data.empty() ? "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
                            : how.data;
}

ordered_json run_logistic(const app_settings& how) {
    training<logistic_model> app(read_digits(digits_path(how)), how.size == 0 ? 40 : how.size);
    ordered_json out = measure("logistic", app, how);
    native_object<logistic_model> trained(app.make_native());
    app.run(trained, 0, app.steps());
    out["accuracy_on_what_it_learnt"] = trained.call<&logistic_model::accuracy>();
    return out;
}

/// Trains a model whose error falls.
template <class Model>
ordered_json run_model(const char* name, std::uint64_t epochs, const app_settings& how) {
    training<Model> app(read_digits(digits_path(how)), how.size == 0 ? epochs : how.size);
    ordered_json out = measure(name, app, how);
    native_object<Model> trained(app.make_native());
    out["error_before"] = trained.template call<&Model::error>();
    app.run(trained, 0, app.steps());
    out["error_after"] = trained.template call<&Model::error>();
    return out;
}

ordered_json run_floyd(const app_settings& how) {
    floyd_warshall app;
    return measure("floyd", app, how);
}

#if defined(HF_WITH_BLAS)
ordered_json run_linpack(const app_settings& how) {
    ::openblas_set_num_threads(1);
    linpack app(how.size == 0 ? 150 : how.size);
    return measure("linpack", app, how);
}
#endif

#if defined(HF_WITH_BZ2)
ordered_json run_zip(const app_settings& how) {
    const std::string path = how.data.empty() ? "/usr/share/dict/american-english" : how.data;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (text.str().empty()) give_up("no " + path + ": it is in Debian's wamerican");
    parallel_zip app(text.str(), how.size == 0 ? 3 : how.size);
    return measure("bzip2", app, how);
}
#endif

template <class Structure> ordered_json run_structure(const char* name, const app_settings& how) {
    structure_calls<Structure> app(how.size == 0 ? 200'000 : how.size);
    return measure(name, app, how);
}

using runner = std::function<ordered_json(const app_settings&)>;
std::map<std::string, runner> applications() {
    std::map<std::string, runner> all{{"logistic", run_logistic}, {"floyd", run_floyd}};
    all["rbm"] = [](const auto& how) { return run_model<boltzmann_machine>("rbm", 4, how); };
    all["autoencoder"] = [](const auto& how) {
        return run_model<autoencoder>("autoencoder", 20, how);
    };
#if defined(HF_WITH_BLAS)
    all["linpack"] = run_linpack;
#endif
#if defined(HF_WITH_BZ2)
    all["bzip2"] = run_zip;
#endif
#if defined(HF_WITH_BDB)
    all["stock_level"] = run_stock_level;
#endif
    all["recovery"] = run_recovery;
    all["array"] = [](const auto& how) { return run_structure<tried_array>("array", how); };
    all["queue"] = [](const auto& how) { return run_structure<tried_queue>("queue", how); };
    all["heap"] = [](const auto& how) { return run_structure<tried_heap>("heap", how); };
    all["stack"] = [](const auto& how) { return run_structure<tried_stack>("stack", how); };
    all["tree"] = [](const auto& how) { return run_structure<tried_tree>("tree", how); };
    all["graph"] = [](const auto& how) { return run_structure<tried_graph>("graph", how); };
    return all;
}

} // namespace
} // namespace hf::bench

int main(int argc, char** argv) {
    using namespace hf::bench;
    CLI::App command{"SIMPO's applications, native and persistent in turns"};
    app_settings how;
    std::string name;
    const auto all = applications();
    std::vector<std::string> names;
    for (const auto& each : all) names.push_back(each.first);
    command.add_option("name", name)->required()->check(CLI::IsMember(names));
    command.add_option("--mode", how.mode, "durability: process, pmem or power")
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    command.add_option("--rounds", how.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
    command.add_option("--size", how.size,
                       "epochs, multiplications, times the text, calls; 0: its own");
    command.add_option("--log-bytes", how.log_bytes)
        ->check(CLI::Range(std::uint64_t{1024}, std::uint64_t{1} << 30))
        ->capture_default_str();
    command.add_option("--crash-at", how.crash_at, "of the steps, the part before the crash")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    command.add_option("--data", how.data, "digits.csv.gz, or a text");
    command.add_option("--dir", how.directory, "where the pool goes")->capture_default_str();
    CLI11_PARSE(command, argc, argv);
    fmt::print("{}\n", all.at(name)(how).dump());
}
