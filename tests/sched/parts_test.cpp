// Reductions in parts as an optimization of its own: what is legal and why not, what LINEAR it
// gives, that it may be left out by name, and that random parts of random reductions mean the same.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "sched/host_run.h"
#include "sched/models.h"
#include "sched/parts.h"
#include "sched/steps.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

std::string refusal(const UOp& reduction, const Parts& p) {
  try {
    in_parts(reduction, p);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return {};
}
std::string text(const UOp& sink) { return to_text(*schedule({&sink, 1}, host_target).schedule); }

TEST(Parts, AreLegalWithinAReducedAxisOfKnownSize) {
  const UOp sum = reduce(Op::Add, host_buffer({4, 10, 3}), {1, 2});
  EXPECT_EQ(refusal(sum, {1, 5}), "");
  EXPECT_EQ(refusal(sum, {1, 9}), "") << "a part of one element is left";
  EXPECT_EQ(refusal(sum, {1, 1}), "") << "of 3 elements";
  EXPECT_EQ(refusal(sum, {1, 10}), "parts(1,10): a part has 1 to 9 elements");
  const UOp rows_alone = reduce(Op::Add, host_buffer({4, 10, 1}), {1, 2});
  EXPECT_EQ(refusal(rows_alone, {1, 1, PartOrder::Turns}),
            "parts(1,1,turns): a part has 2 to 9 elements");
  EXPECT_EQ(refusal(sum, {0, 2, PartOrder::Panels}), "parts(0,2,panels): the axis is not reduced");
  EXPECT_EQ(refusal(sum, {3, 2}), "parts(3,2): there is no such axis");
  EXPECT_EQ(refusal(host_buffer({4}), {0, 2}), "parts(0,2): it is no reduction");
  const UOp pair = reduce(Op::Max, host_buffer({2}), {0});
  EXPECT_EQ(refusal(pair, {0, 2}), "parts(0,2): the axis is too short");
  const UOp counted = reduce(Op::Add, iota(Dim(10), DType::F32), {0});
  EXPECT_EQ(refusal(counted, {0, 5}),
            "parts(0,5): nothing says where the parts' results are stored");
  const UOp n = variable("n", 1, 64);
  const UOp rows =
      reduce(Op::Add,
             reshape(buffer(make_ref<Storage>("CPU", DType::F32, 64 * 8)), {Dim(n), Dim(8)}), {1});
  EXPECT_EQ(refusal(rows, {1, 4}), "parts(1,4): an axis has a symbolic size");
}

// What becomes of each order, of parts of one length and with a shorter last one.
TEST(Parts, AreTwoKernels) {
  const UOp x = host_buffer({3, 10}), sum = reduce(Op::Add, x, {1});
  EXPECT_EQ(text(in_parts(sum, {1, 5})),
            "kernel k0 t1 <- in0\n"
            "    r0:6: p0[r0] = add_reduce(p1[r0*5 + r1]; r1:5)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:3: p0[r0] = add_reduce(p1[r0*2 + r1]; r1:2)\n");
  EXPECT_EQ(text(in_parts(sum, {1, 5, PartOrder::Turns})),
            "kernel k0 t1 <- in0\n"
            "    r0:3 r1:2: p0[r0*2 + r1] = add_reduce(p1[r0*10 + r1 + r2*2]; r2:5)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:3: p0[r0] = add_reduce(p1[r0*2 + r1]; r1:2)\n");
  EXPECT_EQ(text(in_parts(sum, {1, 5, PartOrder::Panels})),
            "kernel k0 t1 <- in0\n"
            "    r0:2 r1:3: p0[r0*3 + r1] = add_reduce(p1[r0*5 + r1*10 + r2]; r2:5)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:3: p0[r0] = add_reduce(p1[r0 + r1*3]; r1:2)\n");
  EXPECT_EQ(text(in_parts(sum, {1, 4})),
            "kernel k0 t1 <- in0\n"
            "    r0:3 r1:3: p0[r0*3 + r1] = add_reduce(p1[r0*10 + r1*4 + r2 if r1*4 + r2 < 10]; "
            "r2:4)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:3: p0[r0] = add_reduce(p1[r0*3 + r1]; r1:3)\n");
  EXPECT_EQ(text(in_parts(reduce(Op::Max, x, {1}), {1, 4})),
            "kernel k0 t1 <- in0\n"
            "    v0 = cmplt(r1*4 + r2, 10)\n"
            "    r0:3 r1:3: p0[r0*3 + r1] = max_reduce(where(v0, p1[r0*10 + r1*4 + r2 if r1*4 + r2 "
            "< 10], -inf); r2:4)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:3: p0[r0] = max_reduce(p1[r0*3 + r1]; r1:3)\n");
  const UOp product = matmul(host_buffer({2, 7}), host_buffer({7, 2}));
  EXPECT_EQ(text(in_parts(product->src(0), {2, 4})),
            "kernel k0 t2 <- in0 in1\n"
            "    r0:2 r1:2 r2:2: p0[r0*4 + r1*2 + r2] = add_reduce(mul(p1[r0*7 + r2*4 + r3 if "
            "r2*4 + r3 < 7], p2[r1 + r2*8 + r3*2 if r2*4 + r3 < 7]); r3:4)\n"
            "kernel k1 out0 <- t2\n"
            "    r0:4: p0[r0] = add_reduce(p1[r0*2 + r1]; r1:2)\n");
}

// A panel's short axes lie outside of its long ones, which vectors store whole.
TEST(Parts, LongAxesOfPanelsAreInnermost) {
  const UOp sum = reduce(Op::Add, host_buffer({16, 3, 32, 10}), {3});
  EXPECT_EQ(text(in_parts(sum, {3, 5, PartOrder::Panels})),
            "kernel k0 t1 <- in0\n"
            "    r0:2 r1:3 r2:16 r3:32: p0[r0*1536 + r1*512 + r2*32 + r3] = add_reduce(p1[r0*5 + "
            "r1*320 + r2*960 + r3*10 + r4]; r4:5)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:16 r1:3 r2:32: p0[r0*96 + r1*32 + r2] = add_reduce(p1[r0*32 + r1*512 + r2 + "
            "r3*1536]; r3:2)\n");
}

// Planes lie as the outputs do.
TEST(Parts, PlanesLieOneBehindTheOther) {
  const UOp sum = reduce(Op::Add, host_buffer({16, 3, 10}), {2});
  EXPECT_EQ(text(in_parts(sum, {2, 5, PartOrder::Planes})),
            "kernel k0 t1 <- in0\n"
            "    r0:2 r1:48: p0[r0*48 + r1] = add_reduce(p1[r0*5 + r1*10 + r2]; r2:5)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:48: p0[r0] = add_reduce(p1[r0 + r1*48]; r1:2)\n");
}

// No number that divides them gives each core some: the last part is shorter.
TEST(Parts, KeepGpusBusyWhereNothingDividesThem) {
  Target gpu = host_target("CPU");
  gpu.cores = 68;
  gpu.subgroup_size = 32;
  gpu.has_local = true;
  const auto chosen = [&](const UOp& reduction) {
    const auto p = choose_parts(*reduction, gpu);
    return p ? to_string(*p) : std::string();
  };
  const auto sum = [&](std::initializer_list<int64_t> shape, IntVec axes) {
    return chosen(reduce(Op::Add, host_buffer(shape), std::move(axes)));
  };
  EXPECT_EQ(sum({16777213}, {0}), "parts(0,65536)") << "a prime";
  EXPECT_EQ(sum({1000003}, {0}), "parts(0,3968)") << "a multiple of what tiles are";
  EXPECT_EQ(sum({2 * 500009}, {0}), "parts(0,3968)");
  EXPECT_EQ(sum({11 * 90901}, {0}), "parts(0,3968)") << "11 parts are too few";
  EXPECT_EQ(sum({1 << 20}, {0}), "parts(0,4096)");
  EXPECT_EQ(sum({1000003, 4}, {0}), "parts(0,3968,turns)");
  EXPECT_EQ(sum({32749}, {0}), "") << "short";
  EXPECT_EQ(sum({1 << 20, 256}, {0}), "parts(0,65536,turns)") << "8 subgroups of neighbours";
  EXPECT_EQ(sum({1 << 20, 4096}, {0}), "") << "outputs enough";
  EXPECT_EQ(sum({256, 1 << 15}, {1}), "") << "a workgroup to each row";
  EXPECT_EQ(sum({128, 64, 100}, {0, 2}), "parts(0,8,turns)") << "channels: 128 rows of each";
  EXPECT_EQ(sum({64, 12800}, {1}), "") << "one row of each";
  EXPECT_EQ(sum({128, 8, 100}, {0, 2}), "") << "few elements in all";
  EXPECT_EQ(chosen(matmul(host_buffer({16, 65537}), host_buffer({65537, 16}))->src(0)),
            "parts(2,544,planes)");
}

// The gradient of a convolution's weights: images apart where one of them fills the cache.
TEST(Parts, PanelsAreWholeImagesWhereNoMoreFit) {
  Target cpu = host_target("CPU");
  cpu.l2_bytes = 1 << 20;
  const Shape all{64, 28, 28, 20, 32};
  const UOp x = expand(host_buffer({64, 28, 28, 20, 1}), all),
            y = expand(host_buffer({64, 28, 28, 1, 32}), all);
  const UOp sum = reduce(Op::Add, alu(Op::Mul, {x, y}), {0, 1, 2});
  const auto p = choose_parts(*sum, cpu);
  ASSERT_TRUE(p);
  EXPECT_EQ(to_string(*p), "parts(0,1,panels)");
  EXPECT_EQ(refusal(sum, *p), "");
  cpu.l2_bytes = 512 << 10;
  EXPECT_EQ(choose_parts(*sum, cpu), p) << "an image leaves room for little else";
  cpu.l2_bytes = 128 << 10;
  EXPECT_FALSE(choose_parts(*sum, cpu)) << "an image does not fit";
}

// Between two products a row may be kept in fast memory: its sum stays whole then.
TEST(Parts, RowsThatCannotBeKeptAreCut) {
  Target cpu = host_target("CPU");
  cpu.l2_bytes = 1 << 20;
  const auto behind_rows = [&](int64_t length) {
    const UOp scores = matmul(host_buffer({64, 64}), host_buffer({64, length}));
    return matmul(softmax(scores), host_buffer({length, 64}))->src(0);
  };
  EXPECT_FALSE(choose_parts(*behind_rows(8192), cpu));
  EXPECT_TRUE(choose_parts(*behind_rows(32768), cpu)) << "those of a vocabulary";
}

TEST(Parts, MayBeSkippedByName) {
  Target cores = host_target("CPU");
  cores.cores = 8;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return cores; };
  const UOp sum = reduce(Op::Add, host_buffer({1 << 16}), {0});
  const auto kernels_without = [&](std::initializer_list<const char*> skipped) {
    StepChoice steps;
    for (const char* step : skipped) steps.skip(step);
    return kernel_count(*schedule({&sum, 1}, target_of, {}, steps).schedule);
  };
  EXPECT_EQ(kernels_without({}), 2);
  EXPECT_EQ(kernels_without({"rows", "parts"}), 1);
  EXPECT_EQ(kernels_without({"merge"}), 2);
}

