#include "render/amdgpu_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernel/ast_run.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"
#include "render/amdgpu_kernels.h"
#include "render/kernel_cases.h"

namespace tuff::render {
namespace {

using kernel::testing::Buffers;

std::array<uint32_t, 3> launch(const kernel::LinearKernel& k) {
  std::array<uint32_t, 3> out;
  for (size_t i = 0; i < 3; ++i) out[i] = static_cast<uint32_t>(k.groups[i].value());
  return out;
}

// Kernels rendered and compiled together; what expect_same runs finds its own among them.
class Compiled {
 public:
  Compiled(const std::vector<kernel::LinearKernel>& kernels, const Target& t,
           const MakeRunner& make) {
    for (const kernel::LinearKernel& k : kernels) sources_.push_back(renderer_of(t).render(k, t));
    runner_ = make(sources_, t);
    for (size_t i = 0; i < kernels.size(); ++i) source_of_[to_text(kernels[i])] = &sources_[i];
    now = this;
  }
  ~Compiled() { now = nullptr; }
  template <class Memory>
  void run(const kernel::LinearKernel& k, std::vector<Memory>& buffers,
           const std::vector<int32_t>& scalars = {}) const {
    std::vector<std::span<uint8_t>> bytes;
    for (Memory& b : buffers) bytes.emplace_back(reinterpret_cast<uint8_t*>(b.data()), b.size());
    runner_->run(*source_of_.at(to_text(k)), bytes, scalars, launch(k));
  }
  static void run_now(const kernel::LinearKernel& k, Buffers& buffers) { now->run(k, buffers); }

 private:
  static const Compiled* now;
  std::vector<Source> sources_;
  std::unique_ptr<KernelRunner> runner_;
  std::map<std::string, const Source*> source_of_;
};
const Compiled* Compiled::now = nullptr;

std::vector<kernel::LinearKernel> lowered(const std::vector<AstCase>& cases, const Target& t) {
  std::vector<kernel::LinearKernel> out;
  for (const AstCase& c : cases) out.push_back(kernel::lower(c.ast, t));
  return out;
}

}  // namespace

void expect_shapes(const Target& t, const MakeRunner& make) {
  const std::vector<AstCase> cases = shaped_cases();
  const std::vector<kernel::LinearKernel> kernels = lowered(cases, t);
  const Compiled compiled(kernels, t, make);
  int multiplied = 0;  // by matrix instructions
  for (const kernel::LinearKernel& k : kernels)
    multiplied += std::any_of(k.ops.begin(), k.ops.end(),
                              [](const ir::UOp& u) { return u->op == ir::Op::MatrixMulAdd; });
  EXPECT_GE(multiplied, t.matrix_shapes.empty() ? 0 : t.subgroup_size == 64 ? 3 : 4) << t.arch;
  for (size_t i = 0; i < cases.size(); ++i)
    kernel::testing::expect_same(cases[i].ast, kernels[i], cases[i].tolerance,
                                 t.arch + ": " + cases[i].name, Compiled::run_now);
}

void expect_every_op_of_every_dtype(const Target& t, const MakeRunner& make) {
  std::vector<kernel::testing::DtypeCase> cases;
  for (const DType type : kMemoryTypes) {
    for (const auto& c : kernel::testing::op_cases(type)) cases.push_back(c);
    for (const auto& c : kernel::testing::storage_cases(type)) cases.push_back(c);
    for (const auto& c : kernel::testing::cast_cases(type, kMemoryTypes)) cases.push_back(c);
  }
  std::vector<kernel::LinearKernel> kernels;
  for (const auto& c : cases) kernels.push_back(kernel::lower(c.ast, t));
  const Compiled compiled(kernels, t, make);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Buffers start = kernel::testing::full_range_buffers(cases[i].ast, 5);
    Buffers got = start, want = start;
    kernel::testing::run_ast(cases[i].ast, want);
    compiled.run(kernels[i], got);
    kernel::testing::expect_equal(cases[i], start, got, want, "the runner");
  }
}

void expect_hand_made_lists(const Target& t, const MakeRunner& make) {
  std::vector<Case> cases = {{elementwise_kernel(), Values::Whole},
                             {matmul_kernel(), Values::Whole},
                             {row_sum_kernel(), Values::Whole, {5}},
                             {gated_kernel()},
                             {strided_kernel()},
                             {shared_sum_kernel(), Values::Whole},
                             {bool_kernel(4)}};
  for (const Case& c : integer_cases()) cases.push_back(c);
  for (const Case& c : float_cases()) cases.push_back(c);
  std::vector<kernel::LinearKernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const Compiled compiled(kernels, t, make);
  uint32_t seed = 1;
  for (const Case& c : cases) {
    std::vector<HostBuffer> got = inputs(c.kernel, ++seed, c.values), want = got;
    compiled.run(c.kernel, got, c.scalars);
    evaluate(c.kernel, want, c.scalars);
    expect_equal(c.kernel, got, want);
  }
}

}  // namespace tuff::render
