// The specs: one table of forms per floor. What ops.def already says (arity, floor) is checked from
// it.
#include "ir/spec.h"

#include <algorithm>
#include <unordered_map>

#include "ir/custom_kernel.h"
#include "ir/loop.h"
#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

bool all_index(std::span<const UOp> src) {
  return std::all_of(src.begin(), src.end(), [](const UOp& u) { return u->op == Op::Range; });
}
bool is_memory(const UOp& u) {
  const Op op = without_after(u.get())->op;
  return op == Op::Param || op == Op::Shared;
}
bool is_register(const UOp& u) { return without_after(u.get())->op == Op::Register; }
bool reduces(const Node& n) {
  const auto* arg = std::get_if<ReduceArg>(&n.arg);
  return arg && has_flag(arg->op, kReducible);
}
bool is_lane(const UOp& u) {
  return u->op == Op::Range && ir::is_lane(u->get<RangeArg>().kind);
}
bool is_integer(const UOp& u) { return u->dtype == DType::Index || is_int(u->dtype); }

// Why a node is no rule or no value of one, or null.
const char* rule_fault(const Node& n) {
  if (n.op == Op::Ruled) {
    const Node& rule = *n.src(1);
    const auto* of = rule.op == Op::Rule ? std::get_if<IntVec>(&rule.arg) : nullptr;
    const auto* which = std::get_if<int64_t>(&n.arg);
    if (!of || of->empty() || !which || *which < 0 || *which >= (*of)[0])
      return "Ruled takes (value, rule) and the value's number";
    return rule.src(size_t(*which))->shape == n.shape ? nullptr : "Ruled's value is not its rule's";
  }
  const auto* arg = std::get_if<IntVec>(&n.arg);
  if (!arg || arg->size() < 3 || (*arg)[0] < 0 || (*arg)[1] < 0)
    return "a Rule says how many values and arguments it has";
  const int64_t gradients = int64_t(arg->size()) - 3;
  if (int64_t(n.src_count) != (*arg)[0] + (*arg)[1] + gradients)
    return "a Rule takes (value..., argument..., gradient...)";
  for (size_t i = 3; i < arg->size(); i++) {
    if ((*arg)[i] < 0 || (*arg)[i] >= (*arg)[1]) return "a Rule's gradient is of no argument";
    const UOp &argument = n.src(size_t((*arg)[0] + (*arg)[i])),
              &gradient = n.src(n.src_count - arg->size() + i);
    if (!(gradient->shape == argument->shape))
      return "a Rule's gradient has another shape than its argument";
  }
  return nullptr;
}

const char* loop_fault(const Node& n) {
  const auto& arg = n.get<LoopArg>();  // or its shape would not have been known
  const LoopBody& body = *arg.body;
  const size_t states = body.next.size();
  if (body.places.size() < states + body.sequences ||
      n.src_count != body.places.size() - states + 1)
    return "a Loop takes (initial states, sequence..., constant...)";
  if (arg.rows != 2 && arg.rows != arg.steps.max() + 1)
    return "a Loop keeps all states or the last ones";
  for (size_t k = 0; k < states; k++)
    if (!(body.next[k]->shape == body.places[k]->shape) || body.next[k]->dtype != n.dtype)
      return "a Loop's state has another shape or dtype after a step";
  if (!(n.src(0)->shape == Shape{Dim(layout_of(n).row)}))
    return "a Loop's initial states are not a row of them";
  for (const UOp& s : sequences_of(n))
    if (s->shape.size() != 2 || !(s->shape[0] == arg.steps))
      return "a Loop's sequence has no row for each step";
  return nullptr;
}

