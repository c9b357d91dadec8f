// The AST over the parts that opts have split its ranges into (build). Called by the pass
// opts. What is legal has been decided before.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/arith.h"
#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/build_row_matrices.h"
#include "kernel/opt/built_axis.h"
#include "kernel/opt/matrices.h"
#include "kernel/opt/rules.h"
#include "kernel/opt/stage.h"
#include "kernel/opt/seen_slabs.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Makes the ranges of all axes. Nests beside each other have vector lanes and the launch that they
// are shared out to in common: the same Ranges.
class AxisBuilder {
 public:
  // in_place: the kernel loads what it stores.
  AxisBuilder(const Target& target, bool in_place) : target_(target), in_place_(in_place) {}

  // `element`: what stands for the axis inside a matrix, if it has such a part.
  BuiltAxis build(const Axis& axis, const UOp& element) {
    BuiltAxis b;
    b.within = index_const(0);
    for (size_t i = 0; i < axis.parts.size(); i++) {
      const AxisPart& p = axis.parts[i];
      if (axis.slabs && i == 0) {
        b.value = b.slab = b.ranges.emplace_back(joint(p, p.kind));
        if (axis.backwards) b.value = index_const(axis.backwards - 1) - b.slab;
        continue;
      }
      if (p.kind == AxisKind::Matrix) {
        b.base = (b.value ? b.value : index_const(0)) * p.size;
        if (axis.padded) begin_last_early(b, axis.range->src(0)->max, p.size->max);
        b.value = b.base + element;
        continue;
      }
      const bool shared_out = axis.rows && int(i) == axis.main;
      const UOp loop = shared_out ? rows_loop(axis) : UOp();
      if (loop ? loop->src(0)->is_const_int(1) : p.size->is_const_int(1)) continue;
      const UOp r = loop                ? loop
                    : is_joint(axis, p) ? joint(p, joint_kind(axis, p))
                                        : range(p.size, id_of(axis, i), p.kind);
      const UOp at = axis.rows && p.kind == AxisKind::Group ? busy_turn(axis, p) : r;
      b.value = b.value ? b.value * p.size + at : at;
      b.within = b.within * p.size + at;
      b.ranges.push_back(r);
    }
    if (!b.value) b.value = index_const(0);
    if (!b.base) b.base = b.value;
    const UOp& size = axis.range->src(0);
    if (b.first) {
      if (!axis.reduced) b.valid = is_own(b, b.value);
      b.gates = in_place_ && !axis.reduced;
    } else if (const int64_t tile = shifted_tile(axis)) {
      // Its lanes stay neighbours, and all its loads inside; the tile before stores what both have.
      const UOp place = floormod(b.value, tile), first = b.value - place;
      b.value = where(lt(first, size - tile), first, size - tile) + place;
      b.first = first;
      b.valid = is_own(b, b.value);
    } else if (axis.padded) {
      b.valid = lt(b.value, size);
      // What vector lanes walk stays contiguous: a gate costs less there than a gather. In place no
      // lane loads what is another one's to store.
      b.gates = (in_place_ && !axis.reduced) ||
                std::ranges::any_of(axis.parts, [&](auto& p) { return is_vector(p); });
      if (!b.gates) b.value = where(b.valid, b.value, size - 1);
    }
    return b;
  }
  // Whether an element of a matrix is one of no other.
  static UOp is_own(const BuiltAxis& b, const UOp& element) {
    return lt(b.first - 1, floordiv(element, index_const(b.granule)));
  }
  int32_t& next_id() { return next_id_; }

