#include "io/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ranges>

#include <fmt/ranges.h>
#include <tuff/dtype.h>

#include "base/check.h"
#include "io/formats/gguf.h"

namespace tuff::io {
namespace {

constexpr int kSmall = 32, kLarge = 256;

void put(uint8_t* at, const auto& value) { std::memcpy(at, &value, sizeof value); }
void put_half(uint8_t* at, float value) { put(at, f16_from_f32(value)); }
float as_half(float value) { return f16_to_f32(f16_from_f32(value)); }
// 0 for what is too small to have one: a half of it is 0.
float inverse_of(float value) {
  const float inverse = 1 / value;
  return std::isfinite(inverse) ? inverse : 0;
}
// Towards 0, within 0 and last; 0 for nan.
int whole_within(float value, int last) {
  return int(std::min(std::max(0.0f, value), float(last)));
}

// 32 numbers in 16 bytes: low halves first.
void put_nibbles(const uint8_t* numbers, uint8_t* into) {
  for (int i = 0; i < kSmall / 2; i++)
    into[i] = uint8_t((numbers[i] & 15) | (numbers[i + kSmall / 2] & 15) << 4);
}
void put_fifth_bits(const uint8_t* numbers, uint8_t* into) {
  uint32_t bits = 0;
  for (int i = 0; i < kSmall; i++) bits |= uint32_t(numbers[i] >> 4 & 1) << i;
  put(into, bits);
}

// Types of 32 elements: the bits that ggml's reference encoders give.

// What is farthest from 0 is the lowest number, so many below the middle. The step.
float centered_numbers(const float* x, int below, uint8_t* numbers) {
  float most = 0;
  for (int i = 0; i < kSmall; i++)
    if (std::abs(x[i]) > std::abs(most)) most = x[i];
  const float step = most / float(-below), inverse = inverse_of(step);
  for (int i = 0; i < kSmall; i++) {
    const float scaled = x[i] * inverse;
    numbers[i] = uint8_t(whole_within(scaled + (float(below) + 0.5f), 2 * below - 1));
  }
  return step;
}
struct Line {
  float step, first;
};
Line numbers_from_least(const float* x, int last, uint8_t* numbers) {
  const auto [least, most] = std::minmax_element(x, x + kSmall);
  const float step = (*most - *least) / float(last), inverse = inverse_of(step);
  for (int i = 0; i < kSmall; i++) {
    const float scaled = (x[i] - *least) * inverse;
    numbers[i] = uint8_t(whole_within(scaled + 0.5f, last));
  }
  return {step, *least};
}

void encode_q4_0(const float* x, uint8_t* b) {
  uint8_t numbers[kSmall];
  put_half(b, centered_numbers(x, 8, numbers));
  put_nibbles(numbers, b + 2);
}
void encode_q5_0(const float* x, uint8_t* b) {
  uint8_t numbers[kSmall];
  put_half(b, centered_numbers(x, 16, numbers));
  put_fifth_bits(numbers, b + 2);
  put_nibbles(numbers, b + 6);
}
void encode_q4_1(const float* x, uint8_t* b) {
  uint8_t numbers[kSmall];
  const Line line = numbers_from_least(x, 15, numbers);
  put_half(b, line.step), put_half(b + 2, line.first);
  put_nibbles(numbers, b + 4);
}
void encode_q5_1(const float* x, uint8_t* b) {
  uint8_t numbers[kSmall];
  const Line line = numbers_from_least(x, 31, numbers);
  put_half(b, line.step), put_half(b + 2, line.first);
  put_fifth_bits(numbers, b + 4);
  put_nibbles(numbers, b + 8);
}
void encode_q8_0(const float* x, uint8_t* b) {
  float most = 0;
  for (int i = 0; i < kSmall; i++) most = std::max(most, std::abs(x[i]));
  const float step = most / 127, inverse = inverse_of(step);
  put_half(b, step);
  for (int i = 0; i < kSmall; i++) b[2 + i] = uint8_t(int8_t(std::round(x[i] * inverse)));
}

// Types of 256 elements in groups, each of which has a scale of a few bits, and the block a scale
// of these. A group's line is the one of least squared error among those that some steps lead to:
// elements are rounded to numbers by a trial step, and the line is fitted to them.

// How much the error of an element counts: what is large does more to a sum.
using Weights = std::array<float, kSmall>;
Weights weights_of(const float* x, int count) {
  float squares = 0;
  for (int i = 0; i < count; i++) squares += x[i] * x[i];
  const float usual = std::sqrt(squares / float(count));
  Weights w{};
  for (int i = 0; i < count; i++) w[size_t(i)] = usual + std::abs(x[i]);
  return w;
}

// Sums of a weighted fit of x by step*number + first.
struct Fit {
  float w = 0, wx = 0, wn = 0, wnn = 0, wxn = 0, wxx = 0;
  void add(float weight, float x, float number) {
    w += weight, wx += weight * x, wxx += weight * x * x;
    wn += weight * number, wnn += weight * number * number, wxn += weight * number * x;
  }
  // With `first` at most 0.
  Line best() const {
    const float determinant = w * wnn - wn * wn;
    if (determinant <= 0) return {wnn > 0 ? wxn / wnn : 0, 0};
    const Line line{(w * wxn - wx * wn) / determinant, (wnn * wx - wn * wxn) / determinant};
    return line.first <= 0 ? line : Line{wxn / wnn, 0};
  }
  float error(const Line& l) const {
    return wxx + l.step * l.step * wnn + l.first * l.first * w -
           2 * (l.step * wxn + l.first * wx - l.step * l.first * wn);
  }
};

constexpr int kTrials = 20;
constexpr float kTrialStep = 0.1f;

uint8_t number_of(float x, const Line& line, float inverse, int last) {
  return uint8_t(whole_within((x - line.first) * inverse + 0.5f, last));
}

Line fitted_line(const float* x, int count, int last) {
  const float least = std::min(*std::min_element(x, x + count), 0.0f),
              most = *std::max_element(x, x + count);
  if (most <= least) return {0, least};
  const Weights w = weights_of(x, count);
  Line best{(most - least) / float(last), least};
  float best_error = INFINITY;
  for (int trial = -kTrials / 2; trial <= kTrials / 2; trial++) {
    const float inverse = (float(last) + kTrialStep * float(trial)) / (most - least);
    Fit fit;
    for (int i = 0; i < count; i++)
      fit.add(w[size_t(i)], x[i], float(number_of(x[i], {0, least}, inverse, last)));
    const Line line = fit.best();
    const float error = fit.error(line);
    if (line.step <= 0 || error >= best_error) continue;
    best_error = error, best = line;
  }
  return best;
}

// Numbers of groups by lines whose steps and firsts are whole multiples of two halves.
template <int kGroup>
struct LinedBlock {
  static constexpr int kGroups = kLarge / kGroup;
  float step = 0, first = 0;  // of the whole ones
  std::array<uint8_t, kGroups> steps{}, firsts{};
  std::array<uint8_t, kLarge> numbers{};

