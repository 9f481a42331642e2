// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training on scikit-learn's handwritten digits: the data and the model are one persistent object,
// a step of the training is a deferrable function. SIMPO §4.3.1
#pragma once

#include "driver.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace hf::bench {

/// 8 x 8 pixels of 0 to 16, and what they show.
struct digit_images {
    static constexpr std::size_t pixels = 64, count_max = 1797;
    std::array<std::array<std::uint8_t, pixels>, count_max> pixel{};
    std::array<std::uint8_t, count_max> shows{};
    std::uint32_t count = 0;
};
/// Reads digits.csv.gz. Ends the process with a message where it is not there.
digit_images read_digits(const std::string& path);

/// Softmax regression by gradient descent. A step takes 20 images.
class logistic_model {
public:
    static constexpr simpo::class_name simpo_class{"logistic", 1};
    static constexpr std::uint32_t batch = 20;
    explicit logistic_model(const digit_images& learn) noexcept : learn_(learn) {}

    void train(std::uint32_t step) noexcept {
        for (std::uint32_t i = 0; i < batch; ++i) learn((step * batch + i) % learn_.count);
        ++steps_;
    }
    std::uint64_t steps_done() const noexcept { return steps_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = steps_;
        for (const auto& row : weights_)
            for (const float w : row) hash = mixed(hash, std::bit_cast<std::uint32_t>(w));
        return hash;
    }
    /// The part of the learnt images that it recognises.
    double accuracy() const noexcept {
        std::uint32_t right = 0;
        for (std::uint32_t i = 0; i < learn_.count; ++i) {
            const scores s = scores_of(i);
            std::uint8_t best = 0;
            for (std::uint8_t k = 1; k < classes; ++k)
                if (s[k] > s[best]) best = k;
            right += best == learn_.shows[i];
        }
        return static_cast<double>(right) / learn_.count;
    }

private:
    static constexpr std::uint8_t classes = 10;
    static constexpr float rate = 0.02F;
    using scores = std::array<float, classes>;
    scores scores_of(std::uint32_t image) const noexcept {
        scores out;
        for (std::size_t k = 0; k < classes; ++k) {
            float sum = weights_[k][digit_images::pixels];
            for (std::size_t p = 0; p < digit_images::pixels; ++p)
                sum += weights_[k][p] * (static_cast<float>(learn_.pixel[image][p]) / 16);
            out[k] = sum;
        }
        return out;
    }
    void learn(std::uint32_t image) noexcept {
        scores s = scores_of(image);
        float most = s[0], all = 0;
        for (const float x : s) most = x > most ? x : most;
        for (float& x : s) all += x = std::exp(x - most);
        for (std::size_t k = 0; k < classes; ++k) {
            const float error = (k == learn_.shows[image] ? 1 : 0) - s[k] / all;
            for (std::size_t p = 0; p < digit_images::pixels; ++p)
                weights_[k][p] += rate * error * (static_cast<float>(learn_.pixel[image][p]) / 16);
            weights_[k][digit_images::pixels] += rate * error;
        }
    }

    digit_images learn_;
    std::array<std::array<float, digit_images::pixels + 1>, classes> weights_{};
    std::uint64_t steps_ = 0;
};

/// A restricted Boltzmann machine of 64 visible and 100 hidden units, contrastive divergence of one
/// step. A step of the training takes 10 images. Its random numbers are a member: a step does the
/// same whenever it is made.
class boltzmann_machine {
public:
    static constexpr simpo::class_name simpo_class{"boltzmann", 1};
    static constexpr std::uint32_t batch = 10;
    explicit boltzmann_machine(const digit_images& learn) noexcept : learn_(learn) {
        for (auto& row : weights_)
            for (float& w : row) w = (uniform() - 0.5F) * 0.1F;
    }

