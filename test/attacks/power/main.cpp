// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool in mode power has, whatever its disk holds after a failure, every update that was
// promised, and of those behind them a first part. Method: a map is made and changed, and what the
// library asks of the file system recorded; every state of device.hpp after every event is opened
// with the library itself, and read. Some are recorded anew while they recover and are worked on,
// and torn again.
//
// usage: power_ENGINE [--states N] [--sector BYTES]
#include "device.hpp"
#include <open/pool_impl.hpp>
#include <structures/hash_map.hpp>

#include <holdfast/engines.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/swap.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::power_test;

using value = std::array<std::uint64_t, 4>;
using volatile_map = std::map<std::uint64_t, std::uint64_t>;
using section_map = structures::hash_map<std::uint64_t, value>;
using mod_map = mod::map<std::uint64_t, value>;

constexpr unsigned updates = 14;
#if defined(HF_POWER_SIMPO)
constexpr bool uses_simpo = true;
#else
constexpr bool uses_simpo = false;
#endif
constexpr bool uses_mod = engine_of_build() == "none" && !uses_simpo;
/// Every second update is one of a container's, between sections.
constexpr bool uses_both = engine_of_build() == "undo" || engine_of_build() == "auto";

/// What sections of an engine change: a map, and so many words on lines of their own that a batch
/// has no room for them, and the log of a section that changes all of them none in its lane.
struct changed {
    section_map map;
    std::array<std::uint64_t, 2400> wide;
};
constexpr std::uint64_t wide_key = 99; // in the model
bool fills(unsigned n) { return !uses_simpo && n == (uses_both ? 7 : 6); }
[[maybe_unused]] HF_TXFUNC void fill(changed* c, std::uint64_t with) noexcept {
    for (std::uint64_t& word : c->wide) word = with;
}

/// What MOD's updates change: a map, and a vector that some of them change as well, some alone. One
/// brings so many keys that no batch has room for their nodes.
struct containers {
    static constexpr std::uint64_t first_wide = 1000, wide_count = 400;
    mod_map map;
    mod::vector<std::uint64_t> vector;
};
constexpr std::uint64_t in_vector = 200, elements = 40; // in the model: those of the vector
bool by_mod(unsigned n) { return uses_mod || (uses_both && n % 2 == 0); }
bool sets_alone(unsigned n) { return by_mod(n) && n % 7 == 2; }
bool swaps_alone(unsigned n) { return by_mod(n) && n % 7 == 5; }
bool changes_both(unsigned n) { return by_mod(n) && n % 3 == 1; }

/// A persistent object, which after some updates goes to a file.
class table {
public:
    static constexpr simpo::class_name simpo_class{"table", 1};
    void set(std::uint64_t key, value to) noexcept { cells_[key % cells_.size()] = to; }
    void erase(std::uint64_t key) noexcept { cells_[key % cells_.size()] = {}; }
    value get(std::uint64_t key) const { return cells_[key]; }

private:
    std::array<value, 5> cells_{};
};

std::string directory, path, swapped; // the last: where an object goes
std::uint64_t states = 0, nested = 0, killed = 0, violations = 0;

/// Update 'n', of the pool's map and of the model.
std::uint64_t key_of(unsigned n) { return n * 7 % 5 + (uses_both && by_mod(n) ? 20 : 0); }
bool erases(unsigned n) { return n % 4 == 3; }
value value_of(unsigned n) { return {n, n + 1, n + 2, n + 3}; }
void apply(volatile_map& to, unsigned n) {
    if (fills(n)) to[wide_key] = n;
    else if (sets_alone(n)) to[in_vector + n % 4] = n;
    else if (swaps_alone(n)) std::swap(to[in_vector], to[in_vector + elements - 1]);
    else if (changes_both(n)) to[key_of(n)] = to[in_vector + n % 4] = n;
    else if (erases(n)) to.erase(key_of(n));
    else to[key_of(n)] = n;
}
volatile_map after(unsigned n) {
    volatile_map made;
    if (uses_mod || uses_both)
        for (std::uint64_t i = 0; i < elements; ++i) made[in_vector + i] = 0;
    for (unsigned i = 1; i <= n; ++i) apply(made, i);
    return made;
}

