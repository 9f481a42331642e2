// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: compaction keeps the contents of every kind of structure, in a pool as small as they are.
// After a refusal or a kill the pool is as before. Method: pools of each kind with most of it
// erased, families, shared parts, a kind of the user's own; contents, verification and bytes of the
// file before and after; kills at each step.
#include <mod/block_list.hpp>
#include <mod/compaction.hpp>
#include <mod/format.hpp>
#include <mod/test_support.hpp>
#include <pool/os_file.hpp>
#include <pool/test_support.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::literals;

using numbers = mod::map<std::uint64_t, std::uint64_t>;
using texts = mod::map<std::string, std::string>;
using ordered = mod::ordered_map<std::string, std::uint64_t>;
using ordered_texts = mod::ordered_map<std::uint64_t, std::string>;
using names = mod::set<std::string>;

std::string text(std::uint64_t n) {
    return "text " + std::to_string(n) + std::string(n % 7 == 0 ? 9000 : n % 50, 'x');
}

/// One of every structure.
struct everything {
    explicit everything(hf::pool& in)
        : a(*numbers::open(in, {"numbers"})), b(*texts::open(in, {"texts"})),
          c(*ordered::open(in, {"ordered"})), d(*ordered_texts::open(in, {"ordered texts"})),
          e(*names::open(in, {"names"})), f(*mod::vector<std::uint64_t>::open(in, {"vector"})),
          g(*mod::vector<std::string>::open(in, {"strings"})),
          h(*mod::stack<std::string>::open(in, {"stack"})),
          i(*mod::queue<std::string>::open(in, {"queue"})),
          j(*mod::queue<std::uint64_t>::open(in, {"long queue"})),
          k(*numbers::open(in, {"first", "pair", {"first", "second"}})),
          l(*texts::open(in, {"second", "pair", {"first", "second"}})) {}

    void add(std::uint64_t n) {
        EXPECT_TRUE(a.insert_or_assign(n, n * n));
        EXPECT_TRUE(b.insert_or_assign(text(n), text(n + 1)));
        EXPECT_TRUE(c.insert_or_assign(text(n), n));
        EXPECT_TRUE(d.insert_or_assign(n, text(n)));
        EXPECT_TRUE(e.insert(text(n)));
        EXPECT_TRUE(f.push_back(n).ok());
        EXPECT_TRUE(g.push_back(text(n)).ok());
        EXPECT_TRUE(h.push(text(n)).ok());
        EXPECT_TRUE(i.push(text(n)).ok());
        EXPECT_TRUE(j.push(n).ok());
        EXPECT_TRUE(k.insert_or_assign(n, n + 5));
        EXPECT_TRUE(l.insert_or_assign(text(n), text(n)));
    }
    void remove(std::uint64_t n) {
        EXPECT_TRUE(a.erase(n));
        EXPECT_TRUE(b.erase(text(n)));
        EXPECT_TRUE(c.erase(text(n)));
        EXPECT_TRUE(d.erase(n));
        EXPECT_TRUE(e.erase(text(n)));
        EXPECT_TRUE(f.pop_back().ok());
        EXPECT_TRUE(g.pop_back().ok());
        EXPECT_TRUE(h.pop());
        EXPECT_TRUE(i.pop());
        EXPECT_TRUE(j.pop());
        EXPECT_TRUE(k.erase(n));
        EXPECT_TRUE(l.erase(text(n)));
    }
    void fill(std::uint64_t made, std::uint64_t kept) {
        for (std::uint64_t n = 0; n < made; ++n) add(n);
        for (std::uint64_t n = kept; n < made; ++n) remove(n);
        // Leaves a record that names places.
        if (kept > 1) {
            EXPECT_TRUE(f.swap(0, 1).ok());
        }
    }
    /// A sum of all that can be read, in an order of its own.
    std::string shown() const {
        std::map<std::string, std::string> all;
        const auto put = [&](const char* which, const auto& key, const auto& value) {
            all[fmt::format("{} {}", which, key)] = fmt::format("{}", value);
        };
        for (const auto& [key, value] : a) put("a", key, value);
        for (const auto& [key, value] : b) put("b", key, value);
        for (const auto& [key, value] : c) put("c", key, value);
        for (const auto& [key, value] : d) put("d", key, value);
        for (const auto& key : e) put("e", key, 0);
        for (std::size_t n = 0; n < f.size(); ++n) put("f", n, f[n]);
        for (std::size_t n = 0; n < g.size(); ++n) put("g", n, g[n]);
        std::size_t n = 0;
        for (const auto& each : h) put("h", n++, each);
        for (const auto& each : i) put("i", n++, each);
        for (const auto& each : j) put("j", n++, each);
        for (const auto& [key, value] : k) put("k", key, value);
        for (const auto& [key, value] : l) put("l", key, value);
        std::string out;
        for (const auto& [key, value] : all) out += key + "=" + value + ";";
        return fmt::format("{} bytes, {:016x}", out.size(), checksum(out.data(), out.size(), 0));
    }

