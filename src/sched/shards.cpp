#include "sched/shards.h"

#include <algorithm>
#include <optional>

#include "base/contains.h"
#include "ir/custom_kernel.h"
#include "ir/device_group.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

namespace {

bool on_group(const Node& n) { return n.device && is_group(*n.device); }

Pairs whole(const Shape& shape) {
  Pairs out;
  for (const Dim& d : shape) out.push_back({Dim(0), d});
  return out;
}
UOp part_of(const UOp& u, int axis, const Dim& begin, const Dim& end) {
  Pairs part = whole(u->shape);
  part[size_t(axis)] = {begin, end};
  return shrink(u, part);
}
int64_t extent(const UOp& u, int axis) { return u->shape[size_t(axis)].value(); }
Shape with_extent(Shape shape, int axis, int64_t n) {
  shape[size_t(axis)] = Dim(n);
  return shape;
}

// The i-th of k parts of an axis. What is repeated along it is repeated less often.
UOp chunk(const UOp& u, int axis, size_t i, size_t k) {
  const int64_t n = extent(u, axis) / int64_t(k);
  if (u->op == Op::Expand) {
    const UOp& x = u->src(0);
    return expand(x->shape[size_t(axis)] == 1 ? x : chunk(x, axis, i, k),
                  with_extent(u->shape, axis, n));
  }
  if (u->op == Op::Permute)
    return permute(chunk(u->src(0), int(u->get<IntVec>()[size_t(axis)]), i, k), u->get<IntVec>());
  return part_of(u, axis, Dim(int64_t(i) * n), Dim(int64_t(i + 1) * n));
}

UOp stored(const UOp& u) {
  return u->op == Op::Contiguous ? u : make(Op::Contiguous, u->dtype, {u});
}
UOp moved_to(const UOp& u, const std::string& device) {
  if (!u->device || *u->device == device) return u;
  return make(Op::Copy, u->dtype, {u}, Placement{{device}});
}
// Memory of its own on a device, also where the value lies there already.
UOp copy_on(const UOp& u, const std::string& device) {
  if (!u->device) return make(Op::Contiguous, u->dtype, {u}, Placement{{device}});
  return make(Op::Copy, u->dtype, {u}, Placement{{device}});
}

// Pieces of an axis, on one device, one behind the other; chosen, not added, so that bits stay.
UOp joined(std::span<const UOp> pieces, int axis) {
  if (pieces.size() == 1) return stored(pieces[0]);
  int64_t total = 0, before = 0;
  for (const UOp& p : pieces) total += extent(p, axis);
  const Shape all = with_extent(pieces[0]->shape, axis, total);
  Shape along(all.size(), Dim(1));
  along[size_t(axis)] = Dim(total);
  const DType t = total > INT32_MAX ? DType::I64 : DType::I32;
  const UOp number = expand(reshape(iota(Dim(total), t), along), all);
  UOp out;
  for (const UOp& p : pieces) {
    Pairs around(all.size(), {Dim(0), Dim(0)});
    around[size_t(axis)] = {Dim(before), Dim(total - before - extent(p, axis))};
    const UOp here = pad(p, around);
    out = out ? where(alu(Op::CmpLt, {number, constant(Scalar::of_int(t, before))}), out, here)
              : here;
    before += extent(p, axis);
  }
  return stored(out);
}

// What stands in begin..end of the axis that x is cut along, on one device.
UOp gathered(const Laid& x, const std::string& device, int64_t begin, int64_t end) {
  std::vector<UOp> pieces;
  const int64_t n = extent(x.parts[0], x.axis);
  for (size_t i = 0; i < x.parts.size(); i++) {
    const int64_t from = std::max(begin - int64_t(i) * n, int64_t(0)),
                  to = std::min(end - int64_t(i) * n, n);
    if (from < to) pieces.push_back(moved_to(part_of(x.parts[i], x.axis, from, to), device));
  }
  if (pieces.empty()) pieces.push_back(moved_to(part_of(x.parts[0], x.axis, 0, 0), device));
  return joined(pieces, x.axis);
}
UOp on_one(const Laid& x, const std::string& device) {
  if (x.group.empty() || x.axis == Laid::kCopies) {
    const auto members = group_members(x.group);
    const auto own = std::find(members.begin(), members.end(), device);
    const size_t i = x.group.empty() || own == members.end() ? 0 : size_t(own - members.begin());
    return moved_to(x.parts[i], device);
  }
  return gathered(x, device, 0, extent(x.parts[0], x.axis) * int64_t(x.parts.size()));
}

// One axis' parts become those of another: a block goes from each device to each.
std::vector<UOp> turned(const Laid& x, int axis) {
  const auto members = group_members(x.group);
  std::vector<UOp> out;
  for (size_t j = 0; j < members.size(); j++) {
    std::vector<UOp> pieces;
    for (const UOp& p : x.parts)
      pieces.push_back(moved_to(chunk(p, axis, j, members.size()), members[j]));
    out.push_back(joined(pieces, x.axis));
  }
  return out;
}

// Every device adds the parts of all in one order, so that all have the same bits.
Laid all_reduced(Op op, std::vector<UOp> parts, const std::string& group) {
  for (UOp& p : parts) p = stored(p);
  Laid out{{}, group};
  for (const std::string& device : group_members(group)) {
    UOp sum;
    for (const UOp& p : parts) {
      const UOp here = moved_to(p, device);
      sum = sum ? alu(op, {sum, here}) : here;
    }
    out.parts.push_back(sum);
  }
  return out;
}

// The axis of a reshape's result that parts of an axis of its source are parts of; kCopies: none.
int axis_after(const Shape& from, int axis, const Shape& to, size_t count) {
  Dim before(1), own(1);
  for (int d = 0; d < axis; d++) before = before * from[size_t(d)];
  for (size_t d = 0; d < to.size(); d++) {
    if (own == before && to[d].is_const() && to[d].value() % int64_t(count) == 0 && !(to[d] == 0))
      return int(d);
    own = own * to[d];
  }
  return Laid::kCopies;
}

bool has_reduce(const UOp& u) {
  return std::ranges::any_of(toposort(u), [](const Node* n) { return n->op == Op::Reduce; });
}

}  // namespace

