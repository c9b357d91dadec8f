// Graphs: what a graph is launched with was copied when it was instantiated, and what is changed of
// that since is seen by later launches alone.
#include "devices/cuda/fake/call.h"

namespace tuff::devices::cuda {
namespace {

std::optional<Launch> launch_of(const CUDA_KERNEL_NODE_PARAMS& p) {
  if (p.extra) return {};
  return launch_of(p.func, {p.gridDimX, p.gridDimY, p.gridDimZ},
                   {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes, p.kernelParams);
}

bool is_function(const Machine& m, const CUfunc_st* function) {
  return m.is(function) && function->module->context == current_context;
}

CUresult add(const Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
             size_t count, Node node) {
  if (!call.m.is(graph)) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < count; ++i) {
    if (after[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    node.after.push_back(after[i]->index);
  }
  graph->handles.push_back(
      std::make_unique<CUgraphNode_st>(CUgraphNode_st{graph, graph->nodes.size()}));
  graph->nodes.push_back(std::move(node));
  *out = graph->handles.back().get();
  return CUDA_SUCCESS;
}

// The node of the graph that `exec` was made of.
Node* node_of(Call& call, CUgraphExec exec, CUgraphNode node) {
  if (!call.takes(exec)) return nullptr;
  if (call.m.is(exec->graph) && node->graph == exec->graph) return &exec->nodes[node->index];
  call.code = CUDA_ERROR_INVALID_VALUE;
  return nullptr;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  Call call;
  if (!call) return call.code;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = call.add(std::make_unique<CUgraph_st>());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Call call;
  if (!call) return call.code;
  if (call.m.handles.erase(graph) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  const Call call;
  if (!call) return call.code;
  if (!is_function(call.m, params->func)) return CUDA_ERROR_INVALID_HANDLE;
  auto launch = launch_of(*params);
  if (!launch) return CUDA_ERROR_INVALID_VALUE;
  return add(call, node, graph, after, count, {std::move(launch), {}, {}, true});
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              size_t count, const CUDA_MEMCPY3D* p, CUcontext context) {
  const Call call;
  if (!call) return call.code;
  const bool flat = p->Height == 1 && p->Depth == 1 && p->WidthInBytes > 0 &&
                    p->srcPitch >= p->WidthInBytes && p->dstPitch >= p->WidthInBytes &&
                    !p->reserved0 &&
                    !p->reserved1 && p->srcMemoryType == CU_MEMORYTYPE_UNIFIED &&
                    p->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  if (!flat || context != current_context) return CUDA_ERROR_INVALID_VALUE;
  return add(call, node, graph, after, count,
             {{}, {p->dstDevice, p->srcDevice, p->WidthInBytes}, {}, true});
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  Call call;
  if (!call) return call.code;
  if (!call.m.is(graph)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *exec = call.add(
      std::make_unique<CUgraphExec_st>(CUgraphExec_st{current_context, graph, graph->nodes}));
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Call call;
  if (!call || !call.takes(exec)) return call.code;
  call.m.handles.erase(exec);
  delete exec;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  Call call;
  Node* own = call ? node_of(call, exec, node) : nullptr;
  if (!own) return call.code;
  if (!is_function(call.m, params->func)) return CUDA_ERROR_INVALID_HANDLE;
  auto launch = launch_of(*params);
  if (!launch || !own->launch) return CUDA_ERROR_INVALID_VALUE;
  own->launch = std::move(launch);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  Call call;
  Node* own = call ? node_of(call, exec, node) : nullptr;
  if (own) own->enabled = enabled != 0;
  return call.code;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Call call;
  if (!call || !call.takes(exec) || !call.takes(stream)) return call.code;
  call.m.push(stream, call.m.graph_run(stream->context, exec->nodes));
  return CUDA_SUCCESS;
}

}  // namespace tuff::devices::cuda