// Why a node is illegal on a floor, or null.
const char* tensor_fault(const Node& n) {
  if (n.op == Op::Ruled || n.op == Op::Rule) return rule_fault(n);
  if (n.op == Op::Checkpoint && n.src(1)->op != Op::Sink)
    return "a Checkpoint's arguments are a Sink";
  if (n.op == Op::Reduce && n.src_count != 1)
    return "a tensor Reduce has one source and (op, axes)";
  if (n.op == Op::Assign) {
    const Node* t = n.src(0).get();
    while (t->op == Op::Reshape || t->op == Op::Assign) t = t->src(0).get();
    if (t->op != Op::Buffer && t->op != Op::Param) return "an Assign's target is no Buffer";
    if (n.arg.index() != 0 && !assigned_part(n)) return "an Assign's argument is no part";
  }
  if (n.op == Op::Loop) return loop_fault(n);
  if (n.op == Op::CustomKernel && n.get<CustomKernelArg>().number == kWholeKernel)
    return "a CustomKernel stands for one of its outputs";
  if (n.op == Op::Scatter) {
    const Op op = n.get<ScatterArg>().op;
    if (op != Op::Assign && !has_flag(op, kReducible)) return "a Scatter neither assigns nor folds";
    if (n.src(1)->dtype != n.dtype) return "a Scatter's value has another dtype than its target";
    if (!is_int(n.src(2)->dtype)) return "a Scatter's index is no integer";
  }
  return nullptr;
}

bool is_matrix_use(const Node& n) {
  return n.op == Op::MatrixMulAdd || n.op == Op::MatrixStore || n.op == Op::After ||
         n.op == Op::Barrier || n.op == Op::Reduce || n.op == Op::Load || n.op == Op::Store ||
         n.op == Op::End || n.op == Op::Cast || n.op == Op::Mul || n.op == Op::MulAdd;
}
bool is_matrix(const UOp& u, MatrixUse use, int32_t rows, int32_t columns) {
  const MatrixArg* m = matrix_of(u.get());
  return m && m->use == use && m->rows == rows && m->columns == columns;
}

// Why a node that makes or takes cooperative matrices is illegal, or null.
const char* matrix_fault(const Node& n) {
  for (const UOp& s : n.src()) {
    if (matrix_of(s.get()) && !is_matrix_use(n)) return "a matrix is used as a scalar";
  }
  const auto* m = std::get_if<MatrixArg>(&n.arg);
  switch (n.op) {
    case Op::MatrixFill:
    case Op::MatrixLoad:
    case Op::MatrixStore:
      if (!m) return "no matrix is described";
      if (n.op != Op::MatrixFill && (n.src(0)->op != Op::Index || n.src(0)->src_count != 2))
        return "a matrix lies at an Index without a gate";
      if (m->interleaved < 1 || m->rows % m->interleaved != 0 ||
          (m->interleaved > 1 && (m->use != MatrixUse::B || m->by_columns)))
        return "whole rows of a right factor are interleaved";
      if (n.op == Op::MatrixStore && !is_matrix(n.src(1), m->use, m->rows, m->columns))
        return "MatrixStore takes the matrix that it describes";
      if (n.op == Op::MatrixStore && n.src(0)->dtype != n.src(1)->dtype)
        return "MatrixStore's matrix has another dtype than its place";
      return nullptr;
    case Op::MatrixMulAdd: {
      if (!m || m->use != MatrixUse::Sum) return "a product of matrices is a sum";
      const MatrixArg* a = n.src_count < 2 ? nullptr : matrix_of(n.src(0).get());
      if (!a || !is_matrix(n.src(0), MatrixUse::A, m->rows, a->columns) ||
          !is_matrix(n.src(1), MatrixUse::B, a->columns, m->columns))
        return "MatrixMulAdd takes matrices whose extents fit";
      const bool sums = n.src_count == 3 && is_matrix(n.src(2), m->use, m->rows, m->columns) &&
                        n.src(2)->dtype == n.dtype;
      return n.src_count == 2 || sums ? nullptr : "MatrixMulAdd adds a matrix of its own kind";
    }
    case Op::Cast: {
      const MatrixArg* from = matrix_of(&n);
      return !from || from->use == MatrixUse::Sum ? nullptr : "a factor's matrix is converted";
    }
    case Op::Mul:
    case Op::MulAdd: {
      const MatrixArg* first = matrix_of(n.src(0).get());
      const bool same = std::ranges::all_of(n.src(), [&](const UOp& s) {
        const MatrixArg* other = matrix_of(s.get());
        return !first == !other &&
               (!first || (first->use == MatrixUse::Sum &&
                           is_matrix(s, MatrixUse::Sum, first->rows, first->columns)));
      });
      return same ? nullptr : "sums of one kind are multiplied element by element";
    }
    case Op::Store: {
      if (n.src_count < 2) return nullptr;
      const MatrixArg *to = matrix_of(n.src(0).get()), *value = matrix_of(n.src(1).get());
      const bool same =
          !to == !value && (!to || is_matrix(n.src(1), to->use, to->rows, to->columns));
      return same ? nullptr : "Store's value is another matrix than its register holds";
    }
    default: return nullptr;
  }
}