bool reads_group(const UOp& root) {
  return any_group() &&
         std::ranges::any_of(toposort(root), [](const Node* n) { return on_group(*n); });
}

Laid ShardResolver::laid(const UOp& root) {
  const UOp value = values_alone({&root, 1})[0];
  const auto is_new = [&](const Node* n) { return !known_.contains(UOp(n)); };
  for (const Node* n : toposort_gated({&value, 1}, is_new)) {
    if (is_new(n)) known_.emplace(UOp(n), resolve(*n));
  }
  return known_.at(value);
}

Laid ShardResolver::laid_on(const UOp& root, const std::string& device) {
  const bool placed_there = root->device || !is_group(device);
  return laid(placed_there ? root
                           : make(Op::Contiguous, root->dtype, {root}, Placement{{device}}));
}

Laid ShardResolver::resolve(const Node& n) {
  if (on_group(n)) return of_group(n, *n.device);
  return n.op == Op::Copy && on_group(*n.src(0)) ? gathered_copy(n) : of_one_device(n);
}

Laid ShardResolver::of_one_device(const Node& n) {
  std::vector<UOp> src;
  for (const UOp& s : n.src()) {
    const Laid& x = known_.at(s);
    const bool orders = n.op == Op::Again && src.size() == 1;  // any value that comes first will do
    if (orders && !x.group.empty()) {
      const auto members = group_members(x.group);
      const auto own = std::ranges::find(members, *n.device);
      src.push_back(own == members.end() ? x.parts[0] : x.parts[size_t(own - members.begin())]);
      continue;
    }
    src.push_back(x.group.empty() || !n.device ? x.parts[0] : on_one(x, *n.device));
  }
  return {{with_src(UOp(&n), src)}, ""};
}

