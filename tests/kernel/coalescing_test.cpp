// How well the lanes of a subgroup share lines of memory (analysis/coalescing.h): the count by hand
// on small kernels, and what the heuristics choose for GPUs that are not at hand, pinned in
// tests/targets/golden/coalescing.txt. TUFF_UPDATE_GOLDENS=1 writes it anew.
#include "kernel/analysis/coalescing.h"

#include <gtest/gtest.h>


#include "kernel/ast_builder.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"
#include "sched/models.h"
#include "sched/schedule.h"

namespace tuff::kernel {
namespace {

using namespace ir;
namespace models = sched::testing;

using tuff::testing::target_of;

UOp input(std::initializer_list<int64_t> extents, DType t = DType::F32) {
  Shape shape;
  for (const int64_t e : extents) shape.push_back(Dim(e));
  return reshape(buffer(make_ref<Storage>("VULKAN", t, element_count(shape))), shape);
}
// As Tensor::matmul makes it: summed in f32.
UOp product(const UOp& a, const UOp& b) {
  const auto wide = [](const UOp& x) { return x->dtype == DType::F32 ? x : cast(x, DType::F32); };
  const UOp sum = models::matmul(wide(a), wide(b));
  return a->dtype == DType::F32 ? sum : cast(sum, a->dtype);
}
UOp linear(int64_t rows, int64_t outputs, int64_t inputs, DType t) {  // y = x W^T
  return product(input({rows, inputs}, t), permute(input({outputs, inputs}, t), {1, 0}));
}
UOp rms_norm(const UOp& x) {
  const UOp n = models::number(1.0 / double(x->shape[1].value()));
  const UOp mean = models::mul(reduce(Op::Add, models::mul(x, x), {1}), n);
  const UOp scale = models::recip(alu(Op::Sqrt, {models::add(mean, models::number(1e-5))}));
  return models::mul(x, expand(scale, x->shape));
}

// A 1-d convolution of a signal of that many channels, without padding.
UOp windows_ast(int64_t filters, int64_t channels, int64_t window, int64_t positions) {
  using namespace testing;
  AstBuilder b;
  const int64_t length = positions + window - 1;
  const UOp f = b.loop(filters), p = b.loop(positions), c = b.fold(channels), w = b.fold(window);
  const UOp product = load(1, channels * length, c * length + p + w) *
                      load(2, filters * channels * window, (f * channels + c) * window + w);
  return kernel_of({store(0, filters * positions, f * positions + p,
                          reduce_over(Op::Add, product, {c, w}), {f, p})});
}

struct Work {
  std::string name;
  std::vector<UOp> kernels;
};
Work scheduled(const std::string& name, const UOp& value, const Target& target) {
  Work w{name, {}};
  const UOp sinks[] = {models::contiguous(value)};
  sched::clear_schedule_cache();
  const auto s = sched::schedule(sinks, [&](const std::string&) -> const Target& { return target; });
  for (const sched::Call& call : s.schedule->calls)
    if (call.kind == sched::CallKind::Kernel) w.kernels.push_back(call.ast);
  return w;
}
std::vector<Work> scoreboard(const Target& t) {
  std::vector<Work> out;
  const auto add = [&](const std::string& name, const UOp& value) {
    out.push_back(scheduled(name, value, t));
  };
  const auto square = [](DType d = DType::F32) { return input({4096, 4096}, d); };
  add("gemv", product(square(), input({4096, 1})));
  add("gemv f16", product(square(DType::F16), input({4096, 1}, DType::F16)));
  for (const int64_t m : {1, 2, 4, 8}) {
    add(fmt::format("linear of {} rows", m), linear(m, 4096, 4096, DType::F32));
    add(fmt::format("linear of {} rows f16", m), linear(m, 4096, 4096, DType::F16));
    add(fmt::format("product of {} rows", m), product(input({m, 4096}), square()));
  }
  add("softmax", models::softmax(square()));
  add("softmax of 512 columns", models::softmax(input({32768, 512})));
  add("layer norm", models::layer_norm(square(), input({4096})));
  add("RMS norm", rms_norm(square()));
  add("row sums", reduce(Op::Add, square(), {1}));
  add("row sums of 128 columns", reduce(Op::Add, input({131072, 128}), {1}));
  add("column sums", reduce(Op::Add, square(), {0}));
  add("column sums of 32768 rows", reduce(Op::Add, input({32768, 512}), {0}));
  add("transpose", permute(square(), {1, 0}));
  add("transpose f16", permute(square(DType::F16), {1, 0}));
  add("transpose of 1000 x 3001", permute(input({1000, 3001}), {1, 0}));
  add("heads of 64 split", permute(input({8, 512, 16, 64}), {0, 2, 1, 3}));
  add("axes turned", permute(input({8, 64, 32, 128}), {0, 3, 1, 2}));
  add("channels last", permute(input({8, 64, 56, 56}), {0, 2, 3, 1}));
  add("transpose + 1 + itself",
      models::add(permute(square(), {1, 0}), models::add(square(), models::number(1))));
  add("broadcast add", models::add(square(), models::broadcast(input({4096}), square()->shape)));
  add("x*2+1", models::add(models::mul(square(), models::number(2)), models::number(1)));
  out.push_back({"gather of rows", {testing::gather_ast(8192, 4096, 256)}});
  add("product of 32 x 32 outputs", product(input({32, 512}), input({512, 32})));
  for (const auto& [window, positions] :
       {std::pair(3, 1), std::pair(3, 2), std::pair(5, 4), std::pair(5, 16)}) {
    out.push_back({fmt::format("windows of {}, {} positions", window, positions),
                   {windows_ast(64, 128, window, positions)}});
  }
  out.push_back({"packed gemv", {testing::packed_sum_ast(4096, 128)}});
  out.push_back({"packed product of 64 rows", {testing::packed_sum_ast(4096, 128, 64)}});
  return out;
}

TEST(Coalescing, IsCountedAsTheLanesTouchMemory) {
  Target t = target_of("nvidia-hopper");
  const UOp rows = testing::sum_ast(1024, 1024);
  // A row per lane: 32 lanes touch a line each for the 16 bytes that they take.
  const auto with = [&](std::vector<Opt> opts) { return coalescing_of(lower_with(rows, t, opts), t); };
  const KernelCoalescing apart =
      with({{OptKind::Unroll, 1, 4}, {OptKind::Local, 0, 32}, {OptKind::Group, 0, 0}});
  EXPECT_DOUBLE_EQ(apart.loads.ratio(), 8);
  EXPECT_DOUBLE_EQ(apart.stores.ratio(), 1);
  const KernelCoalescing together = with(
      {{OptKind::Unroll, 1, 4}, {OptKind::GroupReduce, 1, 32}, {OptKind::Group, 0, 0}});
  EXPECT_DOUBLE_EQ(together.loads.ratio(), 1);
  EXPECT_EQ(to_string(together), "loads 1.0, stores 1.0");
}

// Neighbours of 16 bits go together as whole words alone.
TEST(Coalescing, NarrowNeighboursGoTogetherByWords) {
  using namespace testing;
  Target t = target_of("nvidia-hopper");
  const auto copied = [&](int64_t begin) {
    AstBuilder b;
    const UOp i = b.loop(4096), x = load(1, 4100, i + begin, DType::F16);
    const UOp ast = kernel_of({store(0, 4096, i, x, {i})});
    const std::vector<Opt> opts{
        {OptKind::Vector, 0, 8}, {OptKind::Local, 0, 32}, {OptKind::Group, 0, 0}};
    return coalescing_of(lower_with(ast, t, opts), t);
  };
  EXPECT_DOUBLE_EQ(copied(0).loads.ratio(), 1);
  EXPECT_DOUBLE_EQ(copied(0).stores.ratio(), 1);
  // Elements 1, 2 to 5, 6 and 7, 8: each of four lines, the last one of five.
  EXPECT_DOUBLE_EQ(copied(1).loads.ratio(), 17.0 / 5);
  t.features.i16 = false;
  EXPECT_DOUBLE_EQ(copied(0).loads.ratio(), 4);
}

// Channels lie a window apart: a lane for each, with its whole window, touches whole lines. Four
// channels to a lane touched 17 times the fewest.
TEST(Coalescing, WindowsOfNeighbouringChannels) {
  const Target t = target_of("amd-rdna3-igpu");
  for (const int64_t positions : {1, 2}) {
    const LinearKernel k = lower(windows_ast(64, 128, 3, positions), t);
    EXPECT_LT(coalescing_of(k, t).loads.ratio(), 1.8) << k.opts;
  }
}

TEST(Coalescing, OfWhatIsChosenForEachTarget) {
  std::string text;
  for (const char* name : {"amd-rdna3-igpu", "intel-xe", "nvidia-ampere", "nvidia-hopper",
                           "qualcomm-adreno", "arm-mali"}) {
    const Target target = target_of(name);
    text += std::string(name) + "\n";
    for (const Work& w : scoreboard(target)) {
      text += "  " + w.name + "\n";
      for (const UOp& ast : w.kernels) {
        const LinearKernel k = lower(ast, target);
        text += fmt::format("    {} [{}]\n", to_string(coalescing_of(k, target)), k.opts);
      }
    }
  }
  tuff::testing::expect_target_golden("coalescing", text);
}

}  // namespace
}  // namespace tuff::kernel