// Values whose sums, products and maxima are exact in any order, so that the results are equal.
class RandomReduction {
 public:
  explicit RandomReduction(uint32_t seed) : rng_(seed) {
    static constexpr DType types[] = {DType::F32, DType::F32, DType::F16, DType::BF16, DType::I32,
                                      DType::U8,  DType::F64, DType::I64, DType::Bool};
    static constexpr Op ops[] = {Op::Add, Op::Add, Op::Max, Op::Mul};
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 23};
    type_ = types[pick(std::size(types))];
    op_ = ops[pick(std::size(ops))];
    const int rank = 1 + pick(3);
    int64_t count = 1;
    IntVec axes;
    for (int a = 0; a < rank; a++) {
      const int64_t n = sizes[pick(std::size(sizes))];
      shape_.push_back(Dim(count * n > 60 ? 2 : n));
      count *= shape_.back().value();
      if (pick(3)) axes.push_back(a);
    }
    if (axes.empty()) axes.push_back(pick(rank));
    const UOp r = reduce(op_, value(), axes);
    sink_ = pick(2) ? r : after(r);
  }
  const UOp& sink() const { return sink_; }
  std::string what() const {
    return fmt::format("{} of {} {}", name(op_), short_name(type_), shape_.size());
  }
  Contents contents() {
    Contents out;
    for (const Ref<Storage>& s : storages_) {
      Values& v = out[s->id];
      for (int64_t i = 0; i < s->count; i++)
        v.push_back(Scalar::of_int(s->dtype, op_ == Op::Mul ? 1 - 2 * pick(2) : pick(4) - 1));
    }
    return out;
  }

 private:
  int pick(size_t n) { return int(rng_() % uint32_t(n)); }
  UOp input(Shape shape) {
    storages_.push_back(make_ref<Storage>("CPU", type_, element_count(shape)));
    return reshape(buffer(storages_.back()), shape);
  }
  // One that is repeated along some axes.
  UOp repeated() {
    Shape some = shape_;
    for (Dim& d : some) d = pick(3) ? d : Dim(1);
    return expand(input(some), shape_);
  }
  UOp value() {
    switch (pick(6)) {
      case 0: return input(shape_);
      case 1: return alu(Op::Mul, {repeated(), repeated()});
      case 2: return alu(Op::Mul, {repeated(), constant(Scalar::of_int(type_, 1))});
      case 3: return alu(Op::Max, {input(shape_), constant(Scalar::of_int(type_, 1))});
      case 4: {  // a cast of a product
        const DType own =
            std::exchange(type_, op_ == Op::Add && is_float(type_) ? DType::F16 : type_);
        const UOp product = alu(Op::Mul, {repeated(), input(shape_)});
        return cast(product, std::exchange(type_, own));
      }
      default: {  // 1 where it is padded
        Pairs edge(shape_.size(), {Dim(0), Dim(0)});
        Shape inside = shape_;
        const size_t a = size_t(pick(shape_.size()));
        if (inside[a].value() < 2) return repeated();
        inside[a] = Dim(inside[a].value() - 1);
        edge[a].a = Dim(1);
        const UOp zero = constant(Scalar::of_int(type_, 0));
        return cast(alu(Op::CmpEq, {pad(input(inside), edge), zero}), type_);
      }
    }
  }
  // What follows it in the kernel: once more reduced, or one element wide.
  UOp after(const UOp& r) {
    const UOp one = constant(Scalar::of_int(r->dtype, 1));
    const UOp shifted = alu(r->dtype == DType::Bool ? Op::CmpNe : Op::Max, {r, one});
    if (pick(2) || op_ == Op::Mul) return shifted;
    IntVec all;
    for (size_t a = 0; a < shifted->shape.size(); a++) all.push_back(int64_t(a));
    return reduce(Op::Max, shifted, all);
  }

  std::mt19937 rng_;
  DType type_ = DType::F32;
  Op op_ = Op::Add;
  Shape shape_;
  std::vector<Ref<Storage>> storages_;
  UOp sink_;
};

