// Beam search: what it finds is right and no slower, what lies is never chosen, disk remembers.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <tuff/tensor.h>

#include "base/env.h"
#include "engine/program/program_cache.h"
#include "engine/device.h"
#include "engine/search/beam.h"
#include "engine/stats.h"
#include "kernel/pipeline.h"
#include "base/compilers.h"

namespace tuff::engine {
namespace {

// A product's AST as the scheduler makes it.
ir::UOp product_ast(const std::shared_ptr<Device>& device, int64_t n) {
  const TensorOptions on{.device = device->name()};
  const size_t before = device->programs().size();
  Tensor a = Tensor::rand({n, n}, on).realize(), b = Tensor::rand({n, n}, on).realize();
  a.matmul(b).realize();
  EXPECT_GT(device->programs().size(), before);
  // It has the most to compute, whatever a device's schedule adds or saves.
  const LoadedKernel* product = nullptr;
  for (const LoadedKernel* k : device->programs().all())
    if (!product || k->estimate.flops > product->estimate.flops) product = k;
  return product ? product->ast : ir::UOp();
}

void expect_a_right_product() {
  std::vector<float> x(33 * 20), y(20 * 24);
  for (size_t i = 0; i < x.size(); i++) x[i] = float(i % 13) - 6;
  for (size_t i = 0; i < y.size(); i++) y[i] = float(i % 7) - 3;
  const Tensor a = Tensor::from(x, {33, 20}, {.device = "CPU"});
  const Tensor b = Tensor::from(y, {20, 24}, {.device = "CPU"});
  const std::vector<float> got = a.matmul(b).to_vector<float>();
  for (size_t i = 0; i < 33; i++) {
    for (size_t j = 0; j < 24; j++) {
      float sum = 0;
      for (size_t k = 0; k < 20; k++) sum += x[i * 20 + k] * y[k * 24 + j];
      ASSERT_EQ(got[i * 24 + j], sum) << i << ", " << j;
    }
  }
}

// With a cache folder of its own, named before anything opens it.
class Beam : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("tuff-beam-{}", getpid());
    setenv("TUFF_CACHE_DIR", folder_.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (!find_c_compiler()) GTEST_SKIP() << "the CPU device needs a C compiler";
    device_ = Device::get("CPU");
  }
  std::vector<render::Binary> compile(std::span<const render::Source> sources) {
    compiled_ += sources.size();
    return render::renderer_of(device_->target()).compile(sources, device_->target());
  }
  CompileSources compiler() {
    return [this](std::span<const render::Source> s) { return compile(s); };
  }
  std::shared_ptr<Device> device_;
  size_t compiled_ = 0;
  static inline std::filesystem::path folder_;
};

TEST_F(Beam, IsNoSlowerThanTheHeuristics) {
  const ir::UOp ast = product_ast(device_, 48);
  ASSERT_TRUE(ast);
  const auto found = beam_search(ast, device_->hcq(), {.width = 1, .seconds = 120}, compiler());
  ASSERT_TRUE(found);
  EXPECT_LE(found->ns, found->heuristic_ns);
  EXPECT_GT(found->ns, 0);
  EXPECT_GT(found->candidates, 10u);
  EXPECT_EQ(kernel::parse_opts(to_string(found->opts)), found->opts);
}

// Kernels that do nothing are fast.
TEST_F(Beam, NeverChoosesWhatStoresSomethingElse) {
  const ir::UOp ast = product_ast(device_, 40);
  ASSERT_TRUE(ast);
  const Target& target = device_->target();
  const std::string plain =
      render::renderer_of(target).render(kernel::lower_with(ast, target, {}), target).text;
  const auto lying = [&](std::span<const render::Source> sources) {
    std::vector<render::Source> changed(sources.begin(), sources.end());
    for (render::Source& s : changed)
      if (s.text != plain)
        s.text = "void " + s.symbol + "(const void* a, u32 x, u32 y, u32 z) {}\n";
    return compile(changed);
  };
  const auto found = beam_search(ast, device_->hcq(), {.width = 1, .seconds = 120}, lying);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(found->opts), "");
}

// Without opts a product's workgroups have one lane each: a large one is not tried so.
TEST_F(Beam, NothingSerialRunsOnAGpu) {
  std::shared_ptr<Device> gpu;
  try {
    gpu = Device::get("VULKAN");
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const Target& target = gpu->target();
  for (const int64_t n : {64, 768}) {
    const ir::UOp ast = product_ast(gpu, n);
    ASSERT_TRUE(ast);
    std::vector<render::Source> tried;
    const auto noting = [&](std::span<const render::Source> sources) {
      tried.insert(tried.end(), sources.begin(), sources.end());
      return render::renderer_of(target).compile(sources, target);
    };
    ASSERT_TRUE(beam_search(ast, gpu->hcq(), {.width = 1, .seconds = 0.1}, noting));
    ASSERT_FALSE(tried.empty());
    EXPECT_GE(tried[0].local[0], target.subgroup_size);  // what all others are compared with
    const std::string serial = kernel::lower_with(ast, target, {}).name;
    EXPECT_EQ(std::ranges::count(tried, serial, &render::Source::name), n == 64 ? 1 : 0);
  }
}

TEST_F(Beam, SymbolicKernelsAreLeftToTheHeuristics) {
  const ir::UOp n = ir::variable("n", 1, 64);
  const ir::UOp r = ir::range(n, 0, ir::AxisKind::Loop);
  const auto at = [&](int32_t slot) {
    return ir::make(ir::Op::Index, DType::F32, {ir::param(slot, DType::F32, 64), r});
  };
  const ir::UOp load = ir::make(ir::Op::Load, DType::F32, {at(1)});
  const ir::UOp store = ir::make(ir::Op::Store, DType::Void, {at(0), load});
  const ir::UOp end = ir::make(ir::Op::End, DType::Void, {store, r});
  const ir::UOp ast = ir::make(ir::Op::Sink, DType::Void, {end});
  EXPECT_FALSE(beam_search(ast, device_->hcq(), {.width = 1, .seconds = 1}, compiler()));
  EXPECT_EQ(compiled_, 0u);
}

// The first run searches and keeps what it finds; a device opened anew takes that from disk.
TEST_F(Beam, IsAskedForByTheEnvironmentAndRemembered) {
  const EnvOverride beam(Env::TUFF_BEAM, "1");
  const uint64_t before = counters().kernels_searched;
  expect_a_right_product();
  EXPECT_EQ(counters().kernels_searched, before + 1);
  device_.reset();
  close_devices();
  expect_a_right_product();
  EXPECT_EQ(counters().kernels_searched, before + 1);
}

}  // namespace
}  // namespace tuff::engine
