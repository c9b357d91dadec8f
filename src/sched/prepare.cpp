#include "sched/prepare.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "graph/scalar_eval.h"
#include "graph/walk.h"
#include "sched/sum_of_sums.h"

namespace tuff::sched {

using namespace graph;

namespace {

Shape without_ones(const Shape& s) {
  Shape out;
  std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](const Dim& d) { return !(d == 1); });
  return out;
}
// No gaps between rows: only the outermost extent may be symbolic.
bool is_dense(const Shape& s) {
  return std::all_of(s.begin() + (s.empty() ? 0 : 1), s.end(),
                     [](const Dim& d) { return d.is_const(); });
}
bool keeps_layout(const Node& reshape) {
  const Shape to = without_ones(reshape.shape), from = without_ones(reshape.src(0)->shape);
  return to == from || (is_dense(to) && is_dense(from));
}

}  // namespace

const Node* strip_reshapes(const Node* n) {
  while (n->op == Op::Reshape && keeps_layout(*n)) n = n->src(0).get();
  return n;
}

namespace {

const Storage* assigned_storage(const Node* n) {
  while (n->op == Op::Assign || n->op == Op::Reshape || n->op == Op::Detach) n = n->src(0).get();
  if (n->op != Op::Buffer)
    fail<InvalidArgument>("assign: the target is a {}, not a buffer or a reshape of one",
                          name(n->op));
  return n->get<Ref<Storage>>().get();
}

UOp filled(const Scalar& v, const Shape& shape) {
  if (shape.empty()) return constant(v);
  return expand(reshape(constant(v), Shape(shape.size(), Dim(1))), shape);
}

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n / 2, limit); d >= 8; d--) {
    if (n % d == 0) return d;
  }
  return 0;
}

// Whether elements beside each other along the axis are neighbours in memory, as far as the shape
// tells.
bool is_innermost(const Node& x, int64_t axis) {
  return std::all_of(x.shape.begin() + axis + 1, x.shape.end(),
                     [](const Dim& d) { return d == 1; });
}

bool all_const(const Shape& s) {
  for (const Dim& d : s) {
    if (!d.is_const()) return false;
  }
  return true;
}

const Node* through_casts(const Node* n) {
  while (n->op == Op::Cast) n = n->src(0).get();
  return n;
}

// How many outputs an element of a factor is used for.
int64_t reuse(const Node& factor, std::span<const int64_t> reduced) {
  int64_t n = 1;
  for (size_t a = 0; factor.op == Op::Expand && a < factor.shape.size(); a++) {
    const bool shared = factor.src(0)->shape[a] == 1 && !(factor.shape[a] == 1);
    if (shared && std::find(reduced.begin(), reduced.end(), int64_t(a)) == reduced.end())
      n *= factor.shape[a].max();
  }
  return n;
}
// Of a sum of products, each factor of which is used for so many outputs: a tile of them needs few
// loads.
bool is_matrix_product(const Node& reduce, int64_t least_reuse = 2) {
  const ReduceArg& arg = reduce.get<ReduceArg>();
  const Node* product = through_casts(reduce.src(0).get());
  if (arg.op != Op::Add || product->op != Op::Mul) return false;
  return std::all_of(product->src().begin(), product->src().end(), [&](const UOp& s) {
    return reuse(*through_casts(s.get()), arg.axes) >= least_reuse;
  });
}

int64_t reduced_count(const Node& reduce) {
  return element_count(reduce.src(0)->shape) / std::max<int64_t>(element_count(reduce.shape), 1);
}

// A row kernel between two products may keep its rows in fast memory (sched/keep.h): the second
// product, which sums over such a row, stays whole.
bool follows_rows_of_product(const Node& reduce) {
  const int64_t row = reduced_count(reduce);
  const auto is_product = [](const Node* n) {
    return n->op == Op::Reduce && is_matrix_product(*n);
  };
  bool rows = false, product = false;
  for (const UOp& factor : reduce.src()) {
    for (const Node* n : toposort_gated(std::span(&factor, 1), [&](const Node* n) {
           return n->op != Op::Contiguous && !is_product(n);
         })) {
      product = product || is_product(n);
      rows = rows || (n->op == Op::Reduce && !is_product(n) && reduced_count(*n) == row);
    }
  }
  return rows && product;
}

