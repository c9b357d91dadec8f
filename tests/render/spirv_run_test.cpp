// What the emitted SPIR-V computes, by the specification and not by a driver: hand-built and random
// kernels, every op of every dtype on Targets that lack one type or all, and what the heuristics
// and random opts make of small kernels for devices that are not at hand.
#include <gtest/gtest.h>

#include <random>

#include <spirv/unified1/spirv.hpp>

#include "ir/gradient.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/opt/neighbours.h"
#include "kernel/opt/random_opts.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"
#include "render/kernel_cases.h"
#include "render/linear_builder.h"
#include "render/random_kernel.h"
#include "render/renderer.h"
#include "render/spirv.h"
#include "render/spirv_interpreter.h"
#include "sched/models.h"
#include "sched/schedule.h"

namespace tuff::render {
namespace {

namespace kt = kernel::testing;
using ir::UOp;

Target bound(Target t) {  // by descriptors
  t.features.device_address = false;
  return t;
}
constexpr int64_t kMostLanes = 64;

const Target* current = nullptr;  // of run_module: a plain function is what expect_same takes

template <class Buffer>
void run_module(const kernel::LinearKernel& k, const Target& t, std::vector<Buffer>& buffers,
                const std::vector<int32_t>& scalars = {}) {
  const Source source = render_spirv(k, t);
  testing::SpirvLaunch launch{.args = source.args, .scalars = scalars};
  launch.subgroup_size = std::max<uint32_t>(t.subgroup_size, 1);
  std::vector<size_t> sizes;
  for (Buffer& b : buffers) {
    sizes.push_back(b.size());
    b.resize((b.size() + 3) & ~size_t{3});  // memory ends at a whole word, as on devices
    launch.buffers.emplace_back(reinterpret_cast<uint8_t*>(b.data()), b.size());
  }
  for (size_t i = 0; i < 3; ++i) launch.groups[i] = static_cast<uint32_t>(k.groups[i].value());
  testing::run_spirv(source.words, launch);
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i].resize(sizes[i]);
}
void run_current(const kernel::LinearKernel& k, kt::Buffers& buffers) {
  run_module(k, *current, buffers);
}

void expect_evaluated(const Case& c, const Target& t, uint32_t seed) {
  std::vector<HostBuffer> got = inputs(c.kernel, seed, c.values), want = got;
  evaluate(c.kernel, want, c.scalars);
  run_module(c.kernel, t, got, c.scalars);
  expect_equal(c.kernel, got, want);
}

std::vector<Target> hosts() {
  const Target lavapipe = builtin_target("spirv-lavapipe");
  return {lavapipe, bound(lavapipe)};
}

TEST(SpirvRun, StructuralKernels) {
  for (const Target& t : hosts()) {
    uint32_t seed = 0;
    for (const Case& c : std::initializer_list<Case>{{elementwise_kernel(), Values::Whole},
                                                     {matmul_kernel(), Values::Whole},
                                                     {row_sum_kernel(), Values::Whole, {6}},
                                                     {row_sum_kernel(), Values::Whole, {4}},
                                                     {gated_kernel()},
                                                     {strided_kernel()},
                                                     {shared_sum_kernel(), Values::Whole}})
      expect_evaluated(c, t, ++seed);
  }
}

TEST(SpirvRun, IntegersBoolsFloatsAndCasts) {
  constexpr DType types[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16,
                             DType::U16,  DType::I32, DType::U32, DType::I64,
                             DType::U64,  DType::F16, DType::F32, DType::F64};
  const Target t = builtin_target("spirv-lavapipe");
  std::vector<Case> cases = integer_cases();
  for (int width : {1, 8}) cases.push_back({bool_kernel(width)});
  for (const Case& c : float_cases()) cases.push_back(c);
  for (const Case& c : cast_cases(types)) cases.push_back(c);
  for (size_t i = 0; i < cases.size(); ++i) expect_evaluated(cases[i], t, static_cast<uint32_t>(i));
}

TEST(SpirvRun, RandomKernels) {
  for (const Target& t : hosts())
    for (uint32_t seed = 0; seed < 100; ++seed) expect_evaluated({random_kernel(seed)}, t, seed);
}

constexpr DType kNarrow[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16,
                             DType::U16,  DType::F16, DType::BF16, DType::F8E5M2};

// The interpreter finds accesses beyond a buffer and claims of alignment that are false.
TEST(SpirvRun, RandomMovesOfNarrowNeighbours) {
  std::vector<Target> targets = hosts();
  for (const char* name : {"amd-rdna3-igpu", "qualcomm-adreno"})
    targets.push_back(tuff::testing::target_of(name));
  for (const uint32_t bytes : {8u, 4u}) {
    targets.push_back(targets[2]);
    targets.back().vector_bytes = bytes;
  }
  for (bool TargetFeatures::* feature : {&TargetFeatures::i8, &TargetFeatures::f16}) {
    targets.push_back(targets[2]);
    targets.back().features.*feature = targets.back().features.f16_casts = false;
  }
  for (const Target& t : targets) {
    for (const DType d : kNarrow)
      for (uint32_t seed = 0; seed < 60; ++seed)
        expect_evaluated({random_move(seed, d)}, t, seed);
  }
}

// ---- lowered kernels ------------------------------------------------------------------------

class SpirvTypesRun : public ::testing::TestWithParam<DType> {
 protected:
  static void check(const std::vector<kt::DtypeCase>& cases, const Target& t,
                    const std::string& where) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const kernel::LinearKernel k = kernel::lower(cases[i].ast, t);
      const kt::Buffers start = kt::full_range_buffers(cases[i].ast, static_cast<uint32_t>(i));
      kt::Buffers want = start, got = start;
      kt::run_ast(cases[i].ast, want);
      run_module(k, t, got);
      kt::expect_equal(cases[i], start, got, want, where);
    }
  }
};

