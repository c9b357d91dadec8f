// Kernels that clang compiles to PTX, interpreted, against the same C on this machine. Without
// clang-19 they are skipped, and say so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "base/os.h"
#include "emu/llvm_tools.h"
#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using testing::bits_at;
using testing::random_values;

constexpr uint32_t kItems = 256, kBlock = 64;
const std::string kSource = std::string(TUFF_SOURCE_DIR) + "/tests/emu/ptx/ptx_kernels.c";

// By its name in C.
testing::Type type_named(std::string_view name) {
  if (name == "float") return testing::kSingle;
  if (name == "double") return testing::kDouble;
  if (name == "_Float16") return testing::kHalf;
  if (name == "i8" || name == "u8") return testing::kI8;
  if (name == "i16" || name == "u16") return testing::kI16;
  return name == "i64" || name == "u64" ? testing::kI64 : testing::kI32;
}

struct Mapping {
  const char* name;
  const char* in;
  const char* out;
};
constexpr Mapping kMappings[] = {
#define MAP(name, T, R, expr) {#name, #T, #R},
#include "emu/device_kernels.def"
#undef MAP
    {"collatz", "u32", "u32"},     {"histogram", "u32", "u32"}, {"calls", "u32", "u32"},
    {"constants", "u32", "float"}, {"copies", "u64", "u64"},    {"wide", "u64", "u64"},
};

class PtxClang : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = testing::why_no_llvm(); !why.empty())
      GTEST_SKIP() << "no kernel is compiled to PTX: " << why;
  }
};

using HostKernel = void (*)(uint32_t, void*, const void*, const void*, const void*);

struct HostKernels {
  HostKernels() {
    folder =
        (std::filesystem::temp_directory_path() / fmt::format("tuff_ptx_{}", getpid())).string();
    std::filesystem::create_directories(folder);
    const std::string names[] = {testing::compile_host(kSource, folder)};
    library = os::Library::open(names);
  }
  ~HostKernels() { std::filesystem::remove_all(folder); }
  HostKernel find(const char* name) const {
    return reinterpret_cast<HostKernel>(library->symbol(fmt::format("host_{}", name).c_str()));
  }
  std::string folder;
  std::optional<os::Library> library;
};

void compare(const std::string& text, const Mapping& m, HostKernel host, SplitMix64& random) {
  const testing::Type in_type = type_named(m.in), out_type = type_named(m.out);
  std::vector<uint8_t> out = random_values(out_type, kItems, random), expected = out;
  Scene scene(text);
  std::vector<uint64_t> arguments{scene.add(out)};
  std::vector<uint8_t> in[3];
  for (auto& values : in) {
    values = random_values(in_type, kItems, random);
    arguments.push_back(scene.add(values, false));
  }
  scene.request.kernel = m.name;
  scene.request.grid = {kItems / kBlock, 1, 1};
  scene.request.block = {kBlock, 1, 1};
  scene.request.seed = random.next();
  scene.run_clean(arguments);
  for (uint32_t k = 0; k < kItems; ++k)
    host(k, expected.data(), in[0].data(), in[1].data(), in[2].data());
  for (uint32_t k = 0; k < kItems; ++k) {
    const uint64_t ours = bits_at(out, k, out_type), theirs = bits_at(expected, k, out_type);
    if (ours == theirs) continue;
    ADD_FAILURE() << fmt::format("{} item {}: {:#x}, on the host {:#x}; from {:#x} {:#x} {:#x}",
                                 m.name, k, ours, theirs, bits_at(in[0], k, in_type),
                                 bits_at(in[1], k, in_type), bits_at(in[2], k, in_type));
    return;
  }
}

TEST_F(PtxClang, KernelsComputeWhatTheHostComputes) {
  const HostKernels host;
  for (const char* level : {"-O2", "-O1"}) {
    const std::string text = testing::compile_ptx(kSource, level);
    SplitMix64 random(11);
    for (const Mapping& m : kMappings) compare(text, m, host.find(m.name), random);
  }
  fmt::print("{} opcodes executed: ", executed_opcodes().size());
  for (const auto& [name, count] : executed_opcodes()) fmt::print("{} ", name);
  fmt::print("\n");
}

TEST_F(PtxClang, TilesGoThroughSharedMemory) {
  SplitMix64 random(4);
  std::vector<float> a(64 * 64), b(64 * 64), c(64 * 64);
  for (float& v : a) v = float(random.below(64u)) / 8 - 4;
  for (float& v : b) v = float(random.below(64u)) / 8 - 4;
  Scene scene(testing::compile_ptx(kSource));
  scene.request.kernel = "product";
  scene.request.grid = {4, 4, 1};
  scene.request.block = {16, 16, 1};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    scene.request.seed = seed;
    scene.request.memory.clear();
    std::ranges::fill(c, -1.0f);
    scene.run_clean({scene.add(c), scene.add(a), scene.add(b)});
    for (uint32_t row = 0; row < 64; ++row) {
      for (uint32_t column = 0; column < 64; ++column) {
        float sum = 0;
        for (uint32_t k = 0; k < 64; ++k) sum = std::fma(a[row * 64 + k], b[k * 64 + column], sum);
        ASSERT_EQ(c[row * 64 + column], sum) << row << " " << column << " seed " << seed;
      }
    }
  }
}

TEST_F(PtxClang, BlocksSumByShufflesAndAtomics) {
  std::vector<uint32_t> a(kItems), out{5};
  std::iota(a.begin(), a.end(), 1000);
  Scene scene(testing::compile_ptx(kSource));
  scene.request.kernel = "total";
  scene.request.grid = {kItems / kBlock, 1, 1};
  scene.request.block = {kBlock, 1, 1};
  scene.run_clean({scene.add(out), scene.add(a)});
  EXPECT_EQ(out[0], std::accumulate(a.begin(), a.end(), 5u));
}

// A fence before the atomic orders what a block has stored; the detector has to see it.
TEST_F(PtxClang, TheLastBlockSeesWhatAllHaveLeft) {
  std::vector<uint32_t> a(kItems), out{0}, partial(4), count{0};
  std::iota(a.begin(), a.end(), 7);
  const std::string text = testing::compile_ptx(kSource);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Scene scene(text);
    scene.request.kernel = "last_block";
    scene.request.grid = {kItems / kBlock, 1, 1};
    scene.request.block = {kBlock, 1, 1};
    scene.request.seed = seed;
    count[0] = 0;
    scene.run_clean({scene.add(out), scene.add(partial), scene.add(count), scene.add(a)});
    EXPECT_EQ(out[0], std::accumulate(a.begin(), a.end(), 0u));
  }
}

}  // namespace
}  // namespace tuff::emu::ptx
