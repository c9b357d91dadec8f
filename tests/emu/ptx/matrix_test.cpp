// Matrix products of a warp against products on the host; fragments are laid out here by the
// formulas of PTX ISA 7.8, 9.7.13.4, written apart from the interpreter's.
#include <cmath>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U32 = uint32_t;

// Of a row-major A of 16 rows, B with k rows and 8 columns, C of 16 x 8.
struct Matrices {
  uint32_t depth;
  std::vector<float> a, b, c;
  explicit Matrices(uint32_t k) : depth(k), a(16 * k), b(k * 8), c(16 * 8) {
    SplitMix64 random(k);
    for (auto* m : {&a, &b, &c}) {
      for (float& v : *m) v = float(int(random.below(17u)) - 8);
    }
  }
};

U32 encoded(const std::string& type, float v) {
  if (type == "f16") return narrow::f16_from_f32(v);
  if (type == "bf16") return narrow::bf16_from_f32(v);
  if (type == "s8") return uint8_t(int(v));
  if (type == "u8") return uint8_t(int(std::abs(v)));
  return std::bit_cast<U32>(v);
}

uint32_t bits_in(const std::string& type) {
  return type == "tf32" ? 32 : type == "s8" || type == "u8" ? 8 : 16;
}

// 9.7.13.4.7 and on: i counts the elements of a lane.
struct Layout {
  std::string type;
  uint32_t depth;
  uint32_t per() const { return 32 / bits_in(type); }
  uint32_t a_elements() const { return 16 * depth / 32; }
  uint32_t b_elements() const { return 8 * depth / 32; }
  uint32_t row_of_a(uint32_t lane, uint32_t i) const { return lane / 4 + (i / per() % 2 ? 8 : 0); }
  uint32_t k_of_a(uint32_t lane, uint32_t i) const {
    return lane % 4 * per() + i % per() + i / (2 * per()) * 4 * per();
  }
  uint32_t k_of_b(uint32_t lane, uint32_t i) const {
    return lane % 4 * per() + i % per() + i / per() * 4 * per();
  }
};

// Registers of all lanes, one after the other: [register][lane].
std::vector<U32> pack(uint32_t elements, uint32_t bits,
                      const std::function<U32(U32, U32)>& element) {
  const uint32_t per = 32 / bits;
  std::vector<U32> out(elements / per * 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < elements; ++i)
      out[i / per * 32 + lane] |= element(lane, i) << (i % per * bits);
  }
  return out;
}

std::string registers(uint32_t first, size_t count) {
  std::string text;
  for (size_t k = 0; k < count; ++k) text += fmt::format("{}%r{}", k ? ", " : "", first + k);
  return "{" + text + "}";
}

std::string loads(uint32_t base, uint32_t first, size_t count) {
  std::string text;
  for (size_t k = 0; k < count; ++k)
    text += fmt::format("  ld.global.b32 %r{}, [%rd{}+{}];\n", first + k, 20 + base, 128 * k);
  return text;
}

// The registers of d.
std::vector<U32> run_product(const std::string& op, std::vector<U32> a, std::vector<U32> b,
                             std::vector<U32> c) {
  std::vector<U32> d(c.size());
  std::string body = "  mul.wide.u32 %rd10, %r0, 4;\n";
  for (uint32_t k = 0; k < 4; ++k) body += fmt::format("  add.u64 %rd2{}, %rd{}, %rd10;\n", k, k);
  body += loads(1, 10, a.size() / 32) + loads(2, 20, b.size() / 32) + loads(3, 30, c.size() / 32);
  body += fmt::format("  {} {}, {}, {}, {};\n", op, registers(40, d.size() / 32),
                      registers(10, a.size() / 32), registers(20, b.size() / 32),
                      registers(30, c.size() / 32));
  for (size_t k = 0; k < d.size() / 32; ++k)
    body += fmt::format("  st.global.b32 [%rd20+{}], %r{};\n", 128 * k, 40 + k);
  Scene scene(kernel_of(body));
  scene.run_clean({scene.add(d), scene.add(a), scene.add(b), scene.add(c)});
  return d;
}