constexpr DType kTypes[] = {DType::Bool, DType::I8,  DType::U8,   DType::I16,
                            DType::U16,  DType::I32, DType::U32,  DType::I64,
                            DType::U64,  DType::F16, DType::BF16, DType::F32,
                            DType::F8E4M3FN, DType::F8E5M2};

TEST_P(SpirvTypesRun, WithAllTypesAndWithout) {
  const Target bare = builtin_target("spirv-generic");
  for (const Target& t : {builtin_target("spirv-lavapipe"), bare, bound(bare)}) {
    const std::string where = t.arch + (t.features.device_address ? "" : " bound");
    check(kt::op_cases(GetParam()), t, where);
    check(kt::storage_cases(GetParam()), t, where);
    check(kt::cast_cases(GetParam(), kTypes), t, where);
  }
}
TEST_P(SpirvTypesRun, WithoutOneAtATime) {
  using F = TargetFeatures;
  for (bool F::* feature : {&F::i8, &F::i16, &F::i64, &F::f16, &F::storage8, &F::storage16}) {
    Target t = builtin_target("spirv-lavapipe");
    t.features.*feature = false;
    if (!t.features.f16 || !t.features.i16) t.features.f16 = t.features.f16_casts = false;
    check(kt::op_cases(GetParam()), t, "without one");
    check(kt::storage_cases(GetParam()), t, "without one");
  }
}
INSTANTIATE_TEST_SUITE_P(, SpirvTypesRun, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name(info.param)); });

struct Work {
  const char* name;
  UOp ast;
};
std::vector<Work> works() {
  return {{"elementwise", kt::elementwise_ast(16, 33)},
          {"transpose", kt::transpose_ast(32, 48)},
          {"row sums", kt::sum_ast(5, 384)},
          {"sum", kt::sum_ast(1, 4096)},
          {"matmul 64x64x32", kt::matmul_ast(64, 64, 32)},
          {"matmul 32x64x64, transposed", kt::matmul_ast(32, 64, 64, true)},
          {"matmul 32x64x16 of f16", kt::narrow_product_ast({.m = 32, .n = 64, .bias = true})},
          {"matmul 17x31x13", kt::matmul_ast(17, 31, 13)},
          {"matmul across", kt::matmul_across_ast(32, 48, 16)},
          {"softmax", kt::softmax_ast(4, 96)},
          {"gather", kt::gather_ast(12, 9, 16)},
          {"packed numbers", kt::packed_sum_ast(6, 8)},
          {"conv", kt::conv_ast(1, 4, 8, 8)}};
}

class SpirvTargetRun : public ::testing::TestWithParam<const char*> {};