 private:
  // So that the last matrix ends with the axis. In granules, neighbours of one are proven to be
  // aligned, and have one mask.
  static void begin_last_early(BuiltAxis& b, int64_t size, int64_t matrix) {
    b.granule = std::gcd(size, matrix);
    b.first = simplify(floordiv(b.base, index_const(b.granule)));
    const UOp last = index_const((size - matrix) / b.granule);
    b.base = where(lt(b.first, last), b.first, last) * b.granule;
  }
  // Partial sums of a CPU are lanes of vectors where they fill some.
  bool is_vector(const AxisPart& p) const {
    return p.kind == AxisKind::Vector ||
           (p.kind == AxisKind::ReduceLane && !target_.has_local &&
            p.size->max * int64_t(sizeof(float)) >= int64_t(target_.vector_bytes));
  }
  // Elements of what a workgroup, or a step of it, has of an axis, if the last one begins early
  // enough to end with the axis: lanes then need no masks of their own. 0: they are masked.
  int64_t shifted_tile(const Axis& axis) const {
    if (!target_.has_local || !axis.padded || axis.reduced || axis.kept || axis.rows || in_place_ ||
        axis.lanes() == 1)
      return 0;
    int64_t tile = 1;
    for (const AxisPart& p : std::span(axis.parts).subspan(size_t(axis.main) + 1))
      tile *= p.size->max;
    return tile > 1 && tile <= axis.range->src(0)->min ? tile : 0;
  }
  // Groups inside of an axis' groups are the innermost of the launch: beside them others follow.
  int32_t id_of(const Axis& axis, size_t part) {
    const auto is_group = [](const AxisPart& p) { return p.kind == AxisKind::Group; };
    const auto outer = std::span(axis.parts).first(part);
    const bool inner = is_group(axis.parts[part]) && std::ranges::any_of(outer, is_group);
    return inner ? kInnerGroups + next_id_++ : next_id_++;
  }
  static bool is_joint(const Axis& axis, const AxisPart& p) {
    const bool launches = p.kind == AxisKind::Group || p.kind == AxisKind::Local ||
                          p.kind == AxisKind::GroupReduce;
    return p.kind == AxisKind::Vector || (axis.column && p.kind == AxisKind::Local) ||
           (axis.rows && launches);
  }
  // Columns of kept rows are the invocations that share reductions of them.
  static AxisKind joint_kind(const Axis& axis, const AxisPart& p) {
    return axis.column && p.kind == AxisKind::Local ? AxisKind::GroupReduce : p.kind;
  }
  UOp joint(const AxisPart& p, AxisKind kind) {
    for (const UOp& r : joint_) {
      if (r->get<RangeArg>().kind == kind) return r;
    }
    joint_.push_back(range(p.size, next_id_++, kind));
    return joint_.back();
  }
  // Which of the nest's groups this one is: nests begin where the one before ended, so that short
  // ones do not all go to the first groups.
  UOp turn(const Axis& axis, const AxisPart& groups) {
    const int64_t n = groups.size->max;
    const UOp group = joint(groups, AxisKind::Group);
    return axis.first ? floormod(group + (n - axis.first), n) : group;
  }
  // A group without rows makes no iteration, but what depends on the group alone leaves the loop:
  // it is done for the last group that has some.
  UOp busy_turn(const Axis& axis, const AxisPart& groups) {
    const UOp group = turn(axis, groups);
    const int64_t most = axis.parts[axis.main].size->max;
    const int64_t busy = shared_in_turn(axis) ? axis.rows : ceil_div(axis.rows, most);
    if (busy >= groups.size->max) return group;
    return where(lt(group, index_const(busy)), group, index_const(busy - 1));
  }
  static bool shared_in_turn(const Axis& axis) {
    const size_t next = size_t(axis.main) + 1;
    return next < axis.parts.size() && axis.parts[next].kind == AxisKind::Group;
  }
  // As many iterations as there are rows for this group: numbers known here, chosen by its id.
  UOp rows_loop(const Axis& axis) {
    const bool in_turn = shared_in_turn(axis);
    const AxisPart& groups = axis.parts[in_turn ? axis.main + 1 : axis.main - 1];
    const int64_t n = groups.size->max, most = axis.parts[axis.main].size->max;
    const int64_t full = in_turn ? axis.rows - (most - 1) * n : axis.rows / most;
    const int64_t rest = in_turn ? most - 1 : axis.rows % most;
    UOp size = index_const(most);
    if (full < n) {
      const UOp group = turn(axis, groups);
      const UOp others =
          in_turn ? index_const(rest)
                  : where(lt(group, index_const(full + 1)), index_const(rest), index_const(0));
      size = where(lt(group, index_const(full)), size, others);
    }
    return range(size, next_id_++, AxisKind::Loop);
  }

