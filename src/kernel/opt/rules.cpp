#include "kernel/opt/rules.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// What an opt is applied to.
enum class Subject {
  Loop,  // what is left of an axis; the amount splits it
  Rows,  // all axes that walk kept rows
  Order,
  Copy,
  Product,
};

struct OptRule {
  const char* name;
  Subject subject;
  AxisKind part;  // kind of the new part
  bool output;    // applies to output axes (else to reduced ones); Split and Swap to both
  bool pads;      // an amount that does not divide is masked
  std::string (*refusal)(const Tiling&, const Opt&);  // beside what its subject asks for
  void (*take)(Tiling&, const Opt&);
};
const OptRule& rule_of(OptKind k);

// Loops that two stores have in common stand around those that only one of them has.
bool keeps_stores_outside(const Tiling& t, const Opt& swap) {
  const auto position = [&](int axis) {
    const int now = axis == swap.axis ? int(swap.amount) : axis == swap.amount ? swap.axis : axis;
    return std::ranges::find(t.order, now) - t.order.begin();
  };
  for (const Tiling::Stored& s : t.stored) {
    for (const Tiling::Stored& other : t.stored) {
      for (int own : s.axes) {
        if (contains(other.axes, own)) continue;
        const auto inside = [&](int a) {
          return contains(other.axes, a) && position(a) > position(own);
        };
        if (std::ranges::any_of(s.axes, inside)) return false;
      }
    }
  }
  return true;
}

std::string swap_refusal(const Tiling& t, const Opt& o) {
  if (o.amount < 0 || o.amount >= int64_t(t.axes.size())) return "there is no such axis";
  if (t.axes[size_t(o.amount)].reduced != t.axes[size_t(o.axis)].reduced)
    return "an output axis and a reduced one cannot change places";
  if (!keeps_stores_outside(t, o))
    return "a loop would go around a store that stands outside of it";
  return {};
}

// One vector axis for all that is stored together; all of one width.
std::string vector_refusal(const Tiling& t, const Opt& o) {
  for (int a = 0; a < int(t.axes.size()); a++) {
    for (const AxisPart& p : t.axes[size_t(a)].parts) {
      if (p.kind != AxisKind::Vector) continue;
      for (const Tiling::Stored& s : t.stored) {
        if (contains(s.axes, a) && contains(s.axes, o.axis))
          return "the nest has a vector axis already";
      }
      if (p.size->max != o.amount) return "another nest has vectors of another width";
    }
  }
  return {};
}

std::string no_refusal(const Tiling&, const Opt&) { return {}; }

// How many pieces of so many steps what is left of an axis has, the last of them maybe masked.
UOp divided_main(Axis& axis, int64_t amount) {
  const UOp& size = axis.parts[axis.main].size;
  if (!simplify(floormod(size, index_const(amount)))->is_const_int(0)) axis.padded = true;
  return simplify(floordiv(size + (amount - 1), index_const(amount)));
}

void take_group(Tiling& t, const Opt& o) {
  Axis& axis = t.axes[size_t(o.axis)];
  const int64_t amount = o.amount;
  AxisPart& main = axis.parts[axis.main];
  if (amount == 0 || (main.size->is_const() && amount == main.size->max)) {
    main.kind = AxisKind::Group;
    return;
  }
  main.size = divided_main(axis, amount);
  axis.parts.insert(axis.parts.begin() + axis.main, {AxisKind::Group, index_const(amount)});
  axis.main++;
}

void take_split(Tiling& t, const Opt& o) {
  split_main(t.axes[size_t(o.axis)], rule_of(o.kind).part, o.amount);
}
void take_swap(Tiling& t, const Opt& o) {
  const auto a = std::ranges::find(t.order, o.axis), b = std::ranges::find(t.order, int(o.amount));
  std::iter_swap(a, b);
}
void take_stage(Tiling& t, const Opt& o) { t.staged.push_back(o); }
void take_ahead(Tiling& t, const Opt& o) { t.ahead.push_back(o); }

