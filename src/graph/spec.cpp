// The specs: one table of forms per floor. What ops.def already says (arity, floor) is checked from
// it.
#include "graph/spec.h"

#include <algorithm>
#include <unordered_map>

#include "base/env.h"
#include "graph/text.h"
#include "graph/walk.h"

namespace tuff::graph {
namespace {

bool all_index(std::span<const UOp> src) {
  return std::all_of(src.begin(), src.end(), [](const UOp& u) { return u->op == Op::Range; });
}
Op without_after(const UOp& u) {
  const Node* n = u.get();
  while (n->op == Op::After) n = n->src(0).get();
  return n->op;
}
bool is_memory(const UOp& u) {
  return without_after(u) == Op::Param || without_after(u) == Op::Shared;
}
bool is_register(const UOp& u) { return without_after(u) == Op::Register; }
bool is_integer(const UOp& u) { return u->dtype == DType::Index || is_int(u->dtype); }

// Why a node is illegal on a floor, or null.
const char* tensor_fault(const Node& n) {
  if (n.op == Op::Reduce && (n.src_count != 1 || !std::holds_alternative<ReduceArg>(n.arg)))
    return "a tensor Reduce has one source and (op, axes)";
  if (n.op == Op::Reduce && !has_flag(n.get<ReduceArg>().op, kReducible))
    return "the op does not reduce";
  if (n.op == Op::Assign) {
    const Node* t = n.src(0).get();
    while (t->op == Op::Reshape || t->op == Op::Assign) t = t->src(0).get();
    if (t->op != Op::Buffer && t->op != Op::Param) return "an Assign's target is no Buffer";
  }
  return nullptr;
}

const char* memory_fault(const Node& n) {
  switch (n.op) {
    case Op::Index:
      if (n.src_count < 2 || n.src_count > 3 || !is_memory(n.src(0)))
        return "Index takes (param | shared, offset[, gate])";
      if (!is_integer(n.src(1))) return "an offset is no integer";
      if (n.src_count == 3 && n.src(2)->dtype != DType::Bool) return "a gate is no bool";
      return nullptr;
    case Op::Load:
      return n.src(0)->op == Op::Index || is_register(n.src(0))
                 ? nullptr
                 : "Load reads an Index or a register";
    case Op::Store:
      if (n.src(0)->op != Op::Index && !is_register(n.src(0)))
        return "Store writes an Index or a register";
      return n.src(0)->dtype == n.src(1)->dtype ? nullptr
                                                : "Store's value has another dtype than its place";
    default: return nullptr;
  }
}

const char* kernel_fault(const Node& n) {
  if (n.op == Op::Reduce && (n.src_count < 2 || !all_index(n.src().subspan(1))))
    return "a kernel Reduce takes (value, range...)";
  if (n.op == Op::End &&
      (n.src_count < 1 || n.src(0)->op != Op::Store || !all_index(n.src().subspan(1))))
    return "End takes (store, range...)";
  return memory_fault(n);
}

const char* linear_fault(const Node& n) {
  if (n.dtype == DType::Index && n.op != Op::Range && n.op != Op::Special && n.op != Op::Const &&
      n.op != Op::Variable)
    return "an Index dtype is left";
  if (n.op == Op::FloorDiv || n.op == Op::FloorMod) return "a floor division is left";
  if (n.op == Op::End && (n.src_count != 1 || n.src(0)->op != Op::Range))
    return "a linear End takes (range)";
  if (n.op == Op::Reduce) {
    for (const UOp& r : n.src().subspan(1)) {
      if (r->op != Op::Range || r->get<RangeArg>().kind != AxisKind::ReduceLane)
        return "a linear Reduce folds ReduceLane ranges only";
    }
  }
  return memory_fault(n);
}

const char* fault(const Node& n, Floor floor) {
  if (!(row(n.op).floors & floor)) return "the op does not exist on this floor";
  switch (floor) {
    case kFloorTensor: return tensor_fault(n);
    case kFloorKernel: return kernel_fault(n);
    default: return linear_fault(n);
  }
}

const char* floor_name(Floor f) {
  return f == kFloorTensor ? "tensor" : f == kFloorKernel ? "kernel" : "linear";
}

[[noreturn]] void report(const Node& n, Floor floor, const char* why, const char* after_pass) {
  fail<InternalError>("after {}: illegal on the {} floor: {}\n{}", after_pass, floor_name(floor),
                      why, to_text(UOp(&n)));
}

}  // namespace

bool spec_enabled() {
#ifndef NDEBUG
  return true;
#else
  static const bool on = env_flag(Env::TUFF_SPEC);
  return on;
#endif
}

void check_spec(const UOp& root, Floor floor, const char* after_pass) {
  for (const Node* n : toposort(root)) {
    if (const char* why = fault(*n, floor)) report(*n, floor, why, after_pass);
  }
}

void check_linear_spec(std::span<const UOp> list, const char* after_pass) {
  std::unordered_map<const Node*, bool> placed;
  std::vector<const Node*> open;
  auto is_loop = [](const Node* n) {
    if (n->op != Op::Range) return false;
    const AxisKind k = n->get<RangeArg>().kind;
    return k == AxisKind::Loop || k == AxisKind::Reduce || k == AxisKind::GroupReduce;
  };
  for (const UOp& u : list) {
    if (const char* why = fault(*u, kFloorLinear)) report(*u, kFloorLinear, why, after_pass);
    for (const UOp& s : u->src()) {
      if (!placed.count(s.get()))
        report(*u, kFloorLinear, "a source stands after its user", after_pass);
    }
    placed[u.get()] = true;
    if (is_loop(u.get())) open.push_back(u.get());
    if (u->op == Op::End) {
      if (open.empty() || open.back() != u->src(0).get())
        report(*u, kFloorLinear, "loops do not nest", after_pass);
      open.pop_back();
    }
  }
  if (!open.empty()) report(*open.back(), kFloorLinear, "a loop is never closed", after_pass);
}

}  // namespace tuff::graph
