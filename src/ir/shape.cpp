#include "ir/derive.h"

#include <algorithm>

#include "ir/extents.h"
#include "ir/symbolic.h"

namespace tuff::ir {
namespace {

void require_rank(const char* what, const Shape& s, size_t n) {
  if (s.size() != n) fail<ShapeError>("{}: {} axes given for shape {}", what, n, to_string(s));
}

Shape permuted(const Shape& s, const IntVec& axes) {
  require_rank("permute", s, axes.size());
  std::vector<bool> seen(s.size());
  Shape out;
  for (int64_t a : axes) {
    if (a < 0 || a >= int64_t(s.size()) || seen[a]) {
      fail<ShapeError>("permute: axes {{{}}} are no permutation of 0..{}", fmt::join(axes, ", "),
                       int64_t(s.size()) - 1);
    }
    seen[a] = true;
    out.push_back(s[a]);
  }
  return out;
}

const Shape& expanded(const Shape& s, const Shape& to) {
  require_rank("expand", s, to.size());
  for (size_t i = 0; i < s.size(); i++) {
    if (!(s[i] == to[i]) && !(s[i] == 1))
      fail<ShapeError>("expand: axis {} of {} is not 1 and differs from {}", i, to_string(s),
                       to_string(to));
  }
  return to;
}

int64_t least(const Dim& d) { return d.is_const() ? d.value() : tight_bounds(d.uop()).first; }

Shape padded(const Shape& s, const Pairs& p) {
  require_rank("pad", s, p.size());
  Shape out;
  for (size_t i = 0; i < s.size(); i++) {
    if (least(p[i].a) < 0 || least(p[i].b) < 0)
      fail<ShapeError>("pad: negative padding on axis {} of {}", i, to_string(s));
    out.push_back(s[i] + p[i].a + p[i].b);
  }
  return out;
}

Shape shrunk(const char* what, const Shape& s, const Pairs& p) {
  require_rank(what, s, p.size());
  Shape out;
  for (size_t i = 0; i < s.size(); i++) {
    const Dim size = p[i].b - p[i].a;
    if (least(p[i].a) < 0 || p[i].b.max() > s[i].max() || least(size) < 0) {
      fail<ShapeError>("{}: part {}..{} is not inside axis {} of {}", what, p[i].a.max(),
                       p[i].b.max(), i, to_string(s));
    }
    out.push_back(size);
  }
  return out;
}

Shape reduced(const Shape& s, const ReduceArg& r) {
  Shape out = s;
  for (int64_t a : r.axes) {
    if (a < 0 || a >= int64_t(s.size()))
      fail<IndexError>("reduce: axis {} is outside shape {}", a, to_string(s));
    out[a] = Dim(1);
  }
  return out;
}

const Shape& assigned(const Shape& target, const Shape& value, const Pairs* part) {
  const Shape stored = part ? shrunk("assign", target, *part) : target;
  if (!(stored == value))
    fail<ShapeError>("assign: shapes differ: {} = {}", to_string(stored), to_string(value));
  return target;
}

const Shape& scattered(const Shape& target, const Shape& value, const Shape& index,
                       const ScatterArg& arg) {
  if (arg.axis < 0 || arg.axis >= int64_t(target.size()))
    fail<IndexError>("scatter: axis {} is outside shape {}", arg.axis, to_string(target));
  Shape stored = target;
  if (value.size() == target.size()) stored[size_t(arg.axis)] = value[size_t(arg.axis)];
  if (!(stored == value) || !(value == index))
    fail<ShapeError>("scatter: {} by an index of {} into {} along axis {}", to_string(value),
                     to_string(index), to_string(target), arg.axis);
  return target;
}

Shape sharded(std::span<const UOp> parts, const int64_t* axis) {
  TUFF_CHECK(!parts.empty(), "shards of nothing");
  Shape out = parts[0]->shape;
  for (const UOp& p : parts)
    if (!(p->shape == out))
      fail<ShapeError>("shards: parts of {} and {}", to_string(out), to_string(p->shape));
  if (!axis) return out;
  if (*axis < 0 || *axis >= int64_t(out.size()))
    fail<IndexError>("shards: axis {} is outside shape {}", *axis, to_string(out));
  out[size_t(*axis)] = out[size_t(*axis)] * Dim(int64_t(parts.size()));
  return out;
}

Shape elementwise(Op op, std::span<const UOp> src) {
  const Shape* shape = nullptr;
  for (const UOp& u : src) {
    if (u->shape.empty()) continue;
    if (shape && !(*shape == u->shape))
      fail<ShapeError>("{}: shapes differ: {} x {}", name(op), to_string(*shape),
                       to_string(u->shape));
    shape = &u->shape;
  }
  return shape ? *shape : Shape{};
}

}  // namespace

Shape derive_shape(Op op, std::span<const UOp> src, const Arg& arg) {
  switch (op) {
    case Op::Buffer: return {Dim(std::get<Ref<Storage>>(arg)->count)};
    case Op::Iota: return std::get<Shape>(arg);
    case Op::Param: return {Dim(std::get<ParamArg>(arg).count)};
    case Op::Reshape: {
      const Shape& to = std::get<Shape>(arg);
      if (element_count(to) != element_count(src[0]->shape)) {
        fail<ShapeError>("reshape: {} has {} elements, {} has {}", to_string(src[0]->shape),
                         element_count(src[0]->shape), to_string(to), element_count(to));
      }
      return to;
    }
    case Op::Permute: return permuted(src[0]->shape, std::get<IntVec>(arg));
    case Op::Expand: return expanded(src[0]->shape, std::get<Shape>(arg));
    case Op::Pad: return padded(src[0]->shape, std::get<Pairs>(arg));
    case Op::Shrink: return shrunk("shrink", src[0]->shape, std::get<Pairs>(arg));
    case Op::Flip: return src[0]->shape;
    case Op::Reduce: return reduced(src[0]->shape, std::get<ReduceArg>(arg));
    case Op::Assign:
      return assigned(src[0]->shape, src[1]->shape, std::get_if<Pairs>(&arg));
    case Op::Shards: return sharded(src, std::get_if<int64_t>(&arg));
    case Op::Scatter:
      return scattered(src[0]->shape, src[1]->shape, src[2]->shape, std::get<ScatterArg>(arg));
    case Op::Loop:
      if (src[0]->shape.size() != 1)
        fail<ShapeError>("loop: the initial states are {}, not a row", to_string(src[0]->shape));
      return {Dim(std::get<LoopArg>(arg).rows), src[0]->shape[0]};
    case Op::CustomKernel: {
      const auto& kernel = std::get<CustomKernelArg>(arg);
      if (kernel.number == kWholeKernel) return {};
      const IntVec& extents = kernel.outputs.at(size_t(kernel.number)).shape;
      return {extents.begin(), extents.end()};
    }
    case Op::Contiguous:
    case Op::Detach:
    case Op::Mark:
    case Op::Checkpoint:
    case Op::Again:
    case Op::Ruled:
    case Op::Copy: return src[0]->shape;
    // On the kernel floors a Param is memory; what is read from it is one element.
    default: return is_alu(op) ? elementwise(op, src) : Shape{};
  }
}

bool is_symbolic(const Shape& s) {
  return std::any_of(s.begin(), s.end(), [](const Dim& d) { return !d.is_const(); });
}

Dim count_of(std::span<const Dim> extents) {
  Dim n = 1;
  for (const Dim& d : extents) n = n * d;
  return n;
}

bool is_dense(const Shape& s) {
  const auto is_axis = [](const Dim& d) { return !(d == 1); };
  const auto first = std::ranges::find_if(s, is_axis);
  return std::all_of(first == s.end() ? first : first + 1, s.end(),
                     [](const Dim& d) { return d.is_const(); });
}

int64_t element_count(const Shape& s) {
  int64_t n = 1;
  for (const Dim& d : s) {
    if (__builtin_mul_overflow(n, d.max(), &n))
      fail<ShapeError>("shape {} has more than 2^63 elements", to_string(s));
  }
  return n;
}

}  // namespace tuff::ir
