// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost's map, flat_map, and an intrusive avl_set whose elements are in an intrusive list as well.
#include "containers.hpp"
#include "files.hpp"

#include <boost/container/flat_map.hpp>
#include <boost/container/map.hpp>
#include <boost/intrusive/avl_set.hpp>
#include <boost/intrusive/list.hpp>

HF_PLAIN_BEGIN(boost_trees)

using number = std::uint64_t;
using map = boost::container::map<number, number, std::less<number>,
                                  hf::allocator<std::pair<const number, number>>>;
using flat_map = boost::container::flat_map<number, number, std::less<number>,
                                            hf::allocator<std::pair<number, number>>>;

struct node : boost::intrusive::avl_set_base_hook<>, boost::intrusive::list_base_hook<> {
    number key, value;

    node(number k, number v) noexcept : key(k), value(v) {}
};
struct key_of_node {
    using type = number;
    number operator()(const node& n) const { return n.key; }
};
/// By key, and in the order of insertion.
struct index {
    boost::intrusive::avl_set<node, boost::intrusive::key_of_value<key_of_node>> by_key;
    boost::intrusive::list<node> by_age;
};

HF_TXFUNC void create_index(void* root, std::uint64_t) { new (root) index; }
HF_TXFUNC bool insert(void* root, number key, number value) {
    auto* i = static_cast<index*>(root);
    if (const auto found = i->by_key.find(key); found != i->by_key.end()) {
        found->value = value;
        return false;
    }
    node* fresh = hf::make<node>(key, value);
    i->by_key.insert(*fresh);
    i->by_age.push_back(*fresh);
    return true;
}
HF_TXFUNC bool erase(void* root, number key) {
    auto* i = static_cast<index*>(root);
    const auto found = i->by_key.find(key);
    if (found == i->by_key.end()) return false;
    node* old = &*found;
    i->by_age.erase(i->by_age.iterator_to(*old));
    i->by_key.erase(found);
    hf::destroy(old);
    return true;
}
void visit(const void* root, void* to, visitor* each) {
    for (const node& n : static_cast<const index*>(root)->by_age) each(to, &n, n.key, n.value);
}

constexpr subject all[] = {
    keyed<map>("boost::container::map"),
    keyed<flat_map>("boost::container::flat_map", 64),
    {"boost::intrusive avl_set, list", shape::keyed, "insert", "erase", create_index, insert, erase,
     visit},
};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END