TEST_P(SpirvTargetRun, WhatTheHeuristicsChoose) {
  const Target t = tuff::testing::target_of(GetParam());
  for (const Target& used : {t, bound(t)}) {
    current = &used;
    for (const Work& w : works()) {
      const kernel::LinearKernel k = kernel::lower(w.ast, used);
      kt::expect_same(w.ast, k, 1e-4, fmt::format("{} on {} [{}]", w.name, GetParam(), k.opts),
                      run_current);
    }
  }
}

int barriers(const kernel::LinearKernel& k) {
  return int(std::ranges::count(k.ops, ir::Op::Barrier, [](const UOp& u) { return u->op; }));
}
// Copies are in two places in turn: with one they wait for another barrier.
void expect_in_turn(const UOp& ast, const kernel::LinearKernel& k, const Target& target) {
  kernel::Opts opts = kernel::parse_opts(k.opts);
  for (kernel::Opt& o : opts) o.amount = o.kind == kernel::OptKind::Ahead ? 1 : o.amount;
  const kernel::LinearKernel once = kernel::lower_with(ast, target, opts);
  EXPECT_EQ(barriers(once), barriers(k) + 1) << k.opts;
  kt::expect_same(ast, once, 1e-4, once.opts, run_current);
}

// Of few cores, so that small products have workgroups of tiles.
TEST_P(SpirvTargetRun, ProductsInWorkgroupMemory) {
  Target t = tuff::testing::target_of(GetParam());
  if (!t.has_fast_shared) return;
  t.cores = 2;
  t.subgroup_size = 32;
  for (const Target& used : {t, bound(t)}) {
    current = &used;
    for (const UOp& ast :
         {kt::matmul_ast(64, 64, 32), kt::matmul_ast(64, 48, 64, true), kt::matmul_ast(62, 94, 39),
          kt::matmul_ast(64, 48, 37), kt::matmul_across_ast(64, 64, 16)}) {
      const kernel::LinearKernel k = kernel::lower(ast, used);
      EXPECT_NE(k.opts.find(" stage(0,"), std::string::npos) << k.opts;
      EXPECT_NE(k.opts.find(" ahead(1,"), std::string::npos) << k.opts;
      kt::expect_same(ast, k, 1e-4, fmt::format("{} [{}]", GetParam(), k.opts), run_current);
      if (!used.max_loop_trips) expect_in_turn(ast, k, used);
    }
  }
}

// The kernels of a convolution and of its gradients, as they are scheduled.
std::vector<UOp> convolution_asts(int64_t images, int64_t channels, int64_t size, int64_t filters,
                                  const Target& target) {
  const auto input = [](const ir::Shape& shape) {
    return reshape(buffer(make_ref<ir::Storage>("VULKAN", DType::F32, element_count(shape))),
                   shape);
  };
  const ir::Shape results{images, filters, size, size};
  const UOp x = input({images, channels, size, size}), w = input({filters, channels, 3, 3});
  const UOp conv = sched::testing::conv3x3(x, w);
  const std::vector<UOp> leaves{x->src(0), w->src(0)};
  std::vector<UOp> sinks = gradients(conv, reshape(input(results), conv->shape), leaves);
  sinks = {reshape(conv, results), reshape(sinks[0], x->shape), reshape(sinks[1], w->shape)};
  std::vector<UOp> asts;
  const auto target_of = [&](const std::string&) -> const Target& { return target; };
  for (const sched::Call& c : sched::schedule(sinks, target_of).schedule->calls) {
    if (c.kind == sched::CallKind::Kernel) asts.push_back(c.ast);
  }
  return asts;
}

// Their workgroups extend along images, rows and columns of pixels.
TEST_P(SpirvTargetRun, ConvolutionsInWorkgroupMemory) {
  Target t = tuff::testing::target_of(GetParam());
  if (!t.has_fast_shared) return;
  t.cores = 2;
  t.subgroup_size = 16;
  current = &t;
  int staged = 0, wide = 0;
  for (const auto& [images, channels, size, filters] :
       {std::array<int64_t, 4>{2, 5, 8, 16}, {3, 4, 5, 8}}) {
    for (const UOp& ast : convolution_asts(images, channels, size, filters, t)) {
      const kernel::LinearKernel k = kernel::lower(ast, t);
      const std::string what = fmt::format("{} [{}]", GetParam(), k.opts);
      kt::expect_same(ast, k, 1e-4, what, run_current);
      const auto count = [&](const std::string& opt) {
        int n = 0;
        for (size_t at = 0; (at = k.opts.find(opt, at)) != std::string::npos; at++) n++;
        return n;
      };
      staged += count(" stage(") == 2;
      wide += count("local(") > 2;
    }
  }
  EXPECT_GE(staged, 2);
  EXPECT_GE(wide, 1);
}

