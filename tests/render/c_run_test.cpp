// C text of hand-built kernels, compiled by the C compiler, loaded and run in this process; results
// against linear_eval.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "base/os.h"
#include "ir/kernel_floor.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"
#include "render/c.h"
#include "base/compilers.h"
#include "render/kernel_cases.h"
#include "render/linear_eval.h"
#include "render/random_kernel.h"

namespace tuff::render {
namespace {

// Links the objects into one shared library and opens it.
std::optional<os::Library> load_objects(std::span<const std::vector<uint8_t>* const> objects) {
  const std::string stem = fmt::format(
      "{}/tuff_render_{}", std::filesystem::temp_directory_path().string(), os::monotonic_ns());
  std::vector<std::string> argv = {*find_c_compiler(), "-shared", "-o", stem + ".so"};
  for (const std::vector<uint8_t>* o : objects) {
    argv.push_back(fmt::format("{}_{}.o", stem, argv.size()));
    os::write_file(argv.back(), *o);
  }
  argv.push_back("-lm");
  const os::ProcessResult linked = os::Process(argv).wait();
  EXPECT_EQ(linked.exit_code, 0) << linked.err;
  std::string why;
  auto library = os::Library::open({&argv[3], 1}, &why);
  EXPECT_TRUE(library) << why;
  for (size_t i = 3; i + 1 < argv.size(); ++i) std::filesystem::remove(argv[i]);
  return library;
}

// Compiles all kernels at once.
std::optional<os::Library> load_all(std::span<const kernel::LinearKernel> kernels,
                                    const Target& target = {}) {
  std::vector<Source> sources;
  for (const auto& k : kernels) sources.push_back(render_c(c_cpu(), k, target));
  const std::vector<Binary> binaries = compile_c_sources(c_cpu(), sources, {});
  std::vector<const std::vector<uint8_t>*> objects;
  for (const Binary& b : binaries)
    if (std::ranges::find(objects, b.bytes.get()) == objects.end()) objects.push_back(b.bytes.get());
  return load_objects(objects);
}

void run_c(const os::Library& library, const kernel::LinearKernel& k,
           const std::vector<uint8_t*>& memory, const std::vector<int32_t>& scalars = {},
           const Target& target = {}) {
  const Source source = render_c(c_cpu(), k, target);
  const auto fn = reinterpret_cast<CpuKernelFn>(library.symbol(source.symbol.c_str()));
  ASSERT_NE(fn, nullptr);
  std::vector<uint64_t> args(source.args.size_bytes() / 8);
  for (size_t i = 0; i < memory.size(); ++i) args[i] = reinterpret_cast<uint64_t>(memory[i]);
  if (!scalars.empty())
    std::memcpy(args.data() + memory.size(), scalars.data(), scalars.size() * 4);
  std::vector<std::byte> scratch(k.shared_bytes + kScratchAlignment);
  void* aligned = scratch.data();
  size_t room = scratch.size();
  std::align(kScratchAlignment, k.shared_bytes, aligned, room);
  for (uint32_t z = 0; z < k.groups[2].value(); ++z)
    for (uint32_t y = 0; y < k.groups[1].value(); ++y)
      for (uint32_t x = 0; x < k.groups[0].value(); ++x) fn(args.data(), x, y, z, aligned);
}

void run_c(const os::Library& library, const kernel::LinearKernel& k,
           std::vector<HostBuffer>& buffers, const std::vector<int32_t>& scalars = {},
           const Target& target = {}) {
  std::vector<uint8_t*> memory;
  for (HostBuffer& b : buffers) memory.push_back(b.data());
  run_c(library, k, memory, scalars, target);
}

void check(const std::vector<Case>& cases) {
  std::vector<kernel::LinearKernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto library = load_all(kernels);
  ASSERT_TRUE(library);
  uint32_t seed = 1;
  for (const Case& c : cases) {
    std::vector<HostBuffer> got = inputs(c.kernel, ++seed, c.values), want = got;
    run_c(*library, c.kernel, got, c.scalars);
    evaluate(c.kernel, want, c.scalars);
    const bool before = ::testing::Test::HasFailure();
    expect_equal(c.kernel, got, want);
    if (!before && ::testing::Test::HasFailure())
      std::puts(render_c(c_cpu(), c.kernel, {}).text.c_str());
  }
}

constexpr DType kMemoryTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,
                                  DType::I32,  DType::U32, DType::I64, DType::U64, DType::F16,
                                  DType::BF16, DType::F32, DType::F64};

TEST(RenderC, Elementwise) { check({{elementwise_kernel(), Values::Whole}}); }
TEST(RenderC, MatmulTile) { check({{matmul_kernel(), Values::Whole}}); }
// What the heuristics make of them for all types, and tiles of other widths and neighbours.
TEST(RenderC, Transposes) {
  using kernel::OptKind, kernel::testing::transpose_ast;
  const Target t = builtin_target("c-x86-64");
  std::vector<Case> cases;
  for (DType type : kMemoryTypes) cases.push_back({kernel::lower(transpose_ast(64, 48, type), t)});
  for (const int64_t n : {2, 4, 8, 16, 32})
    cases.push_back({kernel::lower_with(transpose_ast(64, 96), t,
                                        {{OptKind::Vector, 1, n}, {OptKind::Upcast, 0, n}})});
  cases.push_back({kernel::lower_with(transpose_ast(32, 48), t,
                                      {{OptKind::Vector, 1, 4},
                                       {OptKind::Upcast, 0, 4},
                                       {OptKind::Upcast, 0, 2},
                                       {OptKind::Upcast, 1, 2}})});
  check(cases);
}
// Stores past the caches take whole lines: memory may begin inside one all the same.
TEST(RenderC, StreamingStoresIntoMemoryThatBeginsInsideALine) {
  using kernel::OptKind;
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  t.l2_bytes = t.l3_bytes = 512;
  t.features.streaming_stores = true;
  for (const DType type : {DType::U8, DType::F16, DType::F32, DType::F64}) {
    const int64_t lanes = 64 / int64_t(size_bytes(type));
    const kernel::LinearKernel k = kernel::lower_with(
        kernel::testing::transpose_ast(256, 192, type), t,
        {{OptKind::Vector, 1, lanes}, {OptKind::Upcast, 0, lanes}, {OptKind::Swap, 0, 1}});
    ASSERT_NE(render_c(c_cpu(), k, {}).text.find("TUFF_STREAM("), std::string::npos);
    const auto library = load_all({&k, 1});
    ASSERT_TRUE(library);
    std::vector<HostBuffer> want = inputs(k, 5, Values::Any);
    const std::vector<HostBuffer> given = want;
    evaluate(k, want, {});
    for (const size_t inside : {size_t{0}, size_bytes(type), size_t{16}, 64 - size_bytes(type)}) {
      std::vector<HostBuffer> room = given, got = given;
      std::vector<uint8_t*> memory;
      for (HostBuffer& b : room) {
        b.resize(b.size() + 128);
        memory.push_back(b.data() + (64 - reinterpret_cast<uintptr_t>(b.data()) % 64) + inside);
        std::memcpy(memory.back(), given[memory.size() - 1].data(),
                    given[memory.size() - 1].size());
      }
      run_c(*library, k, memory);
      for (size_t i = 0; i < got.size(); ++i) std::memcpy(got[i].data(), memory[i], got[i].size());
      expect_equal(k, got, want);
    }
  }
}
// Tiles longer than they are wide, and copies of an operand that lies across the vectors.
TEST(RenderC, TransposesOfRectangles) {
  using kernel::OptKind, kernel::testing::transpose_ast, kernel::testing::matmul_ast;
  const Target t = builtin_target("c-x86-64");
  std::vector<Case> cases;
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{8, 4}, {32, 4}, {64, 16}, {16, 32}})
    cases.push_back({kernel::lower_with(transpose_ast(64, 128), t,
                                        {{OptKind::Vector, 1, n}, {OptKind::Upcast, 0, m}})});
  for (const uint32_t bytes : {16, 32, 64}) {
    Target wide = t;
    wide.vector_bytes = bytes;
    for (const int64_t n : {4, 16, 64})
      cases.push_back({kernel::lower_with(matmul_ast(12, 128, 48, true), wide,
                                          {{OptKind::Vector, 1, n},
                                           {OptKind::Upcast, 0, 6},
                                           {OptKind::Swap, 0, 1},
                                           {OptKind::Stage, 1, 1}}),
                       Values::Whole});
  }
  for (const int64_t rows : {30, 32})
    cases.push_back({kernel::lower_with(kernel::testing::matmul_across_ast(rows, 64, 48), t,
                                        {{OptKind::Vector, 1, 16},
                                         {OptKind::Upcast, 0, 6},
                                         {OptKind::Swap, 0, 1},
                                         {OptKind::Stage, 0, 0}}),
                     Values::Whole});
  check(cases);
}
// Columns of images with a border of zeros, at a short stride too: what a weight's gradient copies.
TEST(RenderC, TransposesBehindGates) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  const Target t = builtin_target("c-x86-64");
  constexpr int64_t kColumns = 64, kRows = 48, kBorder = 3;
  std::vector<Case> cases;
  const auto add = [&](DType type, int64_t stride, int64_t lanes, int64_t together) {
    ast::AstBuilder b;
    const ir::UOp i = b.loop(kRows), j = b.loop(kColumns);
    const int64_t pitch = kRows * stride - 2 * kBorder;
    const ir::UOp pixel = i * stride - kBorder;
    const ir::UOp inside = logical_and(ge(pixel, ir::index_const(0)),
                                       lt(pixel, ir::index_const(pitch)));
    const ir::UOp x = ast::load(1, kColumns * pitch, j * pitch + pixel, type, inside);
    cases.push_back({kernel::lower_with(
        ast::kernel_of({ast::store(0, kRows * kColumns, i * kColumns + j, x, {i, j})}), t,
        {{OptKind::Vector, 1, lanes}, {OptKind::Upcast, 0, together}})});
  };
  for (DType type : kMemoryTypes) add(type, 1, 16, 8);
  for (const int64_t stride : {1, 2, 3, 4, 5}) {
    for (const auto& [n, m] : {std::pair<int64_t, int64_t>{16, 4}, {8, 8}, {32, 8}, {64, 16}})
      add(DType::F32, stride, n, m);
    const std::string text = render_c(c_cpu(), cases.back().kernel, {}).text;
    EXPECT_EQ(text.find("__builtin_shufflevector") != std::string::npos, stride <= 4) << stride;
  }
  check(cases);
}
// An enlarged image with a border of zeros: neighbours share a pixel from an odd or an even one on.
TEST(RenderC, PartsOfVectorsFromAnywhere) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  const Target t = builtin_target("c-x86-64");
  constexpr int64_t kWidth = 70, kTaps = 3, kScale = 2;
  std::vector<Case> cases;
  for (DType type : kMemoryTypes) {
    for (const int64_t lanes : {4, 8, 16, 32, 64}) {
      ast::AstBuilder b;
      const ir::UOp tap = b.loop(kTaps), j = b.loop(kWidth);
      const ir::UOp pixel = j + tap - 1;
      const ir::UOp inside = logical_and(ge(pixel, ir::index_const(0)),
                                         lt(pixel, ir::index_const(kWidth)));
      const ir::UOp at = floordiv(pixel + kScale, ir::index_const(kScale)) - 1;
      const ir::UOp x = ast::load(1, kWidth / kScale, at, type, inside);
      cases.push_back({kernel::lower_with(
          ast::kernel_of({ast::store(0, kTaps * kWidth, tap * kWidth + j, x, {tap, j})}), t,
          {{OptKind::Vector, 1, lanes}})});
    }
  }
  const bool gathers = std::ranges::any_of(cases, [](const Case& c) {
    return render_c(c_cpu(), c.kernel, {}).text.find("gather_u32x") != std::string::npos;
  });
  EXPECT_TRUE(gathers);
  check(cases);
}
// Every n-th element of contiguous vectors, and elements that n lanes share, in whole vectors and
// in parts of them.
TEST(RenderC, WindowsOfEveryTypeAndWidth) {
  using kernel::OptKind, kernel::testing::pool_ast, kernel::testing::unpool_ast;
  const Target t = builtin_target("c-x86-64");
  std::vector<Case> cases;
  const auto add = [&](DType type, int64_t window, int64_t lanes) {
    for (const int64_t size : {int64_t{64}, int64_t{13}}) {
      if (lanes > 16 && size < 16) continue;
      cases.push_back({kernel::lower_with(pool_ast(3, size, window, type), t,
                                          {{OptKind::Vector, 1, lanes},
                                           {OptKind::Unroll, 2, window},
                                           {OptKind::Unroll, 3, window}})});
      cases.push_back({kernel::lower_with(unpool_ast(3, size, window, type), t,
                                          {{OptKind::Vector, 1, lanes}})});
    }
  };
  for (DType type : kMemoryTypes) add(type, 2, 16);
  for (const int64_t window : {2, 3, 4}) {
    for (const int64_t lanes : {2, 4, 8, 32, 64}) add(DType::F32, window, lanes);
  }
  add(DType::F32, 8, 16);
  check(cases);
}
// What a vector's numbers share is computed for several vectors at once: bytes beside each other, a
// choice by which of them it is, and lanes of fewer of these digits.
TEST(RenderC, ScalarsOfSeveralVectorsAreOneVector) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  constexpr int64_t kRows = 6, kBlocks = 5, kNumbers = 16;
  std::vector<Case> cases;
  const auto add = [&](DType type, int64_t groups) {
    ast::AstBuilder b;
    const ir::UOp row = b.loop(kRows), block = b.fold(kBlocks), group = b.fold(groups),
                  n = b.fold(kNumbers);
    const ir::UOp at = (row * kBlocks + block) * (2 * groups);
    const auto byte = [&](const ir::UOp& offset) {
      return cast(ast::load(1, kRows * kBlocks * 2 * groups, at + offset, type), DType::I32);
    };
    const ir::UOp four = ir::int_const(DType::I32, 4), low = ir::int_const(DType::I32, 15);
    const ir::UOp even = byte(group), odd = byte(group + groups);
    const ir::UOp chosen = alu(ir::Op::Where, {lt(group, ir::index_const(groups / 2)),
                                           alu(ir::Op::And, {even, low}),
                                           alu(ir::Op::Shr, {odd, four})});
    const ir::UOp scale = cast(chosen, DType::F32) * ir::constant(DType::F32, 0.5);
    const ir::UOp x = ast::load(2, kBlocks * groups * kNumbers,
                                (block * groups + group) * kNumbers + n);
    cases.push_back({kernel::lower_with(
        ast::kernel_of({ast::store(0, kRows, row,
                                   ast::reduce_over(ir::Op::Add, scale * x, {block, group, n}),
                                   {row})}),
        t, {{OptKind::Unroll, 3, kNumbers}, {OptKind::Unroll, 2, groups}}), Values::Whole});
    const std::string text = render_c(c_cpu(), cases.back().kernel, {}).text;
    EXPECT_EQ(text.find("TUFF_IN_MEMORY(") != std::string::npos, groups >= 4)
        << text;
  };
  for (const DType type : {DType::U8, DType::I8, DType::I16, DType::I32}) add(type, 8);
  for (const int64_t groups : {2, 4}) add(DType::U8, groups);
  check(cases);
}
// Bytes with two numbers of 4 bits: functions of one of them are looked up, whatever stands in the
// other bits, and those of both are not.
TEST(RenderC, NumbersOfFourBitsAreLookedUp) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  constexpr int64_t kRows = 3, kBytes = 64;
  std::vector<Case> cases;
  const auto number = [](int64_t v) { return ir::int_const(DType::I32, v); };
  const auto as_float = [](const ir::UOp& x) { return cast(x, DType::F32); };
  const auto add = [&](auto value, size_t lookups) {
    ast::AstBuilder b;
    const ir::UOp row = b.loop(kRows), n = b.fold(kBytes);
    const ir::UOp byte = cast(ast::load(1, kRows * kBytes, row * kBytes + n, DType::U8), DType::I32);
    const ir::UOp low = alu(ir::Op::And, {byte, number(15)}),
                  high = alu(ir::Op::And, {alu(ir::Op::Shr, {byte, number(4)}), number(15)});
    const ir::UOp scale = ast::load(2, kRows, row);
    const ir::UOp sum = ast::reduce_over(ir::Op::Add, value(low, high, scale), {n});
    cases.push_back({kernel::lower_with(ast::kernel_of({ast::store(0, kRows, row, sum, {row})}), t,
                                        {{OptKind::Unroll, 1, 16}}),
                     Values::Whole});
    const std::string text = render_c(c_cpu(), cases.back().kernel, t).text;
    size_t found = 0;
    for (size_t at = 0; (at = text.find("lookup_u32x16(", at)) != std::string::npos; at++) found++;
    EXPECT_EQ(found, lookups) << text;
    EXPECT_EQ(render_c(c_cpu(), cases.back().kernel, {}).text.find("lookup"), std::string::npos);
  };
  using U = ir::UOp;
  add([&](U low, U, U) { return as_float(low); }, 1);
  add([&](U low, U, U scale) { return as_float(low + number(-8)) * scale - scale; }, 1);
  add([&](U low, U high, U scale) { return as_float(low) * scale + as_float(high); }, 2);
  add([&](U low, U high, U) { return as_float(low * high); }, 0);
  add([&](U low, U, U) {
    return as_float(where(lt(low, number(5)), low * 3, alu(ir::Op::Xor, {low, number(9)})));
  }, 1);
  add([&](U low, U, U) {  // halves that are no number of 32 bits on the way
    return as_float(bitcast(cast(alu(ir::Op::Shl, {low, number(9)}), DType::U16), DType::F16));
  }, 1);
  // The renderer looks up for the Target that it is given.
  std::vector<kernel::LinearKernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto library = load_all(kernels, t);
  ASSERT_TRUE(library);
  for (const Case& c : cases) {
    std::vector<HostBuffer> got = inputs(c.kernel, 7, c.values), want = got;
    for (auto* buffers : {&got, &want})
      for (size_t i = 0; i < (*buffers)[1].size(); i++) (*buffers)[1][i] = uint8_t(i * 37 + 11);
    run_c(*library, c.kernel, got, {}, t);
    evaluate(c.kernel, want, {});
    expect_equal(c.kernel, got, want);
  }
}
TEST(RenderC, NestedLoopsWithSymbolicExtent) {
  check({{row_sum_kernel(), Values::Whole, {6}}, {row_sum_kernel(), Values::Whole, {4}}});
}
TEST(RenderC, GatesAndStrides) { check({{gated_kernel()}, {strided_kernel()}}); }
// Rows of which a vector's lanes have a part, and whose last elements stay what they are.
TEST(RenderC, PartsOfVectorsOfEveryTypeAndWidth) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  const Target t = builtin_target("c-x86-64");
  constexpr int64_t kRows = 3, kColumns = 67, kKept = 5;
  std::vector<Case> cases;
  for (DType type : kMemoryTypes) {
    for (const int64_t width : {2, 4, 8, 16, 32, 64}) {
      ast::AstBuilder b;
      const ir::UOp i = b.loop(kRows), j = b.loop(kColumns);
      const ir::UOp at = i * kColumns + j, stored = lt(j, ir::index_const(kColumns - kKept));
      const ir::UOp loaded = lt(ir::index_const(kKept), j);
      const ir::UOp x = ast::load(1, kRows * kColumns, at, type, loaded);
      cases.push_back({kernel::lower_with(
          ast::kernel_of({ast::store(0, kRows * kColumns, at, x, {i, j}, stored)}), t,
          {{OptKind::Vector, 1, width}})});
    }
  }
  check(cases);
}
// Vectors that each store every n-th element, all n of them in one invocation: gates of their own,
// gates that they share, and none.
TEST(RenderC, InterleavedStoresOfEveryTypeAndWidth) {
  using kernel::OptKind;
  namespace ast = kernel::testing;
  const Target t = builtin_target("c-x86-64");
  constexpr int64_t kRows = 3, kColumns = 67;
  std::vector<Case> cases;
  const auto add = [&](DType type, int64_t n, int64_t width) {
    for (const int gated : {0, 1, 2}) {
      ast::AstBuilder b;
      const ir::UOp i = b.loop(kRows), j = b.loop(kColumns), p = b.loop(n);
      const ir::UOp at = i * (kColumns * n) + j * n + p;
      const ir::UOp stored = gated == 0   ? ir::UOp()
                             : gated == 1 ? lt(j, ir::index_const(kColumns - 5))
                                          : lt(j * n + p, ir::index_const(kColumns * n - 5));
      const ir::UOp x =
          ast::load(1, kRows * kColumns * n, (i * n + p) * kColumns + j, type, ir::UOp());
      cases.push_back({kernel::lower_with(
          ast::kernel_of({ast::store(0, kRows * kColumns * n, at, x, {i, j, p}, stored)}), t,
          {{OptKind::Vector, 1, width}, {OptKind::Upcast, 2, n}})});
    }
  };
  for (DType type : kMemoryTypes) add(type, 2, 16);
  for (const int64_t n : {2, 3, 4}) {
    for (const int64_t width : {2, 4, 8, 16, 32}) add(DType::F32, n, width);
  }
  check(cases);

  ast::AstBuilder b;
  const ir::UOp j = b.loop(32), p = b.loop(2);
  const ir::UOp x = ast::load(1, 64, p * 32 + j, DType::F32, ir::UOp());
  const std::string text =
      render_c(c_cpu(),
               kernel::lower_with(ast::kernel_of({ast::store(0, 64, j * 2 + p, x, {j, p})}), t,
                                  {{OptKind::Vector, 0, 16}, {OptKind::Upcast, 1, 2}}),
               {})
          .text;
  EXPECT_EQ(text.find("put_u32x16((u32"), std::string::npos) << text;
}
TEST(RenderC, Bools) { check({{bool_kernel(1)}, {bool_kernel(4)}, {bool_kernel(8)}}); }
TEST(RenderC, Integers) { check(integer_cases()); }
TEST(RenderC, Floats) { check(float_cases()); }
TEST(RenderC, CastsOfEveryPair) { check(cast_cases(kMemoryTypes)); }
TEST(RenderC, RandomKernels) {
  std::vector<Case> cases;
  for (uint32_t seed = 0; seed < 100; ++seed) cases.push_back({random_kernel(seed)});
  check(cases);
}

