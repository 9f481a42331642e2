// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libc++'s map, unordered_map and vector, changed together: first articles, growing tables,
// removal.
#include "container_sections.hpp"
#include <check/pool_program.hpp>

#include <holdfast/engines.hpp>

namespace {

struct root {
    std::byte bytes[containers::root_bytes];
};

class containers_program : public hf::crash::pool_program {
public:
    explicit containers_program(unsigned before)
        : pool_program({.layout = "crash/containers", .engines = hf::engines_of_build()}),
          before_(before) {}
    void setup(hf::pool& p) override {
        containers::create(p.root<root>());
        for (unsigned i = 0; i < before_; ++i) containers::add(p, p.root<root>(), 10 * i, i + 1);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        if (!containers::created(r)) return;
        s.expect(containers::whole(r), "the three containers agree");
        containers::for_each(r, &s, [](void* to, std::uint64_t article, std::uint64_t amount) {
            static_cast<hf::crash::state*>(to)->add(article);
            static_cast<hf::crash::state*>(to)->add(amount);
        });
        containers::for_each_block(r, &s, [](void* to, const void* block, std::size_t) {
            static_cast<hf::crash::state*>(to)->object(block);
        });
    }

private:
    unsigned before_;
};

class create_program final : public containers_program {
public:
    create_program() : containers_program(0) {}
    void setup(hf::pool& p) override { p.root<root>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { containers::create(p.root<root>()); }
};

/// The first ones, when every table is made and grows.
class add_program final : public containers_program {
public:
    add_program() : containers_program(0) {}
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        containers::add(p, p.root<root>(), 7 - i, i + 1);
    }
};

/// A new article that makes the map rotate and the tables grow; an old one; a removal.
class change_program final : public containers_program {
public:
    change_program() : containers_program(2) {}
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) containers::add(p, r, 40, 9);
        else if (i == 1) containers::add(p, r, 10, 5);
        else containers::remove(r, 0);
    }
};

[[maybe_unused]] const bool added = [] {
    const std::string engine(hf::engine_of_build());
    hf::crash::add("containers/create/" + engine, std::make_unique<create_program>());
    hf::crash::add("containers/add/" + engine, std::make_unique<add_program>());
    hf::crash::add("containers/change/" + engine, std::make_unique<change_program>());
    return true;
}();

} // namespace
