// What ends in which kernel: goldens of LINEAR for the shapes that matter, and their values on the
// host.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/gradient.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/variants.h"
#include "ir/walk.h"
#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

std::shared_ptr<const Schedule> scheduled(const std::vector<UOp>& sinks) {
  return schedule(sinks, host_target).schedule;
}
std::string text(const std::vector<UOp>& sinks) { return to_text(*scheduled(sinks)); }

TEST(Fusion, ElementwiseChainIsOneKernel) {
  const UOp x = host_buffer({8, 16}), y = host_buffer({8, 16});
  EXPECT_EQ(text({relu(mul(add(x, y), number(2)))}),
            "kernel k0 out0 <- in0 in1\n"
            "    r0:128: p0[r0] = max(mul(add(p1[r0], p2[r0]), 2), 0)\n");
}

TEST(Fusion, ReductionTakesItsPrologue) {
  const UOp x = host_buffer({8, 16}), y = host_buffer({8, 16});
  EXPECT_EQ(text({reduce(Op::Add, add(x, y), {0, 1})}),
            "kernel k0 out0 <- in0 in1\n"
            "    p0[0] = add_reduce(add(p1[r0], p2[r0]); r0:128)\n");
}

TEST(Fusion, MatmulTakesBiasAndActivation) {
  const UOp h = matmul(host_buffer({8, 16}), host_buffer({16, 32}));
  const UOp out = relu(add(h, broadcast(host_buffer({32}), h->shape)));
  EXPECT_EQ(text({out}),
            "kernel k0 out0 <- in1 in2 in0\n"
            "    r0:8 r1:32: p0[r0*32 + r1] = max(add(add_reduce(mul(p1[r0*16 + r2], p2[r1 + "
            "r2*32]); r2:16), p3[r1]), 0)\n");
  expect_meaning({out}, 1e-5);
}

// The gradient of what two products read is one sum of both before it is scheduled, of which neither
// would be tiled. Of few rows it stays one: that reads both matrices once.
TEST(Fusion, SumsOfProductsOfMatricesAreProducts) {
  const auto sum_of_two = [](int64_t rows) {
    const auto products = [&] {
      return matmul(host_buffer({rows, 16}), host_buffer({16, 32}))->src(0)->src(0);
    };
    return reduce(Op::Add, add(products(), products()), {2});
  };
  for (const auto& [rows, kernels] : {std::pair{24, 2}, std::pair{2, 1}}) {
    const UOp sum = sum_of_two(rows);
    EXPECT_EQ(kernel_count(*scheduled({sum})), kernels) << rows;
    expect_meaning({sum}, 1e-5);
  }
}

TEST(Fusion, SoftmaxOfAMatmulIsTwoKernels) {
  const UOp s = softmax(mul(matmul(host_buffer({8, 4}), host_buffer({4, 8})), number(0.5)));
  EXPECT_EQ(kernel_count(*scheduled({s})), 2);
  expect_meaning({s}, 1e-6);
}

TEST(Fusion, ConvolutionIsOneKernelWithoutDivisions) {
  const UOp c = conv3x3(host_buffer({2, 2, 6, 6}), host_buffer({3, 2, 3, 3}));
  const std::string t = text({c});
  EXPECT_EQ(kernel_count(*scheduled({c})), 1) << t;
  EXPECT_EQ(t.find("//"), std::string::npos) << t;
  EXPECT_EQ(t.find('%'), std::string::npos) << t;
  expect_meaning({c}, 1e-4);
}

// Rows of three neighbours along axis a, as the tensor room cuts them: (3, n - 2) instead of n.
UOp windows_of_3(const UOp& x, int64_t a) {
  const int64_t n = x->shape[a].value();
  const auto cut = [&](Shape s, std::initializer_list<int64_t> extents) {
    s.erase(s.begin() + a);
    s.insert(s.begin() + a, extents.begin(), extents.end());
    return s;
  };
  const auto along = [&](const UOp& u, Pairs p, DimPair here) {
    p.resize(u->shape.size(), {Dim(0), Dim(0)});
    p[size_t(a)] = here;
    return p;
  };
  UOp t = expand(reshape(x, cut(x->shape, {1, n})), cut(x->shape, {3, n}));
  t = reshape(t, cut(x->shape, {3 * n}));
  t = reshape(pad(t, along(t, {}, {Dim(0), Dim(3)})), cut(x->shape, {3, n + 1}));
  Pairs part;
  for (const Dim& d : t->shape) part.push_back({Dim(0), d});
  part[size_t(a + 1)] = {Dim(0), Dim(n - 2)};
  return shrink(t, part);
}

// The gradient of images of n x n pixels and 2 channels, of a convolution with `filters` of 3x3.
UOp gradient_of_images(int64_t n, int64_t filters) {
  const int64_t out = n - 2;
  const UOp image = alu(Op::Neg, {host_buffer({2, 2, n, n})}), weight = host_buffer({filters, 2, 3, 3});
  const Shape all{2, filters, 2, 3, out, 3, out};
  const UOp windows = windows_of_3(windows_of_3(image, 3), 2);  // (2, 2, 3, out, 3, out)
  const UOp c = reduce(
      Op::Add,
      finite_product(expand(reshape(windows, {2, 1, 2, 3, out, 3, out}), all),
                     expand(reshape(weight, {1, filters, 2, 3, 1, 3, 1}), all)),
      {2, 3, 5});
  return gradients(c, host_buffer({2, filters, 1, 1, out, 1, out}), std::vector{image})[0];
}

// The gradient of a convolution's images is a convolution: one kernel, which masks what it loads
// and no product, without divisions.
TEST(Fusion, GradientOfAConvolutionsImagesIsOneKernel) {
  const UOp g = gradient_of_images(16, 3);
  ASSERT_TRUE(g);
  const std::string t = text({g});
  EXPECT_EQ(kernel_count(*scheduled({g})), 1) << t;
  for (const char* unwanted : {"//", "%", "where"}) EXPECT_EQ(t.find(unwanted), std::string::npos) << t;
  expect_meaning({g}, 1e-4);
}

// Where most products would be those of a small image's border it is two, the sums of products and
// that of both axes of windows.
TEST(Fusion, GradientOfSmallImagesSumsNoBorders) {
  const UOp g = gradient_of_images(5, 24);
  EXPECT_EQ(kernel_count(*scheduled({g})), 2) << text({g});
  expect_meaning({g}, 1e-4);
}

