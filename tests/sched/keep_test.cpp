// Attention is one kernel where the rows of scores fit the cache, and stays apart where they do not
// or where the matrix is needed; values on the host.
#include "sched/keep.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/random_cases.h"
#include "ir/gradient.h"
#include "ir/symbolic.h"
#include "ir/walk.h"
#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;
using tuff::testing::random_cases;
using tuff::testing::random_hits;

Target cpu_of(uint32_t cores) {
  Target t;
  t.device = "CPU";
  t.cores = cores;
  t.vector_bytes = 16;
  t.shared_bytes = 1 << 20;
  t.l2_bytes = 1 << 20;
  return t;
}

// Batches of a (n, r, k) by those of b (n, k, c).
UOp products(const UOp& a, const UOp& b) {
  const Dim n = a->shape[0], r = a->shape[1], k = a->shape[2], c = b->shape[2];
  const UOp x = expand(reshape(a, {n, r, Dim(1), k}), {n, r, c, k});
  const UOp y = expand(reshape(permute(b, {0, 2, 1}), {n, Dim(1), c, k}), {n, r, c, k});
  return reshape(reduce(Op::Add, mul(x, y), {3}), {n, r, c});
}
UOp probabilities(const UOp& x, bool detached = false) {
  UOp max = reduce(Op::Max, x, {2});
  if (detached) max = make(Op::Detach, max->dtype, {max});  // as Tensor::softmax does
  const UOp e = exp(sub(x, expand(max, x->shape)));
  return mul(e, expand(recip(reduce(Op::Add, e, {2})), x->shape));
}

struct Heads {
  UOp q, k, v, scores, weights, result;
};
Heads heads(const UOp& q, const UOp& k, const UOp& v, const UOp& mask = {}) {
  Heads h{.q = q, .k = k, .v = v};
  h.scores = mul(products(h.q, permute(h.k, {0, 2, 1})), number(0.25));
  if (mask) h.scores = add(h.scores, broadcast(mask, h.scores->shape));
  h.weights = probabilities(h.scores);
  h.result = products(h.weights, h.v);
  return h;
}
Heads heads(int64_t n, int64_t rows, int64_t columns, int64_t width, const UOp& mask = {}) {
  return heads(host_buffer({n, rows, width}), host_buffer({n, columns, width}),
               host_buffer({n, columns, width}), mask);
}

// Of q, k and v, then the result.
std::vector<UOp> gradients_of(const Heads& h, const UOp& seed) {
  const UOp targets[] = {h.q->src(0), h.k->src(0), h.v->src(0)};
  std::vector<UOp> out = gradients(h.result, seed, targets);
  out.push_back(h.result);
  return out;
}

Scheduled scheduled(const std::vector<UOp>& sinks, const Target& t) {
  return schedule(sinks, [&](const std::string&) -> const Target& { return t; });
}
int kernels(const std::vector<UOp>& sinks, const Target& target) {
  const TargetOf target_of = [&](const std::string&) -> const Target& { return target; };
  return kernel_count(*expect_meaning(sinks, 1e-4, target_of));
}

TEST(KeptRows, AttentionIsOneKernel) {
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, cpu_of(1)), 1);
  EXPECT_EQ(kernels({heads(3, 5, 20, 9).result}, cpu_of(1)), 1);
  const UOp one = heads(2, 16, 16, 8).result;
  const Target t = cpu_of(1);
  EXPECT_EQ(
      to_text(*schedule(std::vector<UOp>{one}, [&](auto&) -> const Target& { return t; }).schedule),
      "kernel k0 out0 <- in1 in2 in0\n"
      "    r4:16: s1[r4] = mul(add_reduce(mul(p1[r0*128 + r1*8 + r5], "
      "p2[r0*128 + r4*8 + r5]); r5:8), 0.25)\n"
      "    v2 = max_reduce(s1[r6]; r6:16)\n"
      "    r3:16: s0[r3] = mul(exp2(mul(sub(s1[r3], v2), 1.4426950216293335)), "
      "recip(add_reduce(exp2(mul(sub(s1[r7], v2), 1.4426950216293335)); r7:16)))\n"
      "    r0:2 r1:16 r2:8: p0[r0*128 + r1*8 + r2] = add_reduce(mul(s0[r8], "
      "p3[r0*128 + r2 + r8*8]); r8:16)\n");
}

