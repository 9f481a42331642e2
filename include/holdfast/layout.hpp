// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number for what a type looks like in a pool, to put into open_options::layout_hash. A build in
// which a member has another type then gets an error from open, although the size is the same and
// the layout's name was forgotten. Made of the definition, not of names: a member, a class or an
// enumeration may be renamed.
//
// What counts: for each member, in order, whether it is an integer, a number with a sign, a
// floating point number, an enumeration or a pointer, and its size; the members of classes, bases
// and arrays; what pointers lead to; the template arguments of containers. Not what void* leads to.
//
// Needs clang. A standard library of another version may have other members: pools that such
// builds share need a number that the program itself chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hf {
namespace detail {

template <class T>
concept complete_object = std::is_object_v<T> && requires { sizeof(T); };

template <class T> struct layout_arguments;

class layout_of_types {
public:
    template <class T> void add() {
        using type = std::remove_cv_t<T>;
        if constexpr (std::is_array_v<type>) {
            mix('a', std::extent_v<type>);
            add<std::remove_extent_t<type>>();
        } else if constexpr (std::is_pointer_v<type>) {
            mix('p', 0);
            if constexpr (complete_object<std::remove_pointer_t<type>>)
                add<std::remove_pointer_t<type>>();
        } else if constexpr (std::is_enum_v<type>) {
            mix('e', sizeof(type));
        } else if constexpr (std::is_floating_point_v<type>) {
            mix('f', sizeof(type));
        } else if constexpr (std::is_same_v<type, bool>) {
            mix('b', sizeof(type));
        } else if constexpr (std::is_integral_v<type>) {
            mix(std::is_signed_v<type> ? 'i' : 'u', sizeof(type));
        } else if constexpr (!complete_object<type>) {
            mix('?', 0);
        } else if constexpr (std::is_class_v<type> || std::is_union_v<type>) {
            add_class<type>();
        } else {
            mix('o', sizeof(type));
        }
    }
    std::uint64_t result() const noexcept { return sum_ == 0 ? 1 : sum_; }

    void mix(char kind, std::uint64_t value) noexcept {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
        sum_ = (sum_ ^ static_cast<unsigned char>(kind)) * odd;
        sum_ = (sum_ ^ sum_ >> 32 ^ value) * odd;
        sum_ ^= sum_ >> 29;
    }

private:
    template <class T> static constexpr char id_of = 0;

    /// Gets a line for each member: its last argument is the value, or a pointer to it.
    struct members {
        layout_of_types& to;
        template <class... Parts> int operator()(const char* line, Parts... parts) const {
            if constexpr (sizeof...(Parts) >= 4) to.add_member(line, parts...);
            return 0;
        }
    };
    template <class Part> void add_member(std::string_view line, Part) {
        if constexpr (std::is_pointer_v<Part>) {
            if (line.find("*%p") != line.npos) return add<std::remove_pointer_t<Part>>();
        }
        add<Part>();
    }
    /// A member of some bits has their number before it.
    template <class Part, class... Rest>
    void add_member(std::string_view line, Part part, Rest... rest) {
        if constexpr (std::is_same_v<Part, std::size_t> && sizeof...(Rest) == 1) {
            if (line.find("%zu") != line.npos) mix('n', part);
        }
        add_member(line, rest...);
    }

    template <class T> void add_class() {
        for (std::size_t i = 0; i < seen_.size(); ++i)
            if (seen_[i] == &id_of<T>) return mix('k', i);
        seen_.push_back(&id_of<T>);
        mix('c', sizeof(T));
        mix('l', alignof(T));
#if __has_builtin(__builtin_dump_struct)
        if constexpr (!std::is_empty_v<T>) {
            alignas(T) static std::byte zeros[sizeof(T)];
            __builtin_dump_struct(reinterpret_cast<T*>(zeros), members{*this});
        }
#else
        static_assert(sizeof(T) == 0,
                      "hf::layout_hash_of needs clang, which lists a type's members: "
                      "choose a number for open_options::layout_hash");
#endif
        layout_arguments<T>::add(*this);
        mix('.', 0);
    }

    std::uint64_t sum_ = 0;
    std::vector<const void*> seen_; // a list's node leads to one like it
};

template <class T> struct layout_arguments {
    static void add(layout_of_types&) noexcept {}
};
/// What a container holds need not be among its members.
template <template <class...> class Class, class... Arguments>
struct layout_arguments<Class<Arguments...>> {
    static void add(layout_of_types& to) { (to.add<Arguments>(), ...); }
};

} // namespace detail

/// The number for T, never 0. The same in every process of builds with the same definitions.
///
/// Cost:     a walk through the definitions, once; a look at a variable after that.
/// Ordering: 0 points.
/// Crash:    nothing: it changes no pool.
/// Errors:   another compiler than clang is refused when it compiles.
/// Threads:  any.
template <class T> std::uint64_t layout_hash_of() {
    static const std::uint64_t found = [] {
        detail::layout_of_types walk;
        walk.add<T>();
        return walk.result();
    }();
    return found;
}

} // namespace hf