// What no convolution made keeps its products apart from its padding: 0 is not multiplied.
TEST(Fusion, PaddedProductsOfInfinityAreZeros) {
  const UOp x = host_buffer({4, 8}), y = host_buffer({4, 8});
  const UOp padded = pad(mul(x, y), {{0, 0}, {2, 2}});
  const std::string t = text({reduce(Op::Add, padded, {1})});
  EXPECT_NE(t.find("mul"), std::string::npos) << t;
  const UOp infinite = pad(mul(x, number(INFINITY)), {{0, 0}, {2, 2}});
  EXPECT_NE(text({infinite}).find("where"), std::string::npos) << text({infinite});
}

// An operand that stays inside its buffer is not masked where its result is.
TEST(Fusion, OperandsUnderAMaskAreLoadedWithoutIt) {
  const UOp row = host_buffer({4, 1}), x = host_buffer({4, 8});
  const UOp padded = pad(mul(x, expand(row, {4, 8})), {{0, 0}, {0, 4}});
  EXPECT_EQ(text({padded}),
            "kernel k0 out0 <- in0 in1\n"
            "    v0 = cmplt(r1, 8)\n"
            "    r0:4 r1:12: p0[r0*12 + r1] = where(v0, mul(p1[r0*8 + r1 if r1 < 8], p2[r0]), 0)\n");
  expect_meaning({padded}, 0);
}

TEST(Fusion, MovementVanishes) {
  EXPECT_EQ(text({add(permute(host_buffer({4, 6}), {1, 0}), host_buffer({6, 4}))}),
            "kernel k0 out0 <- in0 in1\n"
            "    r0:6 r1:4: p0[r0*4 + r1] = add(p1[r0 + r1*6], p2[r0*4 + r1])\n");
  const UOp x = host_buffer({8, 16}), y = host_buffer({8, 16});
  const UOp cat = add(pad(x, {{0, 8}, {0, 0}}), pad(y, {{8, 0}, {0, 0}}));
  EXPECT_EQ(kernel_count(*scheduled({cat})), 1);
  expect_meaning({cat}, 0);
}

// Rows of a table by number, as embedding spells it; numbers outside of it give zeros.
UOp gather_rows(const UOp& table, const UOp& ids, const UOp& counter) {
  const Dim n = ids->shape[0], rows = table->shape[0], columns = table->shape[1];
  const Shape all{n, rows, columns};
  const UOp hit = alu(Op::CmpEq, {expand(reshape(ids, {n, Dim(1)}), {n, rows}),
                                  expand(reshape(counter, {Dim(1), rows}), {n, rows})});
  const UOp one_hot = alu(Op::CmpNe, {cast(hit, DType::I32), constant(DType::I32, 0)});
  const UOp wide = expand(reshape(table, {Dim(1), rows, columns}), all);
  return reduce(Op::Add, where(expand(reshape(one_hot, {n, rows, Dim(1)}), all), wide, number(0)),
                {1});
}

TEST(Fusion, GatherByACounterInMemoryIsAMaskAndAMaskedSum) {
  const UOp picked = gather_rows(host_buffer({10, 4}), host_buffer({3}, DType::I32),
                                 host_buffer({10}, DType::I32));
  EXPECT_EQ(kernel_count(*scheduled({picked})), 2);
  expect_meaning({picked}, 0);
}

TEST(Fusion, GatherByPositionIsALoad) {
  const UOp picked =
      gather_rows(host_buffer({10, 4}), host_buffer({30}, DType::I32), iota(Dim(10), DType::I32));
  const std::string t = text({picked});
  EXPECT_EQ(kernel_count(*scheduled({picked})), 1);
  EXPECT_EQ(t.find("reduce"), std::string::npos) << t;
  expect_meaning({picked}, 0);
}

// Rows of memory for each index, as tensors spell them.
UOp pick_rows(const UOp& table, const UOp& ids) {
  const Dim n = ids->shape[0], rows = table->shape[0], columns = table->shape[1];
  const Shape all{n, rows, columns};
  const UOp hit = alu(Op::CmpEq, {expand(reshape(ids, {n, Dim(1), Dim(1)}), {n, rows, Dim(1)}),
                                  expand(reshape(iota(rows, DType::I32), {Dim(1), rows, Dim(1)}),
                                         {n, rows, Dim(1)})});
  const UOp wide = expand(reshape(table, {Dim(1), rows, columns}), all);
  return reduce(Op::Add, where(expand(hit, all), wide, constant(table->dtype, 0)), {1});
}

// Keys of a cache in blocks: no copy of them is decoded.
TEST(Fusion, PickedRowsOfScaledBytesAreDecodedInTheProduct) {
  const UOp ids = host_buffer({6}, DType::I32);
  const UOp numbers = cast(pick_rows(host_buffer({10, 512}, DType::I8), ids), DType::F32),
            scales = cast(pick_rows(host_buffer({10, 16}, DType::F16), ids), DType::F32);
  const UOp keys =
      mul(reshape(numbers, {6, 16, 32}), expand(reshape(scales, {6, 16, 1}), {6, 16, 32}));
  const UOp scores = matmul(host_buffer({5, 512}), permute(reshape(keys, {6, 512}), {1, 0}));
  EXPECT_EQ(kernel_count(*scheduled({scores})), 1) << text({scores});
  expect_meaning({scores}, 1e-4);
}

// An embedding that is the output's weight as well, of bytes whose decoding costs more than a load: no
// copy of it is decoded.
TEST(Fusion, ATableOfBytesIsDecodedInItsProductThoughRowsAreRead) {
  UOp table = cast(host_buffer({64, 64}, DType::I8), DType::F32);
  for (int i = 0; i < 60; i++) table = mul(table, number(i % 2 ? 0.5 : 2.25));
  const UOp rows = reshape(pick_rows(table, host_buffer({2}, DType::I32)), {2, 64});
  const UOp scores = matmul(contiguous(rows), permute(table, {1, 0}));
  EXPECT_EQ(kernel_count(*scheduled({scores})), 2) << text({scores});
  expect_meaning({scores}, 1e-4);
}