TEST(KeptRows, MasksAndWhatFollowsAreInIt) {
  EXPECT_EQ(kernels({heads(2, 16, 16, 8, host_buffer({16, 16})).result}, cpu_of(1)), 1);
  EXPECT_EQ(kernels({heads(2, 16, 16, 8, host_buffer({2, 1, 16})).result}, cpu_of(1)), 1);
  const Heads h = heads(2, 16, 16, 8);
  EXPECT_EQ(kernels({add(mul(h.result, number(2)), host_buffer({2, 16, 8}))}, cpu_of(1)), 1);
}

TEST(KeptRows, WhatOthersReadIsStored) {
  const Heads h = heads(2, 16, 16, 8);
  EXPECT_EQ(kernels({h.result, h.weights}, cpu_of(1)), 3);
  EXPECT_EQ(kernels({h.result, reduce(Op::Add, h.scores, {1})}, cpu_of(1)), 4);
}

// A softmax is made in one sweep over parts of its row: only copies of factors grow with it.
TEST(KeptRows, RowsThatDoNotFitACacheAreTakenInParts) {
  Target t = cpu_of(1);
  t.l2_bytes = 4096;
  EXPECT_EQ(kernels({heads(2, 16, 32, 8).result}, t), 1);
  t.l3_bytes = 64;  // gradients: of queries rows are whole
  const Heads h = heads(2, 16, 32, 8);
  const std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
  EXPECT_EQ(kernels(sinks, t), 8);
  t.l2_bytes = 8192;
  EXPECT_EQ(kernels(sinks, t), 3);
}

TEST(KeptRows, RowsWhoseFactorsDoNotFitStayApart) {
  Target t = cpu_of(1);
  t.shared_bytes = 4096;
  EXPECT_EQ(kernels({heads(2, 16, 32, 8).result}, t), 3);
  t.shared_bytes = 0;
  EXPECT_EQ(kernels({heads(2, 16, 32, 8).result}, t), 3);
}

TEST(KeptRows, WhereItPaysAlone) {
  EXPECT_EQ(kernels({heads(2, 16, 18, 8).result}, cpu_of(1)), 3);  // rows end in half a vector
  EXPECT_EQ(kernels({heads(2, 16, 12, 8).result}, cpu_of(1)), 3);  // short rows
  EXPECT_EQ(kernels({heads(2, 16, 16, 4).result}, cpu_of(1)), 3);  // short products
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, cpu_of(2)), 3);  // fewer heads than threads want
  EXPECT_EQ(kernels({heads(4, 16, 16, 8).result}, cpu_of(2)), 1);
  // Each thread copies what the rows of a matrix have in common: for enough of them.
  EXPECT_EQ(kernels({heads(1, 512, 16, 8).result}, cpu_of(2)), 1);
  EXPECT_EQ(kernels({heads(1, 496, 16, 8).result}, cpu_of(2)), 3);
  Target few = cpu_of(1);
  few.max_buffers = 3;
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, few), 4);
}

Target gpu_of(uint32_t cores) {
  Target t = cpu_of(cores);
  t.device = "VULKAN";
  t.has_local = true;
  t.subgroup_size = 32;
  t.max_invocations = 256;
  t.max_local = {256, 256, 64};
  t.shared_bytes = 32 << 10;
  return t;
}

// Where a workgroup holds enough rows that reading keys and values for each costs less than storing
// and loading scores.
TEST(KeptRows, WorkgroupsShareThemWhereTrafficIsSaved) {
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, gpu_of(1)), 1);
  EXPECT_EQ(kernels({heads(2, 16, 16, 8, host_buffer({16, 16})).result}, gpu_of(1)), 1);
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, gpu_of(4)), 3);  // too few rows for the cores
  EXPECT_EQ(kernels({heads(2, 16, 18, 8).result}, gpu_of(1)), 1);  // rows end in half a vector
  Target small = gpu_of(1);
  small.shared_bytes = 9 << 10;  // 1 KiB beside copies of keys
  EXPECT_EQ(kernels({heads(1, 16, 16, 8).result}, small), 1);
  EXPECT_EQ(kernels({heads(1, 16, 128, 8).result}, small), 1);  // two rows, but for their parts
  EXPECT_EQ(kernels({heads(1, 16, 132, 8).result}, small), 1);  // which 8 invocations do not divide
  EXPECT_EQ(kernels({heads(1, 16, 32, 16).result}, small), 1);  // eight rows
  EXPECT_EQ(kernels({heads(1, 16, 32, 32).result}, small), 3);  // of more numbers
  EXPECT_EQ(kernels({heads(2, 8, 32, 32).result}, small), 1);   // which are all that there are
  Target matrices = gpu_of(1);
  matrices.matrix_shapes = {{16, 16, 16, DType::F32, DType::F32, DType::F32}};
  EXPECT_EQ(kernels({heads(2, 16, 16, 8).result}, matrices), 3);
}

