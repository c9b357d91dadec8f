// The tensor floor's half of the reference interpreter.
#include "ir/interpret.h"

#include <algorithm>
#include <limits>

#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

int64_t product(const IntVec& v) {
  int64_t n = 1;
  for (int64_t d : v) n *= d;
  return n;
}

// Steps through the indices of a shape in row-major order.
class Odometer {
 public:
  explicit Odometer(const IntVec& shape) : shape_(shape), index_(shape.size(), 0) {}
  const IntVec& index() const { return index_; }
  void next() {
    for (size_t d = shape_.size(); d-- > 0;) {
      if (++index_[d] < shape_[d]) return;
      index_[d] = 0;
    }
  }

 private:
  const IntVec& shape_;
  IntVec index_;
};

int64_t flat(const IntVec& index, const IntVec& shape) {
  int64_t f = 0;
  for (size_t d = 0; d < shape.size(); d++) f = f * shape[d] + index[d];
  return f;
}

void set(HostArray& a, int64_t i, const Scalar& v) {
  store_scalar(v, a.bytes.data() + size_t(i) * size_bytes(a.dtype));
}

HostArray iota_values(HostArray a) {
  for (int64_t i = 0; i < a.count(); i++) set(a, i, Scalar::of_int(DType::I64, i).cast(a.dtype));
  return a;
}

void write_back(const Node& assign, const HostArray& v, const Bindings& bindings) {
  const Node* target = &assign;
  while (target->op != Op::Buffer) target = target->src(0).get();
  const auto it = bindings.storages.find(target->get<Ref<Storage>>()->id);
  TUFF_CHECK(it != bindings.storages.end() && it->second.size() >= v.bytes.size(),
             "assigned storage is not bound");
  std::copy(v.bytes.begin(), v.bytes.end(), it->second.begin());
}

}  // namespace

int64_t HostArray::count() const { return product(shape); }

const HostArray& Evaluation::value(const UOp& u) {
  if (const auto it = values_.find(u.get()); it != values_.end()) return it->second;
  kept_.push_back(u);
  const auto is_new = [&](const Node* n) { return !values_.count(n); };
  for (const Node* n : toposort_gated(std::span<const UOp>(&u, 1), is_new)) {
    if (!values_.count(n)) values_.emplace(n, evaluate(*n));
  }
  return values_.at(u.get());
}

IntVec Evaluation::extents(const Shape& s) const {
  IntVec out;
  for (const Dim& d : s)
    out.push_back(d.is_const() ? d.value() : evaluate_index(d.uop(), bindings_.variables));
  return out;
}

HostArray Evaluation::fresh(const Node& n) const {
  HostArray a{n.dtype, extents(n.shape), {}};
  a.bytes.resize(size_t(product(a.shape)) * size_bytes(n.dtype));
  return a;
}

HostArray Evaluation::evaluate(const Node& n) const {
  switch (n.op) {
    case Op::Const:
    case Op::Variable: {
      HostArray a = fresh(n);
      set(a, 0,
          n.is_const() ? n.get<Scalar>()
                       : Scalar::of_int(n.dtype, evaluate_index(UOp(&n), bindings_.variables)));
      return a;
    }
    case Op::Iota: return iota_values(fresh(n));
    case Op::Buffer: return contents(n);
    case Op::Reduce: return reduced(n);
    case Op::Reshape: {
      HostArray a = src(n, 0);
      a.shape = extents(n.shape);
      return a;
    }
    case Op::Contiguous:
    case Op::Detach:
    case Op::Mark:
    case Op::Again:
    case Op::Copy: return src(n, 0);
    case Op::Assign: return assigned(n);
    case Op::Scatter: return scattered(n);
    case Op::Loop: return looped(n);
    case Op::Shards: return joined(n);
    default: break;
  }
  if (is_movement(n.op)) return moved(n);
  TUFF_CHECK(is_alu(n.op), "{} is not of the tensor floor", name(n.op));
  return elementwise(n);
}

HostArray Evaluation::contents(const Node& n) const {
  HostArray a = fresh(n);
  const auto it = bindings_.storages.find(n.get<Ref<Storage>>()->id);
  TUFF_CHECK(it != bindings_.storages.end(), "storage {} is not bound", n.get<Ref<Storage>>()->id);
  TUFF_CHECK(it->second.size() >= a.bytes.size(), "storage {} has {} bytes, {} needed", it->first,
             it->second.size(), a.bytes.size());
  std::copy_n(it->second.begin(), a.bytes.size(), a.bytes.begin());
  return a;
}