int64_t smallest_divisor(int64_t n, int64_t least, int64_t most) {
  for (int64_t d = least; d <= most; d++) {
    if (n % d == 0) return d;
  }
  return 0;
}

// Into how many parts a product's sum is cut so that its panels stay in the L2 cache; 0: it is not.
int64_t panel_parts(const Target& target, const Node& reduce, int64_t extent) {
  const int64_t outputs = element_count(reduce.shape), cache = int64_t(target.l2_bytes);
  const int64_t panel_bytes = reduced_count(reduce) * kSplitPanelBytes;
  const bool is_long = !target.has_local && cache > 0 && 4 * panel_bytes > 3 * cache;
  if (!is_long || outputs < kSplitMaxOutputs || !is_matrix_product(reduce, kSplitLeastReuse) ||
      follows_rows_of_product(reduce))
    return 0;
  const int64_t least = (8 * panel_bytes + 3 * cache - 1) / (3 * cache);
  return smallest_divisor(extent, least, 2 * least);
}

// How many parts a reduction of so many elements to each output is worth; 1: none.
int64_t reduce_parts(const Target& target, const Node& reduce) {
  const int64_t outputs = element_count(reduce.shape), reduced = reduced_count(reduce);
  constexpr int64_t kMostParts = 256;
  if (target.cores <= 1 && !target.has_local) return 1;
  if (outputs < kSplitMaxOutputs) return reduced > kSplitMinReduced ? kMostParts : 1;
  if (!target.has_local || !is_matrix_product(reduce)) return 1;
  constexpr int64_t kUnknownCores = 16;
  const int64_t cores = target.cores > 1 ? int64_t(target.cores) : kUnknownCores;
  const int64_t wanted = cores * int64_t(target.subgroup_size) * kSplitOutputsPerLane / outputs;
  return wanted < kSplitLeastGain ? 1 : std::min({kMostParts, wanted, reduced / kSplitLeastPart});
}

class Preparer {
 public:
  Preparer(std::span<const UOp> sinks, const TargetOf& target_of) : target_of_(target_of) {
    nodes_ = toposort(sinks);
    for (const Node* n : nodes_) {
      if (n->op == Op::Assign) last_version_[assigned_storage(n)] = n;
      for (const UOp& s : n->src()) users_[s.get()]++;
    }
    for (const UOp& s : sinks) sinks_.insert(s.get()), users_[s.get()]++;
  }

  std::vector<UOp> run(std::span<const UOp> sinks) {
    std::vector<UOp> src;
    for (const Node* n : nodes_) {
      src.clear();
      for (const UOp& s : n->src()) src.push_back(mapped_.at(s.get()));
      if (reads_memory(*n)) readers_.insert(n);
      mapped_.emplace(n, keep_device(*n, rewrite(n, src)));
    }
    std::vector<UOp> out;
    for (const UOp& s : sinks) out.push_back(protect(mapped_.at(s.get())));
    return out;
  }

 private:
  // Where no element is read (a sum over nothing) a constant is left, which knows no device: what
  // has to be stored still goes where it belongs.
  UOp keep_device(const Node& n, const UOp& to) const {
    if (!n.device || to->device || (!sinks_.count(&n) && n.op != Op::Contiguous)) return to;
    return make(Op::Contiguous, to->dtype, {to->op == Op::Contiguous ? to->src(0) : to},
                Placement{{*n.device}});
  }

  UOp rewrite(const Node* n, std::span<const UOp> src) {
    switch (n->op) {
      case Op::Detach: return src[0];
      case Op::Assign: return rewrite_assign(n, src[1]);
      case Op::Contiguous:
        return sinks_.count(n) ? with_src(UOp(n), src) : rewrite_contiguous(UOp(n), src);
      case Op::Pad:
        if (element_count(src[0]->shape) == 0) return filled(Scalar::of_int(n->dtype, 0), n->shape);
        return with_src(UOp(n), src);
      case Op::Reduce: return rewrite_reduce(n, src);
      default: return with_src(UOp(n), fit_sources(*n, src));
    }
  }