TEST(KeptRows, SymbolicRowsStayApart) {
  const Dim n(variable("keep_n", 16, 32));
  Heads h;
  h.q = host_buffer({2, 32, 8});
  h.k = shrink(host_buffer({2, 32, 8}), {{0, 2}, {0, n}, {0, 8}});
  h.v = shrink(host_buffer({2, 32, 8}), {{0, 2}, {0, n}, {0, 8}});
  const UOp scores = products(h.q, permute(h.k, {0, 2, 1}));
  const Target t = cpu_of(1);
  const Scheduled s = scheduled({products(probabilities(scores), h.v)}, t);
  EXPECT_EQ(kernel_count(*s.schedule), 3) << to_text(*s.schedule);
}

// Keys and values of a length that is known when they are read: parts of each row are a kernel,
// what combines them another. A row sees a few positions more than the one before it, so that all
// of most parts is masked, by infinity or by much.
struct Cache {
  int64_t n, rows, part, most, width;
  UOp q = host_buffer({n, rows, width}), k = host_buffer({n, part * most, width}),
      v = host_buffer({n, part * most, width});

  UOp attention(const Dim& parts, double masked) const {
    const Dim length = parts * Dim(part);
    const auto read = [&](const UOp& x) {
      return shrink(x, {{Dim(0), Dim(n)}, {Dim(0), length}, {Dim(0), Dim(width)}});
    };
    const auto number_of = [&](const UOp& counter, const Shape& one) {
      return expand(reshape(counter, one), {Dim(rows), length});
    };
    const UOp row = number_of(iota(Dim(rows), DType::I32), {Dim(rows), Dim(1)}),
              column = number_of(iota(length, DType::I32), {Dim(1), length});
    const UOp is_seen = alu(Op::CmpLt, {column, mul(add(row, constant(DType::I32, 1)),
                                                    constant(DType::I32, 5))});
    return heads(q, read(k), read(v), where(is_seen, number(0), number(masked))).result;
  }
};
// As it runs where the variable has this value.
Scheduled with_value(const Scheduled& s, const UOp& variable, int64_t value) {
  Schedule bound = *s.schedule;
  for (Call& c : bound.calls)
    c.ast = simplify(substitute(c.ast, {{variable, index_const(value)}}));
  return {std::make_shared<const Schedule>(std::move(bound)), s.inputs, false};
}

TEST(KeptRows, RandomSymbolicRowsInParts) {
  std::mt19937 rng(11);
  const auto one_of = [&](std::initializer_list<int64_t> v) { return v.begin()[rng() % v.size()]; };
  const Target t = gpu_of(8);
  for (uint32_t i = 0; i < random_cases(12); i++) {
    const Cache c{.n = one_of({1, 2, 3}), .rows = one_of({4, 5, 12}), .part = one_of({16, 32, 48}),
                  .most = one_of({3, 5}), .width = one_of({8, 11})};
    const double masked = i % 2 == 0 ? -1e30 : -std::numeric_limits<double>::infinity();
    const UOp parts = variable("keep_parts", 1, c.most);
    const Scheduled s = scheduled({c.attention(Dim(parts), masked)}, t);
    EXPECT_EQ(kernel_count(*s.schedule), 2) << to_text(*s.schedule);
    const Contents contents = random_contents(s, i);
    for (int64_t length = 1; length <= c.most; length++) {
      const RunResult run = run_schedule(with_value(s, parts, length), contents);
      TensorEvaluator evaluator(contents);
      const Values& expected = evaluator.eval(c.attention(Dim(length), masked));
      for (size_t k = 0; k < expected.size(); k++)
        ASSERT_NEAR(run.sinks[0][k].as_double(), expected[k].as_double(), 1e-4) << i << ' ' << k;
    }
  }
}