class opened {
public:
    explicit opened(std::uint64_t create_bytes = 256_KiB) {
        open_options options;
        options.layout = "power/1";
        options.create_bytes = create_bytes;
        options.max_bytes = 4_MiB;
        options.max_threads = 2;
        options.mode = mode::power;
        options.expert.guard_signals = false;
        options.engines = engines_of_build();
        if constexpr (uses_mod) options.engines = {mod::engine()};
        if constexpr (uses_both) options.engines.push_back(mod::engine());
        if constexpr (uses_simpo) options.engines = {simpo::engine()};
        auto made = pool::open(path, options);
        if (!made) {
            why = made.error().what();
            return;
        }
        pool_.emplace(std::move(*made));
        if constexpr (uses_mod || uses_both) open_containers();
        if constexpr (uses_mod) {
            return;
        } else if constexpr (uses_simpo) {
            if (const status s = simpo::swap_to(*pool_, swapped); !s.ok()) {
                why = s.what();
                return;
            }
            auto there = simpo::object<table>::find(*pool_, "table");
            if (!there) // with a log so short that checkpoints come of themselves
                there = simpo::object<table>::create(*pool_, "table", simpo::object_options{1_KiB});
            if (!there) why = there.error().what();
            else object_.emplace(*there);
        } else {
            section_ = pool_->root<changed>();
            if (section_ == nullptr) why = "the pool is full";
        }
    }
    bool ok() const { return why.empty(); }
    bool update(unsigned n) {
        if (by_mod(n)) return update_containers(n);
        if constexpr (uses_mod) return false;
        else if constexpr (uses_simpo) {
            if (erases(n)) object_->defer<&table::erase>(key_of(n));
            else object_->defer<&table::set>(key_of(n), value_of(n));
            object_->sync();
            return n % 4 != 0 || simpo::swap_out(*pool_, "table").ok(); // the next brings it back
        } else if (fills(n)) return fill(section_, n), true;
        else if (erases(n)) return section_->map.erase(key_of(n)), true;
        else return section_->map.insert(key_of(n), value_of(n));
    }
    volatile_map content() {
        volatile_map found;
        const auto add = [&](std::uint64_t key, const value& v) {
            for (unsigned i = 1; i < v.size(); ++i)
                if (v[i] != v[0] + i) why = "a value is torn";
            found[key] = v[0];
        };
        if constexpr (uses_mod || uses_both) {
            std::uint64_t wide = 0;
            for (const auto& [key, v] : mod_->map)
                if (key < containers::first_wide) add(key, v);
                else if (found[wide_key] = v[0]; ++wide != 0 && v[1] != v[0] + 1)
                    why = "a value is torn";
            if (wide != 0 && wide != containers::wide_count) why = "a large update is torn";
            if (!mod::store::in(*pool_).verify().ok()) why = "a container is damaged";
            for (std::uint64_t i = 0; i < mod_->vector.size(); ++i)
                found[in_vector + i] = mod_->vector[i];
        }
        if constexpr (uses_mod) {
            return found;
        } else if constexpr (uses_simpo) {
            for (std::uint64_t key = 0; key < 5; ++key)
                if (const value v = object_->call<&table::get>(key); v != value{}) add(key, v);
        } else {
            section_->map.for_each(add);
            if (!section_->map.check()) why = "the map is damaged";
            if (section_->wide[0] != 0) found[wide_key] = section_->wide[0];
            for (const std::uint64_t word : section_->wide)
                if (word != section_->wide[0]) why = "a section that changed much is torn";
        }
        return found;
    }
    pool& in() { return *pool_; }
    void abandon() {
        mod_.reset();
        if (pool_) pool::impl::abandon(std::move(*pool_));
        pool_.reset();
    }

    std::string why;

private:
    void open_containers() {
        auto map = mod_map::open(*pool_, {.name = "map"});
        auto vector = mod::vector<std::uint64_t>::open(*pool_, {.name = "vector"});
        if (!map) why = map.error().what();
        else if (!vector) why = vector.error().what();
        if (!ok()) return;
        mod_.emplace(std::move(*map), std::move(*vector));
        mod_->map.set_durability(mod::durability::on_return);
        mod_->vector.set_durability(mod::durability::on_return);
        // A pool without them belongs to no update.
        const std::vector<std::uint64_t> zeros(elements);
        if (mod_->vector.empty() && !mod_->vector.append_range(zeros).ok())
            why = "the vector has no room";
    }
    bool update_containers(unsigned n) {
        mod_map& map = mod_->map;
        if (sets_alone(n)) return mod_->vector.set(n % 4, n).ok();
        if (swaps_alone(n)) return mod_->vector.swap(0, elements - 1).ok();
        if (changes_both(n))
            return mod::update(std::tie(map, mod_->vector),
                               [n](auto& in_map, auto& in_vector) {
                                   in_map.insert_or_assign(key_of(n), value_of(n));
                                   in_vector.set(n % 4, n);
                               })
                .ok();
        if (fills(n))
            return map
                .update([n](auto& to) {
                    for (std::uint64_t i = 0; i < containers::wide_count; ++i)
                        to.insert_or_assign(containers::first_wide + i, value_of(n));
                })
                .ok();
        return erases(n) ? map.erase(key_of(n)).operator bool()
                         : map.insert_or_assign(key_of(n), value_of(n)).operator bool();
    }

