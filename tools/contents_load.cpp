// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast load`: the containers that it can make are those whose elements are strings, or of 4 or
// 8 bytes. All such types of one size have the same hash and the same place in a node, so a program
// finds what it would have stored itself.
#include "contents.hpp"
#include "contents_text.hpp"
#include "json.hpp"
#include <mod/cache_entries.hpp>
#include <pool/file_checks.hpp>
#include <verify/read_file.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::tools {
namespace {

/// A line that is not as expected: thrown with the text for people.
struct refused_line : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The members of a line.
class members {
public:
    explicit members(const std::string& line) {
        std::string why;
        auto found = read_json_object(line, why);
        if (!found) throw refused_line(why);
        for (auto& each : *found) all_.insert_or_assign(each.name, std::move(each));
    }
    bool has(const std::string& name) const { return all_.contains(name); }
    const std::string& text(const std::string& name) const {
        const auto it = all_.find(name);
        if (it == all_.end() || !it->second.is_text)
            throw refused_line(fmt::format("expected a text as \"{}\", found {}", name,
                                           it == all_.end() ? "none" : it->second.text));
        return it->second.text;
    }
    std::uint64_t number(const std::string& name) const {
        const auto it = all_.find(name);
        const std::string found = it == all_.end() ? "none" : it->second.text;
        std::uint64_t value = 0;
        const auto [end, failed] =
            std::from_chars(found.data(), found.data() + found.size(), value);
        if (it == all_.end() || it->second.is_text || failed != std::errc() ||
            end != found.data() + found.size())
            throw refused_line(
                fmt::format("expected a whole number as \"{}\", found {}", name, found));
        return value;
    }
    bool has_name(const std::string& member) const {
        return has(member) || has(member + ".base64");
    }
    /// The bytes of a name.
    std::string name(const std::string& member) const {
        std::string bytes = text_or_bytes(member);
        if (bytes.find('\0') != std::string::npos)
            throw refused_line(
                fmt::format("expected a name without a zero byte as \"{}\", found one", member));
        return bytes;
    }
    /// The bytes of an element.
    std::string bytes(const std::string& name) const {
        if (has(name + ".hex")) return decoded(name + ".hex", from_hex);
        if (has(name + ".str")) return text(name + ".str") + python_str;
        if (has(name + ".bytes")) return decoded(name + ".bytes", from_base64) + python_bytes;
        if (has(name + ".encoded")) return decoded(name + ".encoded", from_base64) + python_value;
        return text_or_bytes(name);
    }

private:
    template <class Decode> std::string decoded(const std::string& name, Decode&& decode) const {
        const std::string& given = text(name);
        auto made = decode(given);
        if (!made)
            throw refused_line(fmt::format(
                "expected text that encodes bytes as \"{}\", found \"{}\"", name, given));
        return std::move(*made);
    }
    std::string text_or_bytes(const std::string& name) const {
        const std::string encoded = name + ".base64";
        return has(encoded) ? decoded(encoded, from_base64) : text(name);
    }

