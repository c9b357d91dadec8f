#include <gtest/gtest.h>
#include <tuff/dtype.h>
#include <tuff/error.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tuff {
namespace {

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(DType(i));
  return all;
}

TEST(DType, EverySpellingReadsBack) {
  std::set<std::string> seen;
  for (DType t : all_dtypes()) {
    EXPECT_EQ(parse_dtype(name(t)), t);
    EXPECT_EQ(parse_dtype(short_name(t)), t);
    seen.insert(name(t));
  }
  EXPECT_EQ(seen.size(), size_t(kDTypeCount));
  EXPECT_EQ(parse_dtype("float"), DType::F32);
  EXPECT_EQ(parse_dtype("int"), DType::I32);
  EXPECT_EQ(parse_dtype("half"), DType::F16);
}

TEST(DType, UnknownSpellingNamesItself) {
  try {
    parse_dtype("float7");
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("'float7'"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("float32"), std::string::npos);
  }
  EXPECT_THROW(parse_dtype(""), InvalidArgument);
}

TEST(DType, RowsHaveTheSizesOfTheirFormats) {
  EXPECT_EQ(size_bytes(DType::Bool), 1u);
  EXPECT_EQ(size_bytes(DType::I16), 2u);
  EXPECT_EQ(size_bytes(DType::BF16), 2u);
  EXPECT_EQ(size_bytes(DType::F32), 4u);
  EXPECT_EQ(size_bytes(DType::U64), 8u);
  for (DType t : all_dtypes())
    if (is_float(t)) {
      EXPECT_EQ(1 + row(t).mantissa_bits + row(t).exponent_bits, row(t).storage_bits) << name(t);
    }
}

TEST(Promotion, IsASemilattice) {
  for (DType a : all_dtypes()) {
    EXPECT_EQ(promote(a, a), a);
    EXPECT_EQ(promote(DType::Void, a), a);
    for (DType b : all_dtypes()) {
      EXPECT_EQ(promote(a, b), promote(b, a)) << name(a) << " " << name(b);
      // The join is above both: joining again changes nothing.
      EXPECT_EQ(promote(a, promote(a, b)), promote(a, b)) << name(a) << " " << name(b);
      for (DType c : all_dtypes())
        EXPECT_EQ(promote(promote(a, b), c), promote(a, promote(b, c)))
            << name(a) << " " << name(b) << " " << name(c);
    }
  }
}

// The table in JAX's documentation, "Type promotion semantics" (upper triangle, without complex).
TEST(Promotion, AgreesWithJax) {
  const std::vector<std::string> columns = {"bool", "u8",   "u16", "u32", "u64", "i8", "i16", "i32",
                                            "i64",  "bf16", "f16", "f32", "f64", "wi", "wf"};
  const std::vector<std::vector<std::string>> rows = {
      {"bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64",
       "wi", "wf"},
      {"u8", "u16", "u32", "u64", "i16", "i16", "i32", "i64", "bf16", "f16", "f32", "f64", "u8",
       "wf"},
      {"u16", "u32", "u64", "i32", "i32", "i32", "i64", "bf16", "f16", "f32", "f64", "u16", "wf"},
      {"u32", "u64", "i64", "i64", "i64", "i64", "bf16", "f16", "f32", "f64", "u32", "wf"},
      {"u64", "wf", "wf", "wf", "wf", "bf16", "f16", "f32", "f64", "u64", "wf"},
      {"i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64", "i8", "wf"},
      {"i16", "i32", "i64", "bf16", "f16", "f32", "f64", "i16", "wf"},
      {"i32", "i64", "bf16", "f16", "f32", "f64", "i32", "wf"},
      {"i64", "bf16", "f16", "f32", "f64", "i64", "wf"},
      {"bf16", "f32", "f32", "f64", "bf16", "bf16"},
      {"f16", "f32", "f64", "f16", "f16"},
      {"f32", "f64", "f32", "f32"},
      {"f64", "f64", "f64"},
      {"wi", "wf"},
      {"wf"}};
  for (size_t i = 0; i < columns.size(); ++i)
    for (size_t j = i; j < columns.size(); ++j)
      EXPECT_STREQ(short_name(promote(parse_dtype(columns[i]), parse_dtype(columns[j]))),
                   rows[i][j - i].c_str())
          << columns[i] << " " << columns[j];
}

// tinygrad's order, f8 < f16 and bf16 < f32, as far as a lattice allows.
TEST(Promotion, FloatsOf8BitsAreBelowThoseOf16) {
  constexpr DType e4 = DType::F8E4M3FN, e5 = DType::F8E5M2;
  for (const DType f8 : {e4, e5}) {
    for (const DType below : {DType::Bool, DType::U8, DType::I64, DType::WeakFloat})
      EXPECT_EQ(promote(f8, below), f8);
    for (const DType above : {DType::F16, DType::F32, DType::F64})
      EXPECT_EQ(promote(f8, above), above);
  }
  EXPECT_EQ(promote(e4, e5), DType::F16);
  EXPECT_EQ(promote(e4, DType::BF16), DType::BF16);
  EXPECT_EQ(promote(e5, DType::BF16), DType::F32);
}

TEST(Promotion, IndexIsWeakTowardsTensors) {
  EXPECT_EQ(promote(DType::Index, DType::WeakInt), DType::Index);
  EXPECT_EQ(promote(DType::Index, DType::I8), DType::I8);
  EXPECT_EQ(promote(DType::Index, DType::F16), DType::F16);
}

TEST(Promotion, StrengthenAndAccumulator) {
  const std::map<DType, DType> accumulators = {
      {DType::Bool, DType::I32}, {DType::I8, DType::I32},      {DType::U8, DType::U32},
      {DType::I16, DType::I32},  {DType::U16, DType::U32},     {DType::I32, DType::I32},
      {DType::U32, DType::U32},  {DType::I64, DType::I64},     {DType::U64, DType::U64},
      {DType::F16, DType::F32},  {DType::BF16, DType::F32},    {DType::F32, DType::F32},
      {DType::F8E4M3FN, DType::F32}, {DType::F8E5M2, DType::F32},
      {DType::F64, DType::F64},  {DType::WeakInt, DType::I32}, {DType::WeakFloat, DType::F32}};
  for (auto [t, expected] : accumulators) EXPECT_EQ(accumulator(t), expected) << name(t);
  for (DType t : all_dtypes()) {
    EXPECT_FALSE(is_weak(strengthen(t)));
    if (!is_weak(t)) {
      EXPECT_EQ(strengthen(t), t);
    }
  }
}

}  // namespace
}  // namespace tuff
