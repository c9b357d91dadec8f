// SPIR-V modules of hand-built kernels: every one passes SPIRV-Tools' validator for the Vulkan
// environment of its version, with what each Target has and lacks.
#include <gtest/gtest.h>

#include <spirv-tools/libspirv.hpp>

#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"
#include "render/random_kernel.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"
#include "render/spirv.h"
#include "render/valid_spirv.h"

namespace tuff::render {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string valid(const kernel::LinearKernel& k, const Target& t) {
  return expect_valid_spirv(k, t);
}

Target lavapipe() { return builtin_target("spirv-lavapipe"); }
Target generic() { return builtin_target("spirv-generic"); }
Target bound(Target t) {  // by descriptors
  t.features.device_address = false;
  return t;
}

constexpr DType kMemoryTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16,
                                  DType::U16,  DType::I32, DType::U32, DType::I64,
                                  DType::U64,  DType::F16, DType::F32, DType::F64};

using ir::UOp;

TEST(RenderSpirv, StructuralKernelsAreValidEverywhere) {
  for (const Target& t : {lavapipe(), generic(), bound(lavapipe()), bound(generic())})
    for (const auto& k : {elementwise_kernel(), matmul_kernel(), row_sum_kernel(), gated_kernel(),
                          strided_kernel(), shared_sum_kernel(), uniform_kernel()})
      valid(k, t);
}

TEST(RenderSpirv, RandomKernelsAreValid) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Target t = seed % 2 ? lavapipe() : generic();
    valid(random_kernel(seed), t);
    valid(random_kernel(seed), bound(t));
  }
}

// Each missing alone, and all of them: what kernel makes of 8-, 16- and 64-bit types.
TEST(RenderSpirv, EmulatedTypesAreValid) {
  using F = TargetFeatures;
  std::vector<Target> targets{generic(), bound(generic()), bound(lavapipe())};
  for (bool F::* feature : {&F::i8, &F::i16, &F::i64, &F::f16, &F::storage8, &F::storage16}) {
    targets.push_back(lavapipe());
    targets.back().features.*feature = false;
    if (!targets.back().features.f16 || !targets.back().features.i16)
      targets.back().features.f16 = targets.back().features.f16_casts = false;
  }
  for (DType d : kMemoryTypes) {
    if (d == DType::F64) continue;
    for (const Target& t : targets) {
      for (const auto& c : kernel::testing::op_cases(d)) valid(kernel::lower(c.ast, t), t);
      for (const auto& c : kernel::testing::storage_cases(d)) valid(kernel::lower(c.ast, t), t);
    }
    for (const auto& c : kernel::testing::cast_cases(d, std::span(kMemoryTypes).first(11)))
      valid(kernel::lower(c.ast, generic()), generic());
  }
}

// AMD's compiler adds a distance of 32 bits to an address in scalar registers by itself, where it
// sees that the distance is unsigned.
TEST(RenderSpirv, DistancesFromBuffersAreUnsigned) {
  using namespace kernel::testing;
  const auto text_of = [](int64_t count, const Target& t) {
    AstBuilder b;
    const UOp i = b.loop(1024);
    const UOp ast = kernel_of({store(0, count, i + 1, load(1, count, i), {i})});
    return valid(kernel::lower_with(ast, t, {{kernel::OptKind::Local, 0, 32}}), t);
  };
  Target t = builtin_target("aco-gfx1100");
  t.renderer = "spirv";
  EXPECT_EQ(count(text_of(2048, t), "OpConvertUToPtr"), 2u) << text_of(2048, t);
  EXPECT_EQ(count(text_of(2048, t), "OpUConvert %ulong"), 1u) << "the same of both, and 4 bytes";
  EXPECT_EQ(count(text_of(int64_t(1) << 31, t), "OpConvertUToPtr"), 0u) << "8 GiB";
  t.features.i64 = false;
  EXPECT_EQ(count(text_of(2048, t), "OpConvertUToPtr"), 0u);
}