    void train(std::uint32_t step) noexcept {
        for (std::uint32_t i = 0; i < batch; ++i) learn((step * batch + i) % learn_.count);
        ++steps_;
    }
    std::uint64_t steps_done() const noexcept { return steps_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = mixed(steps_, random_);
        for (const auto& row : weights_)
            for (const float w : row) hash = mixed(hash, std::bit_cast<std::uint32_t>(w));
        return hash;
    }
    /// Mean squared error of the images shown again by way of the hidden units: 0 to 1.
    double error() const noexcept {
        double all = 0;
        for (std::uint32_t i = 0; i < learn_.count; ++i) {
            const auto seen = visible_of(i);
            const auto again = visible_from(hidden_from(seen));
            for (std::size_t v = 0; v < visible; ++v)
                all += (seen[v] - again[v]) * (seen[v] - again[v]);
        }
        return all / learn_.count / visible;
    }

private:
    static constexpr std::size_t visible = digit_images::pixels, hidden = 100;
    static constexpr float rate = 0.05F;
    using visible_units = std::array<float, visible>;
    using hidden_units = std::array<float, hidden>;

    float uniform() noexcept {
        random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
        return static_cast<float>(random_ >> 40) * 0x1p-24F;
    }
    static float sigmoid(float x) noexcept { return 1 / (1 + std::exp(-x)); }
    visible_units visible_of(std::uint32_t image) const noexcept {
        visible_units out;
        for (std::size_t v = 0; v < visible; ++v)
            out[v] = static_cast<float>(learn_.pixel[image][v]) / 16;
        return out;
    }
    hidden_units hidden_from(const visible_units& from) const noexcept {
        hidden_units out = hidden_bias_;
        for (std::size_t v = 0; v < visible; ++v)
            for (std::size_t h = 0; h < hidden; ++h) out[h] += weights_[v][h] * from[v];
        for (float& h : out) h = sigmoid(h);
        return out;
    }
    visible_units visible_from(const hidden_units& from) const noexcept {
        visible_units out = visible_bias_;
        for (std::size_t v = 0; v < visible; ++v) {
            for (std::size_t h = 0; h < hidden; ++h) out[v] += weights_[v][h] * from[h];
            out[v] = sigmoid(out[v]);
        }
        return out;
    }
    void learn(std::uint32_t image) noexcept {
        const visible_units seen = visible_of(image);
        const hidden_units awake = hidden_from(seen);
        hidden_units sampled;
        for (std::size_t h = 0; h < hidden; ++h) sampled[h] = uniform() < awake[h] ? 1 : 0;
        const visible_units dreamt = visible_from(sampled);
        const hidden_units asleep = hidden_from(dreamt);
        for (std::size_t v = 0; v < visible; ++v) {
            for (std::size_t h = 0; h < hidden; ++h)
                weights_[v][h] += rate * (seen[v] * awake[h] - dreamt[v] * asleep[h]);
            visible_bias_[v] += rate * (seen[v] - dreamt[v]);
        }
        for (std::size_t h = 0; h < hidden; ++h) hidden_bias_[h] += rate * (awake[h] - asleep[h]);
    }

    digit_images learn_;
    std::array<hidden_units, visible> weights_{};
    visible_units visible_bias_{};
    hidden_units hidden_bias_{};
    std::uint64_t random_ = 0x9e3779b97f4a7c15ULL, steps_ = 0;
};

/// An autoencoder of 64, 32 and 64 units, by gradient descent. A step takes 10 images.
class autoencoder {
public:
    static constexpr simpo::class_name simpo_class{"autoencoder", 1};
    static constexpr std::uint32_t batch = 10;
    explicit autoencoder(const digit_images& learn) noexcept : learn_(learn) {
        std::uint64_t random = 0x9e3779b97f4a7c15ULL;
        const auto draw = [&] {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            return (static_cast<float>(random >> 40) * 0x1p-24F - 0.5F) * 0.3F;
        };
        for (auto& row : encode_)
            for (float& w : row) w = draw();
        for (auto& row : decode_)
            for (float& w : row) w = draw();
    }