  LinedBlock(const float* x, int last, int last_scale) {
    std::array<Line, kGroups> lines;
    for (int g = 0; g < kGroups; g++) {
      Line& line = lines[size_t(g)] = fitted_line(x + g * kGroup, kGroup, last);
      step = std::max(step, line.step), first = std::max(first, -line.first);
    }
    step = as_half(step / float(last_scale)), first = as_half(first / float(last_scale));
    const auto whole = [&](float value, float unit) {
      return whole_within(value * inverse_of(unit) + 0.5f, last_scale);
    };
    for (int g = 0; g < kGroups; g++) {
      const Line& line = lines[size_t(g)];
      choose(g, x + g * kGroup, whole(line.step, step), whole(-line.first, first), last,
             last_scale);
    }
  }

 private:
  // What is nearest to a group's line as it is rounded: its neighbours may fit better.
  void choose(int group, const float* x, int near_step, int near_first, int last,
              int last_scale) {
    const Weights w = weights_of(x, kGroup);
    float best = INFINITY;
    for (int s = std::max(near_step - 1, 0); s <= std::min(near_step + 1, last_scale); s++) {
      for (int f = std::max(near_first - 1, 0); f <= std::min(near_first + 1, last_scale); f++) {
        const Line line{step * float(s), -first * float(f)};
        const float inverse = inverse_of(line.step);
        std::array<uint8_t, kGroup> rounded;
        float error = 0;
        for (size_t i = 0; i < kGroup; i++) {
          rounded[i] = number_of(x[i], line, inverse, last);
          const float off = x[i] - (line.step * float(rounded[i]) + line.first);
          error += w[i] * off * off;
        }
        if (error >= best) continue;
        best = error;
        steps[size_t(group)] = uint8_t(s), firsts[size_t(group)] = uint8_t(f);
        std::ranges::copy(rounded, numbers.begin() + group * kGroup);
      }
    }
  }
};

// Scales and firsts of 6 bits in 12 bytes.
void put_six_bits(const LinedBlock<32>& block, uint8_t* into) {
  const auto &s = block.steps, &f = block.firsts;
  for (size_t i = 0; i < 4; i++) {
    into[i] = uint8_t(s[i] | (s[i + 4] >> 4) << 6);
    into[i + 4] = uint8_t(f[i] | (f[i + 4] >> 4) << 6);
    into[i + 8] = uint8_t((s[i + 4] & 15) | (f[i + 4] & 15) << 4);
  }
}
// Of each 64 numbers the low halves of 32 bytes, then their high halves.
void put_nibbles_by_64(const uint8_t* numbers, uint8_t* into) {
  for (int i = 0; i < kLarge / 2; i++) {
    const uint8_t* low = numbers + i / 32 * 64 + i % 32;
    into[i] = uint8_t((low[0] & 15) | (low[32] & 15) << 4);
  }
}
// Two bits from `shift` on of each 128 numbers in 32 bytes.
void put_two_bits(const uint8_t* numbers, int shift, uint8_t* into) {
  std::memset(into, 0, kLarge / 4);
  for (int i = 0; i < kLarge; i++)
    into[i / 128 * 32 + i % 32] |= uint8_t((numbers[i] >> shift & 3) << (i % 128 / 32 * 2));
}
// Bit `bit` of each number, of those that are 32 apart in one byte.
void put_bits_by_32(const uint8_t* numbers, int bit, uint8_t* into) {
  std::memset(into, 0, 32);
  for (int i = 0; i < kLarge; i++) into[i % 32] |= uint8_t((numbers[i] >> bit & 1) << (i / 32));
}

void encode_q4_k(const float* x, uint8_t* b) {
  const LinedBlock<32> block(x, 15, 63);
  put_half(b, block.step), put_half(b + 2, block.first);
  put_six_bits(block, b + 4);
  put_nibbles_by_64(block.numbers.data(), b + 16);
}
void encode_q5_k(const float* x, uint8_t* b) {
  const LinedBlock<32> block(x, 31, 63);
  put_half(b, block.step), put_half(b + 2, block.first);
  put_six_bits(block, b + 4);
  put_bits_by_32(block.numbers.data(), 4, b + 16);
  put_nibbles_by_64(block.numbers.data(), b + 48);
}
void encode_q2_k(const float* x, uint8_t* b) {
  const LinedBlock<16> block(x, 3, 15);
  for (size_t g = 0; g < 16; g++) b[g] = uint8_t(block.steps[g] | block.firsts[g] << 4);
  put_two_bits(block.numbers.data(), 0, b + 16);
  put_half(b + 80, block.step), put_half(b + 82, block.first);
}

// The step of numbers from -below to below - 1, of either sign, that fits a group best.
float fitted_step(const float* x, int count, int below) {
  float most = 0;
  for (int i = 0; i < count; i++)
    if (std::abs(x[i]) > std::abs(most)) most = x[i];
  if (most == 0) return 0;
  const Weights w = weights_of(x, count);
  float best = 0, best_gain = 0;
  for (int trial = -kTrials / 2; trial <= kTrials / 2; trial++) {
    const float inverse = (float(-below) + kTrialStep * float(trial)) / most;
    float xn = 0, nn = 0;
    for (int i = 0; i < count; i++) {
      const int n = whole_within(x[i] * inverse + (float(below) + 0.5f), 2 * below - 1);
      const float number = float(n - below), weight = w[size_t(i)];
      xn += weight * x[i] * number, nn += weight * number * number;
    }
    if (nn == 0 || xn * xn <= best_gain * nn) continue;
    best_gain = xn * xn / nn, best = xn / nn;
  }
  return best;
}

// 16 groups of 16, numbers by steps that are whole multiples of a half.
struct CenteredBlock {
  float step = 0;
  std::array<int8_t, 16> steps{};
  std::array<uint8_t, kLarge> numbers{};  // from 0 on