// The steps between two barriers of a staged product.
TEST(RenderSpirv, ShortLoopsAreUnrolledByTheDriver) {
  using namespace kernel::testing;
  const auto unrolled = [](const UOp& ast, const Target& t) {
    const std::string text = valid(kernel::lower(ast, t), t);
    return std::pair(count(text, "OpLoopMerge"), count(text, " Unroll"));
  };
  Target t = builtin_target("aco-gfx1100");
  t.renderer = "spirv";
  EXPECT_EQ(unrolled(matmul_ast(1024, 1024, 1024), t), (std::pair<size_t, size_t>{2, 1}));
  EXPECT_EQ(unrolled(sum_ast(4096, 100000), t).second, 0u);
}

TEST(RenderSpirv, ShufflesAreValidOnEveryTier) {
  using namespace kernel::testing;
  for (const Target& t : {lavapipe(), bound(lavapipe())}) {
    const std::string text = valid(kernel::lower(softmax_ast(8, 256), t), t);
    EXPECT_GT(count(text, "OpGroupNonUniformShuffle"), 0u);
    EXPECT_GT(count(text, "SubgroupLocalInvocationId"), 0u);
  }
}

// Four bytes of one invocation are one plain store; bytes that share a word with another
// invocation's are changed by two atomics.
TEST(RenderSpirv, BytesAreStoredAsWordsOrByMask) {
  using namespace kernel::testing;
  for (int64_t n : {64, 61}) {
    AstBuilder b;
    const UOp i = b.loop(n), x = load(1, n, i, DType::U8);
    const std::string text =
        valid(kernel::lower(kernel_of({store(0, n, i, x + x, {i})}), generic()), generic());
    EXPECT_EQ(count(text, "OpAtomicAnd"), n == 64 ? 0u : 1u) << text;
    EXPECT_EQ(count(text, "OpAtomicOr"), n == 64 ? 0u : 1u);
    EXPECT_EQ(count(text, "OpCapability"), 2u);
  }
}

TEST(RenderSpirv, NeighbouringLanesAreOneAccess) {
  const std::string text = valid(elementwise_kernel(), lavapipe());
  EXPECT_EQ(count(text, "OpLoad %v4float"), 4u) << text;  // 2 inputs of 8 lanes
  EXPECT_EQ(count(text, "OpCompositeConstruct %v4float"), 2u);
  EXPECT_EQ(count(text, "Fma"), 8u);
}

// As 32-bit words, up to 16 bytes, from where an offset is proven to begin a word; else bytes as
// 16-bit words.
TEST(RenderSpirv, NarrowNeighboursAreWords) {
  using namespace kernel::testing;
  const Target amd = tuff::testing::target_of("amd-rdna3-igpu");
  struct Expected {
    DType t;
    int64_t rows_apart, lanes, begin;
    size_t quads, pairs, words, singles, halves = 0;  // loads
  };
  for (const Expected& e : {Expected{DType::F16, 32, 16, 0, 2, 0, 0, 0},
                            {DType::F16, 32, 4, 0, 0, 1, 0, 0},
                            {DType::BF16, 34, 8, 0, 1, 0, 0, 0},
                            {DType::I16, 32, 8, 1, 0, 1, 1, 2},
                            {DType::U16, 33, 8, 0, 0, 0, 0, 8},
                            {DType::U8, 32, 16, 0, 1, 0, 0, 0},
                            {DType::I8, 32, 8, 0, 0, 1, 0, 0},
                            {DType::Bool, 32, 8, 2, 0, 0, 1, 0, 2},
                            {DType::U8, 34, 8, 0, 0, 0, 0, 0, 4},
                            {DType::U8, 33, 8, 0, 0, 0, 0, 8}}) {
    AstBuilder b;
    const UOp i = b.loop(6), j = b.loop(e.lanes);
    const UOp x = load(1, 8 * e.rows_apart, i * e.rows_apart + j + e.begin, e.t);
    const UOp ast = kernel_of({store(0, 6 * e.lanes, i * e.lanes + j, x, {i, j})});
    const auto k = kernel::lower_with(ast, amd, {{kernel::OptKind::Vector, 1, e.lanes}});
    const std::string text = valid(k, amd);
    const std::string element = e.t == DType::F16                           ? "%half "
                                : e.t == DType::BF16 || e.t == DType::U16   ? "%ushort "
                                : e.t == DType::I16                         ? "%short "
                                : e.t == DType::I8                          ? "%char "
                                                                            : "%uchar ";
    EXPECT_EQ(count(text, "OpLoad %v4uint "), e.quads) << text;
    EXPECT_EQ(count(text, "OpLoad %v2uint "), e.pairs) << text;
    EXPECT_EQ(count(text, "OpLoad %uint "), e.words) << text;
    EXPECT_EQ(count(text, "OpLoad " + element), e.singles) << text;
    const bool bytes = size_bytes(e.t) == 1;
    EXPECT_EQ(bytes ? count(text, "OpLoad %ushort ") : 0, e.halves) << text;
    EXPECT_EQ(count(text, "OpStore"), static_cast<size_t>(e.lanes) * size_bytes(e.t) / 16 +
                                          (e.lanes * size_bytes(e.t) % 16 != 0))
        << text;
    Target without = amd;
    without.features.i16 = without.features.f16 = without.features.i8 = false;
    for (const Target& t : {bound(amd), without}) {
      const std::string single =
          valid(kernel::lower_with(ast, t, {{kernel::OptKind::Vector, 1, e.lanes}}), t);
      EXPECT_EQ(count(single, "OpLoad %v4uint "), 0u) << single;
      EXPECT_EQ(count(single, "OpLoad %v2uint "), 0u) << single;
    }
  }
}