// Matrices of a thread: by the CPU's registers where it has them (else both are the same), and in C.
void run_as_it_is(const kernel::LinearKernel& k, kernel::testing::Buffers& buffers,
                  const os::Library& library) {
  std::vector<uint8_t*> memory;
  for (kernel::testing::Buffer& b : buffers) memory.push_back(reinterpret_cast<uint8_t*>(b.data()));
  run_c(library, k, memory);
}
void run_by_registers(const kernel::LinearKernel& k, kernel::testing::Buffers& buffers) {
  os::allow_matrix_registers();
  run_as_it_is(k, buffers, *load_all({&k, 1}));
}
void run_without_registers(const kernel::LinearKernel& k, kernel::testing::Buffers& buffers) {
  const std::string text = render_c(c_cpu(), k, {}).text;
  const std::vector<std::vector<uint8_t>> objects =
      compile_c(std::vector{"#undef __AMX_BF16__\n" + c_cpu().prelude.of(text) + text});
  run_as_it_is(k, buffers, *load_objects(std::vector{&objects[0]}));
}
TEST(RenderC, MatricesOfAThread) {
  namespace kt = kernel::testing;
  for (const bool transposed : {false, true}) {
    const ir::UOp ast = kt::pair_product_ast({.m = 64, .n = 32, .k = 96, .transposed = transposed});
    const kernel::LinearKernel k = kernel::lower(ast, kt::matrix_cpu(), {});
    ASSERT_NE(k.opts.find("matrix(0,0) upcast"), std::string::npos) << k.opts;
    kt::expect_same(ast, k, 2e-3, "by registers", run_by_registers);
    kt::expect_same(ast, k, 2e-3, "without", run_without_registers);
  }
}
TEST(RenderC, LocalIdsAreRefused) {
  EXPECT_THROW(render_c(c_cpu(), shared_sum_kernel(), {}), Unsupported);
}
TEST(RenderC, EqualKernelsShareSymbolAndObject) {
  const std::vector<Source> sources = {render_c(c_cpu(), matmul_kernel(), {}),
                                       render_c(c_cpu(), elementwise_kernel(), {}),
                                       render_c(c_cpu(), matmul_kernel(), {})};
  const std::vector<Binary> binaries = compile_c_sources(c_cpu(), sources, {});
  EXPECT_EQ(binaries[0].symbol, binaries[2].symbol);
  EXPECT_EQ(binaries[0].bytes, binaries[2].bytes);
  EXPECT_NE(binaries[0].symbol, binaries[1].symbol);
}
TEST(RenderC, CompileErrorNamesTheKernel) {
  Source bad = render_c(c_cpu(), elementwise_kernel(), {});
  bad.text += "nonsense";
  try {
    compile_c_sources(c_cpu(), {&bad, 1}, {});
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("e_4_8"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tuff::render
