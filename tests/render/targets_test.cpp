// What the heuristics choose for devices that are not at hand (tests/targets/*.json): within their
// limits, valid for their Vulkan version, products with enough reuse, and kept as goldens, so that
// a change made for one device shows on all. TUFF_UPDATE_GOLDENS=1 writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/arith.h"
#include "ir/gradient.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/target_files.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/neighbours.h"
#include "kernel/pipeline.h"
#include "render/valid_spirv.h"
#include "sched/models.h"
#include "sched/schedule.h"

namespace tuff::render {
namespace {

using namespace ir;
using kernel::is_lane;
namespace models = sched::testing;

struct Row {
  const char* name;
  // Of 1024x1024x1024 in f32: multiply-adds count as two, and what the invocations of a workgroup
  // read in common once.
  double least_reuse;
  double least_conv_reuse;  // of the convolution and of its images' gradient
  int64_t most_registers;   // of one invocation, by estimate
};
// The tile that fits the registers, times what a workgroup of at most 256 invocations makes of it.
// Of this size Hopper's 132 units leave each a smaller tile. lavapipe's registers are a stack in
// the L1 cache, whose 32 KB hold 1,024 vectors of 8 floats; its reuse is by subgroup.
constexpr Row kRows[] = {{"amd-rdna3-igpu", 32, 16, 128}, {"intel-xe", 16, 8, 64},
                         {"nvidia-ampere", 21, 10, 128},  {"nvidia-hopper", 16, 8, 128},
                         {"qualcomm-adreno", 21, 16, 64}, {"arm-mali", 21, 16, 64},
                         {"lavapipe", 8, 6, 1024}};

// Of a convolution's weights' gradient, which has few outputs.
constexpr double kWeightsReuse = 4;
constexpr double kMatrixReuse = 40;  // of 1024x1024x1024 in f16, by cooperative matrices

constexpr int64_t kRowsTogether = 16;  // of attention of 64 positions

struct Work {
  std::string name;
  UOp value;
  enum { Other, Windows, Weights } conv = Other;
  std::vector<UOp> beside;
};
UOp input(std::initializer_list<int64_t> extents, DType t = DType::F32) {
  Shape shape;
  for (const int64_t e : extents) shape.push_back(Dim(e));
  return reshape(buffer(make_ref<Storage>("VULKAN", t, element_count(shape))), shape);
}
// As Tensor::matmul makes it: summed in f32.
UOp narrow_matmul(int64_t m, int64_t n, int64_t k, DType t) {
  const auto wide = [&](const UOp& x) { return cast(x, DType::F32); };
  return cast(models::matmul(wide(input({m, k}, t)), wide(input({k, n}, t))), t);
}
struct Attention {
  UOp q, k, v, result;
};
// Of heads with so many positions and numbers each; `mask` is added to the scores. Sums and the
// softmax are of f32.
Attention attention_of(int64_t heads, int64_t rows, int64_t positions, int64_t width, bool mask,
                       DType t = DType::F32) {
  const Dim h(heads);
  const auto wide = [](const UOp& x) { return cast(x, DType::F32); };
  // Over the last axis of both.
  const auto product = [&](const UOp& a, const UOp& b, double scale) {
    const UOp x = expand(reshape(a, {h, a->shape[1], Dim(1), a->shape[2]}),
                         {h, a->shape[1], b->shape[1], a->shape[2]});
    const UOp y = expand(reshape(b, {h, Dim(1), b->shape[1], b->shape[2]}),
                         {h, a->shape[1], b->shape[1], b->shape[2]});
    UOp sum = reshape(reduce(Op::Add, models::mul(wide(x), wide(y)), {3}),
                      {h, a->shape[1], b->shape[1]});
    if (scale != 1) sum = models::mul(sum, models::number(scale));
    return cast(sum, t);
  };
  const UOp q = input({heads, rows, width}, t), k = input({heads, positions, width}, t),
            v = input({heads, positions, width}, t);
  UOp scores = wide(product(q, k, 0.125));
  if (mask)
    scores = models::add(scores, models::broadcast(input({rows, positions}), scores->shape));
  const UOp e =
      models::exp(models::sub(scores, expand(reduce(Op::Max, scores, {2}), scores->shape)));
  const UOp p = models::mul(e, expand(models::recip(reduce(Op::Add, e, {2})), e->shape));
  return {q, k, v, product(cast(p, t), permute(v, {0, 2, 1}), 1)};
}
UOp attention(int64_t heads, int64_t positions, int64_t width) {
  return attention_of(heads, positions, positions, width, false).result;
}
// Of q, k and v, given that of the result.
std::vector<UOp> gradients_of(const Attention& a, std::initializer_list<int64_t> result) {
  const UOp inputs[] = {a.q, a.k, a.v};
  const UOp leaves[] = {a.q->src(0), a.k->src(0), a.v->src(0)};
  std::vector<UOp> out = gradients(a.result, reshape(input(result), a.result->shape), leaves);
  for (size_t i = 0; i < out.size(); i++) out[i] = reshape(out[i], inputs[i]->shape);
  return out;
}
Work attention_with_gradients(int64_t heads, int64_t positions, int64_t width) {
  const Attention a = attention_of(heads, positions, positions, width, false);
  return {fmt::format("attention {}x{}x{} with gradients", heads, positions, width), a.result,
          Work::Other, gradients_of(a, {heads, positions, width})};
}
std::vector<Work> benchmark_set() {
  std::vector<Work> out;
  for (const int64_t n : {64, 256, 512, 1024, 2048})
    out.push_back({fmt::format("matmul {}", n), models::matmul(input({n, n}), input({n, n}))});
  out.push_back({"matmul 509x1021x767", models::matmul(input({509, 767}), input({767, 1021}))});
  out.push_back({"matmul 509x1021x769", models::matmul(input({509, 769}), input({769, 1021}))});
  for (const int64_t n : {256, 1024, 2048})
    out.push_back({fmt::format("matmul {} of f16", n), narrow_matmul(n, n, n, DType::F16)});
  out.push_back({"matmul 1024 of bf16", narrow_matmul(1024, 1024, 1024, DType::BF16)});
  out.push_back({"matmul 509x1021x767 of f16", narrow_matmul(509, 1021, 767, DType::F16)});
  out.push_back({"matmul 64x64x65536", models::matmul(input({64, 65536}), input({65536, 64}))});
  out.push_back({"gemv 4096x4096", models::matmul(input({4096, 4096}), input({4096, 1}))});
  const UOp images = input({8, 32, 28, 28}), weights = input({64, 32, 3, 3});
  const UOp conv = models::conv3x3(images, weights);
  const std::vector<UOp> leaves{images->src(0), weights->src(0)};
  const std::vector<UOp> back =
      gradients(conv, reshape(input({8, 64, 28, 28}), conv->shape), leaves);
  out.push_back({"conv 8x32x28x28 by 64x3x3", conv, Work::Windows});
  out.push_back({"gradient of its images", reshape(back[0], images->shape), Work::Windows});
  out.push_back({"gradient of its weights", reshape(back[1], weights->shape), Work::Weights});
  out.push_back({"softmax 4096x4096", models::softmax(input({4096, 4096}))});
  out.push_back({"layernorm 4096x4096", models::layer_norm(input({4096, 4096}), input({4096}))});
  out.push_back({"attention 192x64x32", attention(192, 64, 32)});
  out.push_back({"attention 64x256x64", attention(64, 256, 64)});
  out.push_back({"attention 96x256x64", attention(96, 256, 64)});
  out.push_back({"attention 24x1024x64", attention(24, 1024, 64)});
  out.push_back({"attention 24x1024x64 of f16",
                 attention_of(24, 1024, 1024, 64, false, DType::F16).result});
  out.push_back({"attention 32x4096x128 of f16",
                 attention_of(32, 4096, 4096, 128, false, DType::F16).result});
  out.push_back(attention_with_gradients(240, 256, 64));
  out.push_back(attention_with_gradients(16, 1024, 64));
  out.push_back({"sum of 16777216", reduce(Op::Add, input({1 << 24}), {0})});
  out.push_back({"sum of 16777213", reduce(Op::Add, input({(1 << 24) - 3}), {0})});
  out.push_back({"column sums of 4096x4096", reduce(Op::Add, input({4096, 4096}), {0})});
  out.push_back({"transpose 4096x4096", permute(input({4096, 4096}), {1, 0})});
  out.push_back({"x*2+1 of 16777216",
                 models::add(models::mul(input({1 << 24}), models::number(2)), models::number(1))});
  return out;
}

int64_t lanes_of(const kernel::LinearKernel& k, size_t i) {
  int64_t n = 1;
  for (size_t bit = 0; bit < k.lane_ranges.size(); bit++)
    if (k.lanes[i] >> bit & 1) n *= k.lane_ranges[bit]->src(0)->max;
  return n;
}

// Of one lane, for the elements of a cooperative matrix that it holds.
int64_t registers_of(const MatrixArg& m, DType t, const kernel::LinearKernel& k) {
  return int64_t(m.rows) * m.columns * int64_t(size_bytes(t)) / 4 / k.subgroup_size;
}

// The most 32-bit values that are live at once as the list stands: accumulators in the loops that
// use them, loads and what is computed and used more than once from there to the last use. Other
// results are used up lane by lane; offsets that differ by a lane are immediates of the loads.
int64_t live_registers(const kernel::LinearKernel& k, const Target& target) {
  std::unordered_map<const Node*, size_t> at, last, users;
  std::vector<size_t> loop_end(k.ops.size(), 0);
  std::vector<size_t> open;
  std::vector<std::vector<size_t>> loops(k.ops.size());  // around each op, by opening
  for (size_t i = 0; i < k.ops.size(); i++) {
    const Node* n = k.ops[i].get();
    at[n] = i;
    if (n->op == Op::End) {
      loop_end[open.back()] = i;
      open.pop_back();
    }
    loops[i] = open;
    if (n->op == Op::Range && !is_lane(n->get<RangeArg>().kind)) open.push_back(i);
  }
  for (size_t i = 0; i < k.ops.size(); i++) {
    for (const UOp& s : k.ops[i]->src()) {
      size_t until = i;  // through the end of a loop that the value is defined outside of
      for (const size_t loop : loops[i])
        if (at.contains(s.get()) && at[s.get()] < loop) until = std::max(until, loop_end[loop]);
      last[s.get()] = std::max(last[s.get()], until);
      users[s.get()]++;
    }
  }
  std::unordered_map<const Node*, std::pair<size_t, size_t>> used;  // Registers: from, to
  for (size_t i = 0; i < k.ops.size(); i++) {
    const Node* n = k.ops[i].get();
    if ((n->op != Op::Load && n->op != Op::Store) || (n->op == Op::Store && n->src(1)->is_const()))
      continue;
    const size_t from = loops[i].empty() ? i : loops[i][0],
                 to = loops[i].empty() ? i : loop_end[loops[i][0]];
    const auto [it, fresh] = used.try_emplace(without_after(n->src(0).get()), from, to);
    if (!fresh) it->second.second = to;
  }
  std::map<size_t, int64_t> change;
  for (size_t i = 0; i < k.ops.size(); i++) {
    const Node* n = k.ops[i].get();
    const bool loaded = n->op == Op::Load && n->src(0)->op == Op::Index;
    const bool kept = loaded || n->op == Op::Register || (is_alu(n->op) && users[n] > 1);
    const MatrixArg* matrix = matrix_of(n);
    const bool is_matrix = matrix && (n->op == Op::Register || n->op == Op::MatrixLoad);
    if (!is_float(n->dtype) || !(matrix ? is_matrix : kept) || !last.contains(n)) continue;
    // What is loaded is packed until it is computed with, and in registers of copies.
    const int64_t packed = is_alu(n->op) ? 1 : target.held_per_word(n->dtype);
    const int64_t registers = matrix ? lanes_of(k, i) * registers_of(*matrix, n->dtype, k)
                                     : ceil_div(lanes_of(k, i), packed);
    const bool accumulates = n->op == Op::Register && used.contains(n);
    change[accumulates ? used[n].first : i] += registers;
    change[(accumulates ? used[n].second : last[n]) + 1] -= registers;
  }
  int64_t live = 0, most = 0;
  for (const auto& [i, by] : change) most = std::max(most, live += by);
  return most;
}

// Of a workgroup, per step of the reduction; 0: no product of two loads.
double reuse(const UOp& ast, const Target& target, const kernel::LinearKernel& k) {
  kernel::Tiling t(kernel::ast_for_opts(ast, target), target);
  for (const kernel::Opt& o : kernel::parse_opts(k.opts)) apply(t, o);
  const auto width = [&](const std::vector<int>& axes) {
    double n = 1;
    for (const int a : axes) {
      for (const kernel::AxisPart& p : t.axes[size_t(a)].parts) {
        const bool together =
            is_lane(p.kind) || p.kind == AxisKind::Local || p.kind == AxisKind::Matrix;
        if (together && !t.axes[size_t(a)].reduced) n *= double(p.size->max);
      }
    }
    return n;
  };
  if (t.factors.size() != 2) return 0;
  std::vector<int> all(t.axes.size());
  for (size_t a = 0; a < all.size(); a++) all[a] = int(a);
  const auto bytes = [&](const kernel::Tiling::Operand& f) {
    const UOp& value = f.product->src(size_t(f.source));
    const DType stored = value->op == Op::Cast ? value->src(0)->dtype : value->dtype;
    return double(size_bytes(stored)) * width(f.axes);
  };
  return 2 * width(all) / (bytes(t.factors[0]) + bytes(t.factors[1]));
}

// Rows that a workgroup keeps in its memory; 0: none.
int64_t rows_together(const UOp& ast, const Target& target, const kernel::LinearKernel& k) {
  kernel::Tiling t(kernel::ast_for_opts(ast, target), target);
  for (const kernel::Opt& o : kernel::parse_opts(k.opts)) apply(t, o);
  int64_t rows = kept_bytes(t) > 0;
  for (const kernel::Axis& a : t.axes) {
    for (const kernel::AxisPart& p : a.parts)
      rows *= !a.reduced && !a.column && (is_lane(p.kind) || p.kind == AxisKind::Local)
                  ? p.size->max
                  : 1;
  }
  return rows;
}

void expect_within_limits(const kernel::LinearKernel& k, const Target& t, int64_t registers,
                          const Row& row, const std::string& what) {
  uint64_t invocations = 1;
  for (size_t i = 0; i < 3; i++) {
    EXPECT_LE(k.groups[i].max(), int64_t(t.max_groups[i])) << what;
    EXPECT_LE(k.local[i], t.max_local[i]) << what;
    invocations *= k.local[i];
  }
  EXPECT_LE(invocations, t.max_invocations) << what;
  EXPECT_LE(k.shared_bytes, t.shared_bytes) << what;
  const bool matrices = std::ranges::any_of(
      k.ops, [](const UOp& u) { return u->op == Op::MatrixMulAdd; });
  const bool all = matrices || k.opts.find("slab(") != std::string::npos;
  const int64_t most = all ? std::max(row.most_registers, int64_t(t.most_registers) * 5 / 6)
                           : row.most_registers;
  EXPECT_LE(registers, most) << what << "\n" << to_text(k);
}

std::string describe(const kernel::LinearKernel& k, int64_t registers, double reused,
                     int64_t rows) {
  std::string text =
      fmt::format("    {} [{}] groups ({}, {}, {}) local ({}, {}, {}) registers {}", k.name, k.opts,
                  k.groups[0].value(), k.groups[1].value(), k.groups[2].value(), k.local[0],
                  k.local[1], k.local[2], registers);
  if (k.shared_bytes) text += fmt::format(" shared {}", k.shared_bytes);
  if (rows > 0) text += fmt::format(" rows {}", rows);
  if (reused > 0) text += fmt::format(" reuse {:.2f}", reused);
  return text + fmt::format(" flops {} bytes {}\n", k.estimate.flops, k.estimate.bytes);
}

std::string choices(const Row& row, const Target& target) {
  std::string out;
  for (const Work& work : benchmark_set()) {
    std::vector<UOp> sinks{models::contiguous(work.value)};
    for (const UOp& x : work.beside) sinks.push_back(models::contiguous(x));
    const auto scheduled =
        sched::schedule(sinks, [&](const std::string&) -> const Target& { return target; });
    out += work.name + "\n";
    for (const std::string& p : scheduled.schedule->parts) out += "    " + p + "\n";
    for (const sched::Call& call : scheduled.schedule->calls) {
      if (call.kind != sched::CallKind::Kernel) continue;
      const std::string what = fmt::format("{} on {}", work.name, row.name);
      const kernel::LinearKernel k = kernel::lower(call.ast, target);
      expect_valid_spirv(k, target);
      const int64_t registers = live_registers(k, target);
      const double reused = reuse(call.ast, target, k);
      expect_within_limits(k, target, registers, row, what + " " + k.opts);
      if (work.name == "matmul 1024") {
        EXPECT_GE(reused, row.least_reuse) << what << " " << k.opts;
      }
      if (work.conv != Work::Other && reused > 0) {
        EXPECT_GE(reused, work.conv == Work::Weights ? kWeightsReuse : row.least_conv_reuse)
            << what << " " << k.opts;
      }
      if (work.name == "matmul 1024 of f16" && !target.matrix_shapes.empty()) {
        EXPECT_GE(reused, kMatrixReuse) << what << " " << k.opts;
        EXPECT_GT(k.subgroup_size, 0u) << what << ": no matrices: " << k.opts;
      }
      const int64_t rows = rows_together(call.ast, target, k);
      if (work.name == "attention 192x64x32") {
        EXPECT_GE(rows, kRowsTogether) << what << " " << k.opts;
      }
      out += describe(k, registers, reused, rows);
    }
  }
  return out;
}

TEST(Targets, ChoicesStayWithinLimitsAndAreKept) {
  for (const Row& row : kRows) {
    const Target target = tuff::testing::target_of(row.name);
    sched::clear_schedule_cache();
    const std::string text = choices(row, target);
    tuff::testing::expect_target_golden(row.name, text);
  }
}

// Of any sizes, as the scheduler makes it for one core of each: values by the interpreter, which
// refuses what no barrier parts. Where memory is far gradients keep rows, too.
TEST(Targets, AttentionInOneKernelMeansTheSame) {
  std::mt19937 random(3);
  const auto one_of = [&](std::initializer_list<int64_t> v) {
    return v.begin()[random() % v.size()];
  };
  int shared = 0, backwards = 0;
  for (const Row& row : kRows) {
    Target target = tuff::testing::target_of(row.name);
    target.cores = 1;
    target.l2_bytes = 64;
    for (int i = 0; i < 10; i++) {
      const int64_t heads = one_of({1, 2, 3}), width = one_of({8, 13});
      const int64_t rows = i < 6 ? one_of({1, 7, 16, 33}) : one_of({16, 24, 40});
      const Attention a = attention_of(heads, rows, one_of({16, 24, 40}), width, i % 2);
      std::vector<UOp> sinks{models::contiguous(a.result)};
      if (i >= 6) {
        for (const UOp& x : gradients_of(a, {heads, rows, width}))
          sinks.push_back(models::contiguous(x));
      }
      sched::clear_schedule_cache();
      const auto scheduled =
          sched::schedule(sinks, [&](const std::string&) -> const Target& { return target; });
      for (const sched::Call& call : scheduled.schedule->calls) {
        if (call.kind != sched::CallKind::Kernel) continue;
        const kernel::LinearKernel k = kernel::lower(call.ast, target);
        shared += rows_together(call.ast, target, k) > 0 && k.local[0] > 1;
        backwards += i >= 6 && rows_together(call.ast, target, k) > 0;
        expect_valid_spirv(k, target);
        kernel::testing::expect_same(call.ast, k, 1e-4, row.name + (": " + k.opts));
      }
    }
  }
  EXPECT_GE(shared, 20);
  EXPECT_GE(backwards, 30);
}

// Of f16 where the target has matrices: one kernel, both products of which are of them.
TEST(Targets, NarrowAttentionIsOneKernelOfMatrices) {
  int found = 0;
  for (const Row& row : kRows) {
    Target target = tuff::testing::target_of(row.name);
    if (target.matrix_shapes.empty()) continue;
    target.cores = 1;
    for (const int64_t positions : {64, 72}) {
      const Attention a = attention_of(2, 64, positions, 32, positions > 64, DType::F16);
      sched::clear_schedule_cache();
      const std::vector<UOp> sinks{models::contiguous(a.result)};
      const auto scheduled =
          sched::schedule(sinks, [&](const std::string&) -> const Target& { return target; });
      ASSERT_EQ(scheduled.schedule->calls.size(), 1u) << row.name;
      const UOp& ast = scheduled.schedule->calls[0].ast;
      const kernel::LinearKernel k = kernel::lower(ast, target);
      EXPECT_NE(k.opts.find("matrix(0,"), std::string::npos) << row.name << ": " << k.opts;
      EXPECT_NE(k.opts.find("matrix(1,"), std::string::npos) << row.name << ": " << k.opts;
      expect_valid_spirv(k, target);
      kernel::testing::expect_same(ast, k, 4e-3, row.name + (": " + k.opts));
      found++;
    }
  }
  EXPECT_GE(found, 4);
}

// Copies of factors that are not aligned, or masked, whose memory the choice has to foresee.
TEST(Targets, ProductsOfAnySizeAreThoseOfMatrices) {
  using kernel::testing::NarrowProduct;
  for (const char* name : {"nvidia-ampere", "nvidia-hopper", "amd-rdna3-igpu"}) {
    const Target t = tuff::testing::target_of(name);
    for (const NarrowProduct& p :
         {NarrowProduct{.batch = 2, .m = 67, .n = 2782, .k = 35},
          {.m = 1840, .n = 4569, .k = 122, .right_across = true},
          {.m = 392, .n = 4398, .k = 214, .left_across = true, .right_across = true,
           .left_positive = true},
          {.batch = 7, .m = 867, .n = 3899, .k = 1012},
          {.m = 410, .n = 1398, .k = 48, .result = DType::F16, .bias = true, .residual = true},
          {.m = 344, .n = 3141, .k = 16, .left_positive = true, .transposed = true}}) {
      const kernel::LinearKernel k =
          kernel::lower(kernel::testing::narrow_product_ast(p), t);
      EXPECT_NE(k.opts.find("matrix("), std::string::npos) << name << " " << p.m << " " << k.opts;
    }
  }
}

TEST(Targets, FilesAreWhatTheyAreWrittenAs) {
  for (const Row& row : kRows) {
    const std::string text = tuff::testing::target_contents(std::string(row.name) + ".json");
    EXPECT_EQ(to_json(target_from_json(text)), text) << row.name;
  }
  EXPECT_EQ(tuff::testing::target_contents("lavapipe.json"), to_json(builtin_target("spirv-lavapipe")));
}

}  // namespace
}  // namespace tuff::render