const char* dot_fault(const Node& n) {
  if (n.src_count < 4) return "Dot takes (x, y, sum, lane range...)";
  for (const UOp& r : n.src().subspan(3)) {
    if (!is_lane(r)) return "Dot adds up lanes";
  }
  const bool alike = n.src(0)->dtype == n.src(1)->dtype && n.src(2)->dtype == n.dtype;
  return alike && n.src(0)->dtype == n.dtype ? nullptr : "Dot's factors and sum differ in dtype";
}

const char* combined_fault(const Node& n, const ReduceArg& arg) {
  const bool to_memory = n.src_count == 2 && n.src(0)->op == Op::Index;
  if (!to_memory || n.src(0)->src(0)->op != Op::Param)
    return "an atomic Store combines with an element of a param";
  if (!arg.axes.empty() || (arg.op != Op::Add && arg.op != Op::Max))
    return "an atomic Store adds or takes the larger";
  const DType t = n.src(0)->dtype;
  const DType x = n.src(1)->dtype;
  const bool is_word = t == DType::I32 || t == DType::U32 || t == DType::F32;
  return is_word && (x == t || (t == DType::U32 && x == DType::F32))
             ? nullptr
             : "an atomic Store combines 32-bit words of one dtype, or a float with its word";
}

const char* memory_fault(const Node& n) {
  switch (n.op) {
    case Op::Index:
      if (n.src_count < 2 || n.src_count > 3 || !is_memory(n.src(0)))
        return "Index takes (param | shared, offset[, gate])";
      if (!is_integer(n.src(1))) return "an offset is no integer";
      if (n.src_count == 3 && n.src(2)->dtype != DType::Bool) return "a gate is no bool";
      return nullptr;
    case Op::Dot: return dot_fault(n);
    case Op::Shuffle: return is_integer(n.src(1)) ? nullptr : "a lane is no integer";
    case Op::Load:
      return n.src(0)->op == Op::Index || is_register(n.src(0))
                 ? nullptr
                 : "Load reads an Index or a register";
    case Op::Prefetch:
      return n.src(0)->op == Op::Index && n.src(0)->src(0)->op == Op::Param &&
                     n.src(0)->src_count == 2 && std::holds_alternative<int64_t>(n.arg)
                 ? nullptr
                 : "Prefetch takes an Index of a param without a gate, to read (0) or write (1)";
    case Op::Store:
      if (n.src_count < 2 || n.src_count > 3) return "Store takes (place, value[, mask])";
      if (n.src(0)->op != Op::Index && !is_register(n.src(0)))
        return "Store writes an Index or a register";
      if (n.src_count == 3 && (n.src(0)->op != Op::Index || n.src(0)->dtype != DType::U32 ||
                               n.src(2)->dtype != DType::U32))
        return "a masked Store writes u32 elements of memory";
      if (const auto* combined = std::get_if<ReduceArg>(&n.arg)) return combined_fault(n, *combined);
      if (n.arg.index() != 0 && (n.src_count != 2 || n.src(0)->op != Op::Index ||
                                 n.src(0)->src_count != 2 || n.src(0)->src(0)->op != Op::Param))
        return "a streaming Store writes a param, without a gate or a mask";
      return n.src(0)->dtype == n.src(1)->dtype ? nullptr
                                                : "Store's value has another dtype than its place";
    default: return nullptr;
  }
}

const char* kernel_fault(const Node& n) {
  if (n.op == Op::CustomKernel &&
      (n.get<CustomKernelArg>().number != kWholeKernel ||
       !std::all_of(n.src().begin(), n.src().end(),
                    [](const UOp& s) { return s->op == Op::Param; })))
    return "a CustomKernel takes Params, and is the whole kernel";
  if (n.op == Op::Reduce && (n.src_count < 2 || !all_index(n.src().subspan(1))))
    return "a kernel Reduce takes (value, range...)";
  if (const char* why = matrix_fault(n)) return why;
  if (n.op == Op::End &&
      (n.src_count < 1 || (n.src(0)->op != Op::Store && n.src(0)->op != Op::MatrixStore) ||
       !all_index(n.src().subspan(1))))
    return "End takes (store, range...)";
  return memory_fault(n);
}