// Memory of its own. Files join nothing: they get what a device of the group has joined.
Laid ShardResolver::gathered_copy(const Node& n) {
  const Laid& x = known_.at(n.src(0));
  const auto members = group_members(x.group);
  const auto own = std::ranges::find(members, *n.device);
  const size_t from = own == members.end() ? 0 : size_t(own - members.begin());
  if (x.axis == Laid::kCopies) return {{copy_on(x.parts[from], *n.device)}, ""};
  const bool is_file = n.device->starts_with("DISK:");
  const UOp all = on_one(x, is_file ? members[0] : *n.device);
  return {{is_file ? copy_on(all, *n.device) : all}, ""};
}

// Numbers that are summed are summed where they are read: one device would read another's memory.
UOp ShardResolver::number_on(const UOp& u, const std::string& device) {
  return has_reduce(u) ? make(Op::Contiguous, u->dtype, {u}, Placement{{device}}) : u;
}

std::vector<UOp> ShardResolver::as(const UOp& source, const std::string& group, int axis) {
  const Laid& x = known_.at(source);
  const auto members = group_members(group);
  const size_t k = members.size();
  const bool cut = axis != Laid::kCopies;
  if (x.group == group && x.axis == axis) return x.parts;
  if (x.group == group && x.axis != Laid::kCopies && cut) return turned(x, axis);
  std::vector<UOp> out;
  for (size_t i = 0; i < k; i++) {
    if (x.group.empty() && !x.parts[0]->device) {
      const UOp u = number_on(x.parts[0], members[i]);
      out.push_back(cut ? chunk(u, axis, i, k) : u);
    } else if (x.group.empty()) {
      out.push_back(moved_to(cut ? chunk(x.parts[0], axis, i, k) : x.parts[0], members[i]));
    } else if (x.group == group && x.axis == Laid::kCopies) {
      out.push_back(chunk(x.parts[i], axis, i, k));
    } else {
      const UOp here = on_one(x, members[i]);
      out.push_back(cut ? chunk(here, axis, i, k) : here);
    }
  }
  return out;
}

// The node of the first sources, in one layout, on each device; what follows them stays away.
Laid ShardResolver::each(const Node& n, const std::string& group, int axis, size_t sources) {
  std::vector<std::vector<UOp>> src;
  for (size_t s = 0; s < sources; s++) {
    const bool scalar = n.src(s)->shape.empty();
    src.push_back(as(n.src(s), group, scalar ? Laid::kCopies : axis));
  }
  Laid out{{}, group, axis};
  std::vector<UOp> own;
  for (size_t i = 0; i < src[0].size(); i++) {
    own.clear();
    for (const auto& s : src) own.push_back(s[i]);
    out.parts.push_back(make(n.op, n.dtype, own, n.arg));
  }
  return out;
}

Laid ShardResolver::elementwise(const Node& n, const std::string& group) {
  for (const UOp& s : n.src()) {
    const Laid& x = known_.at(s);
    if (x.group == group && x.axis != Laid::kCopies) return each(n, group, x.axis, n.src_count);
  }
  return each(n, group, Laid::kCopies, n.src_count);
}