  static constexpr int32_t kInnerGroups = 1 << 16;  // ids of ranges, behind all others

  const Target& target_;
  const bool in_place_;
  int32_t next_id_ = 0;
  std::vector<UOp> joint_;
};

UOp zero_unless(const UOp& valid, const UOp& value) {
  return where(valid, value, constant(reduce_identity(Op::Add, value->dtype)));
}

// Rebuilds a Tiling's AST over the parts of its axes.
class Builder {
 public:
  explicit Builder(const Tiling& t)
      : t_(t),
        old_deps_(t.ast),
        axes_(t.target, reads_any(t.ast, stored_params(t.ast))),
        built_(t.axes.size()) {
    build_axes();
    const std::vector<Opt> staged = copies_of(t, t.staged);
    for (const Node* n : toposort(t.ast)) {
      if (n->op == Op::Shared) copies_ = std::max(copies_, n->get<SharedArg>().number + 1);
    }
    for (const Opt& o : staged) {
      const Tiling::Operand& operand = operands(t)[size_t(o.axis)];
      if (operand.product) staged_[operand.product.get()].push_back(o);
      else staged_loads_.push_back(o);
    }
    if (!staged.empty()) find_masked_copies();
    for (size_t i = 0; i < built_.size(); i++) {
      if (built_[i].gates) gating_.push_back(i);
    }
    if (!t.row_matrices.empty())
      rows_.emplace(t, built_, workgroup(), axes_.next_id(), copies_);
  }
  std::optional<SubgroupRows> rows() const {
    return rows_ ? std::optional(rows_->rows()) : std::nullopt;
  }

  UOp operator()(const UOp& old, std::span<const UOp> src) {
    for (size_t i = 0; old->op == Op::Load && i < staged_loads_.size(); i++) {
      if (operands(t_)[size_t(staged_loads_[i].axis)].value == old) return copies_of_loads()[i];
    }
    return rebuilt(old, src);
  }

 private:
  UOp rebuilt(const UOp& old, std::span<const UOp> src) {
    switch (old->op) {
      case Op::Range: return built_[size_t(axis_of(t_, old.get()))].value;
      case Op::Load:
        if (rows_ && in_slab(old->src(0))) return element_of_row(old, src);
        break;
      case Op::Index: return in_slab(old) ? element_of_slab(old, src) : gated(old, src);
      case Op::Shared: return slab_of(old);
      case Op::End:
      case Op::Reduce: return closing(old, src);
      case Op::Mul:
        if (const auto it = staged_.find(old.get()); it != staged_.end() && !t_.matrices)
          return staged_product(old, it->second, src);
        break;
      default: break;
    }
    return is_alu(old->op) && old->op != Op::Cast && old->op != Op::Bitcast
               ? alu(old->op, src, old->arg)
               : UOp();
  }

  // Where a loop has as many iterations as a launch group says, the group is built first.
  void build_axes() {
    UOpMap<UOp> groups;
    if (const auto& m = t_.matrices)
      elements_ = matrix_elements(*m, t_.target.subgroup_size, axes_.next_id());
    const ShownColumns seen = seen_of_slabs(t_);
    for (const bool sized_by_groups : {false, true}) {
      for (size_t i = 0; i < built_.size(); i++) {
        Axis axis = t_.axes[i];
        const bool skips = axis.slabs && bool(seen);
        const bool by_groups =
            skips || std::ranges::any_of(toposort(axis.range->src(0)),
                                         [](const Node* n) { return n->op == Op::Range; });
        if (by_groups != sized_by_groups) continue;
        for (AxisPart& p : axis.parts) p.size = by_groups ? substitute(p.size, groups) : p.size;
        if (skips) take_seen_slabs(axis, seen, t_, built_);
        built_[i] = axes_.build(axis, element_of(int(i)));
        groups.emplace(axis.range, built_[i].value);
      }
    }
  }

