#include <gtest/gtest.h>
#include <tuff/dtype.h>
#include <tuff/error.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tuff {
namespace {

const std::vector<DType> kStored = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,
                                    DType::I32,  DType::U32, DType::I64, DType::U64, DType::F16,
                                    DType::BF16, DType::F32, DType::F64};

TEST(Scalar, IntegersWrapToTheirWidth) {
  EXPECT_EQ(Scalar::of_int(DType::I8, 200).as_int(), -56);
  EXPECT_EQ(Scalar::of_int(DType::U8, -1).as_int(), 255);
  EXPECT_EQ(Scalar::of_int(DType::U32, -1).as_double(), 4294967295.0);
  EXPECT_EQ(Scalar::of_int(DType::U64, -1).as_double(), 0x1p64);
  EXPECT_EQ(Scalar::of_int(DType::Bool, 256).bits, 1u);
  EXPECT_EQ(Scalar::of_int(DType::I8, -1).cast(DType::U64).bits, UINT64_MAX);
  EXPECT_EQ(Scalar::of_int(DType::I64, 0x1FFFFFFFF).cast(DType::I32).as_int(), -1);
}

TEST(Scalar, FloatsTruncateAndSaturate) {
  const double inf = INFINITY;
  EXPECT_EQ(Scalar::of_double(DType::I8, -128.9).as_int(), -128);
  EXPECT_EQ(Scalar::of_double(DType::I8, 1e9).as_int(), 127);
  EXPECT_EQ(Scalar::of_double(DType::U8, -0.9).as_int(), 0);
  EXPECT_EQ(Scalar::of_double(DType::U8, -inf).as_int(), 0);
  EXPECT_EQ(Scalar::of_double(DType::U64, inf).bits, UINT64_MAX);
  EXPECT_EQ(Scalar::of_double(DType::I64, 0x1p63).as_int(), INT64_MAX);
  EXPECT_EQ(Scalar::of_double(DType::I64, -0x1p63).as_int(), INT64_MIN);
  EXPECT_EQ(Scalar::of_double(DType::I32, NAN).as_int(), 0);
  EXPECT_EQ(Scalar::of_double(DType::F64, 1e300).as_int(), INT64_MAX);
  EXPECT_TRUE(Scalar::of_double(DType::Bool, 0.25).as_bool());
  EXPECT_TRUE(Scalar::of_double(DType::Bool, NAN).as_bool());
  EXPECT_FALSE(Scalar::of_double(DType::F32, -0.0).as_bool());
}

TEST(Scalar, EqualityIsOfBits) {
  EXPECT_EQ(Scalar::of_double(DType::F32, NAN), Scalar::of_double(DType::F32, NAN));
  EXPECT_NE(Scalar::of_double(DType::F32, 0.0), Scalar::of_double(DType::F32, -0.0));
  EXPECT_NE(Scalar::of_int(DType::I32, 1), Scalar::of_int(DType::U32, 1));
}

TEST(Scalar, LargeIntegersAreRoundedOnce) {
  // Just above a midpoint of float32, by less than a double shows: two roundings would go down.
  const int64_t v = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;
  EXPECT_EQ(Scalar::of_int(DType::F32, v).as_double(), double(float(v)));
  EXPECT_EQ(Scalar::of_int(DType::F32, v).as_double(), 0x1p62 + 0x1p39);
  EXPECT_EQ(Scalar::of_int(DType::F32, -v).as_double(), -(0x1p62 + 0x1p39));
  const int64_t w = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;  // the same for bfloat16
  EXPECT_EQ(Scalar::of_int(DType::BF16, w).as_double(), 0x1p62 + 0x1p55);
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t bits = random() >> (random() % 64);
    ASSERT_EQ(Scalar::of_int(DType::F32, int64_t(bits)).as_double(), double(float(int64_t(bits))));
    const Scalar u{DType::U64, bits};
    ASSERT_EQ(u.cast(DType::F32).as_double(), double(float(bits)));
    ASSERT_EQ(u.cast(DType::F64).as_double(), double(bits));
  }
}

TEST(Scalar, StoresAndLoadsUnaligned) {
  std::array<std::byte, 16> memory{};
  for (DType t : kStored) {
    for (double v : {0.0, 1.0, 37.0, 100.0}) {
      const Scalar s = Scalar::of_double(t, v);
      store_scalar(s, memory.data() + 1);
      EXPECT_EQ(load_scalar(t, memory.data() + 1), s) << name(t) << " " << v;
    }
  }
  EXPECT_THROW(load_scalar(DType::Void, memory.data()), InvalidArgument);
  memory[0] = std::byte{2};
  EXPECT_EQ(load_scalar(DType::Bool, memory.data()).bits, 1u);
}

// Random patterns of `from`, with the edges of every format among them.
std::vector<std::byte> sample_values(DType from, size_t count) {
  std::vector<std::byte> bytes(count * size_bytes(from));
  std::mt19937_64 random(3);
  const double edges[] = {0,      -0.0,    1,          -1,        0.5,       127,     127.5,
                          -128,   -128.5,  -129,       255,       255.9,     256,     32767,
                          32768,  -32769,  65504,      65519.996, 65520,     65535,   65536,
                          0x1p31, -0x1p31, 2147483520, 0x1p32,    0x1p63,    -0x1p63, 0x1p64,
                          3e38,   1e-40,   6e-8,       INFINITY,  -INFINITY, NAN};
  for (size_t i = 0; i < count; ++i) {
    std::byte* at = bytes.data() + i * size_bytes(from);
    const uint64_t bits = random();
    if (i < std::size(edges))
      store_scalar(Scalar::of_double(from, edges[i]), at);
    else if (from == DType::Bool)
      *at = std::byte(bits & 1);
    else
      std::memcpy(at, &bits, size_bytes(from));
  }
  return bytes;
}

TEST(Convert, EveryPairAgreesWithScalarCast) {
  constexpr size_t kCount = 5000;
  for (DType from : kStored) {
    const std::vector<std::byte> in = sample_values(from, kCount);
    for (DType to : kStored) {
      if (from == to) continue;
      std::vector<std::byte> out(kCount * size_bytes(to));
      convert(from, in.data(), to, out.data(), kCount);
      for (size_t i = 0; i < kCount; ++i) {
        const Scalar expected = load_scalar(from, in.data() + i * size_bytes(from)).cast(to);
        std::array<std::byte, 8> bytes{};
        store_scalar(expected, bytes.data());
        ASSERT_EQ(std::memcmp(bytes.data(), out.data() + i * size_bytes(to), size_bytes(to)), 0)
            << name(from) << " -> " << name(to) << " element " << i << ": "
            << load_scalar(from, in.data() + i * size_bytes(from)).as_double() << " gave "
            << load_scalar(to, out.data() + i * size_bytes(to)).as_double() << ", not "
            << expected.as_double();
      }
    }
  }
}

// Against the C++ conversions themselves, where those are defined.
TEST(Convert, AgreesWithCppWhereDefined) {
  const std::vector<float> in = {0, -1.75f, 3.5f, 100.25f, -128, 1e9f};
  std::vector<int32_t> ints(in.size());
  std::vector<double> doubles(in.size());
  convert(DType::F32, in.data(), DType::I32, ints.data(), in.size());
  convert(DType::F32, in.data(), DType::F64, doubles.data(), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(ints[i], int32_t(in[i]));
    EXPECT_EQ(doubles[i], double(in[i]));
  }
  EXPECT_THROW(convert(DType::Void, in.data(), DType::I32, ints.data(), 1), InvalidArgument);
}

}  // namespace
}  // namespace tuff
