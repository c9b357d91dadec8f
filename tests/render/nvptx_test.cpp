// The NVPTX dialect: its text, that clang makes PTX of it for every architecture, and what that
// says of rounding and of workgroups. What the PTX computes is tests/emu's matter and the device's.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "base/compilers.h"
#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "base/ptxas.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"
#include "render/amdgpu_kernels.h"
#include "render/c_nvptx.h"
#include "render/kernel_cases.h"
#include "render/linear_builder.h"
#include "render/renderer.h"

namespace tuff::render {
namespace {

void compare(const std::string& file, const std::string& text) {
  const std::string path = TUFF_SOURCE_DIR "/tests/render/golden/" + file;
  if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
  EXPECT_EQ(os::read_text(path), text) << file;
}

Target sm_86() { return builtin_target("nvptx-sm_86"); }
Source rendered(const kernel::LinearKernel& k, const Target& t) {
  return renderer_of(t).render(k, t);
}
std::string ptx_of(const Binary& b) { return {b.bytes->begin(), b.bytes->end()}; }
std::string ptx_of(const kernel::LinearKernel& k, const Target& t) {
  const Source source = rendered(k, t);
  return ptx_of(renderer_of(t).compile({&source, 1}, t)[0]);
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RenderNvptx, Goldens) {
  struct {
    const char* file;
    kernel::LinearKernel kernel;
  } const kernels[] = {
      {"elementwise.nvptx.cl", elementwise_kernel()},
      {"row_sum.nvptx.cl", row_sum_kernel()},
      {"shared_sum.nvptx.cl", shared_sum_kernel()},
      {"shuffles.nvptx.cl", shuffle_kernel()},
      {"matmul.nvptx.cl", kernel::lower(kernel::testing::matmul_ast(64, 64, 64), sm_86())},
  };
  for (const auto& k : kernels) compare(k.file, to_text(rendered(k.kernel, sm_86())));
}

// Of x[local * stride + (local / 72) * blocks + first + lane] in lanes of `t`.
std::string neighbours(DType t, int64_t stride, int64_t blocks, int64_t first, int lanes) {
  LinearBuilder b("neighbours");
  const UOp out = b.buffer(t, 8, false, true), x = b.buffer(t, 1 << 16, true, false);
  const UOp l = b.local(0, 32), v = b.lane(lanes, AxisKind::Lane);
  const UOp part = b.times(b.alu(Op::IDiv, {l, b.i32(72)}), blocks);
  const UOp at = b.plus(b.plus(b.times(l, stride), part), b.plus(v, b.i32(first)));
  b.store(b.index(out, v), b.load(b.index(x, at)));
  const std::string text = rendered(b.k, sm_86()).text;
  const size_t claim = text.find("  TUFF_ALIGNED(");
  if (claim == std::string::npos) return "none";
  const size_t comma = text.find(", ", claim);
  return text.substr(comma + 2, text.find(')', comma) - comma - 2);
}

TEST(RenderNvptx, ClaimsTheAlignmentThatDivisorsProve) {
  EXPECT_EQ(neighbours(DType::I32, 4, 288, 0, 4), "16");
  EXPECT_EQ(neighbours(DType::I32, 64, 288, 5, 4), "16");  // of the part without the constant
  EXPECT_EQ(neighbours(DType::I32, 4, 6, 0, 4), "8");
  EXPECT_EQ(neighbours(DType::I32, 4, 9, 0, 4), "none");
  EXPECT_EQ(neighbours(DType::I32, 3, 288, 0, 4), "none");
  EXPECT_EQ(neighbours(DType::I32, 4, 288, 0, 1), "none");  // no neighbours
  EXPECT_EQ(neighbours(DType::U8, 12, 8, 0, 4), "4");
  EXPECT_EQ(neighbours(DType::F64, 4, 2, 0, 2), "16");
}

TEST(RenderNvptx, BlockSizeStandsBeforeTheBody) {
  const std::string two = ".visible .entry ka(\n\t.param .u64 a\n)\n{\n\tret;\n}\n"
                          ".visible .entry kab(\n\t.param .u64 a\n)\n{\n\tret;\n}\n";
  const std::string second = with_block_size(two, "kab", {32, 2, 1});
  const std::string text = with_block_size(second, "ka", {8, 1, 1});
  EXPECT_EQ(text, ".visible .entry ka(\n\t.param .u64 a\n)\n.reqntid 8, 1, 1\n{\n\tret;\n}\n"
                  ".visible .entry kab(\n\t.param .u64 a\n)\n.reqntid 32, 2, 1\n{\n\tret;\n}\n");
  EXPECT_THROW(with_block_size(two, "k", {1, 1, 1}), CompileError);
}

TEST(RenderNvptx, CompilerIsFoundOrItsRemedyNamed) {
  const EnvOverride none(Env::TUFF_CLANG, "/nonexistent/clang");
  const std::string text = "";
  const std::string said =
      error_of<Unsupported>([&] { compile_nvptx({&text, 1}, "sm_86"); });
  EXPECT_TRUE(has(said, "TUFF_CLANG") && has(said, "NVPTX")) << said;
}

class RenderNvptxCompiled : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(why_no_nvptx_compiler(), ""); }
};