  UOp element_of(int axis) const {
    const auto& m = t_.matrices;
    if (!m || axis == m->k || axis == m->pair) return index_const(0);
    return axis == m->m ? elements_.row : axis == m->n ? elements_.column : UOp();
  }
  UOp matrices(std::span<const UOp> summed) {
    std::vector<UOp> ranges;
    UOpMap<UOp> begin;
    for (int a : t_.order) {
      const BuiltAxis& b = built_[size_t(a)];
      ranges.insert(ranges.end(), b.ranges.begin(), b.ranges.end());
      begin.emplace(t_.axes[size_t(a)].range, b.base);
    }
    const MatrixProduct& p = *t_.matrices;
    std::array<MatrixPlace, 2> factors;
    for (const MatrixOperand* f : {&p.a, &p.b}) {
      const UOp first = f->computed ? UOp() : element(*f, begin);
      factors[size_t(f->source)] = {first, f->lines};
    }
    const auto staged = staged_.find(p.reduce->src(0).get());
    if (staged != staged_.end()) copy_matrices(staged->second, begin, factors);
    const UOp sum = matrix_sum(p, factors, summed);
    return p.stored ? sum : matrix_element(p, sum, ranges, elements_, copies_++);
  }
  static UOp element(const MatrixOperand& f, const UOpMap<UOp>& at) {
    const UOp& index = f.value->src(0);
    return make_index(index->src(0), simplify(substitute(index->src(1), at)));
  }
  // By the workgroup, into its memory; `begin`: where matrices begin, by axis.
  void copy_matrices(const std::vector<Opt>& opts, const UOpMap<UOp>& begin,
                     std::array<MatrixPlace, 2>& factors) {
    const MatrixProduct& p = *t_.matrices;
    LocalTile tile = tile_ranges(p.reduce->src(0), opts[0].amount);
    UOpMap<UOp> at = begin;
    const auto inside = [&](int axis, int64_t size) {
      const Axis& a = t_.axes[size_t(axis)];
      const AxisKind kind = a.reduced ? AxisKind::ReduceLane : AxisKind::Lane;
      const UOp r = range(index_const(size), axes_.next_id()++, kind);
      tile.inside.push_back(r);
      at[a.range] = at[a.range] + r;
      return r;
    };
    const UOp m = inside(p.m, p.shape.m), n = inside(p.n, p.shape.n), k = inside(p.k, p.shape.k);
    std::vector<UOp> values;
    for (const Opt& o : opts) {
      const bool left = source_of(o) == size_t(p.a.source);
      const MatrixOperand& f = p.factor(int(source_of(o)));
      const UOp row = left ? m : k, column = left ? k : n;
      tile.matrices.push_back(f.lines.by_columns ? LocalTile::Lines{row, column}
                                           : LocalTile::Lines{column, row});
      const UOp value =
          f.computed ? simplify(substitute(f.value, at)) : make_load(element(f, at));
      // What an earlier step has summed is zero in both: nothing times zero need be zero.
      const BuiltAxis& steps = built_[size_t(p.k)];
      const UOp& step = at[t_.axes[size_t(p.k)].range];
      values.push_back(steps.first ? zero_unless(AxisBuilder::is_own(steps, step), value) : value);
    }
    const std::vector<LocalTile::Lines> lines = tile.matrices;
    const std::vector<UOp> copies = copy_together(std::move(tile), opts, values);
    for (size_t i = 0; i < copies.size(); i++) {
      const UOp& index = copies[i]->src(0);
      const UOp &along = lines[i].along, &across = lines[i].across;
      const UOp first =
          substitute(index->src(1), {{along, index_const(0)}, {across, index_const(0)}});
      MatrixPlace& place = factors[source_of(opts[i])];
      place.begin = make_index(index->src(0), simplify(first));
      place.lines.stride = coefficient(index->src(1), across).value();
    }
  }

  bool walks(const UOp& offset, size_t axis) {
    return (old_deps_.of(offset) & old_deps_.bit(t_.axes[axis].range)) != 0;
  }

