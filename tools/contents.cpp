// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contents.hpp"

#include "contents_text.hpp"
#include "json.hpp"
#include <mod/contents.hpp>
#include <open/pool_impl.hpp>
#include <pool/file_checks.hpp>
#include <verify/objects.hpp>
#include <verify/read_file.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <utility>

namespace hf::tools {
namespace {

constexpr std::uint64_t page_bytes = 4096;
/// Parts of a vector may be shared by others, so that its elements may be more than its bytes.
constexpr std::uint64_t elements_per_byte = 16;

/// A pool's bytes where its own references may be followed: as far as it may grow, zeros behind the
/// end of its file. Changed for this process alone.
class private_image {
public:
    private_image() = default;
    private_image(const private_image&) = delete;
    ~private_image() {
        if (base_ != nullptr) ::munmap(base_, bytes_);
    }
    /// 0, or the error. Requires: check_header() accepts the header.
    int map(int descriptor, std::uint64_t file_bytes, const pool_header& header) noexcept {
        constexpr int flags = MAP_PRIVATE | MAP_NORESERVE;
        bytes_ = round_up(header.max_bytes, page_bytes);
        void* const at = ::mmap(nullptr, bytes_, PROT_READ, flags | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return errno;
        base_ = static_cast<std::byte*>(at);
        const std::uint64_t there = std::min(round_up(file_bytes, page_bytes), bytes_);
        if (::mmap(base_, there, PROT_READ | PROT_WRITE, flags | MAP_FIXED, descriptor, 0) ==
            MAP_FAILED)
            return errno;
        std::memcpy(base_, &header, sizeof header); // readers bound references by the first copy
        return 0;
    }
    const std::byte* base() const noexcept { return base_; }

private:
    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// Upholds (2) for strings and names.
json_text text_or_bytes(std::string_view bytes) {
    if (is_utf8(bytes)) return bytes;
    return {{"base64", to_base64(bytes)}};
}

/// Writes the lines of one pool.
class lines_of {
public:
    lines_of(const std::byte* base, std::uint64_t bytes, const pool_header& header,
             const std::function<void(std::string)>& to)
        : base_(base), bytes_(bytes), header_(header), to_(to),
          python_(std::string_view(header.layout) == python_layout) {}

    void all() {
        to_(json_text({{"pool", "holdfast"},
                       {"version", 1},
                       {"layout", text_or_bytes(header_.layout)},
                       {"layout_hash", header_.layout_hash},
                       {"max_bytes", header_.max_bytes}})
                .text());
        containers();
        objects();
        const auto roots = load<root_words>(root_words_offset);
        if (roots.root_offset != 0)
            to_(json_text({{"unlisted", "the root object"}, {"bytes", roots.root_bytes}}).text());
    }
    std::vector<std::string> faults;

private:
    template <class T> T load(std::uint64_t offset) const {
        T out{};
        if (offset <= bytes_ && sizeof out <= bytes_ - offset)
            std::memcpy(&out, base_ + offset, sizeof out);
        return out;
    }
    void containers() {
        const std::uint64_t at = load<root_words>(root_words_offset).anchor(engine_mod);
        if (at == 0) return;
        const auto super = load<mod::superblock>(at);
        if (super.magic != mod::superblock_magic)
            return faults.push_back(fmt::format(
                "MOD's superblock at {:#x}: expected {:#x}, found {:#x}: its containers are lost",
                at, mod::superblock_magic, super.magic));
        const std::uint64_t most = (header_.chunk_bytes - sizeof super) / sizeof(mod::cell);
        if (super.cell_count > most)
            faults.push_back(fmt::format("MOD's superblock at {:#x}: expected at most {} roots, "
                                         "found {}",
                                         at, most, super.cell_count));
        const std::uint64_t count = std::min(super.cell_count, most);
        const auto cell_at = [&](std::uint64_t i) {
            return load<mod::cell>(at + sizeof super + i * sizeof(mod::cell));
        };
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto c = cell_at(i);
            if (c.family == 0) {
                if (mod::contents_form::is_container(c.kind)) container(name_of(c), c, c.word, "");
                else if (c.kind >= mod::builtin_kind::users)
                    faults.push_back(fmt::format("root \"{}\": its kind {} is a program's own",
                                                 name_of(c), c.kind));
                continue;
            }
            const auto parent = cell_at(c.family - 1);
            if (!mod::contents_form::is_container(c.kind) || c.family > count ||
                parent.kind != mod::builtin_kind::family || c.member >= mod::family_members_max)
                continue;
            const std::uint64_t words = (parent.word & mod::ref_max) * mod::granule_bytes;
            const std::uint64_t word =
                parent.word == 0 ? 0 : load<std::uint64_t>(words + c.member * word_bytes);
            container(fmt::format("{}.{}", name_of(parent), c.member), c, word, name_of(parent));
        }
    }
    static std::string name_of(const mod::cell& c) {
        return {c.name, ::strnlen(c.name, sizeof c.name)};
    }
    static json_text slot_text(const mod::detail::slot_form& slot) {
        if (slot.holds_ref) return "string";
        return fmt::format("{} bytes, aligned to {}", slot.bytes, slot.align);
    }
    void container(const std::string& name, const mod::cell& c, std::uint64_t word,
                   const std::string& family) {
        const auto form = mod::contents_form::of(c.kind, c.shape);
        json_text head({{"root", text_or_bytes(name)}, {"kind", kind_name(form)}});
        if (form.has_keys) head.add("key", slot_text(form.key));
        if (form.has_values)
            head.add("value", form.values_in_keys ? json_text("string") : slot_text(form.value));
        if (form.has_keys) head.add("identity", form.identity);
        if (!family.empty()) head.add("family", text_or_bytes(family));
        const std::uint64_t said = mod::element_count(word);
        head.add("elements", said);
        to_(head.text());
        std::vector<std::string> newest_first;
        const bool turned = c.kind == mod::builtin_kind::stack;
        const bool strings = form.values_in_keys || form.value.holds_ref;
        const std::uint64_t read =
            mod::read_elements(base_, word, form, bytes_ * elements_per_byte, 2 * bytes_,
                               [&](std::uint64_t at, std::string_view key, std::string_view value) {
                                   json_text line({{"in", text_or_bytes(name)}});
                                   if (form.has_keys)
                                       line.add("key", element(key, form.key.holds_ref));
                                   else line.add("at", at);
                                   if (form.has_values) line.add("value", element(value, strings));
                                   if (turned) newest_first.push_back(line.text());
                                   else to_(line.text());
                               });
        for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it) to_(std::move(*it));
        if (read != said)
            faults.push_back(fmt::format("root \"{}\": expected {} elements, found {} that can be "
                                         "read",
                                         name, said, read));
    }
    json_text element(std::string_view bytes, bool string) const {
        if (!string) return {{"hex", to_hex(bytes)}};
        if (python_ && !bytes.empty()) {
            const std::string_view before = bytes.substr(0, bytes.size() - 1);
            const char tag = bytes.back();
            if (tag == python_str && is_utf8(before)) return {{"str", before}};
            if (tag == python_bytes) return {{"bytes", to_base64(before)}};
            if (tag == python_value) return {{"encoded", to_base64(before)}};
        }
        return text_or_bytes(bytes);
    }
    void objects() {
        const verify::pool_image image({base_, bytes_}, header_);
        const verify::objects_image found = verify::read_objects(image, true);
        for (const auto& o : found.all) {
            const auto head = load<simpo::object_head>(o.offset);
            json_text line({{"object", text_or_bytes(head.name)},
                            {"class", text_or_bytes(head.class_text)},
                            {"class_version", o.class_version},
                            {"bytes", o.object_bytes},
                            {"calls_behind", o.calls}});
            const std::uint64_t at =
                o.offset + simpo::layout_of(head).copy_offset(simpo::copy_of(head.resilient));
            if (o.swapped_out) line.add("swapped_out", true);
            else if (image.has(at, o.object_bytes))
                line.add("state", to_base64({reinterpret_cast<const char*>(base_ + at),
                                             static_cast<std::size_t>(o.object_bytes)}));
            to_(line.text());
        }
        for (const auto& f : found.faults)
            faults.push_back(fmt::format("{} at {:#x}: expected {}, found {}", f.where, f.offset,
                                         f.expected, f.found));
    }