constexpr OptRule kRules[] = {
    {"split", Subject::Loop, AxisKind::Loop, true, false, no_refusal, take_split},
    {"upcast", Subject::Loop, AxisKind::Lane, true, true, no_refusal, take_split},
    {"vector", Subject::Loop, AxisKind::Vector, true, true, vector_refusal, take_split},
    {"unroll", Subject::Loop, AxisKind::ReduceLane, false, true, no_refusal, take_split},
    {"group", Subject::Loop, AxisKind::Group, true, true, no_refusal, take_group},
    {"local", Subject::Loop, AxisKind::Local, true, true, workgroup_refusal, take_local},
    {"group_reduce", Subject::Loop, AxisKind::GroupReduce, false, true, workgroup_refusal,
     take_split},
    {"swap", Subject::Order, AxisKind::Loop, true, false, swap_refusal, take_swap},
    {"slab", Subject::Rows, AxisKind::Reduce, true, true, slab_refusal, take_slab},
    {"spread", Subject::Loop, AxisKind::Group, true, true, spread_refusal, take_spread},
    {"stage", Subject::Copy, AxisKind::Loop, true, false, stage_refusal, take_stage},
    {"ahead", Subject::Copy, AxisKind::Loop, true, false, ahead_refusal, take_ahead},
    {"matrix", Subject::Product, AxisKind::Matrix, true, false, matrix_refusal, take_matrix},
};

const OptRule& rule_of(OptKind k) { return kRules[size_t(k)]; }

// What all opts on a loop ask for.
std::string loop_refusal(const Tiling& t, const Opt& o) {
  const Axis& axis = t.axes[size_t(o.axis)];
  if (o.kind != OptKind::Split && rule_of(o.kind).output == axis.reduced)
    return axis.reduced ? "the axis is reduced" : "the axis is not reduced";
  if (!is_loop(axis.parts[size_t(axis.main)].kind)) return "nothing is left of the axis";
  if (keeps_rows(t))
    if (std::string why = kept_refusal(t, o); !why.empty()) return why;
  return axis.rows ? "what is left of the axis is shared out to the launch" : "";
}

std::string amount_refusal(const Tiling& t, const Opt& o) {
  const Axis& axis = t.axes[o.axis];
  if (o.kind == OptKind::Group && (o.amount == 0 ? axis.main_size() : o.amount) > groups_left(t))
    return fmt::format("the launch grid has room for {} times as many workgroups",
                       groups_left(t));
  if (o.kind == OptKind::Group && o.amount == 0) {
    for (const Node* n : toposort(axis.parts[axis.main].size)) {
      if (n->op == Op::Range) return "the axis has as many iterations as its launch group says";
    }
    return {};
  }
  // Matrices past the end of a padded axis are the last one again; others are stored as they are.
  const bool pads = t.matrices ? axis.padded : rule_of(o.kind).pads && !axis.slabs;
  const bool masks = pads && o.kind != OptKind::Spread && o.kind != OptKind::Slab && !axis.kept;
  if (!axis.main_is_const() && !masks && o.kind != OptKind::Slab)
    return "the axis has a symbolic size";
  // Of fewer pieces than groups, those that are masked throughout would be computed all the same.
  if (!axis.main_is_const() && o.kind == OptKind::Group)
    return "the axis has a symbolic size: 0 gives each of its pieces a group";
  if (o.kind == OptKind::Spread) {
    const int64_t most = t.spread.groups ? o.amount : groups_left(t);
    if (o.amount < 2 || o.amount > most) return fmt::format("2 to {} is possible", most);
    return {};
  }
  // A vector may be longer than the whole axis: masked, it takes the place of scalars.
  const bool vectors = pads && (o.kind == OptKind::Vector || o.kind == OptKind::Unroll);
  const int64_t most =
      vectors ? int64_t(std::bit_ceil(uint64_t(axis.main_size()))) : axis.main_size();
  const int64_t least = o.kind == OptKind::Group ? 1 : 2;
  if (o.amount < least || o.amount > most)
    return fmt::format("{} to {} is possible", least, most);
  if (!pads && axis.main_size() % o.amount != 0) {
    return fmt::format("{} does not divide {}", o.amount, axis.main_size());
  }
  const bool power = std::has_single_bit(uint64_t(o.amount));
  if ((o.kind == OptKind::Vector || o.kind == OptKind::GroupReduce) && !power)
    return "no power of two";
  const bool shares_out = o.kind == OptKind::Local || o.kind == OptKind::GroupReduce;
  return shares_out ? workgroup_size_refusal(t, o) : "";
}

