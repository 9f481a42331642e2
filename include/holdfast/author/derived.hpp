// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members that follow from a structure's links: parents, heights, a count. A type declares them
// once. With engine selective the compiler then treats plain stores to these members as lazy ones
// (hf::lazy), and this header makes the function that computes the members again after a crash.
//
//   struct node { node *left, *right, *parent; long height; };
//   struct tree { node* top; unsigned long count; };
//   long height_of(const node& n); // from those of n.left and n.right
//
//   using recovery = hf::derived::recovery<
//       hf::derived::links<&tree::top, &node::left, &node::right>,
//       hf::derived::parent<&node::parent>, hf::derived::value<&node::height, height_of>,
//       hf::derived::count<&tree::count>>;
//   options.engines = {hf::selective::engine({.rebuild = recovery::rebuild})};
//
//   (1) A member is computed from links alone, and from members that are computed before it:
//       parents from the top down, then values, those of a node's children before its own, then
//       counts.
//   (2) rebuild() stores its results lazily, in one section, and to no link. If it is cut short, it
//       is run again.
//
// Source: SLPMT IV-B, pattern 2. Differs: it reads the structure, not one transaction's records.
//         Whichever sections are durable, their links are; docs/guide/selective-logging.md.
#pragma once

#include <holdfast/author/selective.hpp>
#include <holdfast/pool.hpp>

#include <cstddef>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <vector>

/// Marks a member for the compiler: its stores are lazy. No such function is ever called. 'next' is
/// one object behind the member's.
extern "C" void hf_derived_member(const void* next, const void* member,
                                  unsigned long bytes) noexcept;

namespace hf::derived {

namespace detail {
template <class> struct member_of;
template <class T, class Object> struct member_of<T Object::*> {
    using object = Object;
    using type = T;
};
template <auto Member> using object_of = typename member_of<decltype(Member)>::object;
template <auto Member> using type_of = typename member_of<decltype(Member)>::type;
template <auto> struct constant {};
template <auto A, auto B> inline constexpr bool same = std::is_same_v<constant<A>, constant<B>>;

/// Its instantiation marks the member by hf_derived_member().
template <auto Member> [[gnu::used]] void declare(object_of<Member>* at) noexcept {
    if constexpr (selective::chosen)
        hf_derived_member(at + 1, std::addressof(at->*Member), sizeof(type_of<Member>));
}

/// Whether the pool may contain lazy stores: it is open with engine selective. A pool that has had
/// any is refused without that engine.
bool may_have_lazy(const pool& in) noexcept;

/// Whether this translation unit is built relocatable.
#if defined(HF_RELOCATABLE)
static constexpr bool relocatable = true;
#else
static constexpr bool relocatable = false;
#endif

/// A section of engine selective for calls of hf_lazy(); 'first' is in its pool. In a relocated
/// pool only relocatable code may store.
class finding {
public:
    finding(const void* first, bool is_relocatable) noexcept;
    finding(const finding&) = delete;
    finding& operator=(const finding&) = delete;
    ~finding();
};

/// Errors: std::logic_error, always.
[[noreturn]] void root_of_another_type();
[[noreturn]] void rest_of_another_engine();

template <class Node> struct visited {
    Node* at;
    Node* above; // null: the root leads to the node
};

/// Calls f(node) for each target of a link, or of an array of links.
template <class Link, class F> void each_target(const Link& link, F f) {
    if constexpr (std::is_array_v<Link>) {
        for (const auto& one : link) each_target(one, f);
    } else {
        static_assert(std::is_pointer_v<Link>,
                      "a link is a pointer, or an array of them: name a member of such a type");
        if (link != nullptr) f(link);
    }
}
} // namespace detail

/// The member of a root that leads to its nodes, and the members of a node that lead to further
/// nodes: pointers, or arrays of them. They reach each node in exactly one way.
template <auto Top, auto... Links> struct links {
    using root = detail::object_of<Top>;
    using node = std::remove_pointer_t<std::remove_all_extents_t<detail::type_of<Top>>>;
    template <auto Member>
    static constexpr bool have = (detail::same<Top, Member> || ... || detail::same<Links, Member>);

    /// All nodes, each behind the one above it.
    /// Errors: std::length_error if there are more than fit into 'in': links lead in a circle.
    static std::vector<detail::visited<node>> nodes_of(const pool& in, const root& of) {
        std::vector<detail::visited<node>> found;
        const auto add = [&](node* above) {
            return [&, above](node* at) { found.push_back({at, above}); };
        };
        detail::each_target(of.*Top, add(nullptr));
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (found.size() > in.size_bytes() / sizeof(node))
                throw std::length_error("hf::derived: links lead in a circle");
            node* const at = found[i].at;
            (detail::each_target(at->*Links, add(at)), ...);
        }
        return found;
    }
};

/// A node's member that names the node above: the one whose link leads to it; null if the root
/// does.
template <auto Member> struct parent {
    static constexpr auto member = Member;
    template <class Node, class Put> static void down(detail::visited<Node> v, Put put) {
        put(v.at->*Member, v.above);
    }
};