HostArray Evaluation::elementwise(const Node& n) const {
  HostArray a = fresh(n);
  Scalar in[4];
  for (int64_t i = 0; i < a.count(); i++) {
    for (uint32_t s = 0; s < n.src_count; s++)
      in[s] = src(n, s).at(src(n, s).shape.empty() ? 0 : i);
    set(a, i, eval_scalar(n.op, n.dtype, {in, n.src_count}, word_of(n.arg)));
  }
  return a;
}

// What stands before the source along each axis: of Pad, Shrink and the part of an Assign.
IntVec Evaluation::begins(const Node& n) const {
  Shape first;
  if (n.op == Op::Pad || n.op == Op::Shrink || assigned_part(n)) {
    for (const DimPair& p : n.get<Pairs>()) first.push_back(p.a);
  }
  return extents(first);
}

std::vector<int64_t> Evaluation::assigned_elements(const Node& n) const {
  const IntVec whole = extents(n.shape), part = extents(n.src(1)->shape), begin = begins(n);
  std::vector<int64_t> out(size_t(product(part)));
  Odometer o(part);
  for (size_t i = 0; i < out.size(); i++, o.next()) {
    IntVec at = o.index();
    for (size_t d = 0; d < begin.size(); d++) at[d] += begin[d];
    out[i] = flat(at, whole);
  }
  return out;
}

HostArray Evaluation::assigned(const Node& n) const {
  if (!assigned_part(n)) return src(n, 1);
  HostArray a = src(n, 0);
  const std::vector<int64_t> to = assigned_elements(n);
  for (size_t i = 0; i < to.size(); i++) set(a, to[i], src(n, 1).at(int64_t(i)));
  return a;
}

std::vector<int64_t> Evaluation::scattered_elements(const Node& n) const {
  const auto axis = size_t(n.get<ScatterArg>().axis);
  const IntVec whole = extents(n.shape);
  const HostArray& index = src(n, 2);
  std::vector<int64_t> out(size_t(index.count()));
  Odometer o(index.shape);
  for (size_t i = 0; i < out.size(); i++, o.next()) {
    IntVec at = o.index();
    at[axis] = index.at(int64_t(i)).as_int();
    out[i] = at[axis] < 0 || at[axis] >= whole[axis] ? -1 : flat(at, whole);
  }
  return out;
}

HostArray Evaluation::scattered(const Node& n) const {
  const Op op = n.get<ScatterArg>().op;
  HostArray a = src(n, 0);
  const std::vector<int64_t> to = scattered_elements(n);
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] < 0) continue;
    const Scalar pair[2] = {a.at(to[i]), src(n, 1).at(int64_t(i))};
    set(a, to[i], op == Op::Assign ? pair[1] : eval_scalar(op, n.dtype, pair));
  }
  return a;
}

// Parts are as long along the axis as each other.
HostArray Evaluation::joined(const Node& n) const {
  const auto* axis = std::get_if<int64_t>(&n.arg);
  if (!axis) return src(n, 0);
  HostArray a = fresh(n);
  size_t outer = 1;
  for (int64_t d = 0; d < *axis; d++) outer *= size_t(a.shape[size_t(d)]);
  const size_t row = outer == 0 ? 0 : a.bytes.size() / outer, each = row / n.src_count;
  for (size_t o = 0; o < outer; o++) {
    for (size_t k = 0; k < n.src_count; k++)
      std::copy_n(src(n, k).bytes.begin() + ptrdiff_t(o * each), each,
                  a.bytes.begin() + ptrdiff_t(o * row + k * each));
  }
  return a;
}

namespace {

// The source index of one result index, or false where padding stands.
bool source_index(const Node& n, const IntVec& begin, const IntVec& at, const IntVec& src_shape,
                  IntVec& out) {
  for (size_t d = 0; d < at.size(); d++) {
    switch (n.op) {
      case Op::Permute: out[size_t(n.get<IntVec>()[d])] = at[d]; break;
      case Op::Expand: out[d] = src_shape[d] == 1 ? 0 : at[d]; break;
      case Op::Shrink: out[d] = at[d] + begin[d]; break;
      case Op::Pad:
        out[d] = at[d] - begin[d];
        if (out[d] < 0 || out[d] >= src_shape[d]) return false;
        break;
      default: {
        const IntVec& axes = n.get<IntVec>();
        const bool flipped = std::find(axes.begin(), axes.end(), int64_t(d)) != axes.end();
        out[d] = flipped ? src_shape[d] - 1 - at[d] : at[d];
      }
    }
  }
  return true;
}

}  // namespace