// What is picked is computed where it is picked, and not everywhere.
TEST(Fusion, WhatIsGatheredIsComputedThere) {
  const UOp picked = gather_rows(neg(host_buffer({10, 4})), host_buffer({30}, DType::I32),
                                 iota(Dim(10), DType::I32));
  const std::string t = text({picked});
  EXPECT_EQ(kernel_count(*scheduled({picked})), 1);
  EXPECT_EQ(t.find("reduce"), std::string::npos) << t;
  expect_meaning({picked}, 0);
}

// An element of memory for each index.
UOp gather_elements(const UOp& memory, const UOp& index) {
  const Shape all{index->shape[0], memory->shape[0]};
  const UOp hit =
      alu(Op::CmpEq, {expand(reshape(index, {all[0], Dim(1)}), all),
                      expand(reshape(iota(all[1], DType::I32), {Dim(1), all[1]}), all)});
  const UOp wide = expand(reshape(memory, {Dim(1), all[1]}), all);
  return reshape(reduce(Op::Add, where(hit, wide, constant(memory->dtype, 0)), {1}), {all[0]});
}

// Steps of a search: what is loaded says where to look next.
TEST(Fusion, LoadsByLoadedIndexesAreOneKernel) {
  const UOp memory = host_buffer({10}, DType::I32);
  UOp at = host_buffer({30}, DType::I32);
  for (int step = 4; step > 0; step /= 2) {
    const UOp further = add(at, constant(DType::I32, step));
    const UOp less = alu(Op::CmpLt, {gather_elements(memory, further), constant(DType::I32, 3)});
    at = where(less, further, at);
  }
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  const auto linear = schedule(std::vector<UOp>{at}, target_of).schedule;
  EXPECT_EQ(kernel_count(*linear), 1) << to_text(*linear);
  EXPECT_EQ(to_text(*linear).find("reduce"), std::string::npos) << to_text(*linear);
  expect_meaning({at}, 0);
}

// However few they are and however much they choose from.
TEST(Fusion, LoadsHaveNoParts) {
  const UOp memory = host_buffer({1 << 20}), index = host_buffer({3}, DType::I32);
  EXPECT_EQ(kernel_count(*scheduled({gather_elements(memory, index)})), 1);
  EXPECT_EQ(kernel_count(*scheduled({gather_elements(neg(memory), index)})), 1);
}

TEST(Fusion, SumsOfWhatIsPickedByASumAreApart) {
  const UOp index = reshape(reduce(Op::Add, host_buffer({30, 4}, DType::I32), {1}), {Dim(30)});
  const UOp sum = reduce(Op::Add, gather_elements(host_buffer({10}), index), {0});
  EXPECT_EQ(kernel_count(*scheduled({sum})), 2);
  expect_meaning({sum}, 1e-6);
}

TEST(Fusion, PositionsAreIndexArithmetic) {
  const UOp masked =
      where(alu(Op::CmpLt,
                {reshape(iota(Dim(24), DType::I32), {Dim(4), Dim(6)}), constant(DType::I32, 9)}),
            host_buffer({4, 6}), expand(reshape(number(0), {Dim(1), Dim(1)}), {Dim(4), Dim(6)}));
  EXPECT_EQ(kernel_count(*scheduled({permute(masked, {1, 0})})), 1);
  expect_meaning({permute(masked, {1, 0})}, 0);
}

TEST(Fusion, SharedReductionIsStoredAndSharedCheapWorkIsNot) {
  const UOp h = matmul(host_buffer({8, 16}), host_buffer({16, 16}));
  const UOp twice = mul(h, number(2));
  const auto s = scheduled({matmul(relu(h), host_buffer({16, 4})), permute(twice, {1, 0}),
                            permute(add(twice, number(1)), {1, 0})});
  // The matmul, the second matmul with relu of what it loads, and twice with both its readers.
  EXPECT_EQ(kernel_count(*s), 3) << to_text(*s);
}

TEST(Fusion, PermutedAndMergedAxesAreStoredThatWay) {
  // Heads (2, 8, 4) of an attention, back to rows (8, 2*4) for a matmul: no division in any index.
  const UOp v = host_buffer({2, 8, 4});
  const UOp heads = mul(exp(v), number(3));
  const UOp out = matmul(reshape(permute(heads, {1, 0, 2}), {8, 8}), host_buffer({8, 8}));
  EXPECT_EQ(text({out}).find("//"), std::string::npos) << text({out});
  expect_meaning({out}, 1e-2);
}

TEST(Fusion, HugeReductionIsSplitWhereThereAreCores) {
  Target cores = host_target("CPU");
  cores.cores = 8;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return cores; };
  const std::vector<UOp> sinks{reduce(Op::Add, host_buffer({1024, 1024}), {0, 1})};
  EXPECT_EQ(to_text(*schedule(sinks, target_of).schedule),
            "parts(0,4) of add f32 1024x1024\n"
            "kernel k0 t1 <- in0\n"
            "    r0:256: p0[r0] = add_reduce(p1[r0*4096 + r1]; r1:4096)\n"
            "kernel k1 out0 <- t1\n"
            "    p0[0] = add_reduce(p1[r0]; r0:256)\n");
  EXPECT_EQ(kernel_count(*scheduled(sinks)), 1);
}

// Neighbouring invocations of a GPU read neighbours either way: those of a workgroup that walks a
// run, and those that each sum a part of columns.
TEST(Fusion, PartsOfAHugeReductionReadNeighboursOnGpus) {
  Target gpu = host_target("CPU");
  gpu.cores = 8;
  gpu.has_local = true;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  const auto split = [&](const UOp& sum) {
    const std::vector<UOp> sinks{sum};
    return to_text(*schedule(sinks, target_of).schedule);
  };
  EXPECT_EQ(split(reduce(Op::Add, host_buffer({1 << 20}), {0})),
            "parts(0,4096) of add f32 1048576\n"
            "kernel k0 t1 <- in0\n"
            "    r0:256: p0[r0] = add_reduce(p1[r0*4096 + r1]; r1:4096)\n"
            "kernel k1 out0 <- t1\n"
            "    p0[0] = add_reduce(p1[r0]; r0:256)\n");
  EXPECT_EQ(split(reduce(Op::Add, host_buffer({1 << 20, 4}), {0})),
            "parts(0,4096,turns) of add f32 1048576x4\n"
            "kernel k0 t1 <- in0\n"
            "    r0:1024: p0[r0] = add_reduce(p1[r0 + r1*1024]; r1:4096)\n"
            "kernel k1 out0 <- t1\n"
            "    r0:4: p0[r0] = add_reduce(p1[r0 + r1*4]; r1:256)\n");
}