const char* linear_fault(const Node& n) {
  if (n.dtype == DType::Index && n.op != Op::Range && n.op != Op::Special && n.op != Op::Const &&
      n.op != Op::Variable)
    return "an Index dtype is left";
  if (n.op == Op::FloorDiv || n.op == Op::FloorMod) return "a floor division is left";
  if (n.op == Op::MatrixMulAdd && n.src_count != 3) return "MatrixMulAdd takes (a, b, c)";
  if (const char* why = matrix_fault(n)) return why;
  if (n.op == Op::End && (n.src_count != 1 || n.src(0)->op != Op::Range))
    return "a linear End takes (range)";
  if (n.op == Op::Reduce) {
    if (n.src_count < 2) return "a linear Reduce folds lanes only";
    for (const UOp& r : n.src().subspan(1)) {
      if (!is_lane(r)) return "a linear Reduce folds lanes only";
    }
  }
  return memory_fault(n);
}

const char* fault(const Node& n, Floor floor) {
  if (!(row(n.op).floors & floor)) return "the op does not exist on this floor";
  if (n.op == Op::Reduce && !reduces(n)) return "the op does not reduce";
  if (n.op == Op::After && n.src_count < 2) return "After takes (value, dependency...)";
  switch (floor) {
    case kFloorTensor: return tensor_fault(n);
    case kFloorKernel: return kernel_fault(n);
    default: return linear_fault(n);
  }
}

// The order of a linear list: what stands where, and in which loops.
class LinearOrder {
 public:
  // Takes the next op; why it may not stand here, or null.
  const char* place(const Node& n) {
    for (const UOp& s : n.src()) {
      if (!loop_of_.contains(s.get())) return "a source stands after its user";
    }
    if (const char* why = closed_source(n)) return why;
    if (is_loop(n)) open_.push_back(&n);
    if (!loop_of_.emplace(&n, innermost()).second) return "an op stands twice";
    if (n.op != Op::End) return nullptr;
    if (innermost() != n.src(0).get()) return "loops do not nest";
    open_.pop_back();
    return nullptr;
  }
  const Node* innermost() const { return open_.empty() ? nullptr : open_.back(); }

 private:
  static bool is_loop(const Node& n) {
    if (n.op != Op::Range) return false;
    const AxisKind k = n.get<RangeArg>().kind;
    return k == AxisKind::Loop || k == AxisKind::Reduce || k == AxisKind::GroupReduce ||
           k == AxisKind::Ordered;
  }
  // A value exists until the end of the loop it is computed in. What an After or a Barrier is
  // ordered after is no value.
  const char* closed_source(const Node& n) const {
    if (n.op == Op::End || n.op == Op::Barrier) return nullptr;
    const auto values = n.op == Op::After ? n.src().first(1) : n.src();
    for (const UOp& s : values) {
      const Node* loop = loop_of_.at(without_after(s.get()));
      if (loop && std::find(open_.begin(), open_.end(), loop) == open_.end())
        return "a value of a loop is used after its end";
    }
    return nullptr;
  }
  std::unordered_map<const Node*, const Node*> loop_of_;  // innermost loop around; null: none
  std::vector<const Node*> open_;
};

const char* floor_name(Floor f) {
  return f == kFloorTensor ? "tensor" : f == kFloorKernel ? "kernel" : "linear";
}

[[noreturn]] void report(const Node& n, Floor floor, const char* why, const char* after_pass) {
  fail<InternalError>("after {}: illegal on the {} floor: {}\n{}", after_pass, floor_name(floor),
                      why, to_text(UOp(&n)));
}

}  // namespace

void check_spec(const UOp& root, Floor floor, const char* after_pass) {
  for (const Node* n : toposort(root)) {
    if (const char* why = fault(*n, floor)) report(*n, floor, why, after_pass);
  }
}

void check_linear_spec(std::span<const UOp> list, const char* after_pass) {
  LinearOrder order;
  for (const UOp& u : list) {
    const char* why = fault(*u, kFloorLinear);
    if (!why) why = order.place(*u);
    if (why) report(*u, kFloorLinear, why, after_pass);
  }
  if (const Node* open = order.innermost())
    report(*open, kFloorLinear, "a loop is never closed", after_pass);
}

}  // namespace tuff::ir