    numbers a;
    texts b;
    ordered c;
    ordered_texts d;
    names e;
    mod::vector<std::uint64_t> f;
    mod::vector<std::string> g;
    mod::stack<std::string> h;
    mod::queue<std::string> i;
    mod::queue<std::uint64_t> j;
    numbers k;
    texts l;
};

std::string said(const status& s) { return std::string(name(s.code())); }

class Compaction : public mod::test::PoolTest {
protected:
    result<mod::compact_report> compact(const copy_check& check = {}) {
        return mod::compact_pool(in.path(), in.how, check);
    }
    /// The pool verifies, has the same contents, and takes updates. Returns its contents after
    /// them.
    std::string expect_good(const std::string& held) {
        in.open();
        EXPECT_EQ(in.pool().recovered().sections_pending, 0U);
        const status sound = in.store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        everything all(in.pool());
        EXPECT_EQ(all.shown(), held);
        for (std::uint64_t n = 5000; n < 5100; ++n) all.add(n);
        for (std::uint64_t n = 5000; n < 5100; ++n) all.remove(n);
        EXPECT_TRUE(in.store().verify().ok());
        std::string now = all.shown();
        in.close();
        return now;
    }
    std::string make(std::uint64_t made, std::uint64_t kept) {
        in.make_new(GetParam());
        everything all(in.pool());
        all.fill(made, kept);
        return all.shown();
    }
};

TEST_P(Compaction, KeepsWhatEveryStructureHolds) {
    for (const std::uint64_t chunked : {1_MiB, 32_MiB}) { // chunks of 4 KiB, of 64 KiB
        in.how.create_bytes = chunked;
        const std::string held = make(1200, 150);
        in.close();
        const pool_header before = hf::test::read_header(in.path(), 0);
        const auto made = compact();
        ASSERT_TRUE(made) << made.error().what();
        EXPECT_LT(made->bytes_after, made->bytes_before / 2);
        EXPECT_GT(made->nodes, 1000U);
        const pool_header after = hf::test::read_header(in.path(), 0);
        EXPECT_EQ(std::memcmp(before.uuid, after.uuid, sizeof after.uuid), 0);
        EXPECT_EQ(before.base_address, after.base_address);
        EXPECT_EQ(before.max_bytes, after.max_bytes);
        EXPECT_EQ(before.generation, after.generation);
        EXPECT_EQ(after.open, 0U);
        const std::string then = expect_good(held);
        // It cannot become smaller than it is now.
        const auto again = compact();
        ASSERT_TRUE(again) << again.error().what();
        EXPECT_LE(again->bytes_after, made->bytes_after + 64_KiB);
        (void)expect_good(then);
    }
}

TEST_P(Compaction, TakesWhatAKillHasLeft) {
    const std::string held = make(300, 100);
    hf::pool::impl::abandon(std::move(in.pool()));
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    (void)expect_good(held);
}