std::vector<Target> architectures() {
  std::vector<Target> out;
  for (const std::string& name : builtin_target_names())
    if (builtin_target(name).renderer == "nvptx") out.push_back(builtin_target(name));
  return out;
}

// Drivers refuse PTX newer than themselves: no architecture asks for a newer one than it needs.
TEST_F(RenderNvptxCompiled, EveryArchitectureTakesEveryForm) {
  const std::map<std::string, std::pair<std::string, std::string>> wanted = {
      {"sm_75", {"7.8", "sm_75"}},   {"sm_80", {"7.8", "sm_80"}},  {"sm_86", {"7.8", "sm_86"}},
      {"sm_89", {"7.8", "sm_89"}},   {"sm_90a", {"8.0", "sm_90a"}}, {"sm_100", {"7.8", "sm_90"}},
      {"sm_120", {"7.8", "sm_90"}}};
  for (const Target& t : architectures()) {
    std::vector<Source> sources;
    for (const kernel::LinearKernel& k : gpu_kernels()) sources.push_back(rendered(k, t));
    for (const AstCase& c : shaped_cases()) sources.push_back(rendered(kernel::lower(c.ast, t), t));
    const std::vector<Binary> binaries = renderer_of(t).compile(sources, t);
    ASSERT_EQ(binaries.size(), sources.size());
    for (const Binary& b : binaries) {
      ASSERT_EQ(b.format, BinaryFormat::Ptx);
      const std::string ptx = ptx_of(b);
      EXPECT_TRUE(has(ptx, ".version " + wanted.at(t.arch).first + "\n")) << t.arch;
      EXPECT_TRUE(has(ptx, ".target " + wanted.at(t.arch).second + "\n")) << t.arch;
      const size_t entry = ptx.find(".entry " + b.symbol + "(");
      const std::string head = ptx.substr(entry, ptx.find("\n{", entry) - entry);
      EXPECT_TRUE(has(head, fmt::format(".reqntid {}, {}, {}", b.local[0], b.local[1], b.local[2])))
          << head;
      EXPECT_EQ(std::ranges::count(head, ','), 2) << "one parameter: " << head;
    }
  }
  EXPECT_EQ(architectures().size(), wanted.size());
}

TEST_F(RenderNvptxCompiled, EveryOpOfEveryDtype) {
  const Target t = sm_86();
  std::vector<Source> sources;
  const auto add = [&](const std::vector<kernel::testing::DtypeCase>& cases) {
    for (const auto& c : cases) sources.push_back(rendered(kernel::lower(c.ast, t), t));
  };
  for (const DType type : kMemoryTypes) {
    add(kernel::testing::op_cases(type));
    add(kernel::testing::storage_cases(type));
    add(kernel::testing::cast_cases(type, kMemoryTypes));
  }
  EXPECT_GE(sources.size(), 300u);
  for (const Binary& b : renderer_of(t).compile(sources, t)) {
    const std::string ptx = ptx_of(b);
    // No library is linked, denormals stay, and nothing is left to the assembler to fuse or to
    // approximate: what it may round otherwise has no rounding named.
    for (const char* part : {".extern", ".ftz", ".approx", ".full", "\tmul.f32", "\tadd.f32",
                             "\tsub.f32", "\tmul.f64", "\tadd.f64", "\tsub.f64", "\tmul.f16",
                             "\tadd.f16", "\tsub.f16"})
      EXPECT_FALSE(has(ptx, part)) << part << " in " << b.name;
  }
}

// A MulAdd is fused; a product and a sum are not, though they stand side by side.
TEST_F(RenderNvptxCompiled, OnlyMulAddIsFused) {
  const std::string uniform = ptx_of(uniform_kernel(), sm_86());
  EXPECT_TRUE(has(uniform, "mul.rn.f32")) << uniform;
  EXPECT_FALSE(has(uniform, "fma.")) << uniform;
  const auto matmul = kernel::lower(kernel::testing::matmul_ast(64, 64, 64), sm_86());
  EXPECT_TRUE(has(ptx_of(matmul, sm_86()), "fma.rn.f32"));
}

