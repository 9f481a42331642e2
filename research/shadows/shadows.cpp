// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an update of a container of engine mod takes beyond the version that it was made of (MOD
// §6.5): containers are filled, a thousand updates are made of one version, each apart, and all of
// them are kept while nodes are counted. Prints one JSON object. A container whose update takes a
// hundredth of the container or more is counted under "unshared".
#include <holdfast/author/mod/store.hpp>
#include <holdfast/holdfast.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

namespace mod = hf::mod;
using value = std::array<std::byte, 32>; // as in MOD's Table 2
using key = std::uint64_t;

struct asked {
    std::uint64_t elements = 1000000;
    unsigned updates = 1000, seed = 1;
    std::string directory = "/dev/shm";
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "bench_shadows: %s\n", why.c_str());
    std::_Exit(1);
}
void must(const hf::status& done) {
    if (!done.ok()) fail(done.what());
}
template <class T> T must(hf::result<T> done) {
    if (!done) fail(done.error().what());
    return std::move(*done);
}

/// Bytes of the nodes that any version needs.
std::uint64_t node_bytes(hf::pool& in) {
    must(mod::store::in(in).collect());
    return mod::store::in(in).account().node_bytes;
}

/// A container of its own name, and a thousand versions of it that differ by one update each.
template <class Container, class Fill, class Update>
nlohmann::ordered_json measured(hf::pool& in, const asked& a, const char* name, Fill&& fill,
                                Update&& update) {
    const std::uint64_t before = node_bytes(in);
    auto container = must(Container::open(in, {name}));
    must(container.update([&](auto& batch) {
        for (std::uint64_t i = 0; i < a.elements; ++i) fill(batch, i);
    }));
    const auto old = container.snapshot();
    const std::uint64_t filled = node_bytes(in);
    std::minstd_rand random(a.seed);
    std::vector<typename Container::version> versions;
    for (unsigned i = 0; i < a.updates; ++i) versions.push_back(update(old, random() % a.elements));
    const std::uint64_t kept = node_bytes(in);
    const double of_one = static_cast<double>(kept - filled) / a.updates;
    const auto bytes = static_cast<double>(filled - before);
    return {{"bytes", bytes}, {"bytes_of_an_update", of_one}, {"part", of_one / bytes}};
}

} // namespace

int main(int argc, char** argv) {
    asked a;
    CLI::App app{"Memory of an update beyond the version that it was made of"};
    app.add_option("--elements", a.elements)
        ->check(CLI::Range(1000, 10000000))
        ->capture_default_str();
    app.add_option("--updates", a.updates)->check(CLI::Range(1, 100000))->capture_default_str();
    app.add_option("--seed", a.seed, "of what is updated")->capture_default_str();
    app.add_option("--dir", a.directory)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    const std::string path = a.directory + "/hf_shadows." + std::to_string(::getpid());
    nlohmann::ordered_json of;
    {
        hf::open_options options;
        options.layout = "bench/shadows/1";
        options.create_bytes = (std::uint64_t{64} << 20) + 512 * a.elements;
        options.max_bytes = 8 * options.create_bytes;
        options.mode = hf::mode::process;
        options.engines = {mod::engine()};
        options.expert.seal = false;
        hf::pool in = must(hf::pool::open(path, options));
        of["map"] = measured<mod::map<key, value>>(
            in, a, "map", [](auto& to, key i) { to.insert(i, value{}); },
            [](const auto& old, key i) { return old.insert_or_assign(i, value{std::byte{1}}); });
        of["set"] = measured<mod::set<key>>(
            in, a, "set", [](auto& to, key i) { to.insert(i); },
            [&](const auto& old, key i) { return old.insert(a.elements + i); });
        of["vector"] = measured<mod::vector<key>>(
            in, a, "vector", [](auto& to, key i) { to.push_back(i); },
            [](const auto& old, key i) { return old.set(i, i + 1); });
        of["stack"] = measured<mod::stack<key>>(
            in, a, "stack", [](auto& to, key i) { to.push(i); },
            [](const auto& old, key i) { return old.push(i); });
        of["queue"] = measured<mod::queue<key>>(
            in, a, "queue", [](auto& to, key i) { to.push(i); },
            [](const auto& old, key i) { return old.push(i); });
    }
    ::unlink(path.c_str());
    unsigned unshared = 0;
    for (const auto& [name, one] : of.items()) unshared += one["part"] >= 0.01;
    std::printf("%s\n", nlohmann::ordered_json{{"name", "shadows"},
                                               {"elements", a.elements},
                                               {"updates", a.updates},
                                               {"unshared", unshared},
                                               {"containers", of}}
                            .dump()
                            .c_str());
    return 0;
}
