// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mod/contents.hpp>
#include <mod/rrb.hpp>

#include <holdfast/mod/detail/bplus_node.hpp>
#include <holdfast/mod/detail/sequence.hpp>
#include <holdfast/mod/detail/trie_node.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/stack.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

namespace hf::mod {
namespace {

using namespace detail;

/// One walk. Upholds (1) and (2).
class walk {
public:
    walk(const std::byte* base, const contents_form& form, std::uint64_t most,
         std::uint64_t bytes_most, const element_reader& to)
        : base_(base), form_(form), most_(most), bytes_left_(bytes_most), to_(to) {}

    std::uint64_t count() const noexcept { return count_; }

    void trie(ref at, unsigned level) {
        if (at == 0 || full()) return;
        if ((at & detail::leaf_bit) != 0) return trie_leaf(at & ref_max);
        if (level == trie_levels || !seen_.insert(at).second) return;
        for (const ref child : node_at<inner>(base_, at)->child) trie(child, level + 1);
    }
    void tree(ref at, unsigned level) {
        if (at == 0 || full() || level == ordered::levels_max || !seen_.insert(at).second) return;
        const bool leaf = ordered::is_leaf(at);
        const ordered::form f =
            leaf ? ordered::leaf_form(form_.key, form_.value) : ordered::inner_form(form_.key);
        const std::byte* const node = ordered::node_of(f, base_, at & ref_max);
        const std::uint32_t entries = std::min(ordered::count_of(node), f.capacity);
        for (std::uint32_t i = 0; i < entries; ++i)
            if (leaf) give(0, ordered::key_place(f, node, i), ordered::value_place(f, node, i));
            else tree(ordered::child_at(f, node, i), level + 1);
    }
    void vector(std::uint64_t word) {
        slot_form each = form_.value;
        if (each.holds_ref) each.bytes = sizeof(ref);
        const rrb::tree in{rrb::leaf_form::of(each), base_};
        const rrb::branch top = rrb::top_of(word);
        const unsigned height = in.height_of(top);
        if (top.count != 0 && height <= rrb::height_max) vector_node(in, top, height, 0);
    }
    void stack(std::uint64_t word) {
        const chunk_form form = chunk_form_of(form_.value, sizeof(ref));
        counted now = counted::of(word);
        for (; now.count != 0 && now.node != 0 && !full();) {
            const auto* const chunk = node_at<std::byte>(base_, now.node, form.bytes);
            const std::uint32_t here = (now.count - 1) % form.capacity + 1;
            for (std::uint32_t i = here; i-- > 0 && !full();)
                give(--now.count, nullptr, chunk + form.first + std::size_t{i} * form_.value.bytes);
            std::memcpy(&now.node, chunk, sizeof now.node);
        }
    }
    void queue(std::uint64_t word) {
        const chunk_form form = chunk_form_of(form_.value, sizeof(queue_header));
        const counted all = counted::of(word);
        const auto* const header = node_at<std::byte>(base_, all.node, form.bytes);
        queue_header head;
        std::memcpy(&head, header, sizeof head);
        const std::uint32_t used = std::min(head.used, form.capacity);
        for (std::uint32_t left = all.count; left > 0 && !full(); --left) {
            const std::byte* row = header + form.first;
            std::uint32_t in_row = used - left;
            if (left > used) {
                const std::uint32_t before = left - used - 1;
                const ref chunk = queue_chunk(base_, head.level, before / form.capacity);
                if (chunk == 0) continue;
                row = node_at<std::byte>(base_, chunk, queue_chunk_bytes(form_.value, form));
                in_row = form.capacity - before % form.capacity - 1;
            }
            give(all.count - left, nullptr, row + std::size_t{in_row} * form_.value.bytes);
        }
    }

private:
    bool full() const noexcept { return looked_at_ >= most_ || bytes_left_ == 0; }

