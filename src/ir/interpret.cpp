// The tensor floor's half of the reference interpreter.
#include "ir/interpret.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ir/custom_kernel.h"
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

// How far apart the elements of each axis are.
IntVec strides_of(const IntVec& shape) {
  IntVec out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

// Steps through the indices of a shape in row-major order, and with them through another array.
class Odometer {
 public:
  Odometer(const IntVec& shape, IntVec strides, int64_t begin = 0)
      : shape_(shape), strides_(std::move(strides)), index_(shape.size(), 0), offset_(begin) {}
  const IntVec& index() const { return index_; }
  int64_t offset() const { return offset_; }
  void next() {
    for (size_t d = shape_.size(); d-- > 0;) {
      offset_ += strides_[d];
      if (++index_[d] < shape_[d]) return;
      offset_ -= strides_[d] * shape_[d];
      index_[d] = 0;
    }
  }

 private:
  const IntVec& shape_;
  IntVec strides_, index_;
  int64_t offset_;
};

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
    case Op::CustomKernel:
      fail<Unsupported>("the reference interpreter does not run {}, a user's kernel",
                        n.get<CustomKernelArg>().kernel->name);
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
  const std::byte* from[4] = {};
  size_t step[4] = {};  // 0: one element for all
  for (uint32_t s = 0; s < n.src_count; s++) {
    from[s] = src(n, s).bytes.data();
    step[s] = src(n, s).shape.empty() ? 0 : size_bytes(n.src(s)->dtype);
  }
  const int64_t count = a.count(), word = word_of(n.arg);
  for (int64_t i = 0; i < count; i++) {
    for (uint32_t s = 0; s < n.src_count; s++)
      in[s] = load_scalar(n.src(s)->dtype, from[s] + size_t(i) * step[s]);
    set(a, i, eval_scalar(n.op, n.dtype, {in, n.src_count}, word));
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
  const IntVec strides = strides_of(whole);
  int64_t first = 0;
  for (size_t d = 0; d < begin.size(); d++) first += begin[d] * strides[d];
  Odometer o(part, strides, first);
  for (size_t i = 0; i < out.size(); i++, o.next()) out[i] = o.offset();
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
  IntVec strides = strides_of(whole);
  const int64_t along = std::exchange(strides[axis], 0);
  Odometer o(index.shape, strides);
  for (size_t i = 0; i < out.size(); i++, o.next()) {
    const int64_t at = index.at(int64_t(i)).as_int();
    out[i] = at < 0 || at >= whole[axis] ? -1 : o.offset() + at * along;
  }
  return out;
}

HostArray Evaluation::scattered(const Node& n) const {
  const Op op = n.get<ScatterArg>().op;
  HostArray a = src(n, 0);
  // Narrow floats may be rounded at each store.
  const DType acc = n.dtype == DType::F32 && op == Op::Add ? DType::F64 : n.dtype;
  const std::vector<int64_t> to = scattered_elements(n);
  std::unordered_map<int64_t, Scalar> totals;
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] < 0) continue;
    Scalar& total = totals.try_emplace(to[i], a.at(to[i]).cast(acc)).first->second;
    const Scalar pair[2] = {total, src(n, 1).at(int64_t(i)).cast(acc)};
    total = op == Op::Assign ? pair[1] : eval_scalar(op, acc, pair);
  }
  for (const auto& [at, total] : totals) set(a, at, total.cast(n.dtype));
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

// For each axis of a movement op's result how far apart its elements are in the source, and where
// the first one is, which padding moves before the source.
std::pair<IntVec, int64_t> places_in_source(const Node& n, const IntVec& begin, const IntVec& from) {
  const IntVec in_source = strides_of(from);
  IntVec strides = in_source;
  int64_t first = 0;
  for (size_t d = 0; d < from.size(); d++) {
    switch (n.op) {
      case Op::Permute: strides[d] = in_source[size_t(n.get<IntVec>()[d])]; break;
      case Op::Expand: strides[d] = from[d] == 1 ? 0 : in_source[d]; break;
      case Op::Shrink: first += begin[d] * in_source[d]; break;
      case Op::Pad: first -= begin[d] * in_source[d]; break;
      default: break;
    }
  }
  if (n.op == Op::Flip) {
    for (const int64_t axis : n.get<IntVec>()) {
      const auto d = size_t(axis);
      first += (from[d] - 1) * in_source[d];
      strides[d] = -in_source[d];
    }
  }
  return {strides, first};
}

bool is_padding(const IntVec& begin, const IntVec& at, const IntVec& from) {
  for (size_t d = 0; d < at.size(); d++)
    if (at[d] < begin[d] || at[d] - begin[d] >= from[d]) return true;
  return false;
}

}  // namespace

std::vector<int64_t> Evaluation::source_elements(const Node& n) const {
  const IntVec shape = extents(n.shape), from = extents(n.src(0)->shape), begin = begins(n);
  std::vector<int64_t> out(size_t(product(shape)));
  if (n.op == Op::Reshape) {
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  const auto [strides, first] = places_in_source(n, begin, from);
  Odometer o(shape, strides, first);
  for (size_t i = 0; i < out.size(); i++, o.next())
    out[i] = n.op == Op::Pad && is_padding(begin, o.index(), from) ? -1 : o.offset();
  return out;
}

HostArray Evaluation::moved(const Node& n) const {
  HostArray a = fresh(n);
  const HostArray& x = src(n, 0);
  const std::vector<int64_t> from = source_elements(n);
  const size_t size = size_bytes(n.dtype);  // padding is zero
  for (size_t i = 0; i < from.size(); i++)
    if (from[i] >= 0) std::copy_n(x.bytes.data() + size_t(from[i]) * size, size, a.bytes.data() + i * size);
  return a;
}

std::vector<int64_t> Evaluation::reduced_elements(const Node& n) const {
  const IntVec shape = extents(n.shape), from = extents(n.src(0)->shape);
  std::vector<int64_t> out(size_t(product(from)));
  IntVec strides = strides_of(shape);
  for (int64_t axis : n.get<ReduceArg>().axes) strides[size_t(axis)] = 0;
  Odometer o(from, strides);
  for (size_t i = 0; i < out.size(); i++, o.next()) out[i] = o.offset();
  return out;
}

HostArray Evaluation::reduced(const Node& n) const {
  const ReduceArg& r = n.get<ReduceArg>();
  const HostArray& x = src(n, 0);
  HostArray a = fresh(n);
  const DType acc = reference_accumulator(r.op, n.dtype);
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

void Evaluation::put_part(const UOp& place, const HostArray& from, int64_t begin) {
  HostArray a{place->dtype, extents(place->shape), {}};
  const auto size = int64_t(size_bytes(a.dtype));
  const auto first = from.bytes.begin() + begin * size;
  a.bytes.assign(first, first + a.count() * size);
  put(place, std::move(a));
}

HostArray Evaluation::looped(const Node& n) const {
  const LoopBody& body = *n.get<LoopArg>().body;
  const std::vector<UOp> next = values_alone(body.next);
  const size_t states = next.size();
  HostArray out = fresh(n);
  const std::vector<std::byte>& initial = src(n, 0).bytes;
  const int64_t first = extent(first_row(n));
  std::ranges::copy(initial, out.bytes.begin() + first * ptrdiff_t(initial.size()));
  for (const LoopStep& step : steps_of(n)) {
    if (extent(step.runs) == 0) continue;
    Evaluation of_step(bindings_);
    for (size_t p = 0; p < body.places.size(); p++) {
      const HostArray& from = p < states ? out : src(n, p - states + 1);
      of_step.put_part(body.places[p], from, step.reads[p]);
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