// A product with few outputs and a long sum leaves a GPU idle.
// As in the gradient of windows along two axes: what lies between the sums moves each element once.
TEST(Fusion, AShortSumOfAShortSumIsOne) {
  const auto kernels = [](const UOp& x) { return kernel_count(*scheduled({x})); };
  const UOp x = host_buffer({6, 4, 3, 5});
  const UOp inner = reduce(Op::Add, x, {2});
  const UOp between = pad(permute(reshape(inner, {6, 2, 10}), {1, 0, 2}), {{1, 0}, {0, 2}, {0, 0}});
  const UOp moved = shrink(reshape(between, {3, 4, 2, 10}), {{0, 3}, {0, 3}, {0, 2}, {1, 9}});
  const UOp both = reduce(Op::Add, moved, {1, 2});
  EXPECT_EQ(kernels(both), 1);
  expect_meaning({both}, 1e-5);
  const UOp twice =
      reduce(Op::Add, pad(reduce(Op::Add, x, {1}), {{0, 1}, {0, 0}, {0, 0}, {0, 0}}), {0});
  EXPECT_EQ(kernels(twice), 1);
  expect_meaning({twice}, 1e-5);
  EXPECT_EQ(kernel_count(*scheduled({both, inner})), 2) << "both are wanted";
  expect_meaning({both, inner}, 1e-5);
  const UOp product = reshape(matmul(host_buffer({6, 3}), host_buffer({3, 4})), {6, 4});
  EXPECT_EQ(kernels(reduce(Op::Add, pad(product, {{1, 0}, {0, 0}}), {1})), 2)
      << "a product is computed by itself";
  const UOp longer = reduce(Op::Add, host_buffer({6, 4, 40}), {2});
  EXPECT_EQ(kernels(reduce(Op::Add, pad(longer, {{1, 0}, {0, 0}, {0, 0}}), {1})), 2);
  const UOp largest = reduce(Op::Max, x, {2});
  EXPECT_EQ(kernels(reduce(Op::Add, pad(largest, {{1, 0}, {0, 0}, {0, 0}, {0, 0}}), {1})), 2);
}

// A GPU's kernels read f16 and widen it, so that products may be those of matrices.
TEST(Fusion, WhatIsWidenedForAProductIsStoredAsItWas) {
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  const UOp x = host_buffer({32, 32});
  const UOp half = cast(alu(Op::Exp2, {mul(alu(Op::Exp2, {x}), x)}), DType::F16);
  const std::vector<UOp> sinks{matmul(cast(half, DType::F32), host_buffer({32, 32}))};
  for (const bool on_gpu : {false, true}) {
    const TargetOf target_of = [&](const std::string& device) -> const Target& {
      return on_gpu ? gpu : host_target(device);
    };
    const auto s = schedule(sinks, target_of).schedule;
    ASSERT_EQ(s->calls.size(), 2u);
    EXPECT_EQ(s->buffers[s->calls[0].args[0]].dtype, on_gpu ? DType::F16 : DType::F32);
    expect_meaning(sinks, 1e-2, target_of);
  }
}

// As an activation in 16 bits is for the next layer and for the gradient of its weights.
TEST(Fusion, WhatIsWidenedForSeveralProductsIsStoredAsItWas) {
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  const UOp half = cast(matmul(host_buffer({32, 32}), host_buffer({32, 32})), DType::F16);
  const UOp wide = cast(half, DType::F32);
  const std::vector<UOp> sinks{matmul(wide, host_buffer({32, 32})),
                               matmul(permute(wide, {1, 0}), host_buffer({32, 32}))};
  for (const bool on_gpu : {false, true}) {
    const TargetOf target_of = [&](const std::string& device) -> const Target& {
      return on_gpu ? gpu : host_target(device);
    };
    const auto s = schedule(sinks, target_of).schedule;
    ASSERT_EQ(s->calls.size(), 3u);
    EXPECT_EQ(s->buffers[s->calls[0].args[0]].dtype, on_gpu ? DType::F16 : DType::F32);
    expect_meaning(sinks, 1e-2, target_of);
  }
}

// Of a part that is widened no more than that is stored.
TEST(Fusion, APartThatIsWidenedIsStoredAlone) {
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  const UOp x = host_buffer({64, 32});
  const UOp half = cast(alu(Op::Exp2, {mul(alu(Op::Exp2, {x}), x)}), DType::F16);
  const UOp wide = cast(shrink(half, {{0, 8}, {0, 32}}), DType::F32);
  const std::vector<UOp> sinks{matmul(wide, host_buffer({32, 32})),
                               matmul(permute(wide, {1, 0}), host_buffer({8, 32}))};
  const auto s = schedule(sinks, target_of).schedule;
  int64_t stored = 0;
  for (const auto& c : s->calls) stored += s->buffers[c.args[0]].count;
  EXPECT_EQ(stored, 8 * 32 + 8 * 32 + 32 * 32) << to_text(*s);
  expect_meaning(sinks, 1e-2, target_of);
}

TEST(Fusion, LongProductsAreSplitForGpus) {
  Target gpu = host_target("CPU");
  gpu.cores = 16;
  gpu.subgroup_size = 32;
  gpu.has_local = true;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  const std::vector<UOp> sinks{matmul(host_buffer({16, 4096}), host_buffer({4096, 16}))};
  EXPECT_EQ(to_text(*schedule(sinks, target_of).schedule),
            "parts(2,512,planes) of add f32 16x16x4096\n"
            "kernel k0 t2 <- in0 in1\n"
            "    r0:8 r1:16 r2:16: p0[r0*256 + r1*16 + r2] = add_reduce(mul(p1[r0*512 + r1*4096 + "
            "r3], p2[r0*8192 + r2 + r3*16]); r3:512)\n"
            "kernel k1 out0 <- t2\n"
            "    r0:256: p0[r0] = add_reduce(p1[r0 + r1*256]; r1:8)\n");
  expect_meaning(sinks, 1e-2, target_of);
  const auto kernels = [&](int64_t n, int64_t k) {
    const std::vector<UOp> one{matmul(host_buffer({n, k}), host_buffer({k, n}))};
    return kernel_count(*schedule(one, target_of).schedule);
  };
  EXPECT_EQ(kernels(16, 2048), 2);
  EXPECT_EQ(kernels(16, 1024), 1) << "too short";
  EXPECT_EQ(kernels(256, 4096), 2) << "64 outputs to a lane leave most lanes idle";
  EXPECT_EQ(kernels(320, 4096), 1) << "outputs enough";
  const std::vector<UOp> rows{reduce(Op::Add, host_buffer({256, 4096}), {1})};
  EXPECT_EQ(kernel_count(*schedule(rows, target_of).schedule), 1) << "workgroups share rows";
}

