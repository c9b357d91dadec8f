// Which arguments of a kernel are read through texel views. A view is bound and cannot be patched:
// a captured graph copies an input that is read so and moves (engine/jit/texel_inputs.h). That copy
// moves words without a meaning, U32, which have no views.
#include <vector>

#include "ir/walk.h"
#include "kernel/analysis/op_counts.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Elements that one invocation loads of each argument, by slot; -1 where an offset is not 32 bits.
std::vector<double> loads_of(const LinearKernel& k) {
  std::vector<double> loads(k.buffers.size(), 0);
  for_each_op(k, [&](size_t i, uint64_t times) {
    const UOp& u = k.ops[i];
    if (u->op != Op::Load || u->src(0)->op != Op::Index) return;
    const Node* memory = without_after(u->src(0)->src(0).get());
    if (memory->op != Op::Param) return;
    double& n = loads[size_t(memory->get<ParamArg>().slot)];
    const bool narrow = u->src(0)->src(1)->dtype == DType::I32;
    n = narrow && n >= 0 ? n + double(times) * double(lane_count(k, k.lanes[i])) : -1;
  });
  return loads;
}

}  // namespace

void pass_texels(Lowering& l) {
  const Target& t = l.target;
  if (t.texel_load_cost == 0 || t.texel_load_cost >= t.load_cost || !t.features.device_address)
    return;
  constexpr double kCyclesPerNs = 3;  // of what a load costs; that of a launch is in ns
  LinearKernel& k = l.out;
  double invocations = double(k.local[0]) * double(k.local[1]) * double(k.local[2]);
  for (const Dim& d : k.groups) invocations *= double(d.max());
  const std::vector<double> loads = loads_of(k);
  for (LinearKernel::Argument& a : k.buffers) {
    const bool has_views = size_bytes(a.dtype) == 4 && a.dtype != DType::U32;
    if (!a.read || a.written || !has_views || uint64_t(a.count) > t.max_texels) continue;
    const double of_subgroups = loads[size_t(a.slot)] * invocations / double(t.subgroup_size);
    const double gain = of_subgroups / double(t.cores) * double(t.load_cost - t.texel_load_cost);
    a.as_texels = gain > double(t.launch_cost_ns) * kCyclesPerNs;
  }
}

}  // namespace tuff::kernel