// How many rows there are is a number, wherever they are kept.
TEST(KeptRows, RowsOfASymbolicNumberStayApart) {
  const Dim n(variable("keep_rows", 4, 32));
  const UOp q = shrink(host_buffer({2, 32, 8}), {{0, 2}, {Dim(0), n}, {0, 8}}),
            k = host_buffer({2, 64, 8}), v = host_buffer({2, 64, 8});
  for (const Target& t : {cpu_of(1), gpu_of(1), gpu_of(8)}) {
    const Scheduled s = scheduled({heads(q, k, v).result}, t);
    EXPECT_EQ(kernel_count(*s.schedule), 3) << to_text(*s.schedule);
  }
}

TEST(KeptRows, SmallMatricesOfGradientsAreStored) {
  const Heads h = heads(2, 16, 16, 8);
  std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
  EXPECT_EQ(kernels(sinks, cpu_of(1)), 8);
}

// A last cache so small that all matrices are far from it.
Target cpu_with_far_memory() {
  Target t = cpu_of(1);
  t.l3_bytes = 64;
  return t;
}
uint64_t temporary_bytes(const Scheduled& s) {
  uint64_t bytes = 0;
  for (const Arena& a : s.schedule->arenas) bytes += a.size_bytes;
  return bytes;
}

constexpr uint64_t kResultBytes = 2 * 16 * 8 * 4, kMatrixBytes = 2 * 16 * 16 * 4;

TEST(KeptRows, GradientsComputeMatricesAgain) {
  const Target far = cpu_with_far_memory();
  for (const UOp& mask : {UOp(), host_buffer({16, 16})}) {
    const Heads h = heads(2, 16, 16, 8, mask);
    const std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
    EXPECT_EQ(kernels(sinks, far), 3);
    // Beside the copy of the seed three numbers a row.
    EXPECT_LE(temporary_bytes(scheduled(sinks, far)), kResultBytes + 3 * 256);
    EXPECT_GE(temporary_bytes(scheduled(sinks, cpu_of(1))), kResultBytes + 2 * kMatrixBytes);
  }
}

// Workgroups do the same where all of it fits their memory.
Target gpu_with_far_memory() {
  Target t = gpu_of(1);
  t.l2_bytes = 64;
  return t;
}
TEST(KeptRows, WorkgroupsComputeMatricesOfGradientsAgain) {
  for (const UOp& mask : {UOp(), host_buffer({16, 16})}) {
    const Heads h = heads(2, 16, 16, 8, mask);
    const std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
    EXPECT_EQ(kernels(sinks, gpu_with_far_memory()), 3);
    EXPECT_EQ(kernels(sinks, gpu_of(1)), 8);
    EXPECT_LE(temporary_bytes(scheduled(sinks, gpu_with_far_memory())), kResultBytes + 3 * 256);
    Target t = gpu_with_far_memory();
    t.cores = 4;  // too few rows for them
    EXPECT_EQ(kernels(sinks, t), 8);
    t = gpu_with_far_memory();
    t.matrix_shapes = {{16, 16, 16, DType::F32, DType::F32, DType::F32}};
    EXPECT_EQ(kernels(sinks, t), 8);
  }
}
// Two rows of 2 KiB each for what is reduced; what is read element by element needs no whole row.
TEST(KeptRows, WorkgroupsReadFactorsForEachTileOfRows) {
  const auto kernels_of = [](int64_t positions, int64_t kept_kib) {
    const Heads h = heads(1, positions, positions, 64);
    const std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({1, positions, 64})));
    Target t = gpu_with_far_memory();
    t.shared_bytes = uint32_t((kept_kib + 8) << 10);
    return kernel_count(*scheduled(sinks, t).schedule);
  };
  EXPECT_EQ(kernels_of(512, 128), 3);
  EXPECT_EQ(kernels_of(256, 40), 3);
  EXPECT_EQ(kernels_of(768, 40), 8);
  EXPECT_EQ(kernels_of(256, 24), 8);
  EXPECT_EQ(kernels_of(32, 40), 3);
}

// The gradient of queries waits for a sum of the whole row, and so another kernel stores that sum
// before. Then no row need be whole.
TEST(KeptRows, GradientsOfLongRowsStoreNoMatrix) {
  const auto sinks_of = [](int64_t rows, int64_t positions, int64_t width) {
    Heads h = heads(1, rows, positions, width);
    h.result = products(probabilities(h.scores, true), h.v);
    return gradients_of(h, contiguous(host_buffer({1, rows, width})));
  };
  Target t = gpu_with_far_memory();
  t.shared_bytes = 13 << 10;  // beside copies five whole rows of two kinds, too few for the traffic
  EXPECT_EQ(kernels(sinks_of(128, 128, 16), t), 3);
  t.shared_bytes = 48 << 10;
  for (const int64_t positions : {1024, 8192}) {
    const Scheduled s = scheduled(sinks_of(positions, positions, 64), t);
    EXPECT_EQ(kernel_count(*s.schedule), 3);
    // Beside the copy of the seed three numbers a row.
    EXPECT_LE(temporary_bytes(s), uint64_t(positions) * (64 + 3) * 4 + 4 * 256);
  }
}

