// The gfx1100 machine code of the project's own kernels, over all dtypes: interpreted, it computes
// what the kernels mean, and every instruction of it reads as llvm-objdump reads it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "emu/llvm_tools.h"
#include "emu/rdna/code_cache.h"
#include "emu/rdna/code_object.h"
#include "render/amdgpu_runs.h"
#include "render/c.h"
#include "render/c_dialect.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint64_t kKernarg = 0x200000000;

// What all runs of this program have executed, and the code that they had.
struct Seen {
  std::map<std::string, uint64_t> counts;
  std::set<std::vector<uint32_t>> instructions;
  uint64_t executed = 0;
};
Seen seen;

void remember_code(std::span<const uint8_t> code) {
  std::vector<uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), words.size() * 4);
  for (size_t at = 0; at < words.size();) {
    const Instruction i = decode(std::span(words).subspan(at));
    const auto first = words.begin() + ptrdiff_t(at);
    seen.instructions.emplace(first, first + i.size_bytes / 4);
    at += i.size_bytes / 4;
  }
}

class Interpreted : public render::KernelRunner {
 public:
  Interpreted(std::span<const render::Source> sources, const Target& t) {
    uint64_t next = 0x100000000;
    for (render::Binary& binary : compile_c_sources(render::c_amdgpu(), sources, t)) {
      auto& object = objects_[binary.bytes.get()];
      if (!object) {
        object = std::make_unique<CodeObject>(*binary.bytes, next);
        next += (object->image().size() + 0xFFFF) / 0x10000 * 0x10000;
        memory_.map(object->address(), object->image(), false);
        remember_code(object->code());
      }
      kernels_[binary.symbol] = object->kernel(binary.symbol);
      kept_.push_back(std::move(binary));
    }
  }

  void run(const render::Source& source, std::span<const std::span<uint8_t>> buffers,
           std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) override {
    const Kernel& kernel = kernels_.at(source.symbol);
    std::vector<uint8_t> block(source.args.size_bytes());
    for (size_t k = 0; k < buffers.size(); ++k) {
      const auto address = reinterpret_cast<uint64_t>(buffers[k].data());
      std::memcpy(block.data() + 8 * k, &address, 8);
      if (!buffers[k].empty()) memory_.map(address, buffers[k]);
    }
    for (size_t k = 0; k < scalars.size(); ++k) {
      std::memcpy(block.data() + source.args.scalar_offset(uint32_t(k)), &scalars[k], 4);
    }
    memory_.map(kKernarg, block, false);
    Launch launch = launch_of(kernel, kKernarg);
    launch.groups = groups;
    launch.group_size = source.local;
    launch.seed = ++seed_;
    launch.instruction_budget = 50'000'000;
    Dispatch dispatch(launch, memory_, code_);
    while (dispatch.step()) {}
    const Outcome& outcome = dispatch.outcome();
    EXPECT_EQ(to_text(outcome.findings), "") << source.name;
    EXPECT_TRUE(outcome.finished) << source.name;
    for (const auto& [name, count] : outcome.counts) seen.counts[name] += count;
    seen.executed += outcome.instructions;
    memory_.unmap(kKernarg);
    for (const auto& b : buffers) memory_.unmap(reinterpret_cast<uint64_t>(b.data()));
  }

 private:
  std::map<const void*, std::unique_ptr<CodeObject>> objects_;
  std::map<std::string, Kernel> kernels_;
  std::vector<render::Binary> kept_;
  RangeMemory memory_;
  CodeCache code_;
  uint64_t seed_ = 0;
};

std::unique_ptr<render::KernelRunner> interpreted(std::span<const render::Source> sources,
                                                  const Target& t) {
  return std::make_unique<Interpreted>(sources, t);
}

void expect_llvm_reads_the_same() {
  const std::vector<std::vector<uint32_t>> cases(seen.instructions.begin(),
                                                 seen.instructions.end());
  const auto theirs = testing::disassemble(cases);
  for (size_t k = 0; k < cases.size(); ++k) {
    EXPECT_EQ(theirs[k].value_or("nothing"), to_text(decode(cases[k])))
        << fmt::format("{:08x}", fmt::join(cases[k], " "));
  }
}

// One test, as the count is of all kernels.
TEST(ProjectKernels, ComputeWhatTheyMeanAndReadAsLlvmReadsThem) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  const auto begin = std::chrono::steady_clock::now();
  const Target t = builtin_target("amdgpu-gfx1100");
  render::expect_shapes(t, interpreted);
  render::expect_every_op_of_every_dtype(t, interpreted);
  render::expect_hand_made_lists(t, interpreted);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} mnemonics executed, {} instructions in {:.1f} s; {} distinct ones decoded\n",
             seen.counts.size(), seen.executed, took.count(), seen.instructions.size());
  EXPECT_GE(seen.counts.size(), 200u);
  expect_llvm_reads_the_same();
}

}  // namespace
}  // namespace tuff::emu::rdna