  bool reads_memory(const Node& n) const {
    return n.op == Op::Buffer || std::any_of(n.src().begin(), n.src().end(), [&](const UOp& s) {
             return readers_.count(s.get()) > 0;
           });
  }

  // A node with more sources in memory than a kernel has arguments: sources of one dtype are stored
  // beside each other in one buffer first. What one source reads is the fuser's to cut.
  std::vector<UOp> fit_sources(const Node& n, std::span<const UOp> src) const {
    std::vector<UOp> out(src.begin(), src.end());
    if (src.size() < 3 || !is_alu(n.op) || !n.device) return out;
    std::vector<size_t> readers;
    for (size_t k = 0; k < src.size(); k++) {
      if (readers_.count(n.src(k).get())) readers.push_back(k);
    }
    const size_t limit = std::max<size_t>(target_of_(*n.device).max_buffers, 2) - 1;
    if (readers.size() <= limit) return out;
    std::vector<size_t> packed;
    for (size_t k : readers) {
      if (src[k]->dtype == src.back()->dtype && packed.size() <= readers.size() - limit)
        packed.push_back(k);
    }
    const UOp stored = stack(src, packed, n.shape);
    for (size_t i = 0; i < packed.size(); i++) out[packed[i]] = slice(stored, int64_t(i), n.shape);
    return out;
  }

  // The sources along a new first axis, stored; selected, and not added, so that bits stay.
  static UOp stack(std::span<const UOp> src, std::span<const size_t> which, const Shape& shape) {
    Shape one(shape.size() + 1, Dim(1)), row = shape, all = shape;
    row.insert(row.begin(), Dim(1));
    all.insert(all.begin(), Dim(int64_t(which.size())));
    Shape counter = one;
    counter[0] = all[0];
    const UOp number = expand(reshape(iota(all[0], DType::I32), counter), all);
    UOp v;
    for (size_t i = which.size(); i-- > 0;) {
      const UOp& s = src[which[i]];
      const UOp x = expand(reshape(s, s->shape.empty() ? one : row), all);
      v = v ? where(alu(Op::CmpEq, {number, constant(DType::I32, double(i))}), x, v) : x;
    }
    return make(Op::Contiguous, DType::Void, {v});
  }
  static UOp slice(const UOp& stored, int64_t i, const Shape& shape) {
    Pairs part{{Dim(i), Dim(i + 1)}};
    for (const Dim& d : shape) part.push_back({Dim(0), d});
    return reshape(shrink(stored, part), shape);
  }

  // Only the last version is stored; those before it are values that later nodes read.
  UOp rewrite_assign(const Node* n, const UOp& value) {
    const Storage* s = assigned_storage(n);
    if (last_version_.at(s) != n) return value;
    const UOp target = reshape(buffer(Ref<Storage>(const_cast<Storage*>(s))), n->shape);
    return make(Op::Assign, n->dtype, {target, value});
  }

  // Memory that is row-major already needs no second copy, unless the caller is to own it.
  UOp rewrite_contiguous(const UOp& n, std::span<const UOp> src) {
    switch (strip_reshapes(src[0].get())->op) {
      case Op::Buffer:
      case Op::Contiguous:
      case Op::Copy:
      case Op::Assign: return src[0];
      default: return with_src(n, src);
    }
  }

  UOp rewrite_reduce(const Node* n, std::span<const UOp> src) {
    const ReduceArg& arg = n->get<ReduceArg>();
    if (element_count(src[0]->shape) == 0)
      return filled(reduce_identity(arg.op, n->dtype), n->shape);
    const UOp whole = with_src(UOp(n), src);
    if (const Node* inner = inner_sum(*n); inner && used_once(n->src(0).get(), inner)) {
      if (const UOp both = one_sum(whole)) return both;
    }
    const UOp split = split_reduce(whole);
    return split ? split : whole;
  }

  // All from `n` down to `to`.
  bool used_once(const Node* n, const Node* to) const {
    while (n != to && users_.at(n) == 1) n = n->src(0).get();
    return users_.at(n) == 1;
  }

