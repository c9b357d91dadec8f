// The kernels of dtype_cases.h on the devices that are there: CPU, the first Vulkan device, and
// that device with its narrow and 64-bit types masked, so that emulation runs where both forms can
// be compared; with descriptors in place of addresses; and with both, as a Vulkan 1.1 device. ctest
// repeats the Vulkan part with SwiftShader alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/env.h"
#include "devices/registry.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/kept_row_opts.h"
#include "render/renderer.h"

namespace tuff::kernel::testing {
namespace {

constexpr DType kTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,
                            DType::I32,  DType::U32, DType::I64, DType::U64, DType::F16,
                            DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN, DType::F8E5M2};

struct Where {
  const char* name;
  const char* kind;
  const char* disable;  // TUFF_VK_DISABLE
};
constexpr Where kWhere[] = {
    {"cpu", "CPU", ""},
    {"vulkan", "VULKAN", ""},
    {"vulkan_masked", "VULKAN", "i64,i16,i8,f16,f64,storage"},
    {"vulkan_bound", "VULKAN", "bda"},
    {"vulkan_floor", "VULKAN", "core12,bda,timeline,sync2,i64,i16,i8,f16,f64,storage,sub"},
};

class KernelDevice : public ::testing::TestWithParam<std::tuple<Where, DType>> {
 protected:
  void SetUp() override {
    const Where& where = std::get<0>(GetParam());
    mask_.emplace(Env::TUFF_VK_DISABLE, where.disable);
    for (const devices::DeviceKind& kind : devices::device_kinds()) {
      if (kind.kind != std::string(where.kind)) continue;
      const std::vector<devices::Candidate> found = kind.probe();
      for (const devices::Candidate& c : found) {
        if (!device_ && c.usable) device_ = kind.open("");
      }
      if (!device_) GTEST_SKIP() << (found.empty() ? "none found" : found[0].reason);
      return;
    }
    GTEST_SKIP() << "not built with " << where.kind;
  }

  DType dtype() const { return std::get<1>(GetParam()); }
  bool lacks(DType t) const { return t == DType::F64 && !device_->target().features.f64; }

  void check(const std::vector<DtypeCase>& cases) { check(cases, device_->target()); }
  void check(const std::vector<DtypeCase>& cases, const Target& target) {
    const render::Renderer& renderer = render::renderer_of(target);
    std::vector<LinearKernel> kernels;
    std::vector<render::Source> sources;
    for (const DtypeCase& c : cases) {
      kernels.push_back(lower(c.ast, target));
      sources.push_back(renderer.render(kernels.back(), target));
    }
    const auto programs = device_->load(renderer.compile(sources, target));
    for (size_t i = 0; i < cases.size(); i++) {
      const Buffers start = full_range_buffers(cases[i].ast, uint32_t(i));
      Buffers want = start, got = start;
      run_ast(cases[i].ast, want);
      run(kernels[i], *programs[i], got);
      expect_equal(cases[i], start, got, want, device_->name());
    }
  }

  // Every buffer stands between guards, which have to stay.
  void run(const LinearKernel& k, const hcq::Program& program, Buffers& buffers) {
    hcq::Allocator& memory = device_->allocator();
    std::vector<hcq::Span> spans;
    std::vector<uint64_t> block(program.args().size_bytes() / 8);
    hcq::DispatchCmd dispatch{.program = &program};
    hcq::Command command;
    constexpr size_t kGuard = 16;
    std::vector<Buffer> padded;
    for (size_t i = 0; i < buffers.size(); i++) {
      Buffer& b = padded.emplace_back(buffers[i].size() + 2 * kGuard, std::byte{0xa5});
      std::copy(buffers[i].begin(), buffers[i].end(), b.begin() + kGuard);
      spans.push_back(memory.allocate(b.size(), hcq::MemoryKind::Device));
      device_->upload(spans[i], b.data());
      block[i] = spans[i].address() + kGuard;
      command.accesses.push_back({spans[i], true});
      command.buffers.push_back(spans[i].sub(kGuard, buffers[i].size()));
    }
    dispatch.args = memory.allocate(block.size() * 8, hcq::MemoryKind::Upload);
    device_->upload(dispatch.args, block.data());
    for (int axis = 0; axis < 3; axis++)
      dispatch.groups[axis] = uint32_t(k.groups[size_t(axis)].value());
    command.body = dispatch;
    hcq::CommandList list;
    list.commands.push_back(command);
    hcq::Queue& queue = device_->compute_queue();
    queue.wait(queue.submit_once(queue.encode(list, hcq::EncodeUse::Once)));
    for (size_t i = 0; i < buffers.size(); i++) {
      device_->download(spans[i], padded[i].data());
      memory.free(spans[i]);
      const auto begin = padded[i].begin() + kGuard, end = begin + ptrdiff_t(buffers[i].size());
      EXPECT_TRUE(
          std::all_of(padded[i].begin(), begin, [](std::byte v) { return v == std::byte{0xa5}; }));
      EXPECT_TRUE(
          std::all_of(end, padded[i].end(), [](std::byte v) { return v == std::byte{0xa5}; }))
          << k.name << ": bytes behind buffer " << i << " changed";
      std::copy(begin, end, buffers[i].begin());
    }
    memory.free(dispatch.args);
  }