    std::optional<pool> pool_;
    std::optional<containers> mod_;
    std::optional<simpo::object<table>> object_;
    changed* section_ = nullptr;
};

/// Puts a state of the disk in place. The pool's own file stays the file that it was.
bool put_in_place(const names& there) {
    const auto pool_there = there.find(path);
    if (pool_there == there.end()) return false;
    std::set<std::string> all{path, path + "-power"};
    for (const auto& each : there) all.insert(each.first);
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(swapped, none))
        all.insert(each.path());
    for (const auto& name : all) {
        const auto found = there.find(name);
        if (found == there.end()) {
            ::unlink(name.c_str());
            continue;
        }
        const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const auto bytes = static_cast<ssize_t>(found->second.size());
        const bool written = fd >= 0 && ::ftruncate(fd, bytes) == 0 &&
                             ::pwrite(fd, found->second.data(), found->second.size(), 0) == bytes;
        ::close(fd);
        if (!written) std::perror("power"), std::exit(2);
    }
    return true;
}

void violated(const char* what, std::uint64_t event, const std::string& why) {
    if (++violations <= 5)
        std::printf("violation: %s, after event %llu: %s\n", what,
                    static_cast<unsigned long long>(event), why.c_str());
}

unsigned found_after(opened& o, std::uint64_t promised, unsigned ahead, std::uint64_t event) {
    const volatile_map found = o.content();
    if (!o.ok()) violated("content", event, o.why);
    for (auto n = static_cast<unsigned>(promised); n <= promised + ahead && n <= updates + 4; ++n)
        if (found == after(n)) return n;
    violated("content", event,
             "what is there is no first part of the updates that has all that were promised");
    return UINT_MAX;
}

/// Events of files that have other numbers now.
std::vector<file_event> renumbered(std::vector<file_event> events,
                                   const std::map<std::string, std::uint64_t>& inodes) {
    struct stat about{};
    for (const auto& [name, its] : inodes)
        if (::stat(name.c_str(), &about) == 0)
            for (file_event& e : events)
                if (about.st_ino == e.inode) e.inode = its;
    return events;
}

/// Looks at the states of a disk that has seen 'before' and then, one after the other, 'events'.
/// 'ahead': so many updates beside the promised ones may have happened. 'further': of so many
/// states one is torn again; 0: none.
void explore(const std::vector<file_event>& before, const std::vector<file_event>& events,
             std::uint64_t promised_at_end, unsigned ahead, std::uint64_t sector_bytes,
             unsigned states_max, std::uint64_t further) {
    device disk(sector_bytes, states_max);
    for (const file_event& e : before) disk.take(e);
    for (std::size_t i = 0; i < events.size(); ++i) {
        disk.take(events[i]);
        const std::uint64_t promised =
            i + 1 < events.size() ? events[i + 1].promised : promised_at_end;
        disk.visit([&](const names& there) {
            ++states;
            if (violations > 20) return;
            if (!put_in_place(there)) {
                if (promised != 0) violated("names", i, "the pool is gone");
                return;
            }
            const bool again = further != 0 && states % further == 0;
            if (again) record();
            opened o;
            const auto recovery = again ? stop() : std::vector<file_event>{};
            if (!o.ok()) return violated("open", i, o.why);
            const unsigned n = found_after(o, promised, ahead, i);
            o.abandon();
            if (!again || n == UINT_MAX) return;
            // Recovery, torn: what it found stays. The device begins with the state, all of it
            // durable.
            ++nested;
            std::vector<file_event> state;
            std::uint64_t inode = std::uint64_t{1} << 60; // no file's
            std::map<std::string, std::uint64_t> inodes;
            for (const auto& [name, bytes] : there) {
                inodes[name] = inode;
                state.push_back({file_event::write, inode, 0, bytes, {}});
                state.push_back({file_event::sync, inode, 0, {}, {}});
                state.push_back({file_event::link, inode, 0, {}, name});
                ++inode;
            }
            state.push_back({file_event::sync_directory, 0, 0, {}, {}});
            std::vector<file_event> torn = renumbered(recovery, inodes);
            for (file_event& e : torn) e.promised = n;
            explore(state, torn, n, 0, sector_bytes, 4, 0);
        });
    }
}