void expect_product(const std::string& shape, uint32_t depth, const std::string& type,
                    const std::string& op, const std::string& sum) {
  const Matrices m(depth);
  const Layout l{type, depth};
  const auto a = pack(l.a_elements(), bits_in(type), [&](U32 lane, U32 i) {
    return encoded(type, m.a[l.row_of_a(lane, i) * depth + l.k_of_a(lane, i)]);
  });
  const auto b = pack(l.b_elements(), bits_in(type), [&](U32 lane, U32 i) {
    return encoded(type, m.b[l.k_of_b(lane, i) * 8 + lane / 4]);
  });
  const auto place = [](U32 lane, U32 i) {
    return (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
  };
  const uint32_t c_bits = sum == "f16" ? 16 : 32;
  const auto c = pack(4, c_bits, [&](U32 lane, U32 i) {
    const float v = m.c[place(lane, i)];
    return sum == "s32" ? U32(int(v)) : sum == "f16" ? encoded("f16", v) : std::bit_cast<U32>(v);
  });
  const auto d = run_product("mma.sync.aligned." + shape + ".row.col." + op, a, b, c);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t at = place(lane, i);
      const U32 bits = d[i / (32 / c_bits) * 32 + lane] >> (i % (32 / c_bits) * c_bits);
      float wanted = m.c[at];
      for (uint32_t k = 0; k < depth; ++k) {
        const float x = m.a[at / 8 * depth + k], y = m.b[k * 8 + at % 8];
        wanted += type == "u8" ? std::abs(x) * std::abs(y) : x * y;
      }
      const float got = sum == "s32"   ? float(int(bits))
                        : sum == "f16" ? narrow::f16_to_f32(uint16_t(bits))
                                       : std::bit_cast<float>(bits);
      ASSERT_EQ(got, wanted) << op << " lane " << lane << " " << i;
    }
  }
}

// Small whole numbers: every way to sum them is exact.
TEST(PtxMatrix, Products) {
  expect_product("m16n8k16", 16, "f16", "f32.f16.f16.f32", "f32");
  expect_product("m16n8k16", 16, "bf16", "f32.bf16.bf16.f32", "f32");
  expect_product("m16n8k16", 16, "f16", "f16.f16.f16.f16", "f16");
  expect_product("m16n8k8", 8, "f16", "f32.f16.f16.f32", "f32");
  expect_product("m16n8k8", 8, "f16", "f16.f16.f16.f16", "f16");
  expect_product("m16n8k8", 8, "bf16", "f32.bf16.bf16.f32", "f32");
  expect_product("m16n8k8", 8, "tf32", "f32.tf32.tf32.f32", "f32");
  expect_product("m16n8k4", 4, "tf32", "f32.tf32.tf32.f32", "f32");
  expect_product("m16n8k32", 32, "s8", "s32.s8.s8.s32", "s32");
  expect_product("m16n8k32", 32, "u8", "s32.u8.u8.s32", "s32");
  expect_product("m16n8k16", 16, "s8", "satfinite.s32.s8.s8.s32", "s32");
}

TEST(PtxMatrix, IntegersWrapOrSaturate) {
  const std::vector<U32> ones(4 * 32, 0x01010101), twos(2 * 32, 0x02020202), top(4 * 32, INT32_MAX);
  const auto wrapped =
      run_product("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", ones, twos, top);
  const auto held =
      run_product("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", ones, twos, top);
  for (const U32 v : wrapped) EXPECT_EQ(v, U32(INT32_MAX) + 64);
  for (const U32 v : held) EXPECT_EQ(v, U32(INT32_MAX));
}

// Rows of eight halves; lane l gets two elements of row l / 4, or of column l / 4.
TEST(PtxMatrix, LoadsFragments) {
  for (const bool transposed : {false, true}) {
    for (const uint32_t count : {1u, 2u, 4u}) {
      std::vector<uint16_t> in(4 * 64);
      for (uint32_t k = 0; k < in.size(); ++k) in[k] = uint16_t(k * 3 + 1);
      std::vector<U32> out(4 * 32);
      std::string stores;
      for (uint32_t k = 0; k < count; ++k)
        stores += fmt::format("  st.global.b32 [%rd11+{}], %r{};\n", 128 * k, 40 + k);
      Scene scene(
          kernel_of(fmt::format(R"(
  mov.u32 %r10, box;
  shl.b32 %r11, %r0, 4;
  add.u32 %r12, %r10, %r11;
  cvt.u64.u32 %rd5, %r11;
  add.u64 %rd6, %rd0, %rd5;
  ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd6];
  st.shared.v4.b32 [%r12], {{%r20, %r21, %r22, %r23}};
  bar.warp.sync 0xffffffff;
  ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%r12];
  mul.wide.u32 %rd10, %r0, 4;
  add.u64 %rd11, %rd1, %rd10;
{})",
                                count, transposed ? ".trans" : "", registers(40, count), stores),
                    ".shared .align 16 .b8 box[512];"));
      scene.run_clean({scene.add(in), scene.add(out)});
      for (uint32_t m = 0; m < count; ++m) {
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t row = lane / 4, column = lane % 4 * 2;
          const auto at = [&](uint32_t r, uint32_t c) { return U32(in[m * 64 + r * 8 + c]); };
          const U32 wanted = transposed ? at(column, row) | at(column + 1, row) << 16
                                        : at(row, column) | at(row, column + 1) << 16;
          ASSERT_EQ(out[m * 32 + lane], wanted) << m << " " << lane;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tuff::emu::ptx