/// A node's member that is Of(node). Of reads the node's parents, and such members of the nodes
/// below.
template <auto Member, auto Of> struct value {
    static constexpr auto member = Member;
    template <class Node, class Put> static void up(detail::visited<Node> v, Put put) {
        const Node& node = *v.at;
        put(v.at->*Member, static_cast<detail::type_of<Member>>(Of(node)));
    }
};

/// A root's member with the number of its nodes.
template <auto Member> struct count {
    static constexpr auto member = Member;
    template <class Root, class Put> static void all(Root& root, std::size_t nodes, Put put) {
        put(root.*Member, static_cast<detail::type_of<Member>>(nodes));
    }
};

/// Members that a node's neighbours do not determine: Find(root) stores them by hf::lazy() when all
/// other members are found, in the same section.
template <auto Find> struct also {
    template <class Root> static void rest(Root& root) { Find(root); }
};

/// A structure's links, and the members that follow from them. The compiler takes such a member's
/// stores for lazy ones if the translation unit uses rebuild() or holds(). In other translation
/// units they are stores like any other, which is right, too.
///
/// Requires: at the end of each section the members have the values that follow from the links.
///           Stores to them name them (n->parent = p).
/// Source:   the header's. 'Selective' separates the two forms that translation units built for
///           different engines make of one type: otherwise the linker would take one function for
///           both.
template <bool Selective, class Links, class... Members> class recovery_for {
    template <class Member> static constexpr bool is_link() {
        if constexpr (requires { Member::member; }) return Links::template have<Member::member>;
        else return false;
    }
    static_assert((!is_link<Members>() && ...),
                  "a derived member cannot be a link: recovery finds it by the links");

public:
    using root = typename Links::root;
    using node = typename Links::node;

    /// Computes the members of the pool's root again: for selective::options::rebuild.
    ///
    /// Errors: those of rebuild_of(); std::logic_error if the pool's root is of another type, or
    ///         has no room. For a structure inside a larger root call rebuild_of().
    static void rebuild(pool& in) {
        if (!detail::may_have_lazy(in)) return;
        root* const of = in.root<root>();
        if (of == nullptr) detail::root_of_another_type();
        rebuild_of(in, *of);
    }
    /// The same for a structure anywhere in the pool. The translation unit that calls it may be
    /// built for any engine, or for none: the engine of the open pool counts.
    ///
    /// Requires: nobody else uses the structure. Links are trusted, as by every operation.
    /// Cost:     O(nodes), and 16 bytes of volatile memory for each.
    /// Ordering: 2 points. It does nothing if the pool is open without engine selective: nothing is
    ///           lazy then.
    /// Crash:    members are as before, or computed; run it again.
    /// Errors:   std::length_error if links lead in a circle, std::bad_alloc; std::logic_error if
    ///           there is an 'also' and the translation unit is not built for engine selective,
    ///           where hf::lazy() does nothing. Nothing is stored then.
    static void rebuild_of(pool& in, root& of) {
        if (!detail::may_have_lazy(in)) return;
        if constexpr (!Selective && (calls_rest<Members>() || ...))
            detail::rest_of_another_engine();
        const auto nodes = Links::nodes_of(in, of);
        const detail::finding section(std::addressof(of), detail::relocatable);
        // It also stores what is right already: that may be in the caches of a process that was
        // killed, and not yet durable. It calls hf_lazy itself, since lazy() does nothing in
        // translation units of other engines.
        find(nodes, of, [](auto& place, auto found) {
            hf_lazy(std::addressof(place), sizeof place);
            place = found;
        });
        (rest<Members>(of), ...);
    }
    /// Whether the members have the values that follow from the links: for checks.
    static bool holds(const pool& in, root& of) {
        bool all = true;
        find(Links::nodes_of(in, of), of,
             [&](const auto& place, auto found) { all = all && place == found; });
        return all;
    }

private:
    using nodes_found = std::vector<detail::visited<node>>;

    template <class Put> static void find(const nodes_found& nodes, root& of, Put put) {
        (declare<Members>(), ...);
        for (const auto& each : nodes) (down<Members>(each, put), ...);
        for (const auto& each : nodes | std::views::reverse) (up<Members>(each, put), ...);
        (all<Members>(of, nodes.size(), put), ...);
    }
    template <class Member, class Put> static void down(detail::visited<node> each, Put put) {
        if constexpr (requires { Member::down(each, put); }) Member::down(each, put);
    }
    template <class Member, class Put> static void up(detail::visited<node> each, Put put) {
        if constexpr (requires { Member::up(each, put); }) Member::up(each, put);
    }
    template <class Member> static constexpr bool calls_rest() {
        return requires(root& of) { Member::rest(of); };
    }
    template <class Member> static void rest(root& of) {
        if constexpr (calls_rest<Member>()) Member::rest(of);
    }
    template <class Member> static void declare() {
        if constexpr (requires { Member::member; })
            static_cast<void>(&detail::declare<Member::member>);
    }
    template <class Member, class Put> static void all(root& of, std::size_t nodes, Put put) {
        if constexpr (requires { Member::all(of, nodes, put); }) Member::all(of, nodes, put);
    }
};

template <class Links, class... Members>
using recovery = recovery_for<selective::chosen, Links, Members...>;

} // namespace hf::derived