// Where a gate is false the buffer's first elements are read: as many as there are.
TEST(RenderSpirv, GatedNarrowNeighboursAreReadWhereTheyAreThere) {
  using namespace kernel::testing;
  const Target amd = tuff::testing::target_of("amd-rdna3-igpu");
  for (const int64_t there : {8, 6}) {
    AstBuilder b;
    const UOp i = b.loop(2), j = b.loop(8);
    const UOp x = load(1, there, i * 8 + j, DType::F16, ir::lt(i, ir::index_const(1)));
    const UOp ast = kernel_of({store(0, 16, i * 8 + j, x, {i, j})});
    const std::string text =
        valid(kernel::lower_with(ast, amd, {{kernel::OptKind::Vector, 1, 8}}), amd);
    EXPECT_EQ(count(text, "OpLoad %v4uint "), there == 8 ? 1u : 0u) << text;
  }
}

TEST(RenderSpirv, RandomMovesAreValid) {
  const Target amd = tuff::testing::target_of("amd-rdna3-igpu");
  for (const Target& t : {lavapipe(), bound(lavapipe()), amd})
    for (const DType d : kMemoryTypes)
      for (uint32_t seed = 0; seed < 10; ++seed) valid(random_move(seed, d), t);
}

// Of four windows of three elements the six that there are, whatever is masked.
TEST(RenderSpirv, WhatWindowsShareIsLoadedOnce) {
  using namespace kernel::testing;
  using kernel::OptKind;
  const Target t = lavapipe();
  for (const bool gated : {false, true}) {
    AstBuilder b;
    const UOp row = b.loop(6), i = b.loop(8), j = b.fold(3);
    const UOp gate = gated ? ir::lt(i + j, ir::index_const(9)) : UOp();
    const UOp sum =
        reduce_over(ir::Op::Add, load(1, 60, row * 10 + i + j, DType::F32, gate), {j});
    const UOp ast = kernel_of({store(0, 48, row * 8 + i, sum, {row, i})});
    const kernel::LinearKernel k =
        kernel::lower_with(ast, t, {{OptKind::Upcast, 1, 4}, {OptKind::Unroll, 2, 3}});
    const std::string text = valid(k, t);
    EXPECT_EQ(count(text, "OpLoad %float ") + 4 * count(text, "OpLoad %v4float") +
                  2 * count(text, "OpLoad %v2float"),
              6u)
        << text;
  }
}

