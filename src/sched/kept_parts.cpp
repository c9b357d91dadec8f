#include "sched/kept_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "ir/symbolic.h"
#include "sched/loops.h"

namespace tuff::sched {

using namespace ir;

namespace {

// Where a whole part is masked by -infinity, a difference from that would be no number.
UOp least_of(DType t) {
  return constant(Scalar::of_double(t, t == DType::F64
                                           ? -std::numeric_limits<double>::max()
                                           : double(-std::numeric_limits<float>::max())));
}

bool is_row_element(const Node* n) {
  return n->op == Op::Index && without_after(n->src(0).get())->op == Op::Shared;
}

class PartMaker {
 public:
  PartMaker(const UOp& ast, const OneSweep& sweep, std::span<const UOp> columns, int64_t length)
      : end_(ast->src(0)), sweep_(sweep), length_(length) {
    next_ = free_range_id({&ast, 1});
    count_ = simplify(floordiv(columns[0]->src(0), length));
    part_ = range(count_, next_++, AxisKind::Loop);
    for (const UOp& c : columns) {
      const UOp own = range(index_const(length), next_++, c->get<RangeArg>().kind);
      inside_.emplace(c.get(), own);
    }
  }

  std::optional<KeptParts> make_kernels(
      const std::function<UOp(DType, int64_t)>& new_memory) {
    KeptParts out;
    std::vector<UOp> all{sweep_.max};
    all.insert(all.end(), sweep_.scaled.begin(), sweep_.scaled.end());
    const UOp of_part = simplify(in_part(sink(all)));
    UOpMap<UOp> complete;
    const UOp max_part = range(count_, next_++, AxisKind::Reduce),
              sum_part = range(count_, next_++, AxisKind::Reduce);
    UOp scale;
    for (size_t i = 0; i < all.size(); i++) {
      const std::vector<UOp> around = loops_around(all[i]);
      const UOp memory = new_memory(all[i]->dtype, count_->max * extent(around));
      const UOp store = make_store(make_index(memory, place(part_, around)), of_part->src(i));
      out.parts.push_back(make_end(store, std::span(&part_, 1), around));
      const auto element = [&](const UOp& part) {
        return make_load(make_index(memory, place(part, around)));
      };
      if (i == 0) {
        complete.emplace(all[i], reduced(Op::Max, element(max_part), max_part));
        scale = sweep_.scale(element(sum_part), complete.at(all[i]));
      } else {
        const UOp scaled = alu(Op::Mul, {element(sum_part), cast(scale, all[i]->dtype)});
        complete.emplace(all[i], reduced(Op::Add, scaled, sum_part));
      }
    }
    std::ranges::stable_sort(out.parts, [](const UOp& a, const UOp& b) {
      return a->src_count > b->src_count;
    });
    out.combined.push_back(in_one_loop(substitute(end_, complete)));
    const auto left = toposort(out.combined);
    if (std::ranges::any_of(left, [](const Node* n) { return n->op == Op::Shared; })) return {};
    return out;
  }

 private:
  // The same of one part: it walks its own elements, and keeps no others.
  UOp in_part(const UOp& root) const {
    std::unordered_map<const Node*, UOp> mapped;
    for (const Node* n : toposort(root)) mapped.emplace(n, rebuilt(n, mapped));
    return mapped.at(root.get());
  }
  UOp rebuilt(const Node* n, const std::unordered_map<const Node*, UOp>& mapped) const {
    const auto inside = [&](const UOp& s) {
      const auto own = inside_.find(s.get());
      return own == inside_.end() ? mapped.at(s.get()) : own->second;
    };
    if (const auto own = inside_.find(n); own != inside_.end())
      return part_ * length_ + own->second;
    if (n->op == Op::Shared)
      return make(Op::Shared, n->dtype, {}, SharedArg{n->get<SharedArg>().number, length_});
    const bool closes = n->op == Op::Reduce || n->op == Op::End;
    std::vector<UOp> src;
    for (size_t i = 0; i < n->src_count; i++) {
      const bool is_place = i > 0 && (closes || is_row_element(n));
      src.push_back(is_place ? inside(n->src(i)) : mapped.at(n->src(i).get()));
    }
    const UOp out = with_src(UOp(n), src);
    return n == sweep_.max.get() ? alu(Op::Max, {out, least_of(out->dtype)}) : out;
  }

  // All elements beside each other, each with the maximum of its row: so that lanes walk memory.
  UOp in_one_loop(const UOp& end) {
    const auto loops = closed_ranges(end.get());
    if (!std::ranges::all_of(loops, [](const UOp& r) { return r->src(0)->is_const(); })) return end;
    int64_t step = extent(loops);
    const UOp all = range(index_const(step), next_++, AxisKind::Loop);
    UOpMap<UOp> at;
    for (const UOp& r : loops) {
      const int64_t size = r->src(0)->const_int();
      step /= size;
      at.emplace(r, floormod(floordiv(all, step), size));
    }
    return with_loops({&end, 1}, at, loops[0], {&all, 1})[0];
  }

  // Of what is stored, outermost first.
  std::vector<UOp> loops_around(const UOp& value) const {
    const std::vector<UOp> below = ranges_below(value, AxisKind::Loop);
    std::vector<UOp> out;
    for (const UOp& r : closed_ranges(end_.get()))
      if (contains(below, r)) out.push_back(r);
    return out;
  }
  static UOp place(const UOp& part, std::span<const UOp> around) {
    UOp at = part;
    for (const UOp& r : around) at = at * r->src(0)->max + r;
    return simplify(at);
  }
  static UOp reduced(Op op, const UOp& value, const UOp& range) {
    return make(Op::Reduce, value->dtype, {value, range}, ReduceArg{op, {}});
  }

  const UOp end_;
  const OneSweep sweep_;
  const int64_t length_;
  int32_t next_;
  UOp count_, part_;
  std::unordered_map<const Node*, UOp> inside_;  // columns, within a part
};

}  // namespace

int64_t part_of_row(const UOp& length, int64_t least, int64_t most) {
  const LinearForm f = linear_form(length);
  int64_t divisor = f.constant;
  for (const auto& [term, step] : f.terms) divisor = std::gcd(divisor, step);
  for (int64_t n = most; n >= least; n--)
    if (divisor % n == 0) return n;
  return 0;
}

std::optional<KeptParts> in_kept_parts(
    std::span<const UOp> ends, int64_t length,
    const std::function<UOp(DType, int64_t)>& new_memory) {
  if (ends.size() != 1) return {};
  const UOp ast = with_factors_outside(sink(ends));
  const auto columns = columns_of_rows(ast);
  if (!columns || columns->empty()) return {};
  const auto is_as_long = [&](const UOp& c) { return c->src(0) == columns->front()->src(0); };
  const auto sweep = one_sweep(ast, *columns);
  if (!sweep || !sweep->max || !sweep->others.empty() || !std::ranges::all_of(*columns, is_as_long))
    return {};
  const auto is_stored_whole = [](const UOp& s) { return survives_in_register(s->dtype); };
  if (!is_stored_whole(sweep->max) || !std::ranges::all_of(sweep->scaled, is_stored_whole))
    return {};
  return PartMaker(ast, *sweep, *columns, length).make_kernels(new_memory);
}

}  // namespace tuff::sched