  UOp split_reduce(const UOp& n) {
    const UOp& x = n->src(0);
    if (!n->device || !all_const(x->shape)) return {};
    const ReduceArg& arg = n->get<ReduceArg>();
    int64_t axis = arg.axes[0];
    for (int64_t a : arg.axes) {
      if (x->shape[a].value() > x->shape[axis].value()) axis = a;
    }
    const Target& target = target_of_(*n->device);
    const int64_t extent = x->shape[axis].value();
    if (const int64_t parts = panel_parts(target, *n, extent)) return in_panels(n, axis, parts);
    const int64_t most = reduce_parts(target, *n);
    const int64_t parts = most > 1 ? largest_divisor(extent, most) : 0;
    if (!parts) return {};
    // A part is a run of memory, which a core or a workgroup walks. Across memory the invocations
    // of a GPU are parts beside each other: neighbours read neighbouring elements.
    const bool runs = !target.has_local || is_innermost(*x, axis);
    return in_parts(n, axis, parts, !runs);
  }

  // What is stored between the kernels is not rounded to half a word.
  static DType stored_type(DType t) { return is_float(t) && size_bytes(t) < 4 ? DType::F32 : t; }

  // The products of all outputs beside each other, part after part.
  UOp in_panels(const UOp& n, int64_t axis, int64_t parts) const {
    const ReduceArg& arg = n->get<ReduceArg>();
    const DType stored_as = stored_type(n->dtype);
    Shape wide = n->src(0)->shape;
    wide[axis] = Dim(wide[axis].value() / parts);
    wide.insert(wide.begin() + axis, Dim(parts));
    IntVec first, order{axis};
    for (int64_t a : arg.axes) first.push_back(a >= axis ? a + 1 : a);
    for (int64_t a = 0; a < int64_t(wide.size()); a++) {
      if (a != axis) order.push_back(a);
    }
    const UOp x = stored_as == n->dtype ? n->src(0) : cast(n->src(0), stored_as);
    const UOp partial = permute(reduce(arg.op, reshape(x, wide), first), order);
    const UOp sum = reduce(arg.op, make(Op::Contiguous, stored_as, {partial}), {0});
    return reshape(stored_as == n->dtype ? sum : cast(sum, n->dtype), n->shape);
  }

  UOp in_parts(const UOp& n, int64_t axis, int64_t parts, bool parts_inner) const {
    const ReduceArg& arg = n->get<ReduceArg>();
    const DType stored_as = stored_type(n->dtype);
    const UOp x = stored_as == n->dtype ? n->src(0) : cast(n->src(0), stored_as);
    const int64_t extent = x->shape[axis].value();
    Shape wide = x->shape;
    wide[axis] = Dim(parts_inner ? extent / parts : parts);
    wide.insert(wide.begin() + axis + 1, Dim(parts_inner ? parts : extent / parts));
    IntVec first;
    for (int64_t a : arg.axes) {
      if (a != axis) first.push_back(a > axis ? a + 1 : a);
    }
    const int64_t part_axis = parts_inner ? axis + 1 : axis;
    first.push_back(parts_inner ? axis : axis + 1);
    const UOp partial = reduce(arg.op, reshape(x, wide), first);
    const UOp sum = reduce(arg.op, make(Op::Contiguous, stored_as, {partial}), {part_axis});
    return reshape(stored_as == n->dtype ? sum : cast(sum, n->dtype), n->shape);
  }

  UOp protect(const UOp& sink) {
    const Node* base = strip_reshapes(sink.get());
    if (base->op != Op::Buffer || !last_version_.count(base->get<Ref<Storage>>().get()))
      return sink;
    return make(Op::Contiguous, sink->dtype, {sink});
  }

  const TargetOf& target_of_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Storage*, const Node*> last_version_;
  std::unordered_set<const Node*> sinks_, readers_;  // readers: some Buffer is below
  std::unordered_map<const Node*, int> users_;
  std::unordered_map<const Node*, UOp> mapped_;
};

}  // namespace

std::vector<UOp> prepare(std::span<const UOp> sinks, const TargetOf& target_of) {
  return Preparer(sinks, target_of).run(sinks);
}

}  // namespace tuff::sched