// A panel of 64 columns and 128 rows of floats is all that this L2 cache has.
TEST(Fusion, LongProductsAreSplitWhereTheirPanelsExceedTheCacheOfACore) {
  Target cpu = host_target("CPU");
  cpu.cores = 2;
  cpu.l2_bytes = 32 << 10;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return cpu; };
  const auto product = [](int64_t n, int64_t k, int64_t m, DType t = DType::F32) {
    return matmul(host_buffer({n, k}, t), host_buffer({k, m}, t));
  };
  const UOp whole = product(32, 128, 64);
  const std::vector<UOp> sinks{add(whole, host_buffer({32, 64}))};
  EXPECT_EQ(to_text(*schedule(sinks, target_of).schedule),
            "parts(2,32,panels) of add f32 32x64x128\n"
            "kernel k0 t3 <- in1 in2\n"
            "    r0:4 r1:32 r2:64: p0[r0*2048 + r1*64 + r2] = add_reduce(mul(p1[r0*32 + r1*128 + "
            "r3], p2[r0*2048 + r2 + r3*64]); r3:32)\n"
            "kernel k1 out0 <- t3 in0\n"
            "    r0:2048: p0[r0] = add(add_reduce(p1[r0 + r1*2048]; r1:4), p2[r0])\n");
  expect_meaning(sinks, 1e-4, target_of);
  expect_meaning({product(33, 160, 47)}, 1e-4, target_of);
  const std::vector<UOp> narrow{product(32, 128, 64, DType::F16)};
  const Scheduled s = schedule(narrow, target_of);
  EXPECT_EQ(s.schedule->buffers[s.schedule->calls[0].args[0]].dtype, DType::F32);
  const auto kernels = [&](const UOp& x) {
    const std::vector<UOp> one{x};
    return kernel_count(*schedule(one, target_of).schedule);
  };
  EXPECT_EQ(kernels(product(32, 160, 64)), 2);
  EXPECT_EQ(kernels(product(32, 96, 64)), 1) << "the panel leaves room for the other factor";
  EXPECT_EQ(kernels(product(32, 131, 64)), 1) << "a prime";
  EXPECT_EQ(kernels(product(15, 160, 64)), 1) << "each column is read for few rows";
  const UOp sums = reduce(Op::Add, host_buffer({512, 160}), {1});
  EXPECT_EQ(kernels(sums), 1) << "no product";
  cpu.l2_bytes = 0;
  EXPECT_EQ(kernels(product(32, 160, 64)), 1) << "no cache is known";
}

// Attention over more positions than a panel has rows: its second product follows rows of the
// first.
TEST(Fusion, ProductsThatMayKeepRowsStayWhole) {
  Target cpu = host_target("CPU");
  cpu.cores = 2;
  cpu.l2_bytes = 32 << 10;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return cpu; };
  const UOp scores = matmul(host_buffer({160, 32}), host_buffer({32, 160}));
  const UOp sum = expand(reduce(Op::Add, exp(scores), {1}), {160, 160});
  const UOp values = host_buffer({160, 32});
  const auto longest = [&](const UOp& x) {
    const std::vector<UOp> sinks{x};
    return to_text(*schedule(sinks, target_of).schedule).find(":160)") != std::string::npos;
  };
  EXPECT_TRUE(longest(matmul(alu(Op::Div, {exp(scores), sum}), values)));
  EXPECT_FALSE(longest(matmul(exp(scores), values))) << "no rows";
  const UOp pairs = reduce(Op::Max, reshape(scores, {160, 80, 2}), {2});
  const UOp largest = reshape(expand(pairs, {160, 80, 2}), {160, 160});
  EXPECT_FALSE(longest(matmul(mul(scores, largest), values))) << "rows that it does not sum over";
}

// Parts of narrow floats are kept in 32 bits: 65536 is beyond what f16 has.
TEST(Fusion, PartsOfNarrowFloatsAreWide) {
  Target cores = host_target("CPU");
  cores.cores = 8;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return cores; };
  const UOp x = host_buffer({1 << 18}, DType::F16);
  const std::vector<UOp> sinks{reduce(Op::Add, x, {0})};
  const Scheduled s = schedule(sinks, target_of);
  ASSERT_EQ(kernel_count(*s.schedule), 2);
  EXPECT_EQ(s.schedule->buffers[s.schedule->calls[0].args[0]].dtype, DType::F32);
}

TEST(Fusion, LongChainsAreCut) {
  UOp x = host_buffer({4});
  for (int i = 0; i < 5000; i++) x = alu(Op::Max, {alu(Op::Neg, {x}), number(i)});
  EXPECT_GT(kernel_count(*scheduled({x})), 10);
}

TEST(Programs, EqualLayersShareOneAst) {
  UOp h = host_buffer({8, 16});
  for (int i = 0; i < 3; i++) h = relu(matmul(h, host_buffer({16, 16})));
  const auto s = scheduled({h});
  ASSERT_EQ(s->calls.size(), 3u);
  EXPECT_TRUE(s->calls[0].ast == s->calls[1].ast && s->calls[1].ast == s->calls[2].ast);
}

TEST(Assigns, ElementwiseStepIsInPlace) {
  const UOp p = host_buffer({8}), g = host_buffer({8});
  EXPECT_EQ(text({assign(p, sub(p, mul(g, number(0.5))))}),
            "kernel k0 in0 <- in1\n"
            "    r0:8: p0[r0] = sub(p0[r0], mul(p1[r0], 0.5))\n");
}

TEST(Assigns, LaterVersionsReadEarlierOnes) {
  const UOp b = host_buffer({8});
  const UOp once = assign(b, add(b, number(1))), two = assign(once, add(once, number(1)));
  EXPECT_EQ(text({two}), "kernel k0 in0\n    r0:8: p0[r0] = add(add(p0[r0], 1), 1)\n");
}

