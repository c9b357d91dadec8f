// Kernels as PTX for tests of the devices of NVIDIA's GPUs (cuda, nv).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/compilers.h"
#include "render/c_dialect.h"
#include "render/c_nvptx.h"

namespace tuff::devices::ptx_kernels {

// Of 32 work-items each. `far` writes where there is nothing.
inline constexpr const char* kSource = R"(
TUFF_KERNEL(32, 1, 1) void fill(TUFF_BLOCK block) {
  TUFF_GLOBAL u32* const out = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 0);
  out[TUFF_GROUP(x) * 32 + TUFF_LOCAL(x)] = (u32)TUFF_SCALAR(block, 2); }
TUFF_KERNEL(32, 1, 1) void add(TUFF_BLOCK block) {
  const TUFF_GLOBAL u32* const in = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 0);
  TUFF_GLOBAL u32* const out = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 1);
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x);
  out[i] = in[i] + (u32)TUFF_SCALAR(block, 4); }
TUFF_KERNEL(32, 1, 1) void spill(TUFF_BLOCK block) {
  TUFF_GLOBAL u32* const out = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 0);
  volatile u32 own[200];
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x);
  for (i32 k = 0; k < 200; ++k) own[k] = (u32)(i * 1000 + k);
  out[i] = own[TUFF_SCALAR(block, 2)]; }
TUFF_KERNEL(32, 1, 1) void turn(TUFF_BLOCK block) {
  TUFF_GLOBAL u32* const out = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 0);
  TUFF_SHARED(u32, shared, 32);
  const i32 l = TUFF_LOCAL(x);
  shared[l] = (u32)(TUFF_SCALAR(block, 2) + l);
  TUFF_BARRIER();
  out[TUFF_GROUP(x) * 32 + l] = shared[31 - l]; }
TUFF_KERNEL(32, 1, 1) void far(TUFF_BLOCK block) {
  TUFF_GLOBAL u32* const out = (TUFF_GLOBAL u32*)TUFF_ADDRESS(block, 0);
  out[(i64)TUFF_SCALAR(block, 2) << 20] = 1u; }
)";
enum Kernel { kFill, kAdd, kSpill, kTurn, kFar };

// Also runs on later GPUs.
inline std::vector<render::Binary> binaries() {
  const std::pair<const char*, uint32_t> kernels[] = {
      {"fill", 1}, {"add", 2}, {"spill", 1}, {"turn", 1}, {"far", 1}};
  static const auto module = [&] {
    const std::string text = render::c_nvptx().prelude.whole() + kSource;
    const std::vector<uint8_t> bytes = compile_nvptx({&text, 1}, "sm_86")[0];
    std::string ptx(bytes.begin(), bytes.end());
    for (const auto& [name, buffers] : kernels)
      ptx = render::with_block_size(std::move(ptx), name, {32, 1, 1});
    return std::make_shared<const std::vector<uint8_t>>(ptx.begin(), ptx.end());
  }();
  std::vector<render::Binary> out;
  for (const auto& [name, buffers] : kernels) {
    render::Binary& b = out.emplace_back();
    b.name = b.symbol = name;
    b.format = render::BinaryFormat::Ptx;
    b.bytes = module;
    b.args = {buffers, 1};
    b.local = {32, 1, 1};
  }
  return out;
}

}  // namespace tuff::devices::ptx_kernels
