// Launches and copies as the queue enqueues them, and ExecGraph: a run of them that is launched by
// one call, as often as wanted. Kernels take the address of their argument block, so a graph is
// told of launch sizes alone, and of those that have changed. Made by the queue's encoder. Knows
// nothing of what is in a block.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "devices/cuda/program.h"
#include "hcq/dependencies.h"

namespace tuff::devices::cuda {

using Groups = std::array<uint32_t, 3>;

struct CudaLaunch {
  const CudaProgram* program = nullptr;
  CUdeviceptr block = 0;  // its argument block's address
  Groups groups{1, 1, 1};
  std::array<int32_t, 3> group_slots{-1, -1, -1};

  Groups sizes(std::span<const uint64_t> slots) const;
  bool is_symbolic() const;
};
struct CudaCopy {
  CUdeviceptr dst = 0, src = 0;
  size_t size_bytes = 0;
};
using Work = std::variant<CudaLaunch, CudaCopy>;

inline bool is_empty(const Groups& g) { return g[0] == 0 || g[1] == 0 || g[2] == 0; }

class ExecGraph {
 public:
  // `order` says which come after which. The context is current.
  ExecGraph(std::shared_ptr<Context> context, std::span<const Work> work,
            const hcq::Dependencies& order);
  ~ExecGraph();
  ExecGraph(const ExecGraph&) = delete;
  // A launch of 0 workgroups, which CUDA does not allow, is left out. The context is current.
  void launch(CUstream stream, std::span<const uint64_t> slots);

 private:
  struct Symbolic {
    CUgraphNode node = nullptr;
    CudaLaunch launch;
    Groups set;  // what the graph was told last
    bool enabled = true;
  };
  CUgraphNode add(const CudaLaunch& launch, std::span<const CUgraphNode> after);
  CUgraphNode add(const CudaCopy& copy, std::span<const CUgraphNode> after);
  void build(std::span<const Work> work, const hcq::Dependencies& order);
  void update(Symbolic& s, const Groups& groups);
  void destroy() noexcept;

  std::shared_ptr<Context> context_;
  CUgraph graph_ = nullptr;  // its nodes are named as long as sizes change
  CUgraphExec exec_ = nullptr;
  std::vector<Symbolic> symbolic_;
};

}  // namespace tuff::devices::cuda