TEST(Assigns, OldContentsAreReadBeforeTheStore) {
  const UOp b = host_buffer({8});
  const UOp old = permute(reshape(mul(b, number(3)), {Dim(2), Dim(4)}), {1, 0});
  const auto s = scheduled({assign(b, add(b, number(1))), old});
  ASSERT_EQ(s->calls.size(), 2u);
  EXPECT_EQ(s->buffers[s->calls[0].args[0]].origin,
            BufferOrigin::Output);  // the reader of the old contents
  EXPECT_EQ(s->buffers[s->calls[1].args[0]].origin, BufferOrigin::Input);
}

TEST(Assigns, SwapGoesThroughATemporary) {
  const UOp a = host_buffer({8}), b = host_buffer({8});
  EXPECT_EQ(text({assign(a, b), assign(b, a)}),
            "copy t2 <- in0\ncopy in0 <- in1\ncopy in1 <- t2\n");
}

TEST(Assigns, MovedOwnContentsGoThroughATemporary) {
  const UOp b = host_buffer({8});
  EXPECT_EQ(text({assign(b, flip(b, {0}))}),
            "kernel k0 t1 <- in0\n    r0:8: p0[r0] = p1[r0*-1 + 7]\ncopy in0 <- t1\n");
}

TEST(Assigns, OfARowValueWaitForReadersThatShareAKernel) {
  const UOp x = host_buffer({}), y = host_buffer({2}), z = host_buffer({2});
  const UOp sum = reshape(reduce(Op::Add, y, {0}), {});
  const UOp largest = alu(Op::Max, {x, reshape(reduce(Op::Max, z, {0}), {})});
  const UOp old = expand(reshape(largest, {Dim(1)}), {Dim(2)});
  expect_meaning({assign(x, ir::Pairs{}, sum), old}, 0);
  expect_meaning({assign(x, sum), old}, 0);
}

TEST(PartAssigns, StoreTheirPartAlone) {
  const UOp cache = host_buffer({1 << 20, 64}), row = host_buffer({1, 64});
  EXPECT_EQ(text({assign(cache, {{5, 6}, {0, 64}}, neg(row))}),
            "kernel k0 in0 <- in1\n    r0:64: p0[r0 + 320] = neg(p1[r0])\n");
  const UOp block = host_buffer({2, 3});
  EXPECT_EQ(text({assign(cache, {{7, 9}, {1, 4}}, flip(block, {0}))}),
            "kernel k0 in0 <- in1\n"
            "    r0:2 r1:3: p0[r0*64 + r1 + 449] = p1[r0*-3 + r1 + 3]\n");
}

TEST(PartAssigns, AreAtASymbolicPlace) {
  const UOp at = variable("part_at", 0, 99), cache = host_buffer({4, 100, 8});
  const UOp rows = host_buffer({4, 1, 8});
  const Pairs part{{0, 4}, {Dim(at), Dim(at) + Dim(1)}, {0, 8}};
  EXPECT_EQ(text({assign(cache, part, rows)}),
            "kernel k0 in0 <- in1\n    r0:4 r1:8: p0[part_at*8 + r0*800 + r1] = p1[r0*8 + r1]\n");
}

TEST(PartAssigns, ANumberTakesNoMemoryBefore) {
  const UOp b = host_buffer({8, 4});
  const UOp zero = make(Op::Contiguous, DType::Void, {expand(reshape(number(0), {1, 1}), {1, 4})},
                        Placement{{"CPU"}});
  EXPECT_EQ(text({assign(b, {{2, 3}, {0, 4}}, zero)}),
            "kernel k0 in0\n    r0:4: p0[r0 + 8] = 0\n");
}

TEST(PartAssigns, UpdateInPlace) {
  const UOp b = host_buffer({8, 4});
  const Pairs row{{2, 3}, {0, 4}};
  EXPECT_EQ(text({assign(b, row, add(shrink(b, row), number(1)))}),
            "kernel k0 in0\n    r0:4: p0[r0 + 8] = add(p0[r0 + 8], 1)\n");
}

TEST(PartAssigns, WhatMovesWithinMemoryGoesThroughATemporaryOfThePart) {
  const UOp b = host_buffer({8, 4});
  EXPECT_EQ(text({assign(b, {{0, 2}, {0, 4}}, shrink(b, {{1, 3}, {0, 4}}))}),
            "kernel k0 t1 <- in0\n    r0:8: p0[r0] = p1[r0 + 4]\n"
            "kernel k1 in0 <- t1\n    r0:8: p0[r0] = p1[r0]\n");
}

TEST(PartAssigns, AreVersionsOneAfterTheOther) {
  const UOp b = host_buffer({4, 4});
  const Pairs first{{0, 1}, {0, 4}}, second{{1, 2}, {0, 4}};
  const UOp one = assign(b, first, add(shrink(b, first), number(1)));
  const UOp two = assign(one, second, shrink(one, first));
  EXPECT_EQ(text({two}),
            "kernel k0 in0 t1\n    v0 = add(p0[r0], 1)\n    r0:4: p0[r0] = v0\n"
            "    r0:4: p1[r0] = v0\nkernel k1 in0 <- t1\n    r0:4: p0[r0 + 4] = p1[r0]\n");
  expect_meaning({two}, 0);
}

TEST(PartAssigns, ReadersOfAnEarlierVersionComeFirst) {
  const UOp b = host_buffer({4, 4}), row = host_buffer({1, 4});
  const UOp one = assign(b, {{0, 1}, {0, 4}}, row), two = assign(one, {{2, 3}, {0, 4}}, row);
  const UOp old = reduce(Op::Add, b, {0, 1}), between = reduce(Op::Max, one, {0});
  const auto s = expect_meaning({two, old, between}, 1e-6);
  EXPECT_EQ(s->calls.size(), 4u) << to_text(*s);
}

TEST(PartAssigns, AReaderThatNeedsTheNewContentsKeepsTheOld) {
  const UOp b = host_buffer({4, 4}), row = host_buffer({1, 4});
  const UOp next = assign(b, {{0, 1}, {0, 4}}, row);
  const UOp both = mul(b, expand(reduce(Op::Add, next, {0}), b->shape));
  const auto s = expect_meaning({next, both}, 1e-6);
  EXPECT_EQ(s->calls[0].kind, CallKind::Copy) << to_text(*s);
}