/// Kills the process after each of 'events': the next one finds what no sync has covered, recovers,
/// makes an update, and then the power fails.
void kill_after_each(const std::vector<file_event>& events, std::uint64_t promised_at_end,
                     unsigned ahead, std::uint64_t sector_bytes) {
    device disk(sector_bytes, 1);
    std::map<std::string, std::uint64_t> inodes;
    for (std::size_t i = 0; i < events.size(); ++i) {
        const file_event& e = events[i];
        disk.take(e);
        if (e.what == file_event::link) inodes[e.name] = e.inode;
        if (e.what == file_event::unlink) inodes.erase(e.name);
        if (violations > 20 || !put_in_place(disk.seen())) continue;
        const std::uint64_t promised =
            i + 1 < events.size() ? events[i + 1].promised : promised_at_end;
        record();
        opened o;
        if (!o.ok()) {
            violated("open after a kill", i, o.why);
            continue;
        }
        const unsigned n = found_after(o, promised, ahead, i) + 1;
        if (n == 0) continue;
        if (!o.update(n)) violated("an update after a kill", i, "refused");
        std::vector<file_event> recovery = renumbered(stop(), inodes);
        o.abandon();
        ++killed;
        for (file_event& each : recovery) each.promised = promised;
        explore({events.begin(), events.begin() + static_cast<std::ptrdiff_t>(i) + 1}, recovery, n,
                n - static_cast<unsigned>(promised), sector_bytes, 6, 0);
    }
}

} // namespace

int main(int argc, char** argv) {
    unsigned states_max = 6;
    std::uint64_t sector_bytes = 4096;
    for (int i = 1; i + 1 < argc; i += 2)
        if (std::strcmp(argv[i], "--states") == 0)
            states_max = static_cast<unsigned>(std::atoi(argv[i + 1]));
        else sector_bytes = static_cast<std::uint64_t>(std::atoi(argv[i + 1]));
    char pattern[] = "/dev/shm/hf_power.XXXXXX";
    if (::mkdtemp(pattern) == nullptr) return 2;
    directory = pattern;
    path = directory + "/pool.hf";
    swapped = directory + "/swapped";
    std::FILE* const errors = std::freopen("/dev/null", "w", stderr);
    (void)errors;
    for (const unsigned together : {1U, 4U}) {
        record();
        {
            opened o;
            if (!o.ok()) return std::printf("cannot begin: %s\n", o.why.c_str()), 2;
            for (unsigned n = 1; n <= updates;) {
                std::optional<durable_together> group;
                if (together > 1) group.emplace(o.in());
                unsigned end = std::min(updates + 1, n + together);
                for (; n < end; ++n)
                    if (!o.update(n)) return std::printf("update %u failed\n", n), 2;
                group.reset();
                promise(end - 1);
            }
            if (together > 1) o.abandon();
        } // or closed, cleanly
        const std::vector<file_event> events = stop();
        std::printf("%s: %zu events\n", together > 1 ? "in groups" : "one by one", events.size());
        explore({}, events, updates, together, sector_bytes, states_max, together > 1 ? 31 : 37);
        kill_after_each(events, updates, together, sector_bytes);
        ::unlink(path.c_str());
        ::unlink((path + "-power").c_str());
        std::filesystem::remove_all(swapped);
    }
    ::rmdir(directory.c_str());
    std::printf("engine %s: %llu states, %llu recovered and torn again, %llu kills and torn then, "
                "%llu violations\n",
                uses_mod     ? "mod"
                : uses_simpo ? "simpo"
                             : std::string(engine_of_build()).c_str(),
                static_cast<unsigned long long>(states), static_cast<unsigned long long>(nested),
                static_cast<unsigned long long>(killed),
                static_cast<unsigned long long>(violations));
    return violations == 0 && nested != 0 && killed != 0 ? 0 : 1;
}