/// The hazard: recovery completes an exchange from an old record, whose places now hold other data.
TEST_P(Compaction, IsWhatItWasWhenItIsKilledNext) {
    const auto records = [&] {
        const pool_file& file = *in.pool().internals().file;
        const auto* const super = reinterpret_cast<const mod::superblock*>(
            file.base() + file.roots()->anchor(engine_mod));
        return std::ranges::count_if(super->exchanges, &mod::exchange_record::number);
    };
    const std::string held = make(300, 100);
    EXPECT_NE(records(), 0);
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    in.open();
    EXPECT_EQ(records(), 0);
    hf::pool::impl::abandon(std::move(in.pool()));
    in.close();
    (void)expect_good(held);
}

TEST_P(Compaction, KeepsSharedPartsOfVectors) {
    in.make_new(GetParam());
    using strings = mod::vector<std::string>;
    auto one = in.get<strings>({"one"});
    auto other = in.get<strings>({"other"});
    for (std::uint64_t n = 0; n < 500; ++n) ASSERT_TRUE(one.push_back(text(n)).ok());
    ASSERT_TRUE(other.append(one.snapshot().take(333)).ok()); // a leaf at two counts
    ASSERT_TRUE(other.append(one.snapshot()).ok());
    ASSERT_TRUE(one.append(one.snapshot()).ok());
    const auto all = [&](const strings& of) {
        std::string out;
        for (std::size_t n = 0; n < of.size(); ++n) out += std::string(of[n]) + ";";
        return out;
    };
    const std::string first = all(one), second = all(other);
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_LT(made->nodes, 1000U); // shared, not unfolded
    in.open();
    EXPECT_TRUE(in.store().wait_for_trace().ok());
    EXPECT_TRUE(in.store().verify().ok());
    EXPECT_EQ(made->nodes, in.store().account().nodes) << "each has one place";
    EXPECT_EQ(all(in.get<strings>({"one"})), first);
    EXPECT_EQ(all(in.get<strings>({"other"})), second);
}

TEST_P(Compaction, OfAPoolWithoutAnythingIsAsSmallAsAPoolGets) {
    in.make_new(GetParam());
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->nodes, 0U);
    EXPECT_LT(made->bytes_after, made->bytes_before);
    (void)expect_good("0 bytes, " + fmt::format("{:016x}", checksum("", 0, 0)));
}

