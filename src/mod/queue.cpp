// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of queues that does not depend on their elements: levels and groups, and what
// reclamation needs to know of them.
#include <base/assert.hpp>

#include <holdfast/mod/queue.hpp>

namespace hf::mod::detail {
namespace {

// Strips what is dead from the old end of a level that may be changed. alive: chunks in it and
// deeper.
void strip(shadow& to, queue_node& level, std::uint32_t number, std::uint32_t unit,
           std::uint32_t alive) {
    if (alive > level.used * unit) return;
    if (level.deeper != 0) {
        to.released(level.deeper, queue_context::level(number + 1));
        level.deeper = 0;
    }
    const std::uint32_t dead = level.used - (alive + unit - 1) / unit;
    HF_ASSERT(dead <= level.used && level.used <= queue_fan);
    for (std::uint32_t i = 0; i < dead; ++i)
        if (level.at[i] != 0) to.released(level.at[i], queue_context::group(number - 1));
    std::copy(level.at + dead, level.at + level.used, level.at);
    level.used -= dead;
}

// Fails when a pool is so full that pops, until the next group is made, could not give memory back:
// that takes copies, of a line for each level and height at most.
bool leaves_room(shadow& to) {
    constexpr std::uint32_t lines = queue_fan * 2 + 2 * queue_levels_max;
    ref made[lines];
    std::uint32_t count = 0;
    while (count < lines && (made[count] = to.make(sizeof(queue_node))) != 0) ++count;
    for (std::uint32_t i = 0; i < count; ++i) to.replaced(made[i]);
    return count == lines;
}

// 'item' is a chunk if number is 1, else a group; each ref of a level means 'unit' chunks.
ref append(shadow& to, ref level, ref item, std::uint32_t number, std::uint32_t unit,
           std::uint32_t alive) {
    if (level == 0) {
        const ref made = to.make(sizeof(queue_node));
        if (made != 0) *to.at<queue_node>(made) = {0, 1, {item}};
        return made;
    }
    const ref own = edited(to, level, sizeof(queue_node), queue_context::level(number));
    if (own == 0) return 0;
    auto* node = to.at<queue_node>(own);
    if (number > queue_levels_max || node->used - 1U >= queue_fan) {
        to.fail_damaged();
        return 0;
    }
    strip(to, *node, number, unit, alive);
    if (node->used == queue_fan) {
        if (number == 1 && !leaves_room(to)) return 0;
        const ref group = to.make(sizeof(queue_node));
        if (group == 0) return 0;
        auto* packed = to.at<queue_node>(group);
        *packed = *node;
        packed->deeper = 0;
        const std::uint32_t here = queue_fan * unit;
        const ref deeper =
            append(to, node->deeper, group, number + 1, here, alive > here ? alive - here : 0);
        if (deeper == 0) return 0;
        node->deeper = deeper;
        node->used = 0;
    }
    HF_ASSERT(node->used < queue_fan);
    node->at[node->used++] = item;
    HF_ASSERT_SLOW(to.fresh(own));
    return own;
}

// The place of a chunk: its level, and its distance from that level's newest chunk.
struct position {
    std::uint32_t level = 1;
    std::uint32_t unit = 1; // chunks per ref of the level
    std::uint32_t back;
};

position position_of(const std::byte* base, ref level, std::uint32_t back) {
    position found{.back = back};
    for (; found.level <= queue_levels_max; ++found.level, found.unit *= queue_fan) {
        const auto* node = node_at<queue_node>(base, level);
        if (found.back < queue_used(*node) * found.unit) return found;
        found.back -= queue_used(*node) * found.unit;
        level = node->deeper;
    }
    return {.level = 0, .back = 0}; // damaged: no such chunk
}

// Height of the largest group that ends with the chunk; the level's own, when all of it does.
std::uint32_t height_ended_by(position at) {
    HF_ASSERT(at.level - 1 < queue_levels_max);
    std::uint32_t height = at.level - 1;
    for (std::uint32_t unit = at.unit; at.back % unit != 0; unit /= queue_fan) --height;
    return height;
}

// The path's next node, as one that may be changed. Null: no room.
queue_node* edited_at(shadow& to, ref& link, std::uint32_t context) {
    const ref own = edited(to, link, sizeof(queue_node), context);
    if (own == 0) return nullptr;
    link = own;
    return to.at<queue_node>(own);
}

void cut(shadow& to, ref& link, std::uint32_t context) {
    to.released(link, context);
    link = 0;
}

} // namespace

ref queue_append(shadow& to, ref level, ref chunk, std::uint32_t alive) {
    return append(to, level, chunk, 1, 1, alive);
}

ref queue_drop(shadow& to, ref header, std::size_t header_bytes, std::uint32_t back,
               std::uint32_t height_min) {
    position at = position_of(to.base(), to.at<queue_header>(header)->level, back);
    if (at.level == 0) {
        to.fail_damaged();
        return 0;
    }
    const bool whole_level = at.back == 0;
    const std::uint32_t height = height_ended_by(at);
    if (!whole_level && height < height_min) return header;
    const ref own = edited(to, header, header_bytes, queue_context::header());
    if (own == 0) return 0;
    ref* link = &to.at<queue_header>(own)->level;
    std::uint32_t number = 1;
    for (; number < at.level; ++number) {
        queue_node* node = edited_at(to, *link, queue_context::level(number));
        if (node == nullptr) return 0;
        link = &node->deeper;
    }
    if (whole_level) {
        cut(to, *link, queue_context::level(number));
        return own;
    }
    queue_node* node = edited_at(to, *link, queue_context::level(number));
    if (node == nullptr) return 0;
    link = &node->at[queue_used(*node) - 1 - at.back / at.unit];
    for (std::uint32_t now = at.level - 1; now > height; --now) {
        node = edited_at(to, *link, queue_context::group(now));
        if (node == nullptr) return 0;
        at.back %= at.unit;
        at.unit /= queue_fan;
        link = &node->at[queue_fan - 1 - at.back / at.unit];
    }
    cut(to, *link, queue_context::group(height));
    return own;
}

namespace {

void top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t shape) {
    const counted now = counted::of(word);
    const chunk_form form = chunk_form_of(slot_of_shape(shape), sizeof(queue_header));
    if (now.count > queue_count_max || (now.count == 0) != (now.node == 0))
        return visit_corrupt(to, 0);
    if (now.count != 0) to.node(now.node, form.bytes, queue_context::header(now.count));
}

void visit_header(visitor& to, const std::byte* node, std::uint32_t holds, slot_form each) {
    const chunk_form form = chunk_form_of(each, sizeof(queue_header));
    queue_header head;
    std::memcpy(&head, node, sizeof head);
    if (head.used == 0 || head.used > form.capacity) return visit_corrupt(to, 0);
    visit_slots(to, each, node + form.first, head.used);
    const std::uint32_t chunks = queue_chunks(holds, head.used, form.capacity);
    if (head.level != 0) to.node(head.level, sizeof(queue_node), queue_context::level(1, chunks));
    else if (chunks != 0) visit_corrupt(to, 0);
}

// The nodes that a level or a group names; height is theirs. Returns how many chunks it lacks.
std::uint64_t visit_named(visitor& to, const queue_node& from, std::uint32_t height,
                          std::uint64_t holds, slot_form each) {
    const chunk_form form = chunk_form_of(each, sizeof(queue_header));
    const std::size_t bytes = height == 0 ? queue_chunk_bytes(each, form) : sizeof(queue_node);
    std::uint64_t unit = 1;
    for (std::uint32_t i = 0; i < height; ++i) unit *= queue_fan;
    for (std::uint32_t i = from.used; i-- > 0;) {
        const auto here = static_cast<std::uint32_t>(std::min(unit, holds));
        if (from.at[i] != 0) to.node(from.at[i], bytes, queue_context::group(height, here));
        else if (here != 0) visit_corrupt(to, 0);
        holds -= here;
    }
    return holds;
}

void visit_node(visitor& to, const std::byte* bytes, std::uint32_t part, std::uint32_t holds,
                slot_form each) {
    queue_node node;
    std::memcpy(&node, bytes, sizeof node);
    const bool level = part <= queue_levels_max;
    const bool whole = node.used == queue_fan && node.deeper == 0;
    if (node.used == 0 || node.used > queue_fan || (!level && !whole)) return visit_corrupt(to, 0);
    const std::uint32_t height = level ? part - 1 : part - queue_levels_max - 2;
    const std::uint64_t lacks = visit_named(to, node, height, holds, each);
    const bool deeper = node.deeper != 0;
    if ((lacks != 0 && !deeper) || (deeper && part == queue_levels_max))
        return visit_corrupt(to, 0);
    if (deeper)
        to.node(node.deeper, sizeof node,
                queue_context::level(part + 1, static_cast<std::uint32_t>(lacks)));
}

void children(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
              std::uint64_t shape) {
    if (context == blob_context) return visit_blob_children(to, node, bytes);
    const slot_form each = slot_of_shape(shape);
    const chunk_form form = chunk_form_of(each, sizeof(queue_header));
    const std::uint32_t part = context >> queue_context::part_shift;
    const std::uint32_t holds = context & queue_context::holds_max;
    if (bytes < (part == 0                      ? form.bytes
                 : part == queue_levels_max + 1 ? queue_chunk_bytes(each, form)
                                                : sizeof(queue_node)))
        return visit_corrupt(to, context);
    if (part == 0) return visit_header(to, node, holds, each);
    if (part == queue_levels_max + 1) return visit_slots(to, each, node, form.capacity);
    visit_node(to, node, part, holds, each);
}

} // namespace

const kind queue_kind{builtin_kind::queue, "queue", top, children};

} // namespace hf::mod::detail