TEST(RenderSpirv, GatedLoadsDoNotBranchGatedStoresDo) {
  const std::string text = valid(gated_kernel(), lavapipe());
  EXPECT_EQ(count(text, "OpSelectionMerge"), 8u);  // one per lane of the store
  EXPECT_GE(count(text, "OpSelect "), 16u);
}

// Where the driver makes products with a 0 that it knows 0, no float 0 is a constant of the module.
TEST(RenderSpirv, ZerosAreHiddenFromDriversThatFoldThemAlone) {
  Target honest = lavapipe();
  honest.features.known_zero_products = true;
  for (const auto& k : {gated_kernel(), matmul_kernel(), row_sum_kernel(), uniform_kernel()}) {
    const std::string hidden = valid(k, lavapipe()), plain = valid(k, honest);
    EXPECT_EQ(count(hidden, "OpConstant %float 0\n"), 0u) << hidden;
    EXPECT_EQ(count(hidden, "BuiltIn NumWorkgroups"), 1u);
    EXPECT_EQ(count(plain, "BuiltIn NumWorkgroups"), 0u) << plain;
  }
}

// A computed f16 passes through an integer that the driver does not know, into f16 and out of it;
// one that was loaded needs no hiding.
TEST(RenderSpirv, HalvesAreHiddenFromDriversThatFoldTheirCasts) {
  using namespace kernel::testing;
  Target folding = lavapipe();
  folding.features.folds_f16_casts = true;
  const UOp i = ir::range(ir::index_const(16), 0, ir::AxisKind::Loop);
  const auto text_of = [&](const UOp& value, const Target& t) {
    return valid(kernel::lower_with(kernel_of({store(0, 16, i, value, {i})}), t, {}), t);
  };
  const UOp rounded = ir::cast(ir::cast(load(1, 16, i), DType::F16), DType::F32);
  EXPECT_EQ(count(text_of(rounded, folding), "OpBitwiseOr %ushort"), 2u)
      << text_of(rounded, folding);
  EXPECT_EQ(count(text_of(rounded, lavapipe()), "OpBitwiseOr %ushort"), 0u);
  const UOp loaded = ir::cast(load(1, 16, i, DType::F16), DType::F32);
  EXPECT_EQ(count(text_of(loaded, folding), "OpBitwiseOr %ushort"), 0u);
}

TEST(RenderSpirv, WideQuotientsAreHiddenFromDriversThatLoseThem) {
  using namespace kernel::testing;
  Target losing = lavapipe();
  losing.features.loses_wide_quotients = true;
  const UOp i = ir::range(ir::index_const(16), 0, ir::AxisKind::Loop);
  const auto hidden = [&](ir::Op op, DType t, const Target& target) {
    const UOp x = load(1, 16, i, t), three = ir::constant(Scalar::of_int(t, 3));
    const UOp sum = ir::alu(op, {x, three}) + three;
    const std::string text =
        valid(kernel::lower_with(kernel_of({store(0, 16, i, sum, {i})}), target, {}), target);
    return count(text, "OpBitwiseOr");
  };
  for (const DType t : {DType::I64, DType::U64}) {
    for (const ir::Op op : {ir::Op::IDiv, ir::Op::IMod}) {
      EXPECT_EQ(hidden(op, t, losing), 1u);
      EXPECT_EQ(hidden(op, t, lavapipe()), 0u);
    }
  }
  EXPECT_EQ(hidden(ir::Op::IDiv, DType::I32, losing), 0u);
}

TEST(RenderSpirv, OnlyTheBaseCapabilitiesWhereNothingElseIsUsed) {
  const std::string text = valid(matmul_kernel(), generic());
  EXPECT_EQ(count(text, "OpCapability"), 2u) << text;
  EXPECT_EQ(count(text, "OpLoopMerge"), 1u);
  EXPECT_EQ(count(text, "OpVariable %_ptr_Function_float Function"), 32u);
}

