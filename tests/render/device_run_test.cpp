// Binaries of hand-built and random kernels, loaded and run by the devices that are there (Vulkan:
// lavapipe in CI; CPU: the object loader); results against linear_eval. Skipped without the device.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "base/env.h"
#include "devices/registry.h"
#include "render/kernel_cases.h"
#include "render/random_kernel.h"
#include "render/renderer.h"

namespace tuff::render {
namespace {

struct Where {
  const char *name, *kind;
  const char* disable;  // TUFF_VK_DISABLE, or TUFF_CL_DISABLE
};
constexpr Where kWhere[] = {{"VULKAN", "VULKAN", ""},
                            {"Descriptors", "VULKAN", "bda"},
                            {"CPU", "CPU", ""},
                            {"CL", "CL", ""},
                            {"ClBuffers", "CL", "svm"}};

class RenderDevice : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    const bool opencl = GetParam().kind == std::string("CL");
    disable_.emplace(opencl ? Env::TUFF_CL_DISABLE : Env::TUFF_VK_DISABLE, GetParam().disable);
    // A device that is missing is skipped; one that is there and cannot be opened throws: a
    // failure.
    for (const devices::DeviceKind& kind : devices::device_kinds()) {
      if (kind.kind != std::string(GetParam().kind)) continue;
      const std::vector<devices::Candidate> found = kind.probe();
      for (const devices::Candidate& c : found) {
        if (!device_ && c.usable) device_ = kind.open("");
      }
      if (!device_) GTEST_SKIP() << (found.empty() ? "none found" : found[0].reason);
      return;
    }
    GTEST_SKIP() << "not built with " << GetParam().kind;
  }

  void check(const std::vector<Case>& cases) {
    const Target& target = device_->target();
    const Renderer& renderer = renderer_of(target);
    std::vector<Source> sources;
    for (const Case& c : cases) sources.push_back(renderer.render(c.kernel, target));
    const auto programs = device_->load(renderer.compile(sources, target));
    for (size_t i = 0; i < cases.size(); ++i) {
      std::vector<HostBuffer> got = inputs(cases[i].kernel, static_cast<uint32_t>(i),
                                           cases[i].values),
                              want = got;
      run(cases[i], *programs[i], got);
      evaluate(cases[i].kernel, want, cases[i].scalars);
      const bool before = HasFailure();
      expect_equal(cases[i].kernel, got, want);
      if (!before && HasFailure()) std::puts(to_text(sources[i]).c_str());
    }
  }

  void run(const Case& c, const hcq::Program& program, std::vector<HostBuffer>& buffers) {
    hcq::Allocator& memory = device_->allocator();
    std::vector<hcq::Span> spans;
    std::vector<uint64_t> block(program.args().size_bytes() / 8);
    hcq::DispatchCmd dispatch{.program = &program};
    hcq::Command command;
    for (size_t i = 0; i < buffers.size(); ++i) {
      spans.push_back(memory.allocate(buffers[i].size(), hcq::MemoryKind::Device));
      device_->upload(spans[i], buffers[i].data());
      block[i] = spans[i].address();
      command.accesses.push_back({spans[i], true});
      command.buffers.push_back(spans[i]);
    }
    if (!c.scalars.empty())
      std::memcpy(block.data() + buffers.size(), c.scalars.data(), c.scalars.size() * 4);
    dispatch.args = memory.allocate(block.size() * 8, hcq::MemoryKind::Upload);
    device_->upload(dispatch.args, block.data());
    for (int axis = 0; axis < 3; ++axis)
      dispatch.groups[axis] = static_cast<uint32_t>(c.kernel.groups[axis].value());
    command.body = dispatch;
    hcq::CommandList list;
    list.commands.push_back(command);
    hcq::Queue& queue = device_->compute_queue();
    queue.wait(queue.submit_once(queue.encode(list, hcq::EncodeUse::Once)));
    for (size_t i = 0; i < buffers.size(); ++i) {
      device_->download(spans[i], buffers[i].data());
      memory.free(spans[i]);
    }
    memory.free(dispatch.args);
  }

  std::optional<EnvOverride> disable_;
  std::unique_ptr<hcq::Device> device_;
};

TEST_P(RenderDevice, StructuralKernels) {
  std::vector<Case> cases = {{elementwise_kernel(), Values::Whole},
                             {matmul_kernel(), Values::Whole},
                             {row_sum_kernel(), Values::Whole, {6}},
                             {row_sum_kernel(), Values::Whole, {4}},
                             {gated_kernel()},
                             {strided_kernel()}};
  if (device_->target().has_local) cases.push_back({shared_sum_kernel(), Values::Whole});
  check(cases);
}

TEST_P(RenderDevice, IntegersAndBools) {
  const TargetFeatures& f = device_->target().features;
  if (!f.storage8 || !f.storage16 || !f.i64 || !f.f64) GTEST_SKIP() << "needs every width";
  std::vector<Case> cases = integer_cases();
  for (int width : {1, 8}) cases.push_back({bool_kernel(width)});
  check(cases);
}

TEST_P(RenderDevice, CastsOfEveryPair) {
  const TargetFeatures& f = device_->target().features;
  if (!f.storage8 || !f.storage16 || !f.i64 || !f.f64) GTEST_SKIP() << "needs every width";
  constexpr DType types[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16,
                             DType::U16,  DType::I32, DType::U32, DType::I64,
                             DType::U64,  DType::F16, DType::F32, DType::F64};
  check(cast_cases(types));
}

TEST_P(RenderDevice, RandomKernels) {
  std::vector<Case> cases;
  for (uint32_t seed = 0; seed < 20; ++seed) cases.push_back({random_kernel(seed)});
  check(cases);
}

TEST_P(RenderDevice, RandomMovesOfNarrowNeighbours) {
  const TargetFeatures& f = device_->target().features;
  if (!f.storage8 || !f.storage16 || !f.f16) GTEST_SKIP() << "needs narrow widths";
  std::vector<Case> cases;
  for (const DType d : {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::F16}) {
    for (uint32_t seed = 0; seed < 12; ++seed) cases.push_back({random_move(seed, d)});
  }
  check(cases);
}

TEST_P(RenderDevice, FloatsWithinTheSpecifiedPrecision) {
  if (!device_->target().features.f64) GTEST_SKIP() << "needs float64";
  check(float_cases());
}

INSTANTIATE_TEST_SUITE_P(, RenderDevice, ::testing::ValuesIn(kWhere),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tuff::render