/// Values that look like refs are not changed.
TEST_P(Compaction, TellsRefsFromValuesThatLookLikeThem) {
    in.make_new(GetParam());
    auto all = in.get<mod::ordered_map<std::string, std::uint32_t>>();
    for (std::uint32_t n = 0; n < 20'000; ++n) ASSERT_TRUE(all.insert_or_assign(text(n), n * 3));
    for (std::uint32_t n = 0; n < 20'000; ++n)
        if (n % 5 != 0) {
            ASSERT_TRUE(all.erase(text(n)));
        }
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    in.open();
    EXPECT_TRUE(in.store().verify().ok());
    auto now = in.get<mod::ordered_map<std::string, std::uint32_t>>();
    EXPECT_EQ(now.size(), 4000U);
    for (const auto& [key, value] : now) EXPECT_EQ(text(value / 3), key);
}

namespace list = mod::block_list;
[[maybe_unused]] const bool kind_known = (mod::add_kind(list::kind), true);

TEST_P(Compaction, KeepsAUsersOwnStructure) {
    in.make_new(GetParam());
    mod::root& of = **in.store().open({"list"}, list::kind, 0);
    for (std::uint64_t n = 0; n < 3000; ++n)
        ASSERT_TRUE(list::updated(of, [&](mod::shadow& s, std::uint64_t word) {
                        const std::uint64_t like = list::first_of(word); // a value like its ref
                        return list::push(s, word, like << 32 | like, 1 + n % 9);
                    }).ok());
    for (std::uint64_t n = 0; n < 2000; ++n) ASSERT_TRUE(list::updated(of, list::pop).ok());
    std::vector<std::uint64_t> before, after;
    ASSERT_TRUE(list::values(of.base(), of.word(), before));
    in.close();
    const auto made = compact();
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->nodes, 1000U);
    in.open();
    const mod::root& now = **in.store().open({"list"}, list::kind, 0);
    ASSERT_TRUE(list::values(now.base(), now.word(), after));
    EXPECT_EQ(after, before);
    EXPECT_TRUE(in.store().verify().ok());
}

/// A kind that names refs that are in no word of the node: it keeps them as differences.
void crooked_children(mod::visitor& to, const std::byte* at, std::size_t, std::uint32_t,
                      std::uint64_t) {
    const auto* n = reinterpret_cast<const list::node*>(at);
    if (n->next != 0) to.node(n->next ^ 0x5555, sizeof *n, 0);
}
const mod::kind crooked{mod::builtin_kind::users + 900, "crooked", list::top, crooked_children};

TEST_P(Compaction, RefusesWhatItCannotMove) {
    in.make_new(GetParam());
    const auto refused = [&](errc code, const char* says) {
        const std::string before = hf::test::fingerprint(in.path());
        const auto made = compact();
        ASSERT_FALSE(made);
        EXPECT_EQ(said(made.error()), name(code)) << made.error().what();
        EXPECT_NE(made.error().what().find(says), std::string::npos) << made.error().what();
        EXPECT_EQ(hf::test::fingerprint(in.path()), before);
        const std::string directory = std::filesystem::path(in.path()).parent_path();
        EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
    };
    refused(errc::in_use, "already open");
    in.close();
    ASSERT_TRUE(hf::test::in_child([&] {
        in.open();
        const bool refuses = said(compact().error()) == "in_use";
        in.close();
        return refuses;
    }));
    const std::string layout = in.how.layout;
    in.how.layout = "another";
    refused(errc::wrong_layout, "another");
    in.how.layout = layout;
    in.open();
    mod::add_kind(crooked);
    mod::root& of = **in.store().open({"crooked"}, crooked, 0);
    ASSERT_TRUE(list::updated(of, [&](mod::shadow& s, std::uint64_t word) {
                    word = list::push(s, word, 1);
                    const mod::ref below = list::first_of(word);
                    word = list::push(s, word, 2);
                    s.at<list::node>(list::first_of(word))->next = below ^ 0x5555;
                    return word;
                }).ok());
    in.close();
    refused(errc::conflict, "to be a word of 4 bytes");
    in.make_new(GetParam());
    ASSERT_NE(in.pool().root<std::uint64_t>(), nullptr);
    in.close();
    refused(errc::conflict, "expected MOD's containers alone");
    in.make_new(GetParam());
    in.close();
    const std::string second = in.path() + ".link";
    std::filesystem::create_hard_link(in.path(), second);
    const auto made = compact();
    EXPECT_EQ(said(made.error()), "conflict");
    std::filesystem::remove(second);
    EXPECT_EQ(said(mod::compact("/dev/shm/no such pool", in.how).error()), "not_found");
}

TEST_P(Compaction, RefusesWhatAnotherProcessReads) {
    in.make_new(GetParam());
    in.close();
    open_options reading = in.how;
    reading.creation = create::never;
    reading.read_only = true;
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t reader = ::fork();
    if (reader == 0) {
        const auto pool = hf::pool::open(in.path(), reading);
        const char done = pool ? 'y' : 'n';
        if (::write(ready[1], &done, 1) == 1) ::pause();
        ::_exit(1);
    }
    char done = 0;
    ASSERT_EQ(::read(ready[0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    const std::string before = hf::test::fingerprint(in.path());
    const auto made = compact();
    EXPECT_EQ(said(made.error()), "in_use");
    EXPECT_EQ(hf::test::fingerprint(in.path()), before);
    ::kill(reader, SIGKILL);
    ::waitpid(reader, nullptr, 0);
    ::close(ready[0]), ::close(ready[1]);
}

TEST_P(Compaction, RefusesARootOfAKindThatNobodyKnows) {
    in.make_new(GetParam());
    (void)in.get<numbers>().insert_or_assign(1, 1);
    const std::uint64_t cells =
        in.pool().internals().file->roots()->anchor(engine_mod) + sizeof(mod::superblock);
    in.close();
    std::string bytes = hf::test::contents(in.path());
    bytes[cells + offsetof(mod::cell, kind)] = 55;
    hf::test::write_file(in.path(), bytes);
    EXPECT_EQ(said(compact().error()), "missing_engine");
}

/// Damage anywhere: refused, or where no verification sees it; never a fault, nor a pool that is
/// worse.
TEST_P(Compaction, OfDamagedPoolsIsRefusedOrKeepsThem) {
    const std::string held = make(60, 40);
    in.close();
    const std::string good = hf::test::contents(in.path());
    std::uint64_t seed = 17;
    unsigned refusals = 0;
    for (unsigned trial = 0; trial < 400; ++trial) {
        std::string bytes = good;
        for (unsigned n = 0; n < 1 + trial % 3; ++n) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            const std::uint64_t at = 8192 + (seed >> 20) % (bytes.size() - 8192);
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << (seed >> 7) % 8));
        }
        hf::test::write_file(in.path(), bytes);
        const auto made = compact();
        if (!made) {
            ++refusals;
            EXPECT_TRUE(hf::test::contents(in.path()) == bytes) << trial;
            continue;
        }
        in.open();
        const status sound = in.store().verify();
        EXPECT_TRUE(sound.ok()) << trial << ": " << sound.what();
        in.close();
    }
    EXPECT_GT(refusals, 0U);
    hf::test::write_file(in.path(), good);
    ASSERT_TRUE(compact());
    (void)expect_good(held);
}

TEST_P(Compaction, KeepsPermissions) {
    (void)make(100, 10);
    in.close();
    ASSERT_EQ(::chmod(in.path().c_str(), 0640), 0);
    ASSERT_TRUE(compact());
    struct stat about{};
    ASSERT_EQ(::stat(in.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0640U);
}

/// Another pool that got the name meanwhile stays.
TEST_P(Compaction, ReplacesNothingButItsOwnPool) {
    std::string held = make(200, 50);
    in.close();
    const std::string away = in.path() + ".away";
    for (const bool another : {false, true}) {
        std::string other;
        const auto made = compact([&](const os_file&) {
            std::filesystem::rename(in.path(), away);
            if (!another) return status();
            hf::test::write_file(in.path(), "another's");
            other = hf::test::fingerprint(in.path());
            return status();
        });
        EXPECT_EQ(said(made.error()), "conflict");
        EXPECT_EQ(std::filesystem::exists(in.path()), another);
        if (another) {
            EXPECT_EQ(hf::test::fingerprint(in.path()), other);
        }
        std::filesystem::rename(away, in.path());
        held = expect_good(held);
        in.close();
    }
    ASSERT_TRUE(compact());
}

/// A process that opened the old file and waited for its lock gets the new one, although the old
/// one has another name now.
TEST_P(Compaction, NobodyOpensTheFileThatIsGone) {
    const std::string held = make(200, 50), away = in.path() + ".away";
    in.close();
    unsigned opened = 0;
    for (unsigned trial = 0; trial < 40; ++trial) {
        const pid_t child = ::fork();
        if (child == 0) {
            for (;;) {
                const auto pool = hf::pool::open(in.path(), in.how);
                if (!pool) continue;
                auto again = *numbers::open(*pool, {"opened"});
                ::_exit(again.insert_or_assign(trial, trial) ? 0 : 1);
            }
        }
        ::usleep(trial * 37);
        const auto linked = [&](const os_file&) {
            if (trial % 2 != 0) std::filesystem::create_hard_link(in.path(), away);
            return status();
        };
        while (!compact(linked)) std::filesystem::remove(away);
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_EQ(how, 0);
        std::filesystem::remove(away);
        in.open();
        opened = static_cast<unsigned>(in.get<numbers>({"opened"}).size());
        ASSERT_EQ(opened, trial + 1) << "an update went into the file that had been replaced";
        in.close();
    }
}

/// Killed at each step, and anywhere: the old pool stands, or the new one.
TEST_P(Compaction, KilledAnywhereLeavesAPool) {
    const std::string held = make(600, 60);
    in.close();
    const auto big = std::filesystem::file_size(in.path());
    const std::string good = hf::test::contents(in.path());
    unsigned old_ones = 0, new_ones = 0;
    for (unsigned trial = 0; trial < 60; ++trial) {
        hf::test::write_file(in.path(), good);
        const pid_t child = ::fork();
        if (child == 0) {
            (void)compact([&](const os_file&) {
                if (trial == 0) ::raise(SIGKILL); // complete, and without a name
                return status();
            });
            ::_exit(0);
        }
        if (trial > 1) ::usleep(trial * 100);
        if (trial > 1) ::kill(child, SIGKILL);
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        (std::filesystem::file_size(in.path()) == big ? old_ones : new_ones) += 1;
        if (trial < 3 || trial % 10 == 0) (void)expect_good(held);
        else {
            in.open();
            EXPECT_EQ(everything(in.pool()).shown(), held);
            in.close();
        }
    }
    EXPECT_GT(old_ones, 0U);
    EXPECT_GT(new_ones, 0U);
    // And removes what kills leave beside it.
    const std::string directory = std::filesystem::path(in.path()).parent_path();
    hf::test::write_file(directory + "/.holdfast-new.1.0", good);
    ASSERT_TRUE(compact());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

/// Then it is not as it was, and the refusal says so. On a disk: a folder on tmpfs is not synced.
TEST_P(Compaction, WithoutASyncOfItsFolderSaysThatItIsThere) {
    const std::string held = make(300, 30);
    in.close();
    std::string directory = "/var/tmp/hf_mod_test.XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string path = directory + "/pool.hf", good = hf::test::contents(in.path());
    hf::test::write_file(path, good);
    in.how.mode = mode::process; // pmem needs tmpfs
    struct statfs system{};
    ASSERT_EQ(::statfs(directory.c_str(), &system), 0);
    EXPECT_TRUE(hf::test::in_child([&] {
        const auto made = mod::compact_pool(path, in.how, [&](const os_file&) {
            const struct rlimit least{0, 0};
            return ::setrlimit(RLIMIT_NOFILE, &least) == 0 ? status() : status(errc::io_error, "");
        });
        return static_cast<bool>(made) == (system.f_type == TMPFS_MAGIC) &&
               (made || made.error().what().find("is in place") != std::string::npos);
    }));
    EXPECT_LT(std::filesystem::file_size(path), good.size() / 2);
    hf::test::write_file(in.path(), hf::test::contents(path));
    std::filesystem::remove_all(directory);
    (void)expect_good(held);
}

/// A file may not grow beyond what is left of the disk: here a limit of the process.
TEST_P(Compaction, WithoutRoomLeavesThePoolAsItWas) {
    const std::string held = make(600, 300);
    in.close();
    const std::string before = hf::test::fingerprint(in.path());
    for (const std::uint64_t room : {4096U, 200'000U, 500'000U})
        EXPECT_TRUE(hf::test::in_child([&] {
            const struct rlimit least{room, room};
            ::setrlimit(RLIMIT_FSIZE, &least);
            const auto made = compact();
            return !made && made.error().code() == errc::pool_full;
        })) << room;
    EXPECT_EQ(hf::test::fingerprint(in.path()), before);
    (void)expect_good(held);
}

INSTANTIATE_TEST_SUITE_P(Modes, Compaction, testing::ValuesIn(mod::test::both_modes),
                         mod::test::mode_name);

} // namespace
