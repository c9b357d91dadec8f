// ProgramCache: loaded kernels of one device by AST. Lowers, renders, compiles (all new kernels of
// a schedule together) and loads. Called by compile_linear. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"
#include "hcq/device.h"
#include "kernel/lowered.h"
#include "kernel/opt/neighbours.h"
#include "render/renderer.h"

namespace tuff::engine {

// A kernel ready to be launched, with what a launch needs to know of it.
struct LoadedKernel {
  std::string name;
  ir::UOp ast;
  std::vector<kernel::LinearKernel::Argument> buffers;
  std::vector<ir::UOp> variables;
  std::array<ir::Dim, 3> groups;
  kernel::Estimate estimate;
  uint64_t expected_ns = 0;              // of one launch at its largest
  uint64_t lower_ns = 0, render_ns = 0;  // what making it took the host
  kernel::BoundsReport bounds;
  uint32_t alignment = 1;  // bytes that each argument's address has to be a multiple of
  std::unique_ptr<hcq::Program> program;
  bool by_user() const { return ast->op == ir::Op::CustomKernel; }
  mutable bool dispatched = false;  // read and set through std::atomic_ref; see execute()
};

// A kernel with the values of those of its variables that stand for constants.
struct KernelUse {
  const LoadedKernel* kernel = nullptr;
  std::vector<int32_t> constants;  // by kernel::constant_word(); empty where there are none
};

// A kernel on its way to the compiler.
struct Rendered {
  ir::UOp ast;
  std::optional<kernel::Opts> opts;  // found by a search
  kernel::LinearKernel linear;
  render::Source source;
  uint64_t lower_ns = 0, render_ns = 0;
  uint32_t alignment = 1;
};

class ProgramCache {
 public:
  explicit ProgramCache(hcq::Device& device) : device_(device) {}
  // One per AST, same order; what is missing is compiled together. Throws CompileError,
  // Unsupported.
  std::vector<const LoadedKernel*> get(std::span<const ir::UOp> asts);
  // Likewise, but kernels that differ in constants alone are one from the second of them on, which
  // takes those that differ as arguments.
  std::vector<KernelUse> use(std::span<const ir::UOp> asts);
  size_t size() const;
  std::vector<const LoadedKernel*> all() const;  // in no order

 private:
  // What kernels that differ in constants alone have brought so far.
  struct Family {
    std::vector<ir::UOp> constants;  // of the first of them
    std::vector<bool> taken;            // those that another one had differently
  };
  // An AST to compile, and the one to search a schedule for: constants decide no schedule.
  struct Wanted {
    ir::UOp ast, searched;
    std::vector<int32_t> constants;
  };
  Wanted wanted(const ir::UOp& ast);
  void compile_missing(std::span<const Wanted> kernels);
  std::optional<kernel::Opts> searched(const ir::UOp& ast);
  void add(std::vector<Rendered> fresh);
  std::vector<render::Binary> compile(std::span<const render::Source> sources);
  hcq::Device& device_;
  mutable std::mutex mutex_;
  ir::UOpMap<std::unique_ptr<LoadedKernel>> kernels_;
  ir::UOpMap<Family> families_;  // by the AST with all of its free constants as arguments
};

}  // namespace tuff::engine