  // Whether it is an element of a kept row that is taken slab by slab.
  bool in_slab(const UOp& index) const {
    const int axis = axis_of(t_, index->src(1).get());
    const bool keeps = without_after(index->src(0).get())->op == Op::Shared;
    return keeps && axis >= 0 && t_.axes[size_t(axis)].slabs;
  }
  UOp element_of_slab(const UOp& index, std::span<const UOp> src) const {
    const BuiltAxis& b = built_[size_t(axis_of(t_, index->src(1).get()))];
    if (rows_ && rows_->keeps(without_after(src[0].get()))) return rows_->element(src[0], b.within);
    return make_index(src[0], b.within);
  }
  // Of a row that is filled with sums: what its element is made of the one sum. Of one in another
  // dtype than it was, that is widened.
  UOp element_of_row(const UOp& load, std::span<const UOp> src) {
    const UOp raw = make_load(src[0]);
    const RowMatrices* m = rows_->filled(without_after(load->src(0)->src(0).get()));
    if (!m) return cast(raw, load->dtype);
    const UOp& value = m->filled->src(0)->src(1);
    const UOp sum = make(Op::Register, m->element->dtype, {}, kSumOfRow);
    const UOp made =
        substitute(value, {{m->filled->src(1), load->src(0)->src(1)}, {m->element, sum}});
    return rebuild(made, [&](const UOp& old, std::span<const UOp> below) {
      return old == sum ? raw : rebuilt(old, below);
    });
  }
  UOp slab_of(const UOp& memory) const {
    for (size_t a = 0; a < built_.size(); a++) {
      if (!t_.axes[a].slabs) continue;
      if (rows_ && rows_->keeps(memory.get())) return rows_->memory(memory);
      int64_t elements = 1;
      for (const AxisPart& p : std::span(t_.axes[a].parts).subspan(1)) elements *= p.size->max;
      return make(Op::Shared, memory->dtype, {},
                  SharedArg{memory->get<SharedArg>().number, elements});
    }
    return memory;
  }

  UOp gated(const UOp& old, std::span<const UOp> src) {
    UOp index = with_src(old, src);
    for (size_t a : gating_) {
      if (walks(old->src(1), a)) index = with_gate(index, built_[a].valid);
    }
    return index;
  }

  UOp closing(const UOp& old, std::span<const UOp> src) {
    if (rows_ && old->op == Op::Reduce)
      if (const RowMatrices* m = rows_->of_reduce(old)) return rows_->sums(*m, src[0]);
    std::vector<UOp> out{src[0]};
    for (int a : closed(old)) {
      const BuiltAxis& b = built_[size_t(a)];
      for (const UOp& r : b.ranges) {
        // A row is filled inside the loop over its slabs.
        if (!(old->op == Op::End && r == b.slab)) out.push_back(r);
      }
      if (!b.valid) continue;
      if (old->op == Op::End) {
        const UOp& place = old->src(0)->src(0);
        if (in_slab(place)) continue;  // it has room for them, and no reduction of it reads them
        if (b.gates && walks(place->src(1), size_t(a))) continue;
        out[0] = make(Op::Store, DType::Void,
                      {with_gate(out[0]->src(0), b.valid), out[0]->src(1)}, out[0]->arg);
      } else {
        out[0] = identity_unless(old, a, out[0]);
      }
    }
    if (rows_ && old->op == Op::End)
      if (const UOp end = rows_->end(old, src[0], std::span<const UOp>(out).subspan(1))) return end;
    if (t_.matrices && old == t_.matrices->reduce)
      return matrices(std::span<const UOp>(out).subspan(1));
    if (t_.matrices && old->op == Op::End) {
      if (t_.matrices->stored)
        out[0] = matrix_store(*t_.matrices, out[0]->src(0), out[0]->src(1));
      out.insert(out.end(), elements_.ranges.begin(), elements_.ranges.end());
    }
    if (old->op == Op::Reduce && out.size() == 1) return out[0];
    return with_src(old, out);
  }

