// Writes tests/data/ggml.gguf with ggml itself: a tensor of every type that tuff decodes, quantized
// by ggml, and beside each ("NAME.values") what ggml makes of it; metadata of every type of value.
// Made once, with github.com/ggml-org/ggml at d99724f2b141fed9e1a9f402213506c081433465, and once
// more with the ggml of llama_cpp_python 0.3.36, which knows those behind MXFP4:
//   cmake -S ggml -B b -DBUILD_SHARED_LIBS=OFF -DGGML_CPU=OFF -DCMAKE_C_FLAGS=-ffp-contract=off
//   cmake --build b --target ggml-base
//   c++ -std=c++20 -Iggml/include -Iggml/src scripts/ggml-fixtures.cpp b/src/libggml-base.a
// No part of the build: it needs ggml's sources.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ggml-quants.h"
#include "ggml.h"
#include "gguf.h"

namespace {

constexpr int64_t kRow = 256;

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  float signed_unit() { return float(int64_t(bits() >> 40) - (1 << 23)) / float(1 << 23); }

 private:
  uint64_t state_ = 7;
};

struct Type {
  ggml_type type;
  const char* name;
  std::vector<size_t> halves;  // bytes of a block where half-precision numbers stand
  bool any = false;            // all rows of any bits: ggml quantizes to none, or by an importance
};
const Type kTypes[] = {
    {GGML_TYPE_F32, "F32", {}},         {GGML_TYPE_F16, "F16", {}},
    {GGML_TYPE_BF16, "BF16", {}},       {GGML_TYPE_Q4_0, "Q4_0", {0}},
    {GGML_TYPE_Q4_1, "Q4_1", {0, 2}},   {GGML_TYPE_Q5_0, "Q5_0", {0}},
    {GGML_TYPE_Q5_1, "Q5_1", {0, 2}},   {GGML_TYPE_Q8_0, "Q8_0", {0}},
    {GGML_TYPE_Q2_K, "Q2_K", {80, 82}}, {GGML_TYPE_Q3_K, "Q3_K", {108}},
    {GGML_TYPE_Q4_K, "Q4_K", {0, 2}},   {GGML_TYPE_Q5_K, "Q5_K", {0, 2}},
    {GGML_TYPE_Q6_K, "Q6_K", {208}},    {GGML_TYPE_Q8_K, "Q8_K", {}},
    {GGML_TYPE_IQ4_NL, "IQ4_NL", {0}},  {GGML_TYPE_IQ4_XS, "IQ4_XS", {0}},
    {GGML_TYPE_MXFP4, "MXFP4", {}},     {GGML_TYPE_TQ1_0, "TQ1_0", {52}},
    {GGML_TYPE_TQ2_0, "TQ2_0", {64}},   {GGML_TYPE_Q1_0, "Q1_0", {0}},
    {GGML_TYPE_Q2_0, "Q2_0", {0}},      {GGML_TYPE_NVFP4, "NVFP4", {}, true},
    {GGML_TYPE_IQ2_XXS, "IQ2_XXS", {0}, true},
    {GGML_TYPE_IQ2_XS, "IQ2_XS", {0}, true},
    {GGML_TYPE_IQ2_S, "IQ2_S", {0}, true},
    {GGML_TYPE_IQ3_XXS, "IQ3_XXS", {0}, true},
    {GGML_TYPE_IQ3_S, "IQ3_S", {0}, true},
    {GGML_TYPE_IQ1_S, "IQ1_S", {0}, true},
    {GGML_TYPE_IQ1_M, "IQ1_M", {}, true},
};

// A row of like magnitudes and a row from 2^-10 to 2^10 that begins with a block of zeros.
std::vector<float> values(Random& random) {
  std::vector<float> out;
  for (int64_t i = 0; i < kRow; i++) out.push_back(random.signed_unit());
  for (int64_t i = 0; i < kRow; i++)
    out.push_back(i < 32 ? 0 : std::ldexp(random.signed_unit(), int(random.bits() % 21) - 10));
  return out;
}

