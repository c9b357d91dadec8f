#include "sched/index_map.h"

#include "ir/symbolic.h"

namespace tuff::sched {

using namespace ir;

UOp both(const UOp& a, const UOp& b) {
  if (!a || a->is_const_int(1)) return b;
  if (!b || b->is_const_int(1)) return a;
  return logical_and(a, b);
}

UOp flat_offset(const Shape& shape, const IndexTuple& index) {
  UOp offset = index_const(0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    offset = index[i] * stride + offset;
    stride *= shape[i].max();
  }
  return offset;
}

namespace {

bool is_zero(const UOp& u) { return u->is_const_int(0); }

// The row-major number of index[begin..end) within its axes; shortest form first.
UOp flatten(const Shape& shape, const IndexTuple& index, size_t begin, size_t end) {
  UOp flat = index_const(0);
  UOp stride = index_const(1);
  for (size_t i = end; i-- > begin;) {
    if (!is_zero(index[i])) flat = flat + index[i] * stride;
    stride = stride * shape[i].uop();
  }
  return flat;
}

void unflatten(UOp flat, const Shape& shape, size_t begin, size_t end, IndexTuple& out) {
  size_t first = begin;
  while (first < end && shape[first] == 1) first++;
  for (size_t i = end; i-- > begin;) {
    if (shape[i] == 1) {
      out[i] = index_const(0);
    } else if (i == first) {
      out[i] = flat;
    } else {
      out[i] = simplify(floormod(flat, shape[i].uop()));
      flat = simplify(floordiv(flat, shape[i].uop()));
    }
  }
}

// Axes are matched in groups with equal products from the left, so that only axes that really merge
// or split see a division.
struct AxisGroup {
  size_t src_begin, src_end, dst_begin, dst_end;
};

std::vector<AxisGroup> matching_groups(const Shape& src, const Shape& dst) {
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < src.size() || j < dst.size()) {
    if (i < src.size() && src[i] == 1) {
      groups.push_back({i, i + 1, j, j});
      i++;
      continue;
    }
    if (j < dst.size() && dst[j] == 1) {
      groups.push_back({i, i, j, j + 1});
      j++;
      continue;
    }
    if (i < src.size() && j < dst.size() && src[i] == dst[j]) {
      groups.push_back({i, i + 1, j, j + 1});
      i++, j++;
      continue;
    }
    const size_t i0 = i, j0 = j;
    Dim a = 1, b = 1;
    do {
      const bool take_src = j >= dst.size() || (i < src.size() && a.max() <= b.max());
      Dim& product = take_src ? a : b;
      product = product * (take_src ? src[i++] : dst[j++]);
    } while (!(a == b) && (i < src.size() || j < dst.size()));
    groups.push_back({i0, i, j0, j});
  }
  return groups;
}

IndexTuple through_reshape(const Shape& src, const Shape& dst, const IndexTuple& index) {
  IndexTuple out(src.size());
  for (const AxisGroup& g : matching_groups(src, dst)) {
    if (g.src_begin == g.src_end) continue;
    if (g.src_end - g.src_begin == 1 && g.dst_end - g.dst_begin == 1) {
      out[g.src_begin] = index[g.dst_begin];
      continue;
    }
    const UOp flat = flatten(dst, index, g.dst_begin, g.dst_end);
    unflatten(g.src_end - g.src_begin > 1 ? simplify(flat) : flat, src, g.src_begin, g.src_end,
              out);
  }
  return out;
}

SourceIndex through_pad(const Node& n, const IndexTuple& index) {
  const Pairs& pairs = n.get<Pairs>();
  const Shape& src = n.src(0)->shape;
  SourceIndex out{index, {}};
  for (size_t i = 0; i < pairs.size(); i++) {
    if (pairs[i].a == 0 && pairs[i].b == 0) continue;
    const UOp before = pairs[i].a.uop();
    if (!(pairs[i].a == 0)) {
      out.valid = both(out.valid, ge(index[i], before));
      out.index[i] = index[i] - before;
    }
    if (!(pairs[i].b == 0)) out.valid = both(out.valid, lt(index[i], before + src[i].uop()));
    if (src[i] == 1) out.index[i] = index_const(0);
  }
  if (out.valid && out.valid->is_const_int(1)) out.valid = UOp();
  return out;
}

}  // namespace

SourceIndex through_movement(const Node& n, const IndexTuple& index) {
  const Shape& src = n.src(0)->shape;
  SourceIndex out{index, {}};
  switch (n.op) {
    case Op::Reshape: out.index = through_reshape(src, n.shape, index); break;
    case Op::Permute: {
      const IntVec& axes = n.get<IntVec>();
      for (size_t i = 0; i < axes.size(); i++) out.index[axes[i]] = index[i];
      break;
    }
    case Op::Expand:
      for (size_t i = 0; i < src.size(); i++) {
        if (src[i] == 1) out.index[i] = index_const(0);
      }
      break;
    case Op::Shrink:
      for (size_t i = 0; i < src.size(); i++) {
        out.index[i] = src[i] == 1 ? index_const(0) : index[i] + n.get<Pairs>()[i].a.uop();
      }
      break;
    case Op::Flip:
      for (int64_t a : n.get<IntVec>()) out.index[a] = src[a].uop() + index_const(-1) - index[a];
      break;
    case Op::Pad: return through_pad(n, index);
    default: TUFF_CHECK(false, "{} is no movement", name(n.op));
  }
  return out;
}

}  // namespace tuff::sched