// The gradient of the result is made of the result, so that forwards comes first.
TEST(KeptRows, ForwardsStoresWhatBackwardsNeeds) {
  const Heads h = heads(2, 16, 16, 8);
  const std::vector<UOp> sinks = gradients_of(h, contiguous(mul(h.result, h.result)));
  EXPECT_EQ(kernels(sinks, cpu_with_far_memory()), 4);
  EXPECT_LE(temporary_bytes(scheduled(sinks, cpu_with_far_memory())), 2 * kResultBytes + 3 * 256);
}

// What takes rows element by element knows no maximum by which what a causal mask hides is nothing:
// such exponentials are 0, so that slabs of it can be left out.
TEST(KeptRows, GradientsAreZeroWhereACausalMaskHides) {
  const Shape square{Dim(16), Dim(16)};
  const UOp query = expand(reshape(iota(Dim(16), DType::I32), {Dim(16), Dim(1)}), square),
            key = expand(reshape(iota(Dim(16), DType::I32), {Dim(1), Dim(16)}), square);
  for (const bool reversed : {false, true}) {
    // The last query sees nothing of a mask the other way round, and is the mean of all values.
    const UOp hidden = reversed
                           ? alu(Op::CmpLt, {key, add(query, constant(DType::I32, 1))})
                           : alu(Op::CmpLt, {query, key});
    Heads h = heads(2, 16, 16, 8);
    h.scores = where(broadcast(hidden, h.scores->shape), number(-1e30), h.scores);
    h.weights = probabilities(h.scores);
    h.result = products(h.weights, h.v);
    const std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
    for (const Target& t : {cpu_with_far_memory(), gpu_with_far_memory()}) {
      EXPECT_EQ(kernels(sinks, t), 3);
      int zeroed = 0, others = 0;
      for (const Call& c : scheduled(sinks, t).schedule->calls) {
        const std::vector<const Node*> nodes = c.ast ? toposort(c.ast) : std::vector<const Node*>();
        const auto is_max = [](const Node* n) {
          return n->op == Op::Reduce && n->get<ReduceArg>().op == Op::Max;
        };
        if (std::ranges::any_of(nodes, is_max)) continue;
        for (const Node* n : nodes) {
          others += n->op == Op::Exp2;
          zeroed += n->op == Op::Where && (n->src(1)->op == Op::Exp2 || n->src(2)->op == Op::Exp2);
        }
      }
      EXPECT_GT(others, 0);
      EXPECT_EQ(zeroed, reversed ? 0 : others);
    }
  }
}

// Of keys alone: the kernel reads the result's gradient, which comes after forwards, by itself.
TEST(KeptRows, GradientsOfOneInputAfterForwards) {
  const Heads h = heads(2, 16, 16, 8);
  const std::vector<UOp> all = gradients_of(h, contiguous(mul(h.result, h.result)));
  EXPECT_EQ(kernels({h.result, all[0], all[1]}, cpu_with_far_memory()), 4);
}

// Values that lie with their positions innermost have gradients that do.
TEST(KeptRows, GradientsWithAxesInAnotherOrder) {
  for (const bool made : {false, true}) {
    Heads h = heads(host_buffer({2, 16, 8}), host_buffer({2, 16, 8}),
                    permute(host_buffer({2, 8, 16}), {0, 2, 1}));
    const UOp targets[] = {h.q->src(0), h.k->src(0), h.v->src(0)->src(0)};
    const UOp seed = made ? mul(h.result, h.result) : host_buffer({2, 16, 8});
    std::vector<UOp> sinks = gradients(h.result, contiguous(seed), targets);
    sinks.push_back(h.result);
    EXPECT_EQ(kernels(sinks, cpu_with_far_memory()), made ? 4 : 3);
    EXPECT_EQ(kernels(sinks, gpu_with_far_memory()), made ? 4 : 3);
  }
}