// A row of any bits, with scales that are finite: half-precision ones of every exponent below the
// largest, subnormal numbers included.
std::vector<uint8_t> any_row(const Type& t, Random& random) {
  std::vector<uint8_t> row(ggml_row_size(t.type, kRow));
  for (uint8_t& b : row) b = uint8_t(random.bits());
  const size_t block_bytes = ggml_type_size(t.type);
  for (size_t at = 0, n = 0; at < row.size(); at += block_bytes, n++) {
    const auto put = [&](size_t offset, const auto& v) {
      std::memcpy(&row[at + offset], &v, sizeof v);
    };
    for (const size_t half : t.halves)
      put(half, uint16_t((random.bits() & 0x83ff) | (n == 3 ? 0 : random.bits() % 25) << 10));
    if (t.type == GGML_TYPE_F32 || t.type == GGML_TYPE_Q8_K) put(0, random.signed_unit());
    if (t.type == GGML_TYPE_F16) put(0, uint16_t(random.bits() & 0xbfff));   // exponent below 16
    if (t.type == GGML_TYPE_BF16) put(0, uint16_t(random.bits() & 0xbfff));  // exponent below 128
    if (t.type == GGML_TYPE_IQ1_M) row[at + 55] &= 0xbf;  // of the scale's exponent
    if (t.type == GGML_TYPE_MXFP4) put(0, uint8_t(n < 3 ? n : random.bits() % 240));
  }
  return row;
}

std::vector<uint8_t> quantized(const Type& t, const std::vector<float>& from) {
  const int64_t rows = int64_t(from.size()) / kRow;
  std::vector<uint8_t> out(ggml_row_size(t.type, kRow) * size_t(rows));
  if (t.type == GGML_TYPE_Q8_K)
    quantize_row_q8_K_ref(from.data(), reinterpret_cast<block_q8_K*>(out.data()), rows * kRow);
  else
    ggml_quantize_chunk(t.type, from.data(), out.data(), 0, rows, kRow, nullptr);
  return out;
}

std::vector<float> decoded(const Type& t, const std::vector<uint8_t>& from, int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  if (t.type == GGML_TYPE_F32)
    std::memcpy(out.data(), from.data(), from.size());
  else if (t.type == GGML_TYPE_Q8_K)
    dequantize_row_q8_K(reinterpret_cast<const block_q8_K*>(from.data()), out.data(), count);
  else
    ggml_get_type_traits(t.type)->to_float(from.data(), out.data(), count);
  return out;
}

void add(ggml_context* memory, gguf_context* file, ggml_type type, const std::string& name,
         const void* data, int64_t rows) {
  ggml_tensor* t = ggml_new_tensor_2d(memory, type, kRow, rows);
  ggml_set_name(t, name.c_str());
  std::memcpy(t->data, data, ggml_nbytes(t));
  gguf_add_tensor(file, t);
}

void set_metadata(gguf_context* file) {
  gguf_set_val_str(file, "general.name", "ggml d99724f2b141fed9e1a9f402213506c081433465");
  gguf_set_val_u8(file, "a.u8", 200);
  gguf_set_val_i8(file, "a.i8", -100);
  gguf_set_val_u16(file, "a.u16", 60000);
  gguf_set_val_i16(file, "a.i16", -30000);
  gguf_set_val_u32(file, "a.u32", 4000000000u);
  gguf_set_val_i32(file, "a.i32", -2000000000);
  gguf_set_val_u64(file, "a.u64", 1ull << 63);
  gguf_set_val_i64(file, "a.i64", -(1ll << 62));
  gguf_set_val_f32(file, "a.f32", 0.5f);
  gguf_set_val_f64(file, "a.f64", -0.25);
  gguf_set_val_bool(file, "a.bool", true);
  const char* words[] = {"one", "", "\xc3\xa9"};
  gguf_set_arr_str(file, "a.words", words, 3);
  const int32_t numbers[] = {1, -2, 3};
  gguf_set_arr_data(file, "a.numbers", GGUF_TYPE_INT32, numbers, 3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ggml-fixtures FILE.gguf\n");
    return 2;
  }
  ggml_context* memory = ggml_init({size_t{8} << 20, nullptr, false});
  gguf_context* file = gguf_init_empty();
  set_metadata(file);
  Random random;
  const std::vector<float> from = values(random);
  for (const Type& t : kTypes) {
    std::vector<uint8_t> bytes = t.any ? any_row(t, random) : quantized(t, from);
    if (t.any) {
      const std::vector<uint8_t> second = any_row(t, random);
      bytes.insert(bytes.end(), second.begin(), second.end());
    }
    const std::vector<uint8_t> more = any_row(t, random);
    bytes.insert(bytes.end(), more.begin(), more.end());
    const int64_t rows = int64_t(from.size()) / kRow + 1;
    add(memory, file, t.type, t.name, bytes.data(), rows);
    if (t.type == GGML_TYPE_F32) continue;
    const std::vector<float> values = decoded(t, bytes, rows * kRow);
    add(memory, file, GGML_TYPE_F32, std::string(t.name) + ".values", values.data(), rows);
  }
  return gguf_write_to_file(file, argv[1], false) ? 0 : 1;
}