TEST(PartAssigns, OfAWholeVersionAreStoredWithIt) {
  const UOp b = host_buffer({4, 4}), row = host_buffer({1, 4});
  const UOp whole = assign(b, add(b, number(1))), part = assign(whole, {{3, 4}, {0, 4}}, row);
  const auto s = expect_meaning({part}, 1e-6);
  EXPECT_EQ(s->calls.size(), 1u) << to_text(*s);
}

TEST(PartAssigns, ThatAreOverwrittenAreValues) {
  const UOp b = host_buffer({4, 4}), row = host_buffer({1, 4});
  const UOp part = assign(b, {{3, 4}, {0, 4}}, row), whole = assign(part, mul(part, part));
  const auto s = expect_meaning({whole}, 1e-6);
  EXPECT_EQ(s->calls.size(), 1u) << to_text(*s);
}

TEST(PartAssigns, EarlierVersionsAsSinksHaveTheirOwnMemory) {
  const UOp b = host_buffer({4, 4}), row = host_buffer({1, 4});
  const UOp one = assign(b, {{0, 1}, {0, 4}}, row), two = assign(one, {{2, 3}, {0, 4}}, row);
  const auto s = expect_meaning({one, two, b}, 0);
  EXPECT_EQ(s->buffers[s->sink_slots[0]].origin, BufferOrigin::Output);
  EXPECT_EQ(s->buffers[s->sink_slots[1]].origin, BufferOrigin::Input);
  EXPECT_EQ(s->buffers[s->sink_slots[2]].origin, BufferOrigin::Output);
}

TEST(Sinks, ViewsAndBuffersNeedNoKernel) {
  const UOp flat = host_buffer({64}), x = host_buffer({8, 16});
  const auto s = scheduled(
      {shrink(reshape(flat, {Dim(4), Dim(16)}), {{1, 3}, {0, 16}}), x, reshape(x, {Dim(128)})});
  EXPECT_EQ(to_text(*s), "view out0 <- in0 +64 bytes\n");
  EXPECT_EQ(s->sink_slots[1], s->sink_slots[2]);
  EXPECT_EQ(s->buffers[s->sink_slots[1]].origin, BufferOrigin::Input);
}

TEST(Sinks, OldContentsOfAnOverwrittenStorageAreCopied) {
  const UOp b = host_buffer({8});
  EXPECT_EQ(text({b, assign(b, add(b, number(1)))}),
            "copy out0 <- in0\nkernel k0 in0\n    r0:8: p0[r0] = add(p0[r0], 1)\n");
}

TEST(Sinks, ConstantsNeedADevice) {
  const UOp c = expand(reshape(number(3), {Dim(1)}), {Dim(5)});
  EXPECT_EQ(text({to_device(c, "CPU")}), "kernel k0 out0\n    r0:5: p0[r0] = 3\n");
  EXPECT_THROW(scheduled({c}), InvalidArgument);
}

TEST(Sinks, WhatIsMadeOfCountersAloneIsComputedWhereItIsRead) {
  const UOp x = host_buffer({6}, DType::I32);
  const UOp total = expand(reduce(Op::Add, iota(Dim(5), DType::I32), {0}), {Dim(6)});
  expect_meaning({alu(Op::Add, {x, total})}, 0);
}

TEST(Sinks, EmptyTensorsNeedNoCall) {
  const UOp empty = shrink(host_buffer({4, 6}), {{2, 2}, {0, 6}});
  EXPECT_TRUE(scheduled({contiguous(empty)})->calls.empty());
  const UOp sums = reduce(Op::Add, empty, {0});
  EXPECT_EQ(text({add(sums, host_buffer({1, 6}))}),
            "kernel k0 out0 <- in1\n    r0:6: p0[r0] = add(p1[r0], 0)\n");
}

// One kernel for all steps; those that need not be there run times an expression.
TEST(Loops, OfSymbolicLengthRunAsManySteps) {
  const Dim n(variable("n", 1, 3));
  const UOp state = place_of(DType::I32, {64}, "CPU"), row = place_of(DType::I32, {64}, "CPU");
  const UOp all = loop({.states = {state},
                        .initial = {host_buffer({64}, DType::I32)},
                        .next = {add(state, row)},
                        .rows = {row},
                        .sequences = {reshape(host_buffer({192}, DType::I32), {n, 64})},
                        .steps = n,
                        .reverse = false,
                        .device = "CPU"});
  const auto s = scheduled({contiguous(reshape(states_after(all, 0), {n, 64}))});
  EXPECT_EQ(to_text(*s),
            "copy t4 <- in0\n"
            "view t6 <- in1 +0 bytes\n"
            "kernel k0 t5 <- t4 t6\n"
            "    r0:64: p0[r0] = add(p1[r0], p2[r0])\n"
            "view t8 <- in1 +256 bytes\n"
            "kernel k0 t7 <- t5 t8 times where(1 < n, 1, 0)\n"
            "view t10 <- in1 +512 bytes\n"
            "kernel k0 t9 <- t7 t10 times where(2 < n, 1, 0)\n"
            "kernel k1 out0 <- t2\n"
            "    r0:n r1:64: p0[r0*64 + r1] = p1[r0*64 + r1 + 64]\n");
  ASSERT_EQ(s->variables.size(), 1u);
}

TEST(Copies, SourceIsRealizedOnItsDevice) {
  const UOp x = host_buffer({8, 16}), y = host_buffer({8, 16});
  const auto s = scheduled({relu(to_device(add(x, y), "GPU"))});
  ASSERT_EQ(s->calls.size(), 3u) << to_text(*s);
  EXPECT_EQ(s->calls[0].device, "CPU");
  EXPECT_EQ(s->calls[1].kind, CallKind::Copy);
  EXPECT_EQ(s->calls[1].device, "GPU");
  EXPECT_EQ(s->calls[2].device, "GPU");
  EXPECT_EQ(s->arenas.size(), 2u);
}

