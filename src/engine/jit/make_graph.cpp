#include "engine/jit/make_graph.h"

#include "engine/profile/profile.h"
#include "engine/realize/launch.h"

namespace tuff::engine {
namespace {

constexpr uint32_t kInstances = 2;  // the next replay is patched while the last one runs

// How many bytes input `i` has in a replay, as a variable beside the caller's.
ir::UOp input_bytes(size_t i, const Buffer& captured) {
  return ir::variable(fmt::format("bytes of input {}", i), 0, int64_t(captured.size_bytes()));
}

// Its addresses and size are known at replay only. Param 0 gets `count` elements of param 1. With
// `counted` it has a scalar, a number up to `count`, and copies so many. 4-byte elements are U32:
// no other type's loads can always be patched.
const LoadedKernel& copy_kernel(Device& device, DType t, int64_t count, bool counted) {
  using namespace ir;
  const UOp i = range(index_const(count), 0, AxisKind::Loop);
  const UOp to = param(0, t, count), from = param(1, t, count);
  const auto element = [&](const UOp& memory) {
    if (!counted) return make(Op::Index, DType::Void, {memory, i});
    return make(Op::Index, DType::Void, {memory, i, lt(i, variable("n", 0, count))});
  };
  const UOp value = make(Op::Load, DType::Void, {element(from)});
  const UOp store = make(Op::Store, DType::Void, {element(to), value});
  const UOp ast = sink(std::vector<UOp>{make(Op::End, DType::Void, {store, i})});
  return *device.programs().get({&ast, 1}).at(0);
}

}  // namespace

std::vector<ir::UOp> given_values(const std::vector<ir::UOp>& variables,
                                  std::span<const Ref<Buffer>> inputs) {
  std::vector<ir::UOp> out = variables;
  for (size_t i = 0; i < inputs.size(); i++) out.push_back(input_bytes(i, *inputs[i]));
  return out;
}

// Bytes of b that are valid in a replay.
ir::UOp GraphMaker::present_bytes(const Buffer& b) const {
  const int32_t slot = input_slot(b, inputs_);
  const ir::UOp all = ir::index_const(int64_t(b.size_bytes()));
  if (slot < 0) return all;
  const Buffer& in = *inputs_[size_t(slot)];
  const ir::UOp left =
      input_bytes(size_t(slot), in) - int64_t(b.byte_offset() - in.byte_offset());
  const ir::UOp some = ir::alu(ir::Op::Max, {left, ir::index_const(0)});
  return ir::where(ir::lt(some, all), some, all);
}

// A copy's addresses are encoded; a kernel's are patched.
hcq::Launch GraphMaker::copy_by_kernel(const BoundCopy& copy) {
  const size_t width = std::min<size_t>(size_bytes(copy.dst->dtype), 4);
  const DType t = width == 1 ? DType::U8 : width == 2 ? DType::U16 : DType::U32;
  const int64_t count = int64_t(copy.dst->size_bytes() / width);
  BoundKernel k{.kernel = &copy_kernel(copy.dst->on(), t, count, sizes_vary_)};
  for (const auto& a : k.kernel->buffers)
    k.buffers.push_back(a.slot == 0 ? copy.dst : copy.src);
  for (size_t i = 0; i < 3; i++) k.groups[i] = uint32_t(k.kernel->groups[i].value());
  hcq::Launch launch = launch_of(k, inputs_);
  if (sizes_vary_) {
    const ir::UOp from = present_bytes(*copy.src), to = present_bytes(*copy.dst);
    const ir::UOp both = ir::where(ir::lt(from, to), from, to);
    launch.scalars.push_back({0, int32_t(sizes_.slot(ir::floordiv(both, int64_t(width))))});
  }
  return launch;
}

void GraphMaker::add(const BoundCall& c) {
  if (auto* copy = std::get_if<BoundCopy>(&c)) {
    if (input_slot(*copy->dst, inputs_) >= 0 || input_slot(*copy->src, inputs_) >= 0)
      nodes_.emplace_back(copy_by_kernel(*copy));
    else
      nodes_.emplace_back(transfer_of(*copy));
    return;
  }
  const BoundKernel& k = std::get<BoundKernel>(c);
  hcq::Launch launch = launch_of(k, inputs_);
  for (size_t i = 0; i < k.scalars.size(); i++) {
    const ir::UOp& v = k.kernel->variables[i];
    if (sizes_.covers(v)) launch.scalars[i].slot = int32_t(sizes_.slot(v));
  }
  for (size_t i = 0; i < 3; i++) {
    const ir::Dim d = i == 0 ? k.kernel->groups[i] * k.runs : k.kernel->groups[i];
    if (!d.is_const() && sizes_.covers(d.uop()))
      launch.group_slots[i] = int32_t(sizes_.slot(d.uop()));
  }
  nodes_.emplace_back(std::move(launch));
}

std::shared_ptr<hcq::CommandGraph> GraphMaker::make(hcq::GraphPlace place) {
  const bool copies = place.queue && place.queue != &device_.queue();
  auto graph = std::make_shared<hcq::CommandGraph>(
      device_.hcq(), std::move(nodes_), uint32_t(inputs_.size()), sizes_.program(), kInstances,
      profile_sink(device_.name() + (copies ? " copies" : "")), std::move(place));
  profile_graph(graph);
  return graph;
}

}  // namespace tuff::engine