  // What an iteration past the end adds. In a sum of products the factors become zero: a register
  // tile has fewer of them than products, and where a factor is copied the zero is in the copy.
  UOp identity_unless(const UOp& reduce, int axis, const UOp& value) const {
    const UOp& valid = built_[size_t(axis)].valid;
    const Op op = reduce->get<ReduceArg>().op;
    if (op != Op::Add || value->op != Op::Mul)
      return where(valid, value, constant(reduce_identity(op, value->dtype)));
    const auto factor = [&](int source) {
      const bool copied = contains(masked_, MaskedCopy{reduce->src(0).get(), source, axis});
      return copied ? value->src(size_t(source)) : zero_unless(valid, value->src(size_t(source)));
    };
    return alu(Op::Mul, {factor(0), factor(1)});
  }

  // Copies of what a padded sum adds up. Axes that do not depend on the factor are not the copy's.
  void find_masked_copies() {
    for (const Node* n : toposort(t_.ast)) {
      const auto opts = n->op == Op::Reduce ? staged_.find(n->src(0).get()) : staged_.end();
      if (opts == staged_.end()) continue;
      for (const UOp& r : n->src().subspan(1)) {
        const int axis = axis_of(t_, r.get());
        if (!built_[size_t(axis)].valid) continue;
        for (const Opt& o : opts->second) {
          const auto source = int(source_of(o));
          if (walks(n->src(0)->src(size_t(source)), size_t(axis)))
            masked_.push_back({n->src(0).get(), source, axis});
        }
      }
    }
  }
  UOp masked(const UOp& product, size_t source, UOp value) const {
    for (const MaskedCopy& m : masked_) {
      if (m.product == product.get() && m.source == int(source))
        value = zero_unless(built_[size_t(m.axis)].valid, value);
    }
    return value;
  }

  // The axes a node closes, in loop order.
  std::vector<int> closed(const UOp& old) const {
    std::vector<int> axes;
    for (const UOp& r : old->src().subspan(1)) axes.push_back(axis_of(t_, r.get()));
    std::ranges::sort(axes, {}, [&](int a) { return std::ranges::find(t_.order, a); });
    return axes;
  }

  UOp staged_product(const UOp& old, const std::vector<Opt>& opts, std::span<const UOp> src) {
    std::vector<UOp> factors(src.begin(), src.end());
    const bool alone = workgroup().empty();
    for (size_t i = 0; i < opts.size(); i++) {
      // What is copied at one place has its barriers in common.
      std::vector<Opt> together{opts[i]};
      while (!alone && i + 1 < opts.size() && opts[i + 1].amount == opts[i].amount)
        together.push_back(opts[++i]);
      std::vector<UOp> values;
      for (const Opt& o : together) values.push_back(masked(old, source_of(o), src[source_of(o)]));
      const std::vector<UOp> copies =
          alone ? own_copy(old, together[0], values[0]) : shared_copies(old, together, values);
      for (size_t c = 0; c < copies.size(); c++) factors[source_of(together[c])] = copies[c];
    }
    return make(Op::Mul, factors[0]->dtype, factors);
  }
  // All at one place: their barriers in common.
  const std::vector<UOp>& copies_of_loads() {
    if (!copied_.empty()) return copied_;
    std::vector<UOp> values;
    for (const Opt& o : staged_loads_)
      values.push_back(
          rebuild(operands(t_)[size_t(o.axis)].value,
                  [&](const UOp& old, std::span<const UOp> src) { return rebuilt(old, src); }));
    return copied_ = shared_copies({}, staged_loads_, values);
  }
  size_t source_of(const Opt& o) const { return size_t(t_.factors[size_t(o.axis)].source); }