// Vulkan 1.1 without any extension; a word of the block per scalar and buffer, and no vector, whose
// alignment a view may not have.
TEST(RenderSpirv, DescriptorsNeedStorageBuffersAlone) {
  const std::string text = valid(row_sum_kernel(), bound(generic()));
  EXPECT_EQ(count(text, "OpCapability"), 1u) << text;
  EXPECT_EQ(count(text, "OpExtension "), 0u);
  EXPECT_EQ(count(text, " DescriptorSet 0"), 3u);  // two buffers and the block
  EXPECT_EQ(count(text, " Aliased"), 2u);
  EXPECT_EQ(count(text, "PhysicalStorageBuffer"), 0u);
  EXPECT_EQ(count(valid(elementwise_kernel(), bound(lavapipe())), "OpLoad %v4float"), 0u);
}

TEST(RenderSpirv, SharedMemoryAndBarrier) {
  const std::string text = valid(shared_sum_kernel(), generic());
  EXPECT_EQ(count(text, "OpControlBarrier"), 1u);
  EXPECT_EQ(count(text, "LocalSize 64 1 1"), 1u);
}

TEST(RenderSpirv, EveryOpOfEveryDtype) {
  Target narrow = lavapipe();  // storage of every width, arithmetic of 32 bits alone
  narrow.features.i8 = narrow.features.i16 = narrow.features.f16 = false;
  for (const Target& t : {lavapipe(), narrow})
    for (int width : {1, 4, 8}) {
      valid(bool_kernel(width), t);
      for (DType d : kMemoryTypes) {
        if (is_int(d)) valid(integer_kernel(d, width), t);
        if (is_float(d) && (d != DType::F16 || t.features.f16)) valid(float_kernel(d, width), t);
      }
    }
}

TEST(RenderSpirv, CastsOfEveryPair) {
  Target narrow = lavapipe();
  narrow.features.i8 = narrow.features.i16 = narrow.features.f16 = false;
  Target old = lavapipe();
  old.arch = "spirv1.3";
  for (const Target& t : {lavapipe(), narrow, old})
    for (DType from : kMemoryTypes)
      for (DType to : kMemoryTypes)
        for (int width : {1, 8})
          if (from != to) valid(cast_kernel(from, to, width), t);
}

TEST(RenderSpirv, WhatADeviceLacksIsNamed) {
  const auto message = [](const kernel::LinearKernel& k) -> std::string {
    try {
      render_spirv(k, generic());
    } catch (const Unsupported& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message(integer_kernel(DType::I8, 1)).find("int8"), std::string::npos);
  EXPECT_NE(message(float_kernel(DType::F64, 1)).find("float64"), std::string::npos);
  EXPECT_NE(message(integer_kernel(DType::I64, 1)).find("int64"), std::string::npos);
}

TEST(RenderSpirv, IsDeterministic) {
  EXPECT_EQ(render_spirv(matmul_kernel(), lavapipe()).words,
            render_spirv(matmul_kernel(), lavapipe()).words);
}

TEST(Registry, FindsRenderersByName) {
  EXPECT_STREQ(renderer_of(lavapipe()).name, "spirv");
  Target unknown = lavapipe();
  unknown.renderer = "wgsl";
  EXPECT_THROW(renderer_of(unknown), InvalidArgument);
  Target null;
  null.renderer = "null";
  const Source s = renderer_of(null).render(matmul_kernel(), null);
  const auto binaries = renderer_of(null).compile({&s, 1}, null);
  EXPECT_EQ(binaries.at(0).format, BinaryFormat::None);
  EXPECT_EQ(binaries.at(0).args.buffer_count, 3u);
  EXPECT_EQ(render_spirv(row_sum_kernel(), lavapipe()).args.scalar_count, 1u);
}

TEST(Registry, TextOfSpirvIsADisassemblyOrWords) {
  const std::string text = to_text(renderer_of(lavapipe()).render(matmul_kernel(), lavapipe()));
  EXPECT_TRUE(text.find("OpEntryPoint") != std::string::npos ||
              text.find("07230203") != std::string::npos);
}

}  // namespace
}  // namespace tuff::render