  CenteredBlock(const float* x, int below, int below_scale) {
    std::array<float, 16> fitted{};
    float most = 0;
    for (int g = 0; g < 16; g++) {
      const float f = fitted[size_t(g)] = fitted_step(x + g * 16, 16, below);
      if (std::abs(f) > std::abs(most)) most = f;
    }
    step = as_half(most / float(-below_scale));
    const float inverse = inverse_of(step);
    for (int g = 0; g < 16; g++) {
      const float whole = fitted[size_t(g)] * inverse + (float(below_scale) + 0.5f);
      steps[size_t(g)] = int8_t(whole_within(whole, 2 * below_scale - 1) - below_scale);
      const float by = inverse_of(step * float(steps[size_t(g)]));
      for (int i = g * 16; i < (g + 1) * 16; i++)
        numbers[size_t(i)] =
            uint8_t(whole_within(x[i] * by + (float(below) + 0.5f), 2 * below - 1));
    }
  }
};

void encode_q6_k(const float* x, uint8_t* b) {
  const CenteredBlock block(x, 32, 128);
  const uint8_t* n = block.numbers.data();
  for (int i = 0; i < kLarge / 2; i++) {
    const uint8_t* low = n + i / 64 * 128 + i % 64;
    b[i] = uint8_t((low[0] & 15) | (low[64] & 15) << 4);
  }
  put_two_bits(n, 4, b + 128);
  std::memcpy(b + 192, block.steps.data(), 16);
  put_half(b + 208, block.step);
}
void encode_q3_k(const float* x, uint8_t* b) {
  const CenteredBlock block(x, 4, 32);
  put_bits_by_32(block.numbers.data(), 2, b);
  put_two_bits(block.numbers.data(), 0, b + 32);
  std::memset(b + 96, 0, 12);
  for (int g = 0; g < 16; g++) {
    const int scale = block.steps[size_t(g)] + 32;
    b[96 + g % 8] |= uint8_t((scale & 15) << (g / 8 * 4));
    b[104 + g % 4] |= uint8_t((scale >> 4) << (g / 4 * 2));
  }
  put_half(b + 108, block.step);
}

void encode_f32(const float* x, uint8_t* b) { put(b, *x); }
void encode_f16(const float* x, uint8_t* b) { put_half(b, *x); }
void encode_bf16(const float* x, uint8_t* b) { put(b, bf16_from_f32(*x)); }

struct Encoder {
  std::string_view name;
  void (*encode)(const float* x, uint8_t* block);
};
constexpr Encoder kEncoders[] = {
    {"F32", encode_f32}, {"F16", encode_f16}, {"BF16", encode_bf16},
    {"Q8_0", encode_q8_0}, {"Q4_0", encode_q4_0}, {"Q4_1", encode_q4_1},
    {"Q5_0", encode_q5_0}, {"Q5_1", encode_q5_1}, {"Q2_K", encode_q2_k},
    {"Q3_K", encode_q3_k}, {"Q4_K", encode_q4_k}, {"Q5_K", encode_q5_k},
    {"Q6_K", encode_q6_k},
};

}  // namespace

bool can_quantize(std::string_view type) {
  return std::ranges::find(kEncoders, type, &Encoder::name) != std::end(kEncoders);
}

std::string encoded_types() {
  return fmt::format("{}", fmt::join(kEncoders | std::views::transform(&Encoder::name), ", "));
}

void quantize(std::string_view type, std::span<const float> values, std::span<uint8_t> blocks) {
  const auto* row = std::ranges::find(kEncoders, type, &Encoder::name);
  TUFF_CHECK(row != std::end(kEncoders), "no encoder of {}", type);
  const BlockType block = *gguf_block(type);
  const size_t count = values.size() / block.elements;
  TUFF_CHECK(count * block.elements == values.size() && blocks.size() == count * block.size_bytes,
             "{} values in {} bytes of {}", values.size(), blocks.size(), type);
  for (size_t i = 0; i < count; i++)
    row->encode(&values[i * block.elements], &blocks[i * block.size_bytes]);
}

}  // namespace tuff::io