TEST_P(SpirvTargetRun, RandomOpts) {
  const Target t = tuff::testing::target_of(GetParam());
  current = &t;
  for (const Work& w : works()) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
      const auto opts = kernel::random_opts(kernel::ast_for_opts(w.ast, t), t, seed, kMostLanes);
      const kernel::LinearKernel k = kernel::lower_with(w.ast, t, opts);
      kt::expect_same(w.ast, k, 1e-4, fmt::format("{} on {} [{}]", w.name, GetParam(), k.opts),
                      run_current);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SpirvTargetRun,
                         ::testing::Values("amd-rdna3-igpu", "intel-xe", "nvidia-ampere",
                                           "nvidia-hopper", "qualcomm-adreno", "arm-mali",
                                           "lavapipe"),
                         [](const auto& info) {
                           std::string s = info.param;
                           std::replace(s.begin(), s.end(), '-', '_');
                           return s;
                         });

// ---- what the interpreter finds -------------------------------------------------------------

struct Module {
  kernel::LinearKernel kernel;
  Source source;
  explicit Module(kernel::LinearKernel k)
      : kernel(std::move(k)), source(render_spirv(kernel, builtin_target("spirv-lavapipe"))) {}
  void run(std::vector<HostBuffer>& buffers) const {
    testing::SpirvLaunch launch{.args = source.args};
    for (HostBuffer& b : buffers) launch.buffers.emplace_back(b);
    for (size_t i = 0; i < 3; ++i)
      launch.groups[i] = static_cast<uint32_t>(kernel.groups[i].value());
    testing::run_spirv(source.words, launch);
  }
  // fn(words, at) of every instruction of that opcode; true: that was enough.
  template <class Fn>
  void change(uint32_t opcode, Fn fn) {
    std::vector<uint32_t>& w = source.words;
    for (size_t at = 5; at < w.size(); at += w[at] >> 16)
      if ((w[at] & 0xffff) == opcode && fn(w, at)) return;
    FAIL() << "no opcode " << opcode;
  }
};

TEST(SpirvInterpreter, AnAccessBeyondABufferIsFound) {
  const Module m(elementwise_kernel());
  std::vector<HostBuffer> buffers = inputs(m.kernel, 1, Values::Whole);
  m.run(buffers);
  buffers.back().resize(buffers.back().size() - 4);
  EXPECT_THROW(m.run(buffers), InternalError);
}

TEST(SpirvInterpreter, AWrongInstructionGivesAnotherResult) {
  Module m(elementwise_kernel());
  std::vector<HostBuffer> right = inputs(m.kernel, 1, Values::Whole), wrong = right;
  m.run(right);
  m.change(spv::OpFOrdGreaterThan, [](std::vector<uint32_t>& w, size_t at) {
    w[at] = (w[at] & 0xffff0000u) | spv::OpFOrdLessThan;
    return true;
  });
  m.run(wrong);
  EXPECT_NE(right, wrong);
}

// Without it one invocation reads what another has not written yet.
TEST(SpirvInterpreter, AMissingBarrierIsFound) {
  Module m(shared_sum_kernel());
  std::vector<HostBuffer> buffers = inputs(m.kernel, 1, Values::Whole);
  m.run(buffers);
  m.change(spv::OpControlBarrier, [](std::vector<uint32_t>& w, size_t at) {
    w.erase(w.begin() + ptrdiff_t(at), w.begin() + ptrdiff_t(at) + (w[at] >> 16));
    return true;
  });
  EXPECT_THROW(m.run(buffers), InternalError);
}