    std::map<std::string, json_found> all_;
};

template <class T> struct as {
    using type = T;
};

/// Calls 'work' with the type that stands for elements of this form.
template <class Work> auto with_type(const std::string& form, Work&& work) {
    if (form == "string") return work(as<std::string>{});
    if (form == "8 bytes, aligned to 8") return work(as<std::uint64_t>{});
    if (form == "4 bytes, aligned to 4") return work(as<std::uint32_t>{});
    throw refused_line(fmt::format("expected elements that are strings, or of 4 or 8 bytes, found "
                                   "\"{}\": the program that has their types must store them",
                                   form));
}

template <class T> T element_of(const std::string& bytes) {
    if constexpr (std::is_same_v<T, std::string>) return bytes;
    else {
        T value{};
        if (bytes.size() != sizeof value)
            throw refused_line(fmt::format("expected an element of {} bytes, found {}",
                                           sizeof value, bytes.size()));
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
}

void expect(const status& done) {
    if (!done.ok()) throw done;
}

/// A container that is being filled.
struct container {
    std::function<void(const members&)> add;
    std::uint64_t elements = 0;
};

template <class C> C made(pool& in, const std::string& name) {
    auto opened = C::open(in, {name.c_str()});
    if (!opened) throw opened.error();
    return std::move(*opened);
}

template <class K, class C> container set_of(pool& in, const std::string& name) {
    return {[to = made<C>(in, name)](const members& line) mutable {
        const auto done = to.insert(element_of<K>(line.bytes("key")));
        if (!done) throw done.error();
        if (!*done) throw refused_line("expected a key that is new, found one that is there");
    }};
}

template <class K, class V, class C> container map_of(pool& in, const std::string& name) {
    return {[to = made<C>(in, name)](const members& line) mutable {
        const auto done =
            to.insert(element_of<K>(line.bytes("key")), element_of<V>(line.bytes("value")));
        if (!done) throw done.error();
        if (!*done) throw refused_line("expected a key that is new, found one that is there");
    }};
}

template <class V, class C, class Add>
container sequence_of(pool& in, const std::string& name, Add add) {
    return {[to = made<C>(in, name), add, next = std::uint64_t{0}](const members& line) mutable {
        if (const std::uint64_t at = line.number("at"); at != next)
            throw refused_line(fmt::format("expected element {}, found {}", next, at));
        ++next;
        expect(add(to, element_of<V>(line.bytes("value"))));
    }};
}

container keyed(pool& in, const std::string& name, const std::string& kind, const members& line) {
    const std::string& key = line.text("key");
    if (line.number("identity") != 1)
        throw refused_line(fmt::format("expected \"identity\" 1, the library's own hash or order, "
                                       "found {}",
                                       line.number("identity")));
    if (kind == "cache")
        return map_of<std::string, std::string, mod::detail::cache_entries>(in, name);
    if (kind == "set")
        return with_type(key, [&]<class K>(as<K>) { return set_of<K, mod::set<K>>(in, name); });
    if (kind == "ordered_map" && key != "string")
        throw refused_line(fmt::format("expected strings as keys of an ordered map, found \"{}\": "
                                       "only their program knows the order of others",
                                       key));
    return with_type(line.text("value"), [&]<class V>(as<V>) {
        if (kind == "ordered_map")
            return map_of<std::string, V, mod::ordered_map<std::string, V>>(in, name);
        return with_type(key,
                         [&]<class K>(as<K>) { return map_of<K, V, mod::map<K, V>>(in, name); });
    });
}

container container_of(pool& in, const members& line) {
    const std::string name = line.name("root"), &kind = line.text("kind");
    if (line.has_name("family"))
        throw refused_line(fmt::format("expected a container of its own, found a member of \"{}\": "
                                       "only its program can make the family",
                                       line.name("family")));
    if (kind == "map" || kind == "set" || kind == "ordered_map" || kind == "cache")
        return keyed(in, name, kind, line);
    return with_type(line.text("value"), [&]<class V>(as<V>) {
        if (kind == "vector")
            return sequence_of<V, mod::vector<V>>(
                in, name, [](auto& to, const V& value) { return to.push_back(value); });
        const auto push = [](auto& to, const V& value) { return to.push(value); };
        if (kind == "stack") return sequence_of<V, mod::stack<V>>(in, name, push);
        if (kind == "queue") return sequence_of<V, mod::queue<V>>(in, name, push);
        throw refused_line(
            fmt::format("expected map, set, ordered_map, cache, vector, stack or queue as "
                        "\"kind\", found \"{}\"",
                        kind));
    });
}

open_options options_of(const members& line) {
    if (line.text("pool") != "holdfast" || line.number("version") != 1)
        throw refused_line(fmt::format("expected version 1 of such lines, found {} of \"{}\"",
                                       line.number("version"), line.text("pool")));
    open_options how;
    how.layout = line.name("layout");
    how.layout_hash = line.number("layout_hash");
    how.max_bytes = line.number("max_bytes");
    if (how.max_bytes != 0) // may be less than a new pool's usual size
        how.create_bytes = std::clamp(how.max_bytes, pool_bytes_min, how.create_bytes);
    how.creation = create::always_new;
    how.engines = {mod::engine()};
    return how;
}

/// The file of a pool that is being made, under a name that no other process uses: it is removed
/// if it does not get the pool's name.
///
/// The file is locked: by the pool, while that is open, and by 'file_' until the rename. Another
/// process removes a file that nobody has locked: a killed command has left it.
class new_pool {
public:
    explicit new_pool(const std::string& path) : path_(path) {
        for (unsigned n = 0; n < names_max; ++n) remove_left(name(n));
    }
    new_pool(const new_pool&) = delete;
    ~new_pool() {
        pool_.reset();
        if (leads_to(own_, file_)) ::unlink(own_.c_str());
        if (file_ >= 0) ::close(file_);
    }
    pool& open(const open_options& how) {
        for (unsigned n = 0;; ++n) {
            own_ = name(n);
            auto opened = pool::open(own_, how);
            if (!opened && opened.error().code() == errc::exists && n + 1 < names_max) continue;
            if (!opened) throw opened.error();
            pool_.emplace(std::move(*opened));
            file_ = ::open(own_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
            // NFS refuses it beside the pool's lock. finish() looks at the name in any case.
            (void)::flock(file_, LOCK_EX | LOCK_NB);
            return *pool_;
        }
    }
    /// Upholds (4).
    void finish() {
        pool_.reset();
        if (!leads_to(own_, file_))
            throw refusal(
                path_, errc::io_error,
                fmt::format("expected the new pool in {}, found another file or none", own_));
        if (::renameat2(AT_FDCWD, own_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0)
            return make_name_durable();
        if (errno == EEXIST)
            throw refusal(path_, errc::exists,
                          "expected no file of this name, found one that was made meanwhile");
        throw refusal(path_, errc::io_error, fmt::format("rename: {}", std::strerror(errno)));
    }

private:
    void make_name_durable() const {
        const auto folder = std::filesystem::absolute(path_).parent_path();
        const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        // A folder that may be searched and not read cannot be opened. Some file systems cannot
        // sync a folder; they have nothing to sync.
        const bool done =
            fd < 0 ? errno == EACCES && ::syncfs(file_) == 0 : ::fsync(fd) == 0 || errno == EINVAL;
        const int failed = errno;
        if (fd >= 0) ::close(fd);
        if (!done)
            throw refusal(path_, errc::io_error,
                          fmt::format("the pool is in place, but its name may not be on the disk "
                                      "yet: fsync of the folder: {}",
                                      std::strerror(failed)));
    }
    static constexpr unsigned names_max = 64;
    std::string name(unsigned n) const { return fmt::format("{}.loading.{}", path_, n); }
    static bool leads_to(const std::string& name, int file) noexcept {
        struct stat there{}, here{};
        return file >= 0 && ::lstat(name.c_str(), &there) == 0 && ::fstat(file, &here) == 0 &&
               there.st_dev == here.st_dev && there.st_ino == here.st_ino;
    }
    static void remove_left(const std::string& name) {
        const auto left = verify::read_file::open(name);
        if (left && !left->in_use() && ::flock(left->descriptor(), LOCK_EX | LOCK_NB) == 0 &&
            leads_to(name, left->descriptor()))
            ::unlink(name.c_str());
    }

    std::string path_, own_;
    int file_ = -1;
    std::optional<pool> pool_;
};

} // namespace

result<std::uint64_t> load_contents(const std::string& path, std::istream& lines) {
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, unknown)))
        return refusal(path, errc::exists, "expected no file of this name, found one");
    std::uint64_t number = 0, elements = 0;
    try {
        new_pool into(path);
        pool* in = nullptr;
        std::map<std::string, container> containers;
        for (std::string line; std::getline(lines, line);) {
            ++number;
            const members found(line);
            if (in == nullptr) {
                in = &into.open(options_of(found));
            } else if (found.has_name("root")) {
                const std::string name = found.name("root");
                if (containers.contains(name))
                    throw refused_line(fmt::format("expected a name that is new, found \"{}\" a "
                                                   "second time",
                                                   name));
                containers.emplace(name, container_of(*in, found));
            } else if (found.has("unlisted")) {
                throw refused_line(fmt::format("expected containers, found {}, whose types only "
                                               "its program knows",
                                               found.text("unlisted")));
            } else if (found.has_name("object")) {
                throw refused_line(fmt::format("expected containers, found the object \"{}\": only "
                                               "a program with its class can make it",
                                               found.name("object")));
            } else {
                const auto it = containers.find(found.name("in"));
                if (it == containers.end())
                    throw refused_line(fmt::format("expected a container whose line came before, "
                                                   "found \"{}\"",
                                                   found.name("in")));
                it->second.add(found);
                ++elements;
            }
        }
        if (in == nullptr) throw refused_line("expected lines of `holdfast dump`, found none");
        containers.clear();
        into.finish();
        return elements;
    } catch (const refused_line& why) {
        return refusal(path, errc::bad_argument, fmt::format("line {}: {}", number, why.what()));
    } catch (const status& failed) {
        return status{failed.code(), fmt::format("line {}: {}", number, failed.what())};
    }
}

} // namespace hf::tools
