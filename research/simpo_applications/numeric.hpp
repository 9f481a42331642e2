// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floyd and Warshall's shortest ways over the graph of holdfast/simpo/, and the multiplication of
// matrices with a BLAS: each step an instant function. SIMPO §4.3.2, §4.3.4
#pragma once

#include "driver.hpp"

#include <holdfast/simpo/graph.hpp>

#include <bit>
#include <memory>
#include <random>

#if defined(HF_WITH_BLAS)
#include <cblas.h>
#endif

namespace hf::bench {

/// 400 vertices, 3 % of the edges, from a fixed seed.
class shortest_ways : public simpo::graph<400> {
public:
    static constexpr simpo::class_name simpo_class{"shortest_ways", 1};
    static constexpr std::uint32_t vertices = 400;

    void step() noexcept { shorten_by(static_cast<std::uint32_t>(steps_++)); }
    std::uint64_t steps_done() const noexcept { return steps_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = steps_;
        for (std::uint32_t from = 0; from < vertices; ++from)
            for (std::uint32_t to = 0; to < vertices; ++to)
                hash = mixed(hash, std::bit_cast<std::uint64_t>(weight(from, to)));
        return hash;
    }

private:
    std::uint64_t steps_ = 0;
};

class floyd_warshall {
public:
    using type = shortest_ways;
    std::uint64_t steps() const { return type::vertices; }
    std::unique_ptr<type> make_native() const { return std::make_unique<type>(start()); }
    result<simpo::object<type>> create(pool& in, const simpo::object_options& how) const {
        return simpo::object<type>::create(in, "it", how, start());
    }
    template <class Object> void run(Object& object, std::uint64_t from, std::uint64_t to) const {
        for (std::uint64_t step = from; step < to; ++step) object.template call<&type::step>();
    }

private:
    static const type& start() {
        static const std::unique_ptr<type> made = [] {
            auto graph = std::make_unique<type>();
            std::mt19937 random(20261125);
            for (std::uint32_t from = 0; from < type::vertices; ++from)
                for (std::uint32_t to = 0; to < type::vertices; ++to)
                    if (from != to && random() % 100 < 3)
                        graph->join(from, to, 1.0 + static_cast<double>(random() % 1000));
            return graph;
        }();
        return *made;
    }
};

#if defined(HF_WITH_BLAS)
/// c = a * b, then a takes a part of c.
class matrices {
public:
    static constexpr simpo::class_name simpo_class{"matrices", 1};
    static constexpr int n = 256;
    matrices() noexcept {
        std::uint64_t x = 88172645463325252ULL;
        for (double* const m : {a_, b_})
            for (int i = 0; i < n * n; ++i) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                m[i] = static_cast<double>(x >> 11) * 0x1p-53 / n;
            }
    }
    void multiply() noexcept {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a_, n, b_, n, 0.5, c_,
                    n);
        ++steps_;
    }
    std::uint64_t steps_done() const noexcept { return steps_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = steps_;
        for (const double x : c_) hash = mixed(hash, std::bit_cast<std::uint64_t>(x));
        return hash;
    }

private:
    double a_[n * n], b_[n * n], c_[n * n]{};
    std::uint64_t steps_ = 0;
};

class linpack {
public:
    using type = matrices;
    explicit linpack(std::uint64_t multiplications) : steps_(multiplications) {}
    std::uint64_t steps() const { return steps_; }
    std::unique_ptr<type> make_native() const { return std::make_unique<type>(); }
    result<simpo::object<type>> create(pool& in, const simpo::object_options& how) const {
        return simpo::object<type>::create(in, "it", how);
    }
    template <class Object> void run(Object& object, std::uint64_t from, std::uint64_t to) const {
        for (std::uint64_t step = from; step < to; ++step) object.template call<&type::multiply>();
    }

private:
    std::uint64_t steps_;
};
#endif

} // namespace hf::bench