  std::vector<UOp> own_copy(const UOp& old, const Opt& o, const UOp& value) {
    const int64_t vector_lanes = int64_t(t_.target.vector_bytes / size_bytes(value->dtype));
    std::vector<UOp> ranges, vector;
    for (const UOp& r : tile_ranges(old, o.amount).inside)
      (kind_of(r.get()) == AxisKind::Vector ? vector : ranges).push_back(r);
    // Lanes last, those of vectors, which are one for all, innermost.
    std::ranges::stable_partition(ranges, [](const UOp& r) { return is_loop(kind_of(r.get())); });
    if (!vector.empty()) ranges.push_back(vector[0]);
    return {stage_tile(value, ranges, copies_++, axes_.next_id(), vector_lanes)};
  }
  std::vector<UOp> shared_copies(const UOp& old, const std::vector<Opt>& opts,
                                 const std::vector<UOp>& values) {
    LocalTile tile = tile_ranges(old, opts[0].amount);
    tile.read_across = !old;
    return copy_together(std::move(tile), opts, values);
  }
  std::vector<UOp> copy_together(LocalTile tile, const std::vector<Opt>& opts,
                                 const std::vector<UOp>& values) {
    tile.invocations = workgroup();
    std::vector<int64_t> ahead;
    for (const Opt& o : opts) {
      const auto it = std::ranges::find(t_.ahead, o.axis, &Opt::axis);
      ahead.push_back(it == t_.ahead.end() ? 0 : it->amount);
    }
    for (const UOp& v : values) tile.element_bytes.push_back(t_.target.held_bytes(v->dtype));
    const int32_t first = copies_;
    copies_ += int32_t(opts.size());
    return stage_local(values, ahead, tile, first, axes_.next_id());
  }
  static bool is_invocation(AxisKind k) {
    return k == AxisKind::Local || k == AxisKind::GroupReduce;
  }
  // As they are numbered in the launch.
  std::vector<UOp> workgroup() const {
    std::vector<UOp> out = locals();
    for (const UOp& r : elements_.ranges) {
      if (kind_of(r.get()) == AxisKind::Subgroup) out.push_back(r);
    }
    return out;
  }
  std::vector<UOp> locals() const {
    std::vector<UOp> out;
    for (size_t a = 0; a < built_.size(); a++) {
      if (t_.axes[a].reduced) continue;
      for (const UOp& r : built_[a].ranges) {
        if (is_invocation(kind_of(r.get()))) add_once(out, r);
      }
    }
    std::ranges::sort(out, {}, [](const UOp& r) { return r->get<RangeArg>().id; });
    return out;
  }

  // Ranges around a copy, as far as the product depends on them, and those that it is made over, as
  // they nest in the loops (see tile_parts). Of loads (no product): all of them.
  LocalTile tile_ranges(const UOp& product, int64_t around) {
    LocalTile tile;
    tile.together = [&target = t_.target](size_t bytes) {
      return target.elements_together(bytes);
    };
    for (bool reduced : {false, true}) {
      for (int a : t_.order) {
        const bool depends = !product || walks(product, size_t(a));
        if (t_.axes[size_t(a)].reduced != reduced || (reduced && !depends)) continue;
        for (const UOp& r : built_[size_t(a)].ranges) {
          const AxisKind k = kind_of(r.get());
          if (is_loop(k) && around-- > 0) {
            if (depends) tile.around.push_back(r);
          } else if (depends && (is_loop(k) || is_lane(k) || is_invocation(k))) {
            tile.inside.push_back(r);
          }
        }
      }
    }
    return tile;
  }

  const Tiling& t_;
  RangeDeps old_deps_;
  AxisBuilder axes_;
  std::vector<BuiltAxis> built_;
  MatrixElements elements_;     // where there are matrices
  std::vector<size_t> gating_;  // axes
  std::unordered_map<const Node*, std::vector<Opt>> staged_;  // by product
  std::vector<Opt> staged_loads_;
  std::vector<UOp> copied_;  // those loads, from their copies
  // Factors that are zero past the end of a padded axis as they are copied.
  struct MaskedCopy {
    const Node* product;
    int source, axis;
    bool operator==(const MaskedCopy&) const = default;
  };
  std::vector<MaskedCopy> masked_;
  int32_t copies_ = 0;  // and rows that are kept: Shared memory numbered so far
  static constexpr int64_t kSumOfRow = -1;   // stands for one, while its row's value is rebuilt
  std::optional<RowMatrixBuilder> rows_;     // where matrices of kept rows are multiplied
};

}  // namespace

UOp build(const Tiling& t, std::optional<SubgroupRows>* rows) {
  Builder builder(t);
  if (rows) *rows = builder.rows();
  return rebuild(t.ast,
                 [&](const UOp& old, std::span<const UOp> src) { return builder(old, src); });
}

}  // namespace tuff::kernel