// Read off what the opt would make.
std::string memory_refusal(const Tiling& t, const Opt& o) {
  const bool shares = o.kind == OptKind::GroupReduce || has_part(t, -1, AxisKind::GroupReduce);
  if (!shares && !keeps_rows(t) && !t.matrices) return {};
  Tiling then = t;
  rule_of(o.kind).take(then, o);
  if (t.matrices) {
    int64_t bytes = matrix_bytes(then);
    for (const Opt& c : copies_of(then, {})) bytes += staged_bytes(then, c.axis, c.amount);
    return bytes <= int64_t(t.target.shared_bytes)
               ? ""
               : "workgroup memory does not hold what so many fragments need";
  }
  if (workgroup_bytes(then) <= std::max<int64_t>(t.target.shared_bytes, workgroup_bytes(t)))
    return {};
  return fmt::format("rows and sums of so many lanes exceed {} bytes of fast memory",
                     t.target.shared_bytes);
}

void take(Tiling& t, const Opt& o) {  // what is legal
  rule_of(o.kind).take(t, o);
  t.applied.push_back(o);
}

}  // namespace

const char* name(OptKind k) { return rule_of(k).name; }
bool allows(const Target& target, OptKind k) {
  if (k == OptKind::Local || k == OptKind::GroupReduce) return target.has_local;
  if (k == OptKind::Ahead) return target.has_local && target.shared_bytes > 0;
  if (k == OptKind::Slab) return target.shared_bytes > 0;
  if (k == OptKind::Matrix) return !target.matrix_shapes.empty();
  return k != OptKind::Stage || target.shared_bytes > 0;
}
std::string to_string(const Opt& o) {
  return fmt::format("{}({},{})", name(o.kind), o.axis, o.amount);
}
std::string to_string(std::span<const Opt> opts) {
  std::string out;
  for (const Opt& o : opts) out += (out.empty() ? "" : " ") + to_string(o);
  return out;
}

void split_main(Axis& axis, AxisKind kind, int64_t amount) {
  AxisPart& main = axis.parts[axis.main];
  if (kind == AxisKind::Loop && axis.reduced) kind = AxisKind::Reduce;
  main.size = divided_main(axis, amount);
  axis.parts.insert(axis.parts.begin() + axis.main + 1, {kind, index_const(amount)});
}

std::string refusal(const Tiling& t, const Opt& o) {
  const OptRule& rule = rule_of(o.kind);
  std::string why;
  if (t.matrices && rule.subject != Subject::Product) why = refusal_beside_matrices(t, o);
  if (!t.row_matrices.empty() && o.kind != OptKind::Matrix && o.kind != OptKind::Group)
    why = "subgroups hold matrices of the rows as they are";
  if (!why.empty()) return why;
  if (rule.subject == Subject::Copy || rule.subject == Subject::Product) return rule.refusal(t, o);
  if (!t.staged.empty()) return "what is staged has been copied for the loops as they are";
  if (o.axis < 0 || o.axis >= int(t.axes.size())) return "there is no such axis";
  if (rule.subject == Subject::Loop) why = loop_refusal(t, o);
  if (why.empty()) why = rule.refusal(t, o);
  if (why.empty() && rule.subject != Subject::Order) why = amount_refusal(t, o);
  return why.empty() && rule.subject == Subject::Loop ? memory_refusal(t, o) : why;
}

void apply(Tiling& t, const Opt& o) {
  if (const std::string why = refusal(t, o); !why.empty())
    fail<InvalidArgument>("{}: {}", to_string(o), why);
  take(t, o);
}

bool try_apply(Tiling& t, const Opt& o) {
  const bool legal = refusal(t, o).empty();
  if (legal) take(t, o);
  return legal;
}

}  // namespace tuff::kernel
