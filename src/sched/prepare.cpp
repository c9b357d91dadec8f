#include "sched/prepare.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "ir/extents.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"
#include "sched/bounds_inference.h"
#include "sched/parts.h"
#include "sched/pick.h"
#include "sched/scaled_products.h"
#include "sched/scatter_parts.h"
#include "sched/scattered_sum.h"
#include "sched/sum_of_sums.h"

namespace tuff::sched {

using namespace ir;

namespace {

Shape without_ones(const Shape& s) {
  Shape out;
  std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](const Dim& d) { return !(d == 1); });
  return out;
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

// "64x65536"; of numbers.
std::string extents(const Shape& shape) {
  std::string out;
  for (const Dim& d : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", d.value());
  return out;
}

class Preparer {
 public:
  Preparer(std::span<const UOp> sinks, const TargetOf& target_of, const StepChoice& steps)
      : target_of_(target_of), steps_(steps) {
    nodes_ = toposort(sinks);
    for (const Node* n : nodes_) {
      if (n->op == Op::Assign) last_version_[assigned_storage(n)] = n;
      // What a Detach has besides its value is for gradients.
      for (const UOp& s : n->src().first(n->op == Op::Detach ? 1 : n->src_count)) users_[s.get()]++;
    }
    for (const UOp& s : sinks) sinks_.insert(s.get()), users_[s.get()]++;
    find_last_states();
    for (const auto& [storage, last] : last_version_) find_parts(last);
  }

  Prepared run(std::span<const UOp> sinks) {
    std::vector<UOp> src;
    for (const Node* n : nodes_) {
      src.clear();
      for (const UOp& s : n->src()) src.push_back(mapped_.at(s.get()));
      if (reads_memory(*n)) readers_.insert(n);
      mapped_.emplace(n, keep_device(*n, rewrite(n, src)));
    }
    for (const UOp& s : sinks) out_.sinks.push_back(protect(mapped_.at(s.get())));
    return std::move(out_);
  }

 private:
  // Versions that differ from memory in nothing but parts are stored there, one after the other.
  void find_parts(const Node* last) {
    std::vector<const Node*> versions;
    const Node* n = last;
    while (n->op != Op::Buffer) {
      const bool is_part = assigned_part(*n) && !is_symbolic(n->shape);
      if (n->op == Op::Assign && !is_part) return;
      if (n->op == Op::Reshape && !keeps_layout(*n)) return;
      if (is_part) versions.push_back(n);
      n = n->src(0).get();
    }
    parts_.insert(versions.begin(), versions.end());
  }

  // Loops of which nothing is read but the last states have no memory for those before.
  void find_last_states() {
    std::unordered_set<const Node*> kept(sinks_.begin(), sinks_.end()), whole = kept;
    std::vector<const Node*> loops;
    for (const Node* n : nodes_) {
      if (n->op == Op::Loop) loops.push_back(n);
      for (const UOp& s : n->src()) {
        if (s->op == Op::Loop && !reads_last_state(*n, *s)) kept.insert(s.get());
        if (s->op == Op::Loop && n->op != Op::Shrink) whole.insert(s.get());
      }
    }
    // One loop for a value and for what its gradient wants to know besides.
    for (const Node* n : loops) {
      const auto has_all = [n](const Node* more) { return has_states_of(*more, *n); };
      const auto more = std::ranges::find_if(loops, has_all);
      if (more == loops.end() || whole.count(n)) continue;
      within_[n] = *more;
      kept.insert({n, *more});
    }
    for (const Node* n : loops)
      if (!kept.count(n)) last_alone_.insert(n);
  }
  static bool reads_last_state(const Node& n, const Node& loop) {
    if (n.op != Op::Shrink) return false;
    const DimPair& rows = n.get<Pairs>()[0];
    return rows.a == last_row(loop) && rows.b == last_row(loop) + Dim(1);
  }
  UOp rewrite_shrink(const Node* n, std::span<const UOp> src) const {
    if (!last_alone_.count(n->src(0).get())) return with_src(UOp(n), src);
    Pairs part = n->get<Pairs>();
    const Dim row = last_row(*src[0]);
    part[0] = {row, row + Dim(1)};
    return shrink(src[0], part);
  }

  // Sources that have to be memory: also what has become a constant, which knows no device.
  static std::vector<UOp> in_memory(const Node& n, std::span<const UOp> src) {
    std::vector<UOp> there(src.begin(), src.end());
    for (UOp& s : there)
      if (!s->device) s = make(Op::Contiguous, s->dtype, {s}, Placement{{*n.device}});
    return there;
  }

  UOp rewrite_loop(const Node* n, std::span<const UOp> src) const {
    if (!n->device) fail<InvalidArgument>("a loop reads nothing that is on a device");
    std::vector<UOp> there = in_memory(*n, src);
    if (const auto more = within_.find(n); more != within_.end()) {
      there[0] = pad(there[0], more->second->src(0)->get<Pairs>());
      return with_src(UOp(more->second), there);
    }
    const UOp u = with_src(UOp(n), there);
    return last_alone_.count(n) ? with_last_states(u) : u;
  }

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
      case Op::Again: return rewrite_again(*n, src);
      case Op::Assign: return rewrite_assign(n, src);
      case Op::Contiguous:
        return sinks_.count(n) ? with_src(UOp(n), src) : rewrite_contiguous(UOp(n), src);
      case Op::Pad:
        if (element_count(src[0]->shape) == 0) return filled(Scalar::of_int(n->dtype, 0), n->shape);
        return with_src(UOp(n), src);
      case Op::Shrink: return rewrite_shrink(n, src);
      case Op::Loop: return rewrite_loop(n, src);
      case Op::CustomKernel: return with_src(UOp(n), in_memory(*n, src));
      case Op::Reduce: return rewrite_reduce(n, src);
      case Op::Scatter:
        return element_count(src[1]->shape) == 0 ? src[0] : rewrite_scatter(with_src(UOp(n), src));
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

  // Only the last version is stored, or parts up to it; those before it are values that later nodes
  // read.
  UOp rewrite_assign(const Node* n, std::span<const UOp> src) {
    const Pairs* part = assigned_part(*n);
    const bool changes = !part || element_count(src[1]->shape) > 0;
    if (parts_.count(n) && changes)
      return make(Op::Assign, n->dtype, {src[0], stored_once(n->src(1).get(), src[1])}, *part);
    const UOp value = !changes ? src[0] : part ? put(src[0], *part, src[1]) : src[1];
    if (parts_.count(n)) return value;
    const Storage* s = assigned_storage(n);
    if (last_version_.at(s) != n) return value;
    const UOp target = reshape(buffer(Ref<Storage>(const_cast<Storage*>(s))), n->shape);
    return make(Op::Assign, n->dtype, {target, value});
  }

  // What is put into a part is stored there, and nowhere else before.
  UOp stored_once(const Node* value, const UOp& to) const {
    const bool only_here = value->op == Op::Contiguous && users_.at(value) == 1;
    return only_here && to->op == Op::Contiguous ? to->src(0) : to;
  }

  // Memory that is row-major already needs no second copy, unless the caller is to own it.
  UOp rewrite_contiguous(const UOp& n, std::span<const UOp> src) {
    switch (strip_reshapes(src[0].get())->op) {
      case Op::Buffer:
      case Op::Contiguous:
      case Op::Copy:
      case Op::Scatter:
      case Op::CustomKernel:
      case Op::Assign: return src[0];
      default: return with_src(n, src);
    }
  }

  // What reads no memory is computed where it is wanted; what only orders may be any value.
  static UOp rewrite_again(const Node& n, std::span<const UOp> src) {
    return src[0]->device ? with_src(UOp(&n), src) : src[0];
  }

  UOp rewrite_scatter(const UOp& whole) {
    if (const UOp atomic = combined_atomically(whole)) return atomic;
    if (!whole->device || steps_.skips(Step::Parts)) return whole;
    const UOp parts = scattered_in_parts(whole, target_of_(*whole->device));
    return parts ? parts : whole;
  }

  UOp combined_atomically(const UOp& u) const {
    ScatterArg arg = u->get<ScatterArg>();
    const bool is_free = steps_.any_order && u->device;
    const int64_t places = element_count(u->shape);
    if (!is_free || !is_combined_atomically(arg, u->dtype, places, target_of_(*u->device)))
      return {};
    arg.named = Named::Unordered;
    return scatter(u->src(0), u->src(1), u->src(2), arg);
  }

  UOp rewrite_reduce(const Node* n, std::span<const UOp> src) {
    const ReduceArg& arg = n->get<ReduceArg>();
    if (element_count(src[0]->shape) == 0)
      return filled(reduce_identity(arg.op, n->dtype), n->shape);
    const UOp whole = with_src(UOp(n), src);
    if (const ScaledProducts scaled = scaled_products(whole); scaled.sum)
      return alu(Op::Mul, {split_sum(scaled.sum), scaled.scale});
    if (whole->device && !steps_.skips(Step::ByIndex)) {
      const UOp stored = scattered_sum(whole, target_of_(*whole->device), steps_.any_order);
      if (stored) return stored;
    }
    if (const Node* inner = inner_sum(*n);
        inner && !steps_.skips(Step::OneSum) && used_once(n->src(0).get(), inner)) {
      if (const UOp both = one_sum(whole)) return both;
    }
    if (whole->device && users_.at(n->src(0).get()) == 1) {
      UOp sum;
      for (const UOp& product : products_of_sum(whole)) {
        const UOp own = split_sum(product);
        sum = sum ? alu(Op::Add, {sum, own}) : own;
      }
      if (sum) return cast(sum, whole->dtype);
    }
    return split_sum(whole);
  }

  UOp split_sum(const UOp& whole) {
    // Sources may have become constants, which have no device. A load has no parts.
    const bool splits = whole->device && !steps_.skips(Step::Parts) && !picks_elements(*whole);
    return splits ? made_of_parts(whole) : whole;
  }

  UOp made_of_parts(const UOp& whole) {
    const std::optional<Parts> parts = steps_.random_seed
                                           ? random_parts(whole, steps_.random_seed)
                                           : choose_parts(*whole, target_of_(*whole->device));
    if (!parts) return whole;
    out_.parts.push_back(fmt::format("{} of {} {} {}", to_string(*parts),
                                     name(whole->get<ReduceArg>().op), short_name(whole->dtype),
                                     extents(whole->src(0)->shape)));
    return in_parts(whole, *parts);
  }

  // All from `n` down to `to`.
  bool used_once(const Node* n, const Node* to) const {
    while (n != to && users_.at(n) == 1) n = n->src(0).get();
    return users_.at(n) == 1;
  }

  UOp protect(const UOp& sink) {
    const Node* base = strip_reshapes(sink.get());
    if (base->op == Op::Again) return make(Op::Contiguous, sink->dtype, {sink});
    if (assigned_part(*base) && base != stored_last(base))
      return make(Op::Contiguous, sink->dtype, {sink});
    if (base->op != Op::Buffer || !last_version_.count(base->get<Ref<Storage>>().get()))
      return sink;
    return make(Op::Contiguous, sink->dtype, {sink});
  }

  // The last version of the memory that a part is stored in.
  const Node* stored_last(const Node* part) const {
    return strip_reshapes(mapped_.at(last_version_.at(assigned_storage(part))).get());
  }

  const TargetOf& target_of_;
  const StepChoice& steps_;
  Prepared out_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Storage*, const Node*> last_version_;
  std::unordered_set<const Node*> sinks_, readers_;  // readers: some Buffer is below
  std::unordered_map<const Node*, const Node*> within_;  // Loops, and those that have their states
  std::unordered_set<const Node*> last_alone_;  // Loops of which the last states are read
  std::unordered_set<const Node*> parts_;            // Assigns that store a part of memory
  std::unordered_map<const Node*, int> users_;
  std::unordered_map<const Node*, UOp> mapped_;
};

}  // namespace

Prepared prepare(std::span<const UOp> sinks, const TargetOf& target_of, const StepChoice& steps) {
  std::vector<UOp> values = values_alone(sinks);
  if (has_place(values))
    fail<InvalidArgument>(
        "a tensor is read that stands for others: backward() of a Function is called once, with "
        "stand-ins for gradients, a function of vmap with one for all slices and one of scan with "
        "those for all steps: compute with them and return what is computed");
  if (!steps.skips(Step::Crop)) values = infer_bounds(values);
  return Preparer(values, target_of, steps).run(values);
}

}  // namespace tuff::sched