// The first half adds what the second has. The others have nothing to add: where they read element
// 0 all the same, which the first stores, it is a race although the value is dropped.
kernel::LinearKernel half_sum_kernel(bool gated_loads) {
  LinearBuilder b("half_sum");
  const UOp out = b.buffer(DType::F32, 32, false, true), x = b.buffer(DType::F32, 64, true, false);
  const UOp l = b.local(0, 64), memory = b.shared(DType::F32, 64);
  const UOp ready =
      b.after(memory, {b.barrier({b.store(b.index(memory, l), b.load(b.index(x, l)))})});
  const UOp adds = b.alu(Op::CmpLt, {l, b.i32(32)}), behind = b.plus(l, b.i32(32));
  const UOp own = gated_loads ? b.index(ready, l, adds) : b.index(ready, l);
  const UOp other = gated_loads ? b.index(ready, behind, adds)
                                : b.index(ready, b.alu(Op::Where, {adds, behind, l}));
  const UOp sum = b.plus(b.load(own), b.load(other));
  const UOp done = b.after(memory, {b.barrier({b.store(b.index(ready, l, adds), sum)})});
  b.store(b.index(out, l, adds), b.load(b.index(done, l)));
  return b.k;
}

TEST(SpirvInterpreter, ARaceOfAReadThatIsDroppedIsFound) {
  const Module right(half_sum_kernel(false)), wrong(half_sum_kernel(true));
  std::vector<HostBuffer> buffers = inputs(right.kernel, 1, Values::Whole);
  EXPECT_NO_THROW(right.run(buffers));
  EXPECT_THROW(wrong.run(buffers), InternalError);
}

// Nobody reads an element that only one invocation of a workgroup reads and stores, in place.
TEST(SpirvInterpreter, OneInvocationsReadsAreBranches) {
  LinearBuilder b("row_values");
  const UOp out = b.buffer(DType::F32, 2, true, true), x = b.buffer(DType::F32, 2, true, false);
  const UOp g = b.group(0, 2), l = b.local(0, 8);
  const UOp first = b.alu(Op::CmpEq, {l, b.i32(0)});
  b.store(b.index(out, g, first),
          b.plus(b.load(b.index(out, g, first)), b.load(b.index(x, g, first))));
  Module m(b.k);
  int branches = 0;
  m.change(spv::OpPhi, [&](std::vector<uint32_t>&, size_t) { return ++branches == 2; });
  EXPECT_EQ(branches, 2);
  std::vector<HostBuffer> buffers = inputs(m.kernel, 1, Values::Whole);
  const auto values = [&](size_t i) { return reinterpret_cast<const float*>(buffers[i].data()); };
  const float wanted[] = {values(0)[0] + values(1)[0], values(0)[1] + values(1)[1]};
  m.run(buffers);
  EXPECT_EQ(values(0)[0], wanted[0]);
  EXPECT_EQ(values(0)[1], wanted[1]);
}

// One lets the tiles be overwritten, the other lets them be read.
TEST(SpirvInterpreter, EachBarrierOfAStagedProductIsNeeded) {
  using enum kernel::OptKind;
  const std::vector<kernel::Opt> opts{{Local, 1, 4}, {Local, 0, 4}, {Split, 2, 4},
                                      {Group, 0, 0}, {Group, 1, 0}, {Stage, 0, 1},
                                      {Stage, 1, 1}, {Ahead, 0, 1}, {Ahead, 1, 1}};
  for (int removed = 0; removed < 2; removed++) {
    Module m(
        kernel::lower_with(kt::matmul_ast(16, 16, 16), builtin_target("spirv-lavapipe"), opts));
    std::vector<HostBuffer> right = inputs(m.kernel, 1, Values::Whole), wrong = right;
    m.run(right);
    int number = 0;
    m.change(spv::OpControlBarrier, [&](std::vector<uint32_t>& w, size_t at) {
      if (number++ != removed) return false;
      w.erase(w.begin() + ptrdiff_t(at), w.begin() + ptrdiff_t(at) + (w[at] >> 16));
      return true;
    });
    bool found = false;
    try {
      m.run(wrong);
      found = wrong != right;
    } catch (const InternalError&) {
      found = true;
    }
    EXPECT_TRUE(found) << "without barrier " << removed;
  }
}

TEST(SpirvInterpreter, AFalseClaimOfAlignmentIsFound) {
  Module m(elementwise_kernel());
  std::vector<HostBuffer> buffers = inputs(m.kernel, 1, Values::Whole);
  m.change(spv::OpLoad, [](std::vector<uint32_t>& w, size_t at) {
    const bool aligned = w[at] >> 16 == 6;
    if (aligned) w[at + 5] = 1 << 20;
    return aligned;
  });
  EXPECT_THROW(m.run(buffers), InternalError);
}

}  // namespace
}  // namespace tuff::render