    void train(std::uint32_t step) noexcept {
        for (std::uint32_t i = 0; i < batch; ++i) learn((step * batch + i) % learn_.count);
        ++steps_;
    }
    std::uint64_t steps_done() const noexcept { return steps_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = steps_;
        for (const auto& row : encode_)
            for (const float w : row) hash = mixed(hash, std::bit_cast<std::uint32_t>(w));
        for (const auto& row : decode_)
            for (const float w : row) hash = mixed(hash, std::bit_cast<std::uint32_t>(w));
        return hash;
    }
    /// Mean squared error of the images that come out again: 0 to 1.
    double error() const noexcept {
        double all = 0;
        for (std::uint32_t i = 0; i < learn_.count; ++i) {
            const pixels in = pixels_of(i);
            const pixels out = decoded(encoded(in));
            for (std::size_t p = 0; p < width; ++p) all += (in[p] - out[p]) * (in[p] - out[p]);
        }
        return all / learn_.count / width;
    }

private:
    static constexpr std::size_t width = digit_images::pixels, code_width = 32;
    static constexpr float rate = 0.5F;
    using pixels = std::array<float, width>;
    using code = std::array<float, code_width>;

    static float sigmoid(float x) noexcept { return 1 / (1 + std::exp(-x)); }
    pixels pixels_of(std::uint32_t image) const noexcept {
        pixels out;
        for (std::size_t p = 0; p < width; ++p)
            out[p] = static_cast<float>(learn_.pixel[image][p]) / 16;
        return out;
    }
    /// The last weight of a row is its bias.
    code encoded(const pixels& in) const noexcept {
        code out;
        for (std::size_t c = 0; c < code_width; ++c) {
            float sum = encode_[c][width];
            for (std::size_t p = 0; p < width; ++p) sum += encode_[c][p] * in[p];
            out[c] = sigmoid(sum);
        }
        return out;
    }
    pixels decoded(const code& in) const noexcept {
        pixels out;
        for (std::size_t p = 0; p < width; ++p) {
            float sum = decode_[p][code_width];
            for (std::size_t c = 0; c < code_width; ++c) sum += decode_[p][c] * in[c];
            out[p] = sigmoid(sum);
        }
        return out;
    }
    void learn(std::uint32_t image) noexcept {
        const pixels in = pixels_of(image);
        const code middle = encoded(in);
        const pixels out = decoded(middle);
        code back{};
        for (std::size_t p = 0; p < width; ++p) {
            const float slope = (in[p] - out[p]) * out[p] * (1 - out[p]);
            for (std::size_t c = 0; c < code_width; ++c) {
                back[c] += slope * decode_[p][c];
                decode_[p][c] += rate * slope * middle[c];
            }
            decode_[p][code_width] += rate * slope;
        }
        for (std::size_t c = 0; c < code_width; ++c) {
            const float slope = back[c] * middle[c] * (1 - middle[c]);
            for (std::size_t p = 0; p < width; ++p) encode_[c][p] += rate * slope * in[p];
            encode_[c][width] += rate * slope;
        }
    }

    digit_images learn_;
    std::array<std::array<float, width + 1>, code_width> encode_{};
    std::array<std::array<float, code_width + 1>, width> decode_{};
    std::uint64_t steps_ = 0;
};

/// Epochs of steps; the end of each is a barrier, as in the paper: an instant call.
template <class Model> class training {
public:
    using type = Model;
    training(const digit_images& digits, std::uint64_t epochs)
        : digits_(std::make_unique<digit_images>(digits)), epochs_(epochs) {}
    std::uint64_t steps() const { return epochs_ * steps_an_epoch(); }
    std::unique_ptr<type> make_native() const { return std::make_unique<type>(*digits_); }
    result<simpo::object<type>> create(pool& in, const simpo::object_options& how) const {
        return simpo::object<type>::create(in, "it", how, *digits_);
    }
    template <class Object> void run(Object& object, std::uint64_t from, std::uint64_t to) const {
        for (std::uint64_t step = from; step < to; ++step) {
            object.template defer<&type::train>(static_cast<std::uint32_t>(step));
            if ((step + 1) % steps_an_epoch() == 0) object.sync();
        }
        object.sync();
    }

private:
    std::uint64_t steps_an_epoch() const { return std::max(digits_->count / type::batch, 1U); }
    std::unique_ptr<digit_images> digits_;
    std::uint64_t epochs_;
};

} // namespace hf::bench
