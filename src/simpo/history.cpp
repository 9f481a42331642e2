// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/history.hpp>
#include <simpo/packing.hpp>

#include <holdfast/simpo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <new>
#include <pthread.h>
#include <span>
#include <unistd.h>

namespace hf::simpo {
namespace {

constexpr std::uint64_t file_magic = 0x54534948534648ULL; // "HFSHIST" in the file
constexpr std::uint64_t body_bytes_max = 1ULL << 20;      // of a piece, about
constexpr std::uint64_t body_bytes_limit = 2 * body_bytes_max;

struct file_head {
    std::uint64_t magic; // file_magic
    std::uint64_t check; // of all that follows
    std::uint8_t pool[16];
    object_head object; // when its history began; 'history' is the file's number
};
static_assert(sizeof(file_head) == 32 + sizeof(object_head) &&
              std::has_unique_object_representations_v<file_head>);

enum class piece_kind : std::uint32_t { state = 1, calls = 2 };

/// Precedes the bytes that are stored of a piece.
struct piece_head {
    std::uint64_t check;      // of all that follows, seeded with the object's salt
    std::uint64_t body_check; // of the bytes that are stored
    std::uint64_t from, to;   // positions; the next piece begins at 'to'
    std::uint64_t before;     // calls before it; of a state: bytes of the object before it
    std::uint64_t body_bytes, stored_bytes; // the same: the body as it is
    std::uint32_t kind;                     // piece_kind
    std::uint32_t calls;                    // in it
    packing_name packing;                   // of the body; empty: none
};
static_assert(sizeof(piece_head) == 80 && std::has_unique_object_representations_v<piece_head>);

/// A function, before the calls of a piece; its signature follows, zero-padded to words.
struct function_head {
    std::uint64_t id;
    std::uint32_t schema;
    std::uint16_t version;
    std::uint16_t signature_bytes;
};
static_assert(sizeof(function_head) == 16);
constexpr std::size_t signature_bytes_max = 4096;

std::uint64_t check_of(const file_head& h) noexcept {
    return checksum(h.pool, sizeof h - offsetof(file_head, pool), file_magic);
}
std::uint64_t check_of(const piece_head& h, const object_head& of) noexcept {
    return checksum(&h.body_check, sizeof h - sizeof h.check, of.salt ^ of.history);
}
std::uint64_t body_check_of(const void* body, std::uint64_t bytes, const object_head& of) noexcept {
    return checksum(body, bytes, of.salt ^ of.history);
}

// os_file opens a file once at a time.
std::mutex turns;
// In a child of fork() no thread has it.
[[maybe_unused]] const int watching =
    pthread_atfork(nullptr, nullptr, [] { ::new (&turns) std::mutex; });

void add_bytes(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(from);
    to.insert(to.end(), at, at + bytes);
}

bool same_function(const record_head& a, const record_head& b) noexcept {
    return a.function == b.function && a.schema == b.schema && a.version == b.version;
}

/// A piece as it is written.
std::vector<std::byte> piece_of(piece_head h, std::span<const std::byte> body,
                                const object_head& of, const compression* packing) {
    std::vector<std::byte> out(sizeof h);
    h.body_bytes = h.stored_bytes = body.size();
    if (packing != nullptr && body.size() > 1) {
        out.resize(sizeof h + body.size());
        std::vector<std::byte> tried(body.size());
        const std::uint64_t packed =
            pack(*packing, out.data() + sizeof h, tried.data(), body.data(), body.size());
        if (packed != 0) {
            h.stored_bytes = packed;
            h.packing = packing_name_of(*packing);
        }
        out.resize(sizeof h + packed);
    }
    if (h.stored_bytes == h.body_bytes) add_bytes(out, body.data(), body.size());
    h.body_check = body_check_of(out.data() + sizeof h, h.stored_bytes, of);
    h.check = check_of(h, of);
    std::memcpy(out.data(), &h, sizeof h);
    return out;
}

} // namespace

/// A piece of the file: its head, where it lies, and what is stored of it.
struct history_file::piece {
    std::uint64_t at = sizeof(file_head); // of its head
    bool with_body = true;                // whether to read it
    piece_head head{};
    std::vector<std::byte> stored{};
    std::uint64_t behind() const noexcept { return at + sizeof head + head.stored_bytes; }
};

std::string history_file::folder_of(const std::string& pool_path) {
    std::error_code nowhere; // then the name stays as it is
    const auto whole = std::filesystem::absolute(pool_path, nowhere);
    return (nowhere ? pool_path : whole.string()) + ".history/";
}

history_file::history_file(const std::string& pool_path, const object_head& of)
    : path_(fmt::format("{}{:016x}-{:016x}", folder_of(pool_path), of.salt, of.history)), of_(of) {
    HF_ASSERT(of.history != 0);
}

status history_file::create(const os_file& pool, const object_head& of, const std::byte* copy,
                            position at) {
    const auto uuid = uuid_of(pool.path(), pool);
    if (!uuid) return uuid.error();
    file_head h{};
    h.magic = file_magic;
    std::ranges::copy(*uuid, h.pool);
    h.object = of_ = of;
    h.check = check_of(h);
    const std::unique_lock turn(turns);
    if (status s = remove_own(*uuid); !s.ok()) return s;
    auto file = os_file::create_new(path_);
    if (!file) return file.error();
    file->take_owner_or_say(pool.descriptor());
    const auto write = [&]() -> status {
        if (status s = file->write_at(0, &h, sizeof h); !s.ok()) return s;
        std::uint64_t end = sizeof h;
        const std::uint64_t copy_bytes = layout_of(of).copy_bytes;
        for (std::uint64_t done = 0; done < copy_bytes; done += body_bytes_max) {
            const std::uint64_t bytes = std::min(body_bytes_max, copy_bytes - done);
            piece_head p{};
            p.from = p.to = at;
            p.before = done;
            p.kind = std::uint32_t(piece_kind::state);
            const auto out = piece_of(p, {copy + done, bytes}, of, packing_);
            if (status s = file->write_at(end, out.data(), out.size()); !s.ok()) return s;
            end += out.size();
        }
        if (status s = file->sync(); !s.ok()) return s;
        if (status s = file->publish(); !s.ok()) return s;
        end_ = at, end_bytes_ = end, calls_ = 0;
        return file->sync_directory(); // upholds (1)
    };
    const status s = write();
    if (!s.ok()) file->unlink();
    return s;
}

void history_file::remove() const noexcept { ::unlink(path_.c_str()); }

/// Removes what a process has left that was killed before the pool named it. In a folder of several
/// pools it may be another's.
status history_file::remove_own(const pool_name& pool) const {
    const auto file = os_file::open_existing(path_, false, held::to_read_beside);
    if (!file) return file.error().code() == errc::not_found ? status() : file.error();
    if (const status s = read_head(*file, pool); !s.ok())
        return refusal(path_, errc::exists,
                       "keep_history: expected no file, or one that this object has left, found "
                       "another: choose another folder");
    remove();
    return {};
}

template <class Look> status history_file::looked(held how, Look&& look) const {
    const std::unique_lock turn(turns);
    const auto file = os_file::open_existing(path_, false, how);
    if (!file && file.error().code() == errc::not_found)
        return refusal(
            path_, errc::io_error,
            fmt::format("the history of object \"{}\" is not there: put it back under "
                        "this name, or go on without it by opening the pool with salvage",
                        of_.name));
    return file ? look(*file) : file.error();
}

status history_file::read_head(const os_file& file, const pool_name& pool) const {
    file_head h{};
    if (status s = file.read_at(0, &h, sizeof h); !s.ok()) return s;
    if (h.magic != file_magic || h.check != check_of(h))
        return refusal(path_, errc::corrupt,
                       "expected the history of an object, found other bytes");
    if (!std::ranges::equal(h.pool, pool))
        return refusal(path_, errc::corrupt,
                       "expected the history of an object of this pool, found one of another pool");
    const object_head& is = h.object;
    if (is.salt != of_.salt || is.history != of_.history || is.object_bytes != of_.object_bytes ||
        is.class_version != of_.class_version || std::strcmp(is.name, of_.name) != 0)
        return refusal(path_, errc::corrupt,
                       fmt::format("expected history {:x} of object \"{}\", found history {:x} of "
                                   "another one",
                                   of_.history, of_.name, is.history));
    return {};
}

/// Reads the piece that begins at out.at. False: no piece that counts is there.
bool history_file::read_piece(const os_file& file, piece& out) const {
    const auto size = file.size_bytes();
    piece_head& h = out.head;
    if (!size || *size < out.at + sizeof h || !file.read_at(out.at, &h, sizeof h).ok())
        return false;
    if (h.check != check_of(h, of_) || h.stored_bytes > h.body_bytes ||
        h.body_bytes > body_bytes_limit || *size < out.behind())
        return false;
    if (!out.with_body) return true;
    out.stored.resize(h.stored_bytes);
    return file.read_at(out.at + sizeof h, out.stored.data(), h.stored_bytes).ok();
}

status history_file::find_end(const os_file& pool) {
    const auto uuid = uuid_of(pool.path(), pool);
    if (!uuid) return uuid.error();
    return looked(held::to_read_beside, [&](const os_file& file) -> status {
        if (status s = read_head(file, *uuid); !s.ok()) return s;
        piece at, last;
        at.with_body = false;
        end_ = end_bytes_ = calls_ = 0;
        for (; read_piece(file, at); at.at = at.behind()) {
            const bool first = at.at == sizeof(file_head);
            if (!first && (at.head.from != last.head.to || at.head.to < at.head.from)) break;
            end_ = at.head.from; // the one before it ends there
            end_bytes_ = at.at;
            if (!first && last.head.kind == std::uint32_t(piece_kind::calls))
                calls_ += last.head.calls;
            last.at = at.at;
            last.head = at.head;
        }
        if (end_bytes_ != 0 && read_piece(file, last) && body_holds(last)) { // else it is cut
            end_ = last.head.to;
            end_bytes_ = last.behind();
            if (last.head.kind == std::uint32_t(piece_kind::calls)) calls_ += last.head.calls;
        }
        if (end_bytes_ > sizeof(file_head)) return {};
        return refusal(path_, errc::corrupt,
                       "expected the object as it was when its history began, found other bytes");
    });
}

history_file::writing::writing(history_file& to) : to_(&to), turn_(turns) {
    auto file = os_file::open_existing(to.path_, false, held::to_write_beside_readers);
    if (file) file_.emplace(std::move(*file));
    else failed_ = file.error();
}

bool history_file::writing::names(const record_head& function) const noexcept {
    return std::ranges::any_of(known_,
                               [&](const record_head& k) { return same_function(k, function); });
}

void history_file::writing::add(const record& r, const detail::function* f) {
    if (functions_.size() + records_.size() >= body_bytes_max) put(r.head.position);
    add_bytes(records_, &r, sizeof r.head + r.words() * word_bytes);
    if (r.head.function == 0) return;
    ++calls_;
    if (f == nullptr || names(r.head)) return;
    known_.push_back(r.head);
    std::string signature = signature_of(*f).substr(0, signature_bytes_max);
    function_head h{r.head.function, r.head.schema, r.head.version,
                    static_cast<std::uint16_t>(signature.size())};
    signature.resize(round_up(signature.size(), word_bytes));
    add_bytes(functions_, &h, sizeof h);
    add_bytes(functions_, signature.data(), signature.size());
}

/// Adds what was given as a piece that ends at 'to'.
void history_file::writing::put(position to) {
    std::vector<std::byte> body;
    const std::uint64_t functions = functions_.size();
    add_bytes(body, &functions, sizeof functions);
    add_bytes(body, functions_.data(), functions_.size());
    add_bytes(body, records_.data(), records_.size());
    piece_head h{};
    h.from = to_->end_;
    h.to = to;
    h.before = to_->calls_;
    h.kind = std::uint32_t(piece_kind::calls);
    h.calls = calls_;
    const auto out = piece_of(h, body, to_->of_, to_->packing_);
    if (failed_.ok()) failed_ = file_->write_at(to_->end_bytes_, out.data(), out.size());
    if (failed_.ok()) {
        to_->end_ = to;
        to_->end_bytes_ += out.size();
        to_->calls_ += calls_;
    }
    functions_.clear(), records_.clear(), known_.clear();
    calls_ = 0;
}

status history_file::writing::end(position at, bool synced) {
    if (failed_.ok()) (void)file_->truncate(to_->end_bytes_); // of what a kill has cut short
    put(at);
    if (failed_.ok() && synced) failed_ = file_->sync_data();
    return failed_;
}

bool history_file::body_holds(const piece& of) const noexcept {
    return of.head.body_check == body_check_of(of.stored.data(), of.stored.size(), of_);
}

status history_file::unpack(const piece& of, const compression* packing,
                            std::vector<std::byte>& to) const {
    const piece_head& h = of.head;
    if (h.stored_bytes == h.body_bytes) return to = of.stored, status{};
    if (packing == nullptr || packing_name_of(*packing) != h.packing)
        return refusal(
            path_, errc::bad_argument,
            fmt::format("a piece is packed: expected compression {}, found {}",
                        std::string(h.packing.data(), strnlen(h.packing.data(), h.packing.size())),
                        packing == nullptr ? "none" : packing->name()));
    to.resize(h.body_bytes);
    if (packing->unpack(to.data(), to.size(), of.stored.data(), of.stored.size())) return {};
    return refusal(path_, errc::corrupt,
                   fmt::format("the piece at offset {:#x}: expected bytes that can be unpacked, "
                               "found others",
                               of.at));
}

status history_file::read_calls(const piece& of, const std::vector<std::byte>& body,
                                const visitor& visit, bool& goes_on) const {
    const auto wrong = [&] {
        return refusal(
            path_, errc::corrupt,
            fmt::format("the piece at offset {:#x}: expected whole calls, found others", of.at));
    };
    std::size_t at = 0;
    const auto take = [&](void* to, std::size_t bytes, std::size_t end) {
        if (end > body.size() || at > end || end - at < bytes) return false;
        std::memcpy(to, body.data() + at, bytes);
        at += bytes;
        return true;
    };
    std::uint64_t functions = 0;
    if (!take(&functions, sizeof functions, body.size()) || functions > body.size() - at)
        return wrong();
    std::vector<std::pair<record_head, std::string>> known;
    for (const std::size_t end = at + functions; at < end;) {
        function_head f{};
        if (!take(&f, sizeof f, end) || f.signature_bytes > signature_bytes_max) return wrong();
        std::string signature(round_up(std::size_t{f.signature_bytes}, word_bytes), 0);
        if (!take(signature.data(), signature.size(), end)) return wrong();
        signature.resize(f.signature_bytes);
        std::ranges::replace_if(signature, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
        record_head h{};
        h.function = f.id, h.schema = f.schema, h.version = f.version;
        known.emplace_back(h, std::move(signature));
    }
    for (position last = of.head.from; at < body.size();) {
        record r{};
        if (!take(&r.head, sizeof r.head, body.size()) || r.words() > record_words_max ||
            r.head.kind == 0 || r.head.kind > record_kind_last || r.head.position < last ||
            r.head.position >= of.head.to ||
            !take(r.arguments, r.words() * word_bytes, body.size()))
            return wrong();
        last = r.head.position + 1;
        const auto its = std::ranges::find_if(
            known, [&](const auto& each) { return same_function(each.first, r.head); });
        goes_on = visit(r, its == known.end() ? std::string_view{} : std::string_view(its->second));
        if (!goes_on) return {};
    }
    return {};
}

status history_file::read(const pool_name& pool, const compression* packing, std::byte* copy,
                          const visitor& visit) {
    const std::uint64_t copy_bytes = layout_of(of_).copy_bytes;
    std::uint64_t copied = 0, calls = 0;
    position end = 0;
    std::vector<std::byte> body;
    bool goes_on = true, there = true;
    for (piece at; goes_on; at.at = at.behind()) {
        const bool first = at.at == sizeof(file_head);
        if (status s = looked(held::to_read_beside,
                              [&](const os_file& file) {
                                  const status is = first ? read_head(file, pool) : status{};
                                  there = is.ok() && read_piece(file, at);
                                  return is;
                              });
            !s.ok())
            return s;
        const piece_head& h = at.head;
        if (!there || (!first && (h.from != end || h.to < h.from))) break;
        if (!body_holds(at)) break; // cut short, or damage: its caller compares the ends
        if (status s = unpack(at, packing, body); !s.ok()) return s;
        end = h.to;
        if (h.kind == std::uint32_t(piece_kind::state)) {
            if (h.before != copied || body.size() > copy_bytes - copied) break;
            if (copy != nullptr) std::memcpy(copy + copied, body.data(), body.size());
            copied += body.size();
            continue;
        }
        if (copied != copy_bytes || h.before != calls) break;
        calls += h.calls;
        if (status s = read_calls(at, body, visit, goes_on); !s.ok()) return s;
    }
    end_ = end;
    calls_ = calls;
    if (copied == copy_bytes) return {};
    return refusal(path_, errc::corrupt,
                   fmt::format("expected {} bytes of the object as it was when its history began, "
                               "found {}",
                               copy_bytes, copied));
}

std::string signature_of(const detail::function& f) {
    std::string out(f.text);
    out += '(';
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
        out +=
            fmt::format("{}{}{}", i == 0 ? "" : ",", f.parameters[i].kind, f.parameters[i].bytes);
    return out + ')';
}

namespace {

/// A value of this kind, of as many bytes.
std::string value_text(char kind, const std::byte* from, std::size_t bytes) {
    const auto as = [&](auto value) {
        std::memcpy(&value, from, sizeof value);
        return fmt::format("{}", value);
    };
    if (kind == 'f' && bytes == 8) return as(double{});
    if (kind == 'f' && bytes == 4) return as(float{});
    if (kind == 'b' && bytes == 1) return from[0] == std::byte{0} ? "false" : "true";
    if (kind == 'i' || kind == 'u' || kind == 'e') {
        if (bytes == 1) return kind == 'i' ? as(std::int8_t{}) : as(std::uint8_t{});
        if (bytes == 2) return kind == 'i' ? as(std::int16_t{}) : as(std::uint16_t{});
        if (bytes == 4) return kind == 'i' ? as(std::int32_t{}) : as(std::uint32_t{});
        if (bytes == 8) return kind == 'i' ? as(std::int64_t{}) : as(std::uint64_t{});
    }
    constexpr std::size_t shown_max = 32;
    std::string out = "0x";
    for (std::size_t i = 0; i < std::min(bytes, shown_max); ++i)
        out += fmt::format("{:02x}", static_cast<unsigned>(from[i]));
    return bytes > shown_max ? out + "…" : out;
}

} // namespace

std::vector<std::string> readable(std::string_view signature, const record& call) {
    std::vector<std::string> out;
    const auto* const words = reinterpret_cast<const std::byte*>(call.call_arguments());
    const std::size_t bytes = call.head.words * word_bytes;
    std::size_t at = 0;
    const std::size_t open = signature.find('(');
    const auto rest = [&] { // of a function that is not known
        out.clear();
        for (std::size_t i = 0; i < call.head.words; ++i)
            out.push_back(fmt::format("{:#x}", call.call_arguments()[i]));
    };
    if (open == signature.npos) return rest(), out;
    for (std::string_view text = signature.substr(open + 1); text.size() > 1;) {
        std::size_t its = 0;
        const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), its);
        if (error != std::errc{} || its == 0 || its > bytes - at) return rest(), out;
        out.push_back(value_text(text[0], words + at, its));
        at += round_up(its, word_bytes);
        if (at > bytes || end == text.data() + text.size()) return rest(), out;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    }
    return out;
}

} // namespace hf::simpo