    const std::byte* base_;
    std::uint64_t bytes_;
    const pool_header& header_;
    const std::function<void(std::string)>& to_;
    bool python_;
};

} // namespace

std::string kind_name(const mod::contents_form& form) {
    switch (form.kind) {
    case mod::builtin_kind::hash_trie: return form.has_values ? "map" : "set";
    case mod::builtin_kind::cache: return "cache";
    case mod::builtin_kind::vector: return "vector";
    case mod::builtin_kind::stack: return "stack";
    case mod::builtin_kind::queue: return "queue";
    default: return "ordered_map";
    }
}

result<std::vector<std::string>> read_contents(const std::string& path, const pool_header& header,
                                               const std::optional<open_options>& recovering,
                                               const std::function<void(std::string)>& to) {
    std::vector<std::string> faults;
    if (recovering) {
        open_options how = *recovering;
        how.read_only = true;
        auto recovered = pool::impl::open_with(path, how);
        if (recovered) {
            const pool_file& file = *recovered->internals().file;
            const pool_header now = file.closing_header();
            lines_of lines(file.base(), file.size_bytes(), now, to);
            lines.all();
            return std::move(lines.faults);
        }
        if (recovered.error().code() == errc::in_use) return recovered.error();
        faults.push_back(fmt::format("read without recovery: {}", recovered.error().what()));
    }
    const auto file = verify::read_file::open(path);
    if (!file) return file.error();
    if (file->in_use())
        return refusal(path, errc::in_use,
                       fmt::format("open in {}: expected a pool that nobody changes: take a copy "
                                   "with holdfast copy first",
                                   file->user()));
    const extent& last = header.extents[header.extent_count - 1];
    if (const std::uint64_t whole = last.offset_bytes + last.size_bytes;
        file->bytes().size() < whole)
        faults.push_back(fmt::format("expected {} bytes, found {}: what is missing reads as zeros",
                                     whole, file->bytes().size()));
    private_image image;
    if (const int failed = image.map(file->descriptor(), file->bytes().size(), header); failed != 0)
        return refusal(
            path, errc::io_error,
            fmt::format("cannot map {} bytes: {}", header.max_bytes, std::strerror(failed)));
    lines_of lines(image.base(), file->bytes().size(), header, to);
    lines.all();
    faults.insert(faults.end(), lines.faults.begin(), lines.faults.end());
    return faults;
}

} // namespace hf::tools