// Tensor cores: a warp's products of small matrices, from Ampere on.
TEST_F(RenderNvptxCompiled, ProductsOfNarrowFactorsAreMatrixInstructions) {
  std::map<std::string, std::string> wanted = {
      {"narrow product", "m16n8k16.row.col.f32.f16.f16.f32"},
      {"narrow product bf16", "m16n8k16.row.col.f32.bf16.bf16.f32"},
      {"narrow product int8", "m16n8k32.row.col.s32.s8.s8.s32"},
      {"narrow product uint8", "m16n8k32.row.col.s32.u8.u8.s32"}};
  for (const AstCase& c : shaped_cases()) {
    const auto it = wanted.find(c.name);
    if (it == wanted.end()) continue;
    const std::string ptx = ptx_of(kernel::lower(c.ast, sm_86()), sm_86());
    EXPECT_TRUE(has(ptx, "mma.sync.aligned." + it->second)) << c.name;
    const Target turing = builtin_target("nvptx-sm_75");
    EXPECT_FALSE(has(ptx_of(kernel::lower(c.ast, turing), turing), "mma.sync")) << c.name;
    wanted.erase(it);
  }
  EXPECT_TRUE(wanted.empty());
}

TEST_F(RenderNvptxCompiled, QuotientsAndRootsAreThoseOfTheStandard) {
  const std::string ptx = ptx_of(float_kernel(DType::F32, 1), sm_86());
  for (const char* part : {"div.rn.f32", "sqrt.rn.f32"}) EXPECT_TRUE(has(ptx, part)) << part;
}

TEST_F(RenderNvptxCompiled, ErrorNamesTheKernel) {
  Source bad = rendered(elementwise_kernel(), sm_86());
  bad.text += "nonsense";
  const std::string said =
      error_of<CompileError>([&] { renderer_of(sm_86()).compile({&bad, 1}, sm_86()); });
  EXPECT_TRUE(has(said, "e_4_8")) << said;
}

// What ptxas says of kernels, in one line.
std::string summary(const std::vector<PtxasKernel>& kernels) {
  uint32_t most = 0, spilled = 0;
  for (const PtxasKernel& k : kernels) {
    most = std::max(most, k.registers);
    spilled += k.spill_store_bytes > 0;
  }
  return fmt::format("{} kernels, {} registers at most, {} with spills", kernels.size(), most,
                     spilled);
}

std::vector<Source> assembled_sources(const Target& t) {
  std::vector<Source> sources;
  for (const kernel::LinearKernel& k : gpu_kernels()) sources.push_back(rendered(k, t));
  for (const AstCase& c : shaped_cases()) sources.push_back(rendered(kernel::lower(c.ast, t), t));
  if (t.arch != "sm_86" && t.arch != "sm_90a" && t.arch != "sm_120") return sources;
  for (const DType type : kMemoryTypes) {
    for (const auto& c : kernel::testing::op_cases(type))
      sources.push_back(rendered(kernel::lower(c.ast, t), t));
    for (const auto& c : kernel::testing::cast_cases(type, kMemoryTypes))
      sources.push_back(rendered(kernel::lower(c.ast, t), t));
  }
  return sources;
}

// NVIDIA's assembler takes the text of every kernel, where a developer has it, and spills nothing.
TEST_F(RenderNvptxCompiled, AssemblesWithNvidiasAssembler) {
  if (!find_ptxas())
    GTEST_SKIP() << "no ptxas (scripts/ptxas fetches one, TUFF_PTXAS names it): the PTX was not "
                    "assembled";
  for (const Target& t : architectures()) {
    const std::vector<Binary> binaries = renderer_of(t).compile(assembled_sources(t), t);
    std::map<const void*, const Binary*> modules;
    std::set<std::string> symbols;
    for (const Binary& b : binaries) {
      modules.emplace(b.bytes.get(), &b);
      symbols.insert(b.symbol);
    }
    std::vector<PtxasKernel> kernels;
    for (const auto& [bytes, b] : modules) {
      for (const PtxasKernel& k : run_ptxas(ptx_of(*b), t.arch)) kernels.push_back(k);
    }
    EXPECT_EQ(kernels.size(), symbols.size()) << t.arch;
    for (const PtxasKernel& k : kernels) {
      EXPECT_EQ(k.spill_store_bytes, 0u) << t.arch << " " << k.name;
      EXPECT_GT(k.registers, 0u) << k.name;
    }
    std::cout << t.arch << ": " << summary(kernels) << "\n";
  }
}

}  // namespace
}  // namespace tuff::render