Laid ShardResolver::of_group(const Node& n, const std::string& group) {
  if (is_alu(n.op)) return elementwise(n, group);
  const Laid* x = n.src_count ? &known_.at(n.src(0)) : nullptr;
  switch (n.op) {
    case Op::Shards: {
      Laid out{{}, group, int(n.arg.index() ? n.get<int64_t>() : int64_t(Laid::kCopies))};
      for (const UOp& s : n.src()) out.parts.push_back(known_.at(s).parts[0]);
      return out;
    }
    case Op::Copy: return placed(n, group);
    case Op::Contiguous:
      return std::holds_alternative<Placement>(n.arg) ? placed(n, group)
                                                      : each(n, group, x->axis, 1);
    case Op::Detach: {
      const UOp own = make(Op::Detach, n.dtype, {n.src(0)});
      return each(*own, group, x->axis, 1);
    }
    case Op::Again: {
      Laid out{{}, group, x->axis};
      const std::vector<UOp>& earlier = known_.at(n.src(1)).parts;
      for (size_t i = 0; i < x->parts.size(); i++) {
        const UOp& before = earlier[std::min(i, earlier.size() - 1)];
        out.parts.push_back(make(Op::Again, n.dtype, {x->parts[i], before}));
      }
      return out;
    }
    case Op::Reduce: return reduced(n, *x);
    case Op::Assign: return assigned(n);
    case Op::Scatter: return scattered(n, group);
    case Op::Loop: return looped(n, group);
    case Op::CustomKernel:
      fail<Unsupported>("kernel {} reads a tensor on {}: give it tensors of one device",
                        n.get<CustomKernelArg>().kernel->name, group);
    default: break;
  }
  if (is_movement(n.op)) return moved(n, *x);
  fail<InvalidArgument>("a {} is read on {}: it stands for another tensor, which was not given",
                        name(n.op), group);
}

// Moved there, or computed there of numbers: memory of its own in either case.
Laid ShardResolver::placed(const Node& n, const std::string& group) {
  const int axis = n.get<Placement>().shard_axis;
  Laid out{as(n.src(0), group, axis), group, axis};
  const auto members = group_members(group);
  for (size_t i = 0; i < members.size(); i++)
    if (out.parts[i]->op != Op::Copy) out.parts[i] = copy_on(out.parts[i], members[i]);
  return out;
}

Laid ShardResolver::moved(const Node& n, const Laid& x) {
  const size_t k = x.parts.size();
  if (x.axis == Laid::kCopies) return each(n, x.group, x.axis, 1);
  Laid out{{}, x.group, x.axis};
  const auto gather = [&] { return each(n, x.group, Laid::kCopies, 1); };
  switch (n.op) {
    case Op::Reshape: {
      out.axis = axis_after(n.src(0)->shape, x.axis, n.shape, k);
      if (out.axis == Laid::kCopies) return gather();
      const Shape own = with_extent(n.shape, out.axis, extent(UOp(&n), out.axis) / int64_t(k));
      for (const UOp& p : x.parts) out.parts.push_back(reshape(p, own));
      return out;
    }
    case Op::Permute: {
      const IntVec& axes = n.get<IntVec>();
      out.axis = int(std::find(axes.begin(), axes.end(), x.axis) - axes.begin());
      for (const UOp& p : x.parts) out.parts.push_back(permute(p, axes));
      return out;
    }
    case Op::Expand:
      for (const UOp& p : x.parts)
        out.parts.push_back(expand(p, with_extent(n.shape, x.axis, extent(p, x.axis))));
      return out;
    case Op::Pad: {
      const Pairs& pairs = n.get<Pairs>();
      const DimPair& own = pairs[size_t(x.axis)];
      if (!(own.a == 0) || !(own.b == 0)) return gather();
      for (const UOp& p : x.parts) out.parts.push_back(pad(p, pairs));
      return out;
    }
    case Op::Shrink: return shrunk(n, x);
    default: return flipped(n, x);
  }
}

Laid ShardResolver::flipped(const Node& n, const Laid& x) {
  Laid out{{}, x.group, x.axis};
  const auto members = group_members(x.group);
  const bool turns = contains(n.get<IntVec>(), int64_t(x.axis));
  for (size_t i = 0; i < members.size(); i++) {
    const UOp& from = x.parts[turns ? members.size() - 1 - i : i];
    out.parts.push_back(flip(moved_to(from, members[i]), n.get<IntVec>()));
  }
  return out;
}

