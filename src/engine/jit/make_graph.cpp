#include "engine/jit/make_graph.h"

#include "engine/jit/copy_kernel.h"
#include "engine/jit/size_expressions.h"
#include "engine/profile/profile.h"
#include "engine/realize/launch.h"

namespace tuff::engine {
namespace {

constexpr uint32_t kInstances = 2;  // the next replay is patched while the last one runs

// How many bytes input `i` has in a replay, as a variable beside the caller's.
ir::UOp input_bytes(size_t i, const Buffer& captured) {
  return ir::variable(fmt::format("bytes of input {}", i), 0, int64_t(captured.size_bytes()));
}

// What there is of b in a replay.
ir::UOp present_bytes(const Buffer& b, std::span<const Ref<Buffer>> inputs) {
  const int32_t slot = input_slot(b, inputs);
  const ir::UOp all = ir::index_const(int64_t(b.size_bytes()));
  if (slot < 0) return all;
  const Buffer& in = *inputs[size_t(slot)];
  const ir::UOp left =
      input_bytes(size_t(slot), in) - int64_t(b.byte_offset() - in.byte_offset());
  const ir::UOp some = ir::alu(ir::Op::Max, {left, ir::index_const(0)});
  return ir::where(ir::lt(some, all), some, all);
}

// A copy's addresses are encoded; a kernel's are patched.
hcq::GraphNode copy_by_kernel(const BoundCopy& copy, std::span<const Ref<Buffer>> inputs,
                              SizeExpressions& sizes, bool sizes_vary) {
  const size_t width = std::min<size_t>(size_bytes(copy.dst->dtype), 4);
  const DType t = width == 1 ? DType::U8 : width == 2 ? DType::U16 : DType::U32;
  const int64_t count = int64_t(copy.dst->size_bytes() / width);
  const LoadedKernel& k = copy_kernel(copy.dst->on(), t, count, sizes_vary);
  hcq::Launch g;
  g.program = k.program.get();
  for (const auto& a : k.buffers)
    g.operands.push_back(
        operand_of(a.slot == 0 ? *copy.dst : *copy.src, inputs, a.read, a.written));
  if (sizes_vary) {
    const ir::UOp from = present_bytes(*copy.src, inputs), to = present_bytes(*copy.dst, inputs);
    const ir::UOp both = ir::where(ir::lt(from, to), from, to);
    g.scalars.push_back({0, int32_t(sizes.slot(ir::floordiv(both, int64_t(width))))});
  }
  for (size_t i = 0; i < 3; i++) g.groups[i] = uint32_t(k.groups[i].value());
  return g;
}

hcq::GraphNode graph_node(const BoundCall& c, std::span<const Ref<Buffer>> inputs,
                          SizeExpressions& sizes, bool sizes_vary) {
  if (auto* copy = std::get_if<BoundCopy>(&c)) {
    if (input_slot(*copy->dst, inputs) >= 0 || input_slot(*copy->src, inputs) >= 0)
      return copy_by_kernel(*copy, inputs, sizes, sizes_vary);
    return transfer_of(*copy, inputs);
  }
  const BoundKernel& k = std::get<BoundKernel>(c);
  hcq::Launch g = launch_of(k, inputs);
  for (size_t i = 0; i < k.scalars.size(); i++) {
    const ir::UOp& v = k.kernel->variables[i];
    if (sizes.covers(v)) g.scalars[i].slot = int32_t(sizes.slot(v));
  }
  for (size_t i = 0; i < 3; i++) {
    const ir::Dim& d = k.kernel->groups[i];
    if (!d.is_const() && sizes.covers(d.uop())) g.group_slots[i] = int32_t(sizes.slot(d.uop()));
  }
  return g;
}

}  // namespace

std::vector<ir::UOp> given_values(const std::vector<ir::UOp>& variables,
                                  std::span<const Ref<Buffer>> inputs) {
  std::vector<ir::UOp> out = variables;
  for (size_t i = 0; i < inputs.size(); i++) out.push_back(input_bytes(i, *inputs[i]));
  return out;
}

std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const SegmentItem> items,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given, bool sizes_vary,
                                              hcq::GraphPlace place) {
  std::vector<hcq::GraphNode> nodes;
  SizeExpressions sizes(given);
  for (const SegmentItem& item : items) {
    if (auto* call = std::get_if<const BoundCall*>(&item))
      nodes.push_back(graph_node(**call, inputs, sizes, sizes_vary));
    else
      nodes.push_back(std::get<hcq::Transfer>(item));
  }
  const bool copies = place.queue && place.queue != &device.queue();
  auto graph = std::make_shared<hcq::CommandGraph>(
      device.hcq(), std::move(nodes), uint32_t(inputs.size()), sizes.program(), kInstances,
      profile_sink(device.name() + (copies ? " copies" : "")), std::move(place));
  profile_graph(graph);
  return graph;
}

std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const BoundCall> calls,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given,
                                              bool sizes_vary) {
  std::vector<SegmentItem> items;
  for (const BoundCall& c : calls) items.emplace_back(&c);
  return make_graph(device, items, inputs, given, sizes_vary);
}

}  // namespace tuff::engine
