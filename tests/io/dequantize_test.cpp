// Blocks of GGUF against a scalar reference written from the formats' definitions: element by
// element from random blocks, on every device that the tests are given.
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include <tuff/tensor.h>
#include "engine/device.h"
#include "engine/stats.h"
#include "io/dequantize.h"
#include "tensor/devices.h"

namespace tuff::io {
namespace {

// One block, and element i of it as the definition states it.
struct Block {
  const uint8_t* b;
  float half(size_t at) const { return f16_to_f32(uint16_t(b[at] | b[at + 1] << 8)); }
  // Number `i` of `bits` bits from byte `at` on, the first in the lowest bits.
  int packed(size_t at, size_t i, int bits) const {
    return b[at + i * size_t(bits) / 8] >> (i * size_t(bits) % 8) & ((1 << bits) - 1);
  }
  int nibble(size_t at, int i) const {
    return i < 16 ? b[at + size_t(i)] & 15 : b[at + size_t(i) - 16] >> 4;
  }
  int sign(size_t at) const { return int8_t(b[at]); }
};

float q4_0(Block b, int i) { return b.half(0) * float(b.nibble(2, i) - 8); }
float q4_1(Block b, int i) { return b.half(0) * float(b.nibble(4, i)) + b.half(2); }
float q5_0(Block b, int i) {
  return b.half(0) * float((b.nibble(6, i) | b.packed(2, size_t(i), 1) << 4) - 16);
}
float q5_1(Block b, int i) {
  return b.half(0) * float(b.nibble(8, i) | b.packed(4, size_t(i), 1) << 4) + b.half(2);
}
float q8_0(Block b, int i) { return b.half(0) * float(b.sign(2 + size_t(i))); }

// Two bits of element i: 128 elements from 32 bytes, each byte with four that are 32 apart.
int two_bits(Block b, size_t at, int i) {
  return b.b[at + size_t(i / 128 * 32 + i % 32)] >> (i % 128 / 32 * 2) & 3;
}
float q2_k(Block b, int i) {
  const int both = b.b[i / 16];
  return b.half(80) * float(both & 15) * float(two_bits(b, 16, i)) - b.half(82) * float(both >> 4);
}
float q3_k(Block b, int i) {
  const int group = i / 16;
  const int low = group < 8 ? b.b[96 + group] & 15 : b.b[96 + group - 8] >> 4;
  const int high = b.b[104 + group % 4] >> (group / 4 * 2) & 3;
  const int third = b.b[i % 32] >> (i / 32) & 1;
  return b.half(108) * float((low | high << 4) - 32) * float(two_bits(b, 32, i) - (third ? 0 : 4));
}
// The 6-bit scale and minimum of group j, from 12 bytes at 4.
std::pair<int, int> scale_and_min(Block b, int j) {
  const uint8_t* s = b.b + 4;
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4};
}
int nibble_by_64(Block b, size_t at, int i) {
  const int byte = b.b[at + size_t(i / 64 * 32 + i % 32)];
  return i % 64 < 32 ? byte & 15 : byte >> 4;
}
float by_group(Block b, int i, int quant) {
  const auto [scale, least] = scale_and_min(b, i / 32);
  return b.half(0) * float(scale) * float(quant) - b.half(2) * float(least);
}
float q4_k(Block b, int i) { return by_group(b, i, nibble_by_64(b, 16, i)); }
float q5_k(Block b, int i) {
  return by_group(b, i, nibble_by_64(b, 48, i) | (b.b[16 + i % 32] >> (i / 32) & 1) << 4);
}
float q6_k(Block b, int i) {
  const int half = i / 128, in_half = i % 128;
  const int byte = b.b[half * 64 + in_half % 64];
  const int low = in_half < 64 ? byte & 15 : byte >> 4;
  return b.half(208) * float(b.sign(192 + size_t(i / 16))) *
         float((low | two_bits(b, 128, i) << 4) - 32);
}
float q8_k(Block b, int i) {
  float d;
  std::memcpy(&d, b.b, 4);
  return d * float(b.sign(4 + size_t(i)));
}
constexpr int kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
float iq4_nl(Block b, int i) { return b.half(0) * float(kIq4[b.nibble(2, i)]); }
float iq4_xs(Block b, int i) {
  const int group = i / 32, low = b.packed(4, size_t(group), 4),
            high = b.packed(2, size_t(group), 2);
  const int quant = b.nibble(8 + size_t(group * 16), i % 32);
  return b.half(0) * float((low | high << 4) - 32) * float(kIq4[quant]);
}
float mxfp4(Block b, int i) {
  constexpr float kE2M1[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  const int n = b.nibble(1, i);
  return std::ldexp(n & 8 ? -kE2M1[n & 7] : kE2M1[n & 7], b.b[0] - 127);
}

struct Case {
  const char* type;
  int elements, size_bytes;
  float (*reference)(Block, int);
  std::vector<int> halves;  // where half-precision numbers stand
};
const Case kCases[] = {
    {"Q4_0", 32, 18, q4_0, {0}},      {"Q4_1", 32, 20, q4_1, {0, 2}},
    {"Q5_0", 32, 22, q5_0, {0}},      {"Q5_1", 32, 24, q5_1, {0, 2}},
    {"Q8_0", 32, 34, q8_0, {0}},      {"Q2_K", 256, 84, q2_k, {80, 82}},
    {"Q3_K", 256, 110, q3_k, {108}},  {"Q4_K", 256, 144, q4_k, {0, 2}},
    {"Q5_K", 256, 176, q5_k, {0, 2}}, {"Q6_K", 256, 210, q6_k, {208}},
    {"Q8_K", 256, 292, q8_k, {}},     {"IQ4_NL", 32, 18, iq4_nl, {0}},
    {"MXFP4", 32, 17, mxfp4, {}},     {"IQ4_XS", 256, 136, iq4_xs, {0}},
};

// Random bits, but of the scales those of numbers that neither overflow nor vanish.
std::vector<uint8_t> random_blocks(const Case& c, int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size_t(count * c.size_bytes));
  for (uint8_t& b : bytes) b = uint8_t(random());
  for (int n = 0; n < count; n++) {
    uint8_t* block = &bytes[size_t(n * c.size_bytes)];
    for (const int at : c.halves) {
      const uint16_t bits = uint16_t((random() & 0x83ff) | (5 + random() % 20) << 10);
      std::memcpy(block + at, &bits, 2);
    }
    const float d = float(int(random() % 2000) - 1000) / 512;
    if (c.type == std::string("Q8_K")) std::memcpy(block, &d, 4);
    if (c.type == std::string("MXFP4")) block[0] = uint8_t(40 + random() % 180);
  }
  return bytes;
}

class Dequantize : public testing::TestWithParam<std::string> {};

TEST_P(Dequantize, EveryElementAsDefined) {
  for (const Case& c : kCases) {
    const int count = c.elements == 32 ? 50 : 7;
    const std::vector<uint8_t> bytes = random_blocks(c, count, 11);
    const Tensor blocks = Tensor::from(bytes, {count, c.size_bytes}, {.device = GetParam()});
    const std::vector<float> got = dequantize(c.type, blocks).to_vector<float>();
    ASSERT_EQ(got.size(), size_t(count * c.elements)) << c.type;
    for (int n = 0; n < count; n++) {
      for (int i = 0; i < c.elements; i++) {
        const float wanted = c.reference({&bytes[size_t(n * c.size_bytes)]}, i);
        // The same operations, each rounded: the same bits.
        ASSERT_EQ(got[size_t(n * c.elements + i)], wanted)
            << c.type << " block " << n << " element " << i;
      }
    }
  }
}

// A weight of 2 x 512 is decoded in the kernel that reads it: scales are no
// kernels of their own. With many rows of x a product repeats its weight, which is then stored; but
// where workgroups share what they decode, it is not.
TEST_P(Dequantize, FusesIntoWhatReadsIt) {
  const std::string& device = GetParam();
  const Target& target = engine::Device::get(device)->target();
  Tensor x = Tensor::full({9, 512}, 0.5, {.device = device}).contiguous();
  x.realize();
  for (const Case& c : kCases) {
    const int count = 2 * 512 / c.elements;
    const std::vector<uint8_t> bytes = random_blocks(c, count, 3);
    const auto kernels = [&](const std::function<Tensor(const Tensor&)>& use) {
      const Tensor blocks = Tensor::from(bytes, {count, c.size_bytes}, {.device = device});
      Tensor used = use(dequantize(c.type, blocks).reshape({2, 512}));
      const uint64_t before = engine::counters().kernels;
      used.realize();
      return engine::counters().kernels - before;
    };
    const auto elementwise = kernels([](const Tensor& w) { return w * 2 + 1; });
    const auto sum = kernels([](const Tensor& w) { return w.sum({1}); });
    const auto row =
        kernels([&](const Tensor& w) { return x.narrow(0, 3, 1).matmul(w.transpose(0, 1)); });
    const auto few =
        kernels([&](const Tensor& w) { return x.narrow(0, 1, 8).matmul(w.transpose(0, 1)); });
    const auto function = kernels(
        [&](const Tensor& w) { return x.narrow(0, 1, 8).matmul(w.transpose(0, 1)).silu(); });
    const auto rows = kernels([&](const Tensor& w) { return x.matmul(w.transpose(0, 1)); });
    EXPECT_EQ(elementwise, 1u) << c.type;
    EXPECT_EQ(sum, 1u) << c.type;
    EXPECT_EQ(row, 1u) << c.type;
    EXPECT_EQ(few, 1u) << c.type;
    EXPECT_EQ(function, target.has_local ? 1u : 2u) << c.type << ": lanes go along the sum";
    EXPECT_LE(rows, target.has_local ? 1u : 2u) << c.type;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Dequantize, testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

// Sums whose numbers a CPU decodes beside them, beside double precision. What GPUs make of them:
// tests/kernel/packed_words_test.cpp.
// Behind one of two products a gate's exponential would be computed row by row.
TEST(DequantizedProducts, AGateOfTwoIsAKernelOfItsOwnOnTheCpu) {
  constexpr int64_t kRows = 256, kColumns = 8192;
  const Case& c = *std::ranges::find(kCases, std::string_view("Q4_K"), &Case::type);
  const int64_t count = kRows * kColumns / c.elements;
  const auto weight = [&](int seed) {
    const std::vector<uint8_t> bytes = random_blocks(c, int(count), seed);
    const Tensor blocks = Tensor::from(bytes, {count, c.size_bytes}, {.device = "CPU"});
    return dequantize(c.type, blocks).reshape({kRows, kColumns}).transpose(0, 1);
  };
  Tensor x = Tensor::full({1, kColumns}, 0.5, {.device = "CPU"}).contiguous();
  x.realize();
  Tensor gated = x.matmul(weight(1)).silu() * x.matmul(weight(2));
  const uint64_t before = engine::counters().kernels;
  gated.realize();
  EXPECT_EQ(engine::counters().kernels - before, 3u);
}

TEST(DequantizedProducts, OfFewRowsOnTheCpu) {
  constexpr int kRows = 12, kColumns = 768;
  std::mt19937 random(7);
  std::vector<float> x(4 * kColumns);
  for (float& v : x) v = float(int(random() % 2001) - 1000) / 1024;
  const Tensor in = Tensor::from(x, {4, kColumns}, {.device = "CPU"});
  for (const Case& c : kCases) {
    const int count = kRows * kColumns / c.elements;
    const std::vector<uint8_t> bytes = random_blocks(c, count, 5);
    const Tensor blocks = Tensor::from(bytes, {count, c.size_bytes}, {.device = "CPU"});
    const Tensor weight = dequantize(c.type, blocks).reshape({kRows, kColumns});
    for (const int64_t rows : {1, 4}) {
      const auto got = in.narrow(0, 0, rows).matmul(weight.transpose(0, 1)).to_vector<float>();
      for (size_t at = 0; at < got.size(); at++) {
        const size_t row = at / kRows, column = at % kRows;
        double sum = 0, magnitude = 0;
        for (size_t k = 0; k < kColumns; k++) {
          const size_t n = column * kColumns + k, block = n / size_t(c.elements);
          const double w = c.reference({&bytes[block * size_t(c.size_bytes)]},
                                       int(n % size_t(c.elements)));
          sum += w * double(x[row * kColumns + k]);
          magnitude += std::abs(w * double(x[row * kColumns + k]));
        }
        ASSERT_NEAR(double(got[at]), sum, 1e-5 * magnitude) << c.type << ' ' << rows << ' ' << at;
      }
    }
  }
}

TEST(DequantizeFacts, TableAndNames) {
  for (const Case& c : kCases) EXPECT_TRUE(can_dequantize(c.type)) << c.type;
  EXPECT_FALSE(can_dequantize("Q8_1"));
}

}  // namespace
}  // namespace tuff::io