// However large the caches are.
TEST(KeptRows, GradientsOfManyPositionsStoreNoMatrix) {
  Target t = cpu_of(1);
  t.shared_bytes = 64 << 20;
  t.l3_bytes = 4ull << 30;
  const auto bytes = [&](int64_t positions) {
    const Heads h = heads(2, positions, positions, 8);
    return temporary_bytes(
        scheduled(gradients_of(h, contiguous(host_buffer({2, positions, 8}))), t));
  };
  EXPECT_GE(bytes(1024), 2 * 1024 * 1024 * 4);
  EXPECT_LE(bytes(4096), 2 * 4096 * (8 + 3) * 4 + 4 * 256);
}

TEST(KeptRows, GradientsOfSomeInputs) {
  const Heads h = heads(2, 16, 24, 8);
  const UOp g = contiguous(host_buffer({2, 16, 8}));
  const std::vector<UOp> all = gradients_of(h, g);
  for (int left : {1, 3, 4, 6}) {
    std::vector<UOp> sinks{h.result};
    for (int i = 0; i < 3; i++) {
      if (left >> i & 1) sinks.push_back(all[size_t(i)]);
    }
    EXPECT_LE(kernels(sinks, cpu_with_far_memory()), kernels(sinks, cpu_of(1))) << left;
  }
}

TEST(KeptRows, MatricesOfGradientsThatOthersReadAreStored) {
  const Heads h = heads(2, 16, 16, 8);
  std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
  sinks.push_back(reduce(Op::Add, h.scores, {1}));
  EXPECT_EQ(kernels(sinks, cpu_with_far_memory()), 9);
}

// Kernels that compute a matrix again read its factors later than the product did.
TEST(KeptRows, FactorsThatAreOverwrittenInBetween) {
  for (UOp Heads::* factor : {&Heads::q, &Heads::k, &Heads::v}) {
    const Heads h = heads(2, 16, 16, 8);
    std::vector<UOp> sinks = gradients_of(h, contiguous(host_buffer({2, 16, 8})));
    const UOp& x = (h.*factor)->src(0);
    sinks.insert(sinks.begin(), assign(x, mul(x, number(0.5))));
    kernels(sinks, cpu_with_far_memory());
  }
}

// Any sizes, primes and ones among them: fused or not, the values are right.
TEST(KeptRows, RandomAttention) {
  std::mt19937 rng(3);
  const auto one_of = [&](std::initializer_list<int64_t> v) { return v.begin()[rng() % v.size()]; };
  uint32_t fused = 0, shared = 0;
  for (uint32_t i = 0; i < random_cases(60); i++) {
    const int64_t n = one_of({1, 2, 3}), rows = one_of({1, 2, 7, 13, 16}),
                  columns = one_of({1, 7, 16, 20, 24}), width = one_of({1, 3, 8, 11});
    const UOp mask = i % 3 == 0   ? UOp()
                     : i % 3 == 1 ? host_buffer({rows, columns})
                                  : host_buffer({n, 1, columns});
    const UOp result = heads(n, rows, columns, width, mask).result;
    fused += kernels({result}, cpu_of(1)) == 1;
    shared += kernels({result}, gpu_of(1)) == 1;
    if (HasFailure()) return;
  }
  EXPECT_GE(fused, random_hits(5));
  EXPECT_GE(shared, random_hits(5));
}
TEST(KeptRows, RandomGradients) {
  std::mt19937 rng(5);
  const auto one_of = [&](std::initializer_list<int64_t> v) { return v.begin()[rng() % v.size()]; };
  uint32_t fused = 0, shared = 0;
  for (uint32_t i = 0; i < random_cases(16); i++) {
    const int64_t n = one_of({1, 2}), rows = one_of({1, 7, 16, 20, 24}),
                  columns = one_of({1, 13, 16, 20}), width = one_of({1, 3, 8, 8, 11});
    const UOp mask = i % 2 == 0 ? UOp() : host_buffer({rows, columns});
    const Heads h = heads(n, rows, columns, width, mask);
    const UOp seed = i % 3 == 0 ? h.result : host_buffer({n, rows, width});
    const std::vector<UOp> sinks = gradients_of(h, contiguous(seed));
    fused += kernels(sinks, cpu_with_far_memory()) <= 4;
    shared += kernels(sinks, gpu_with_far_memory()) <= 4;
    if (HasFailure()) return;
  }
  EXPECT_GE(fused, random_hits(3));
  EXPECT_GE(shared, random_hits(2));
}

}  // namespace
}  // namespace tuff::sched::testing