    void trie_leaf(ref at) {
        const leaf_layout layout{{form_.key, form_.values_in_keys || !form_.has_values
                                                 ? slot_form{0, 1, false}
                                                 : form_.value}};
        const auto* const leaf = node_at<std::byte>(base_, at);
        const auto head = leaf_head::of(leaf);
        const std::uint64_t entries = head.count();
        const bool sound = head.is_wide() || entries <= leaf_entries_max;
        if (!sound || !within(base_, leaf, layout.bytes(entries))) return;
        for (std::uint64_t i = 0; i < entries && !full(); ++i)
            give(0, leaf + layout.keys() + i * layout.key.bytes,
                 leaf + layout.values(entries) + i * layout.value.bytes);
    }
    void vector_node(const rrb::tree& in, rrb::branch node, unsigned height, std::uint64_t from) {
        if (full() || (node.at & ref_max) == 0) return;
        if (height == 0) {
            const std::uint32_t here = in.bounded(node.count, 0);
            const auto* const leaf = node_at<std::byte>(base_, node.at, in.leaf.bytes(here));
            for (std::uint32_t i = 0; i < here && !full(); ++i)
                give(from + i, nullptr, leaf + in.leaf.bytes_of(i));
            return;
        }
        std::array<rrb::branch, rrb::fan> below;
        const unsigned n = in.children(node, height, below.data());
        for (unsigned k = 0; k < n; ++k) {
            vector_node(in, below[k], height - 1, from);
            from += below[k].count;
        }
    }
    std::string_view text(const slot_form& slot, const std::byte* at) const noexcept {
        if (!slot.holds_ref) return {reinterpret_cast<const char*>(at), slot.bytes};
        return blob_key(base_, blob_at(at));
    }
    static ref blob_at(const std::byte* at) noexcept {
        ref blob;
        std::memcpy(&blob, at, sizeof blob);
        return blob & ref_max;
    }
    void give(std::uint64_t number, const std::byte* key, const std::byte* value) {
        if (full()) return;
        const std::string_view k = form_.has_keys ? text(form_.key, key) : std::string_view();
        std::string_view v;
        if (form_.values_in_keys) v = blob_value(base_, blob_at(key));
        else if (form_.has_values) v = text(form_.value, value);
        ++looked_at_;
        if (k.size() > bytes_left_ || v.size() > bytes_left_ - k.size()) return; // upholds (2)
        bytes_left_ -= k.size() + v.size();
        ++count_;
        to_(number, k, v);
    }

    const std::byte* base_;
    const contents_form& form_;
    std::uint64_t most_, bytes_left_, looked_at_ = 0, count_ = 0;
    const element_reader& to_;
    std::unordered_set<ref> seen_;
};

bool is_trie(std::uint32_t kind) noexcept {
    return kind == builtin_kind::hash_trie || kind == builtin_kind::cache;
}

} // namespace

bool contents_form::is_container(std::uint32_t kind) noexcept {
    return kind >= builtin_kind::hash_trie && kind <= builtin_kind::cache;
}

contents_form contents_form::of(std::uint32_t kind, std::uint64_t shape) noexcept {
    const bool trie = is_trie(kind);
    const bool keyed = trie || kind == builtin_kind::ordered_map;
    if (!keyed) return {.kind = kind, .value = slot_of_shape(shape)};
    return {.kind = kind,
            .key = slot_of_shape(shape),
            .value = slot_of_shape(shape >> slot_shape_bits),
            .has_keys = true,
            .has_values = !trie || (shape >> 40 & 1) == 0,
            .values_in_keys = trie && (shape >> 41 & 1) != 0,
            .identity = static_cast<std::uint16_t>(shape >> 48)};
}

std::string shape_text(std::string_view name, std::uint32_t kind, std::uint64_t shape) {
    if (!contents_form::is_container(kind)) return fmt::format("{} of shape {:#x}", name, shape);
    const auto form = contents_form::of(kind, shape);
    const auto text = [](const slot_form& of) {
        return of.holds_ref ? "string" : fmt::format("{} bytes aligned to {}", of.bytes, of.align);
    };
    const std::string value = form.values_in_keys ? "string" : text(form.value);
    if (!form.has_keys) return fmt::format("{} ({}; shape {:#x})", name, value, shape);
    return fmt::format("{} (key {}{}; shape {:#x})", name, text(form.key),
                       form.has_values ? ", value " + value : "", shape);
}

std::uint64_t read_elements(const std::byte* base, std::uint64_t word, const contents_form& form,
                            std::uint64_t most, std::uint64_t bytes_most,
                            const element_reader& to) {
    if (word == 0) return 0;
    walk all(base, form, std::min(most, element_count(word)), bytes_most, to);
    const ref top = static_cast<ref>(word);
    if (is_trie(form.kind)) all.trie(top, 0);
    else if (form.kind == builtin_kind::ordered_map) all.tree(top, 0);
    else if (form.kind == builtin_kind::vector) all.vector(word);
    else if (form.kind == builtin_kind::stack) all.stack(word);
    else all.queue(word);
    return all.count();
}

} // namespace hf::mod