// A part of the axis that is cut goes to every device.
Laid ShardResolver::shrunk(const Node& n, const Laid& x) {
  Laid out{{}, x.group, x.axis};
  Pairs pairs = n.get<Pairs>();
  const DimPair own = pairs[size_t(x.axis)];
  if (!own.a.is_const() || !own.b.is_const()) return each(n, x.group, Laid::kCopies, 1);
  const int64_t each_has = extent(x.parts[0], x.axis);
  const bool all = own.a == 0 && own.b == n.src(0)->shape[size_t(x.axis)];
  const int64_t left = own.b.value() - own.a.value();
  pairs[size_t(x.axis)] = {Dim(0), Dim(all ? each_has : left)};
  if (!all) out.axis = Laid::kCopies;
  const auto members = group_members(x.group);
  for (size_t i = 0; i < members.size(); i++) {
    const UOp there = all ? x.parts[i] : gathered(x, members[i], own.a.value(), own.b.value());
    out.parts.push_back(shrink(there, pairs));
  }
  return out;
}

Laid ShardResolver::reduced(const Node& n, const Laid& x) {
  const auto& arg = n.get<ReduceArg>();
  std::vector<UOp> parts;
  for (const UOp& p : x.parts) parts.push_back(reduce(arg.op, p, arg.axes));
  if (x.axis == Laid::kCopies || !contains(arg.axes, int64_t(x.axis)))
    return {std::move(parts), x.group, x.axis};
  return all_reduced(arg.op, std::move(parts), x.group);
}

// Memory stays in its layout, and what is stored comes to it.
Laid ShardResolver::assigned(const Node& n) {
  const Laid target = known_.at(n.src(0));
  const Pairs* part = assigned_part(n);
  if (part && target.axis != Laid::kCopies) {
    const DimPair& own = (*part)[size_t(target.axis)];
    if (!(own.a == 0) || !(own.b == n.shape[size_t(target.axis)]))
      return laid(make(Op::Assign, n.dtype, {n.src(0), put(n.src(0), *part, n.src(1))}));
  }
  const std::vector<UOp> values = as(n.src(1), target.group, target.axis);
  Laid out{{}, target.group, target.axis};
  for (size_t i = 0; i < values.size(); i++) {
    Arg arg = n.arg;
    if (part && target.axis != Laid::kCopies)
      std::get<Pairs>(arg)[size_t(target.axis)] = {Dim(0),
                                                   Dim(extent(target.parts[i], target.axis))};
    out.parts.push_back(make(Op::Assign, n.dtype, {target.parts[i], values[i]}, std::move(arg)));
  }
  return out;
}

// Rows of memory, of which no axis is known: all of it on each device.
Laid ShardResolver::looped(const Node& n, const std::string& group) {
  Laid out = each(n, group, Laid::kCopies, n.src_count);
  const auto members = group_members(group);
  for (size_t i = 0; i < members.size(); i++)
    out.parts[i] = make(n.op, n.dtype, out.parts[i]->src(),
                        on_device(n.get<LoopArg>(), std::string(members[i])));
  return out;
}

// Along other axes than the index's own each device stores what is its own. What is added along it
// is added up on each device and then over all; anything else is done by all with everything.
Laid ShardResolver::scattered(const Node& n, const std::string& group) {
  const auto& arg = n.get<ScatterArg>();
  const Laid &target = known_.at(n.src(0)), &value = known_.at(n.src(1));
  for (size_t s = 0; s < 3; s++) {
    const Laid& x = known_.at(n.src(s));
    if (x.group == group && x.axis != Laid::kCopies && x.axis != arg.axis)
      return each(n, group, x.axis, 3);
  }
  const bool adds = arg.op == Op::Add && value.group == group && value.axis == arg.axis &&
                    target.axis == Laid::kCopies;
  if (!adds) return each(n, group, Laid::kCopies, 3);
  const auto targets = as(n.src(0), group, Laid::kCopies),
             values = as(n.src(1), group, value.axis), indices = as(n.src(2), group, value.axis);
  const UOp none = expand(reshape(constant(n.dtype, 0), Shape(n.shape.size(), Dim(1))), n.shape);
  std::vector<UOp> parts;
  for (size_t i = 0; i < values.size(); i++)
    parts.push_back(scatter(i == 0 ? targets[0] : none, values[i], indices[i], arg));
  return all_reduced(Op::Add, std::move(parts), group);
}

}  // namespace tuff::sched