TEST(Cache, FindsTheSameGraphOverOtherStorages) {
  clear_schedule_cache();
  auto step = [] {
    return std::vector<UOp>{softmax(add(host_buffer({4, 8}), host_buffer({4, 8})))};
  };
  EXPECT_FALSE(schedule(step(), host_target).from_cache);
  const Scheduled again = schedule(step(), host_target);
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.inputs.size(), 2u);
  EXPECT_EQ(schedule_cache_stats().hits, 1u);
  EXPECT_EQ(schedule_cache_stats().misses, 1u);
}

TEST(Cache, TellsSharingPatternsApart) {
  clear_schedule_cache();
  const UOp a = host_buffer({8}), b = host_buffer({8});
  schedule(std::vector<UOp>{add(a, b)}, host_target);
  const Scheduled same = schedule(std::vector<UOp>{add(a, a)}, host_target);
  EXPECT_FALSE(same.from_cache);
  EXPECT_EQ(same.inputs.size(), 1u);
  schedule(std::vector<UOp>{mul(add(neg(a), neg(b)), neg(a))}, host_target);
  EXPECT_FALSE(
      schedule(std::vector<UOp>{mul(add(neg(a), neg(b)), neg(b))}, host_target).from_cache);
  EXPECT_TRUE(schedule(std::vector<UOp>{mul(add(neg(b), neg(a)), neg(b))}, host_target).from_cache);
}

TEST(Cache, DependsOnWhatOfTheTargetShapesKernels) {
  clear_schedule_cache();
  Target few = host_target("CPU");
  few.max_buffers = 3;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return few; };
  const std::vector<UOp> sinks{
      add(add(host_buffer({8}), host_buffer({8})), add(host_buffer({8}), host_buffer({8})))};
  EXPECT_EQ(kernel_count(*scheduled(sinks)), 1);
  EXPECT_EQ(kernel_count(*schedule(sinks, target_of).schedule), 3);
}

TEST(Bindings, ABufferAboveTheRangeIsRefusedByName) {
  Target bound = host_target("CPU");
  bound.max_binding_bytes = 64;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return bound; };
  const auto negated = [](int64_t n) { return std::vector<UOp>{neg(host_buffer({n}))}; };
  EXPECT_EQ(kernel_count(*schedule(negated(16), target_of).schedule), 1);
  try {
    schedule(negated(17), target_of);
    FAIL() << "no error";
  } catch (const Unsupported& e) {
    const std::string text = e.what();
    for (const char* part : {"68 bytes", "at most 64", "maxStorageBufferRange"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(kernel_count(*schedule(negated(17), host_target).schedule),
            1);  // the limit is in the key
}

// Schedules for kernels of few buffers, checks that they are, and what they compute on the host.
void expect_fits(const std::vector<UOp>& sinks, uint32_t max_buffers) {
  Target few = host_target("CPU");
  few.max_buffers = max_buffers;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return few; };
  for (const Call& c : schedule(sinks, target_of).schedule->calls)
    EXPECT_LE(c.args.size(), max_buffers);
  expect_meaning(sinks, 0, target_of);
}

TEST(FewBuffers, TwentyTensorsAreAddedAndJoined) {
  std::vector<UOp> x;
  for (int i = 0; i < 20; i++) x.push_back(host_buffer({3, 4}, DType::I32));
  UOp sum = x[0], joined;
  for (int i = 0; i < 20; i++) {
    if (i) sum = add(sum, x[size_t(i)]);
    const UOp part = pad(x[size_t(i)], {{Dim(3 * i), Dim(57 - 3 * i)}, {Dim(0), Dim(0)}});
    joined = joined ? add(joined, part) : part;
  }
  for (const uint32_t limit : {3u, 4u, 7u}) expect_fits({sum, joined}, limit);
}

// What is stored for a later reader is one buffer more for the one before it.
TEST(FewBuffers, ACutForOneReaderIsSeenByTheOthers) {
  const UOp a = host_buffer({8}), b = host_buffer({8}), c = host_buffer({8});
  const UOp shared = neg(mul(a, b));
  expect_fits({add(add(a, shared), b), add(shared, c)}, 3);
}

TEST(FewBuffers, SourcesOfOneOpAreStoredSideBySide) {
  for (const uint32_t limit : {3u, 4u}) {
    for (const DType t : {DType::F32, DType::I32, DType::Bool}) {
      const UOp c = host_buffer({5}, DType::Bool), x = host_buffer({5}, t), y = host_buffer({5}, t);
      expect_fits({where(c, x, y)}, limit);
    }
    std::vector<UOp> words;
    for (int i = 0; i < 4; i++) words.push_back(host_buffer({5}, DType::U32));
    expect_fits({make(Op::Threefry, DType::U32, words, int64_t{1})}, limit);
  }
}

TEST(Symbolic, ExtentsBecomeRangesAndVariables) {
  const Dim n(variable("n", 1, 8));
  const UOp x = shrink(host_buffer({8, 4}), {{Dim(0), n}, {Dim(0), Dim(4)}});
  const auto s = scheduled({mul(x, number(2))});
  ASSERT_EQ(s->variables.size(), 1u);
  EXPECT_EQ(s->calls.size(), 1u);
  EXPECT_EQ(s->buffers[s->sink_slots[0]].count, 32);
}

UOp product_of_rows(int64_t least, int64_t columns) {
  const Dim n(variable("n", least, 8));
  const UOp x = shrink(host_buffer({8, 64}), {{Dim(0), n}, {Dim(0), Dim(64)}});
  return matmul(x, host_buffer({64, columns}));
}

TEST(Symbolic, ProductsOfOneRowHaveAKernelOfTheirOwn) {
  EXPECT_EQ(text({product_of_rows(1, 64)}),
            "kernel k0 out0 <- in0 in1 times where(n < 2, 1, 0)\n"
            "    r0:64: p0[r0] = add_reduce(mul(p1[r1], p2[r0 + r1*64]); r1:64)\n"
            "kernel k1 out0 <- in0 in1 times where(n < 2, 0, 1)\n"
            "    r0:n r1:64: p0[r0*64 + r1] = add_reduce(mul(p1[r0*64 + r2], p2[r1 + r2*64]); "
            "r2:64)\n");
  // More rows than one at least, a matrix that is soon read.
  EXPECT_EQ(kernel_count(*scheduled({product_of_rows(2, 64)})), 1);
  EXPECT_EQ(kernel_count(*scheduled({product_of_rows(1, 8)})), 1);
}

}  // namespace
}  // namespace tuff::sched::testing