TEST(Parts, RandomOnesMeanTheSame) {
  const PartsCounts before = random_parts_counts();
  uint64_t shorter = 0;
  for (uint32_t seed = 1; seed <= 4000; seed++) {
    RandomReduction r(seed);
    const Scheduled s = schedule({&r.sink(), 1}, host_target, {}, {.random_seed = seed});
    shorter += to_text(*s.schedule).find(" if ") != std::string::npos;
    const Contents contents = r.contents();
    const Values got = run_schedule(s, contents).sinks.at(0);
    TensorEvaluator direct(contents);
    const Values& want = direct.eval(r.sink());
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); i++)
      ASSERT_EQ(got[i].as_double(), want[i].as_double())
          << "seed " << seed << ": " << r.what() << ", element " << i << "\n"
          << to_text(*s.schedule);
  }
  const PartsCounts after = random_parts_counts();
  const uint64_t tried = after.tried - before.tried, applied = after.applied - before.applied;
  fmt::print("{} of {} draws were legal; {} with a shorter part\n", applied, tried, shorter);
  EXPECT_GE(applied, 800u);
  EXPECT_LT(applied, tried);
  EXPECT_GE(shorter, 200u);
}

// A factor past the end of a sum of products is 0 where the other one is infinite, too.
TEST(Parts, WhatIsPastTheEndIsNeverMultiplied) {
  const UOp x = host_buffer({7});
  const UOp infinite = constant(DType::F32, std::numeric_limits<double>::infinity());
  const UOp sum = reduce(Op::Add, alu(Op::Mul, {x, infinite}), {0});
  const UOp parts = in_parts(sum, {0, 4});
  const Scheduled s = schedule({&parts, 1}, host_target);
  Contents ones;
  ones[s.inputs[0]->id] = Values(7, Scalar::of_double(DType::F32, 1));
  EXPECT_EQ(run_schedule(s, ones).sinks[0][0].as_double(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tuff::sched::testing
