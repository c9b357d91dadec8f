// What a SPIR-V module says of its own origin: the kernel's name, its linear list as source text,
// and for the instructions of every op the line of that text; and which arithmetic it lets a
// driver fuse.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>

#include <spirv-tools/libspirv.hpp>
#include <spirv/unified1/spirv.hpp>

#include "render/random_kernel.h"
#include "render/sample_kernels.h"
#include "render/spirv.h"
#include "render/spirv_module.h"

namespace tuff::render {
namespace {

struct Instruction {
  uint32_t op;
  std::vector<uint32_t> operands;
};

std::vector<Instruction> instructions(const std::vector<uint32_t>& words) {
  std::vector<Instruction> out;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto first = words.begin() + static_cast<ptrdiff_t>(at);
    out.push_back({words[at] & 0xffff, {first + 1, first + (words[at] >> 16)}});
  }
  return out;
}

std::string text_at(const Instruction& i, size_t operand) {
  std::string out;
  for (size_t w = operand; w < i.operands.size(); ++w)
    for (int byte = 0; byte < 4; ++byte) {
      const char c = static_cast<char>(i.operands[w] >> (8 * byte));
      if (!c) return out;
      out += c;
    }
  ADD_FAILURE() << "a text without its end";
  return out;
}

std::string source_text(const std::vector<Instruction>& all) {
  std::string out;
  for (const Instruction& i : all) {
    if (i.op == spv::OpSource) out = text_at(i, 3);
    if (i.op == spv::OpSourceContinued) out += text_at(i, 0);
  }
  return out;
}

// The op of a printed line: "  %12 = muladd f32 ..." -> "muladd".
std::string op_of(const std::string& line) {
  const size_t at = line.find(" = ");
  if (at == std::string::npos) return "";
  const size_t begin = at + 3, end = line.find(' ', begin);
  return line.substr(begin, end == std::string::npos ? end : end - begin);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// Instructions that only these ops give.
const std::map<uint32_t, std::set<std::string>> kFrom = {
    {spv::OpFMul, {"mul"}},
    {spv::OpFAdd, {"add", "reduce"}},
    {spv::OpControlBarrier, {"barrier"}},
    {spv::OpLoopMerge, {"range"}},
    {spv::OpSLessThan, {"range", "cmplt"}},
    {spv::OpStore, {"store"}},
    {spv::OpLoad, {"load", "special"}},
};

bool ends_block(uint32_t op) {
  return op == spv::OpBranch || op == spv::OpBranchConditional || op == spv::OpReturn;
}

struct Walked {
  std::set<uint32_t> lines;         // that some instruction has
  std::map<uint32_t, int> checked;  // instructions of kFrom
};

// Walks the function; every line must lie in the text and name an op that gives the instruction.
Walked walk(const std::vector<Instruction>& all, const std::vector<std::string>& lines) {
  Walked seen;
  uint32_t line = 0;
  bool in_function = false;
  for (const Instruction& i : all) {
    in_function |= i.op == spv::OpFunction;
    if (i.op == spv::OpLine) {
      EXPECT_TRUE(in_function);
      EXPECT_NE(i.operands[1], line) << "an OpLine that says nothing new";
      EXPECT_GE(i.operands[1], kernel::text_line(0));
      EXPECT_LE(i.operands[1], lines.size());
      EXPECT_EQ(i.operands[2], 0u);
      line = i.operands[1];
      continue;
    }
    if (i.op == spv::OpNoLine) {
      EXPECT_NE(line, 0u) << "an OpNoLine that says nothing new";
      line = 0;
      continue;
    }
    if (line && line <= lines.size()) {
      seen.lines.insert(line);
      const auto known = kFrom.find(i.op);
      if (known != kFrom.end()) {
        EXPECT_TRUE(known->second.contains(op_of(lines[line - 1])))
            << "opcode " << i.op << " on line " << line << ": " << lines[line - 1];
        ++seen.checked[i.op];
      }
    }
    if (ends_block(i.op)) line = 0;
  }
  return seen;
}

std::vector<kernel::LinearKernel> samples() {
  std::vector<kernel::LinearKernel> out = {
      elementwise_kernel(), matmul_kernel(),     row_sum_kernel(), gated_kernel(),
      strided_kernel(),     shared_sum_kernel(), uniform_kernel()};
  for (uint32_t seed = 0; seed < 100; ++seed) out.push_back(random_kernel(seed));
  return out;
}

TEST(SpirvDebug, TheSourceIsTheLinearListUnderTheKernelsName) {
  for (const kernel::LinearKernel& k : samples()) {
    const auto all = instructions(render_spirv(k, builtin_target("spirv-lavapipe")).words);
    EXPECT_EQ(source_text(all), kernel::to_text(k));
    uint32_t file = 0;
    for (const Instruction& i : all) {
      if (i.op == spv::OpString) {
        EXPECT_EQ(text_at(i, 1), k.name);
        file = i.operands[0];
      }
      if (i.op == spv::OpSource) {
        EXPECT_EQ(i.operands[2], file);
      }
      if (i.op == spv::OpLine) {
        EXPECT_EQ(i.operands[0], file);
      }
    }
    EXPECT_NE(file, 0u);
  }
}

TEST(SpirvDebug, LinesNameTheOpThatAnInstructionIsOf) {
  std::map<uint32_t, int> checked;
  for (const kernel::LinearKernel& k : samples()) {
    SCOPED_TRACE(k.name);
    const auto lines = lines_of(kernel::to_text(k));
    ASSERT_EQ(lines.size(), k.ops.size() + 1);
    const Walked seen =
        walk(instructions(render_spirv(k, builtin_target("spirv-lavapipe")).words), lines);
    for (const auto& [op, n] : seen.checked) checked[op] += n;
    for (size_t i = 0; i < k.ops.size(); ++i) {  // what always gives an instruction has a line
      if (k.ops[i]->op != ir::Op::Store && k.ops[i]->op != ir::Op::Barrier) continue;
      EXPECT_TRUE(seen.lines.contains(kernel::text_line(i))) << lines[i + 1];
    }
  }
  for (const auto& [op, from] : kFrom) EXPECT_GT(checked[op], 0) << "opcode " << op;
}

TEST(SpirvDebug, ALineEndsWithItsOp) {
  const auto all =
      instructions(render_spirv(elementwise_kernel(), builtin_target("spirv-generic")).words);
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[all.size() - 3].op, spv::OpNoLine);  // before OpReturn, OpFunctionEnd
}

// One instruction holds 65,535 words; a character of several bytes is not cut in two.
TEST(SpirvDebug, ALongSourceIsContinued) {
  std::string text;
  while (text.size() < 700'000) text += "%1 = value of a name such as β\n";
  SpirvModule m(5);
  m.capability(spv::CapabilityShader);
  m.memory_model(spv::AddressingModelLogical, spv::MemoryModelGLSL450);
  m.source("long", text);
  m.begin_function();
  m.execution_mode(m.entry(), spv::ExecutionModeLocalSize, {1, 1, 1});
  m.end_function();
  const auto all = instructions(m.words());
  EXPECT_EQ(source_text(all), text);
  int continued = 0;
  for (const Instruction& i : all) {
    if (i.op != spv::OpSource && i.op != spv::OpSourceContinued) continue;
    continued += i.op == spv::OpSourceContinued;
    const std::string piece = text_at(i, i.op == spv::OpSource ? 3 : 0);
    EXPECT_NE(static_cast<uint8_t>(piece[0]) & 0xc0, 0x80);
  }
  EXPECT_EQ(continued, 2);
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  EXPECT_TRUE(tools.Validate(m.words()));
}

// ---- contraction -----------------------------------------------------------------------------

struct Arithmetic {
  int all = 0, kept_apart = 0;
};

Arithmetic arithmetic(const kernel::LinearKernel& k) {
  Arithmetic out;
  std::set<uint32_t> decorated;
  for (const Instruction& i :
       instructions(render_spirv(k, builtin_target("spirv-lavapipe")).words)) {
    if (i.op == spv::OpDecorate && i.operands[1] == spv::DecorationNoContraction)
      decorated.insert(i.operands[0]);
    if (i.op != spv::OpFMul && i.op != spv::OpFAdd && i.op != spv::OpFSub) continue;
    ++out.all;
    out.kept_apart += decorated.contains(i.operands[1]);
  }
  return out;
}

TEST(SpirvContraction, EveryStepIsRoundedByItself) {
  const Arithmetic kept = arithmetic(uniform_kernel());
  EXPECT_GE(kept.all, 3);
  EXPECT_EQ(kept.kept_apart, kept.all);
}

}  // namespace
}  // namespace tuff::render