  std::optional<EnvOverride> mask_;
  std::unique_ptr<hcq::Device> device_;
};

// float64 where it is absent: refused before anything is compiled, and said so.
TEST_P(KernelDevice, Ops) {
  if (lacks(dtype())) {
    for (const DtypeCase& c : op_cases(dtype()))
      EXPECT_THROW(lower(c.ast, device_->target()), Unsupported) << c.name;
    return;
  }
  check(op_cases(dtype()));
}
TEST_P(KernelDevice, Casts) {
  std::vector<DType> to;
  for (DType t : kTypes) {
    if (!lacks(t)) to.push_back(t);
  }
  if (lacks(dtype())) GTEST_SKIP() << device_->name() << " has no float64: refused, see Ops";
  check(cast_cases(dtype(), to));
}
TEST_P(KernelDevice, Storage) {
  if (lacks(dtype())) GTEST_SKIP() << device_->name() << " has no float64: refused, see Ops";
  check(storage_cases(dtype()));
}
// By tiles in workgroup memory, as where that is faster than the caches.
TEST_P(KernelDevice, Transposes) {
  if (lacks(dtype())) GTEST_SKIP() << device_->name() << " has no float64: refused, see Ops";
  Target target = device_->target();
  target.has_fast_shared = true;
  if (target.has_local) {
    const std::string opts = lower(transpose_cases(dtype())[0].ast, target).opts;
    EXPECT_NE(opts.find("stage"), std::string::npos) << opts;
  }
  check(transpose_cases(dtype()), target);
}

// Rows of scores and probabilities that a workgroup keeps: by the heuristics, and by any opts.
class KeptRowsDevice : public KernelDevice {
 protected:
  struct Kept {
    ir::UOp ast;
    LinearKernel kernel;
  };
  static std::vector<Kept> kept_kernels(const Target& target) {
    std::mt19937 random(11);
    std::vector<Kept> out;
    for (int i = 0; i < 6; i++) {
      const ir::UOp ast =
          random_attention(random, i % 3, {1, 7, 16, 32, 37, 64}, {1, 8, 13, 32});
      out.push_back({ast, lower(ast, target)});
      if (!target.has_local) continue;
      for (int n = 0; n < (i % 3 ? 1 : 2); n++)
        out.push_back({ast, lower_with(ast, target, kept_row_opts(ast, target, random))});
    }
    if (target.has_local) add_parts_of_rows(out, target);
    return out;
  }
  // Parts of rows, with a maximum that grows, as where workgroup memory is faster than the caches.
  static void add_parts_of_rows(std::vector<Kept>& out, Target target) {
    target.has_fast_shared = true;
    for (const bool causal : {false, true}) {
      const ir::UOp ast = attention_ast(2, 64, 8, causal);
      const Tiling t(ast_for_opts(ast, target), target);
      ASSERT_FALSE(t.slab_axes.empty());
      out.push_back({ast, lower_with(ast, target,
                                     {{OptKind::Local, 2, 8},
                                      {OptKind::Slab, t.slab_axes[0], 16},
                                      {OptKind::Upcast, 1, 2},
                                      {OptKind::Local, 1, 2}})});
    }
  }
  void expect_close(const Kept& k, const Buffers& got, const Buffers& want) {
    const size_t outputs = k.ast->src_count;
    for (size_t slot = 0; slot < outputs; slot++) {
      for (size_t at = 0; at < want[slot].size(); at += sizeof(float)) {
        const double a = load_scalar(DType::F32, want[slot].data() + at).as_double();
        const double b = load_scalar(DType::F32, got[slot].data() + at).as_double();
        ASSERT_LE(std::abs(a - b), 1e-4 * (1 + std::abs(a)))
            << device_->name() << " element " << at / sizeof(float) << " of output " << slot << ": "
            << k.kernel.opts;
      }
    }
    for (size_t slot = outputs; slot < want.size(); slot++)
      EXPECT_EQ(got[slot], want[slot]) << k.kernel.opts;
  }
};

TEST_P(KeptRowsDevice, MeanWhatTheirFormulaMeans) {
  const Target& target = device_->target();
  const render::Renderer& renderer = render::renderer_of(target);
  const std::vector<Kept> kernels = kept_kernels(target);
  std::vector<render::Source> sources;
  for (const Kept& k : kernels) sources.push_back(renderer.render(k.kernel, target));
  const auto programs = device_->load(renderer.compile(sources, target));
  for (size_t i = 0; i < kernels.size(); i++) {
    Buffers want = random_buffers(kernels[i].ast, uint32_t(i)), got = want;
    run_ast(kernels[i].ast, want);
    run(kernels[i].kernel, *programs[i], got);
    expect_close(kernels[i], got, want);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, KeptRowsDevice,
                         ::testing::Combine(::testing::ValuesIn(kWhere),
                                            ::testing::Values(DType::F32)),
                         [](const auto& info) { return std::get<0>(info.param).name; });
INSTANTIATE_TEST_SUITE_P(
    , KernelDevice, ::testing::Combine(::testing::ValuesIn(kWhere), ::testing::ValuesIn(kTypes)),
    [](const auto& info) {
      return fmt::format("{}_{}", std::get<0>(info.param).name, name(std::get<1>(info.param)));
    });

}  // namespace
}  // namespace tuff::kernel::testing