std::vector<int64_t> Evaluation::source_elements(const Node& n) const {
  const IntVec shape = extents(n.shape), from = extents(n.src(0)->shape), begin = begins(n);
  std::vector<int64_t> out(size_t(product(shape)));
  IntVec at(from.size());
  Odometer o(shape);
  for (size_t i = 0; i < out.size(); i++, o.next()) {
    if (n.op == Op::Reshape) {
      out[i] = int64_t(i);
    } else {
      out[i] = source_index(n, begin, o.index(), from, at) ? flat(at, from) : -1;
    }
  }
  return out;
}

HostArray Evaluation::moved(const Node& n) const {
  HostArray a = fresh(n);
  const HostArray& x = src(n, 0);
  const std::vector<int64_t> from = source_elements(n);
  for (size_t i = 0; i < from.size(); i++)
    set(a, int64_t(i), from[i] >= 0 ? x.at(from[i]) : Scalar{n.dtype, 0});
  return a;
}

std::vector<int64_t> Evaluation::reduced_elements(const Node& n) const {
  const IntVec shape = extents(n.shape), from = extents(n.src(0)->shape);
  std::vector<int64_t> out(size_t(product(from)));
  Odometer o(from);
  for (size_t i = 0; i < out.size(); i++, o.next()) {
    IntVec at = o.index();
    for (int64_t axis : n.get<ReduceArg>().axes) at[size_t(axis)] = 0;
    out[i] = flat(at, shape);
  }
  return out;
}

HostArray Evaluation::reduced(const Node& n) const {
  const ReduceArg& r = n.get<ReduceArg>();
  const HostArray& x = src(n, 0);
  HostArray a = fresh(n);
  const DType acc = r.op == Op::Max || !is_float(n.dtype) ? n.dtype : accumulator(n.dtype);
  std::vector<Scalar> totals(size_t(a.count()), Scalar{});
  std::vector<bool> started(size_t(a.count()), false);
  const std::vector<int64_t> to = reduced_elements(n);
  for (size_t i = 0; i < to.size(); i++) {
    const size_t slot = size_t(to[i]);
    const Scalar pair[2] = {totals[slot], x.at(int64_t(i)).cast(acc)};
    totals[slot] = started[slot] ? eval_scalar(r.op, acc, pair) : pair[1];
    started[slot] = true;
  }
  for (size_t i = 0; i < totals.size(); i++)
    set(a, int64_t(i), (started[i] ? totals[i] : reduce_identity(r.op, acc)).cast(n.dtype));
  return a;
}

HostArray part_of(const HostArray& from, const Node& place, int64_t begin) {
  HostArray a{place.dtype, {}, {}};
  for (const Dim& d : place.shape) a.shape.push_back(d.value());
  const auto size = int64_t(size_bytes(a.dtype));
  const auto first = from.bytes.begin() + begin * size;
  a.bytes.assign(first, first + a.count() * size);
  return a;
}

HostArray Evaluation::looped(const Node& n) const {
  const LoopBody& body = *n.get<LoopArg>().body;
  const std::vector<UOp> next = values_alone(body.next);
  const size_t states = next.size();
  HostArray out = fresh(n);
  const std::vector<std::byte>& initial = src(n, 0).bytes;
  std::ranges::copy(initial, out.bytes.begin() + first_row(n) * ptrdiff_t(initial.size()));
  for (const LoopStep& step : steps_of(n)) {
    Evaluation of_step(bindings_);
    for (size_t p = 0; p < body.places.size(); p++) {
      const HostArray& from = p < states ? out : src(n, p - states + 1);
      of_step.put(body.places[p], part_of(from, *body.places[p], step.reads[p]));
    }
    for (size_t k = 0; k < states; k++) {
      const auto to = step.stores[k] * ptrdiff_t(size_bytes(n.dtype));
      std::ranges::copy(of_step.value(next[k]).bytes, out.bytes.begin() + to);
    }
  }
  return out;
}

std::vector<HostArray> interpret(std::span<const UOp> given, const Bindings& bindings) {
  const std::vector<UOp> roots = values_alone(given);
  Evaluation values(bindings);
  std::vector<HostArray> out;
  for (const UOp& r : roots) out.push_back(values.value(r));
  for (const Node* n : toposort(roots)) {
    if (n->op == Op::Assign) write_back(*n, values.value(UOp(n)), bindings);
  }
  return out;
}

}  // namespace tuff::ir
