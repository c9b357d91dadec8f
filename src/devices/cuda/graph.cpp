#include "devices/cuda/graph.h"

#include <algorithm>

namespace tuff::devices::cuda {
namespace {

// `parameters` is read while the call lasts: a graph copies what it names.
CUDA_KERNEL_NODE_PARAMS node_parameters(const CudaLaunch& l, const Groups& groups,
                                        void** parameters) {
  const std::array<uint32_t, 3>& local = l.program->local();
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = l.program->function();
  p.gridDimX = groups[0], p.gridDimY = groups[1], p.gridDimZ = groups[2];
  p.blockDimX = local[0], p.blockDimY = local[1], p.blockDimZ = local[2];
  p.kernelParams = parameters;
  return p;
}

}  // namespace

Groups CudaLaunch::sizes(std::span<const uint64_t> slots) const {
  Groups out = groups;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (group_slots[axis] >= 0)
      out[axis] = static_cast<uint32_t>(slots[static_cast<size_t>(group_slots[axis])]);
  }
  return out;
}

bool CudaLaunch::is_symbolic() const {
  return std::ranges::any_of(group_slots, [](int32_t slot) { return slot >= 0; });
}

ExecGraph::ExecGraph(std::shared_ptr<Context> context, std::span<const Work> work,
                     const hcq::Dependencies& order)
    : context_(std::move(context)) {
  try {
    build(work, order);
  } catch (...) {
    destroy();
    throw;
  }
}

ExecGraph::~ExecGraph() {
  const Current current(*context_, std::nothrow);
  if (current) destroy();
}

void ExecGraph::destroy() noexcept {
  const Context& c = *context_;
  if (c.abandoned()) return;
  if (exec_) c.release(c.api.GraphExecDestroy(exec_), "cuGraphExecDestroy");
  if (graph_) c.release(c.api.GraphDestroy(graph_), "cuGraphDestroy");
}

void ExecGraph::build(std::span<const Work> work, const hcq::Dependencies& order) {
  const Context& c = *context_;
  c.check(c.api.GraphCreate(&graph_, 0), "cuGraphCreate");
  std::vector<CUgraphNode> nodes, after;
  for (size_t i = 0; i < work.size(); ++i) {
    after.clear();
    for (const uint32_t a : order.after[i]) after.push_back(nodes[a]);
    nodes.push_back(std::visit([&](const auto& w) { return add(w, after); }, work[i]));
    const auto* launch = std::get_if<CudaLaunch>(&work[i]);
    if (launch && launch->is_symbolic()) symbolic_.push_back({nodes.back(), *launch, {1, 1, 1}});
  }
  c.check(c.api.GraphInstantiate(&exec_, graph_, 0), "cuGraphInstantiateWithFlags");
}

CUgraphNode ExecGraph::add(const CudaLaunch& launch, std::span<const CUgraphNode> after) {
  CUdeviceptr block = launch.block;
  void* parameters[] = {&block};
  const Groups groups = launch.is_symbolic() ? Groups{1, 1, 1} : launch.groups;
  const CUDA_KERNEL_NODE_PARAMS p = node_parameters(launch, groups, parameters);
  CUgraphNode node = nullptr;
  const Context& c = *context_;
  c.check(c.api.GraphAddKernelNode(&node, graph_, after.data(), after.size(), &p),
          "cuGraphAddKernelNode");
  return node;
}

CUgraphNode ExecGraph::add(const CudaCopy& copy, std::span<const CUgraphNode> after) {
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  p.srcDevice = copy.src;
  p.dstDevice = copy.dst;
  p.WidthInBytes = p.srcPitch = p.dstPitch = copy.size_bytes;
  p.srcHeight = p.dstHeight = p.Height = p.Depth = 1;
  CUgraphNode node = nullptr;
  const Context& c = *context_;
  c.check(c.api.GraphAddMemcpyNode(&node, graph_, after.data(), after.size(), &p, c.handle()),
          "cuGraphAddMemcpyNode");
  return node;
}

void ExecGraph::update(Symbolic& s, const Groups& groups) {
  const Context& c = *context_;
  const bool enabled = !is_empty(groups);
  if (enabled != s.enabled)
    c.require(c.api.GraphNodeSetEnabled(exec_, s.node, enabled), "cuGraphNodeSetEnabled");
  s.enabled = enabled;
  if (!enabled || groups == s.set) return;
  void* parameters[] = {&s.launch.block};
  const CUDA_KERNEL_NODE_PARAMS p = node_parameters(s.launch, groups, parameters);
  c.require(c.api.GraphExecKernelNodeSetParams(exec_, s.node, &p),
            "cuGraphExecKernelNodeSetParams");
  s.set = groups;
}

[[gnu::hot]]
void ExecGraph::launch(CUstream stream, std::span<const uint64_t> slots) {
  for (Symbolic& s : symbolic_) update(s, s.launch.sizes(slots));
  context_->require(context_->api.GraphLaunch(exec_, stream), "cuGraphLaunch");
}

}  // namespace tuff::devices::cuda
