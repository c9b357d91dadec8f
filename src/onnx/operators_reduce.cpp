// Reductions, positions of extremes, running sums.
#include <limits>
#include <numeric>

#include "base/check.h"
#include "onnx/host.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// Which axes go: an attribute in older versions, an input since 18 (of ReduceSum since 13). Nothing
// where there are none and the node says that this means none.
std::optional<std::vector<int64_t>> axes_to_reduce(const Node& node, int64_t rank) {
  std::vector<int64_t> all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  const auto given = node.integers("axes", 1);
  if (given && !given->empty()) return axes_of(*given, rank);
  if (node.integer("noop_with_empty_axes", 0)) return std::nullopt;
  return all;
}

bool is_empty_along(const Tensor& x, const std::vector<int64_t>& axes) {
  for (const int64_t a : axes)
    if (x.size(a).is_number() && int64_t(x.size(a)) == 0) return true;
  return false;
}

// `reduce` gets x, axes and keepdim.
template <class F>
Outputs reduced(const Node& node, const F& reduce) {
  const Tensor x = node.tensor(0);
  const auto axes = axes_to_reduce(node, x.dim());
  if (!axes) return {x};
  if (axes->empty()) return {reduce(x, Axes{}, false).cast(x.dtype())};
  return {reduce(x, Axes(*axes), node.integer("keepdims", 1) != 0).cast(x.dtype())};
}

// Sums and products of the few numbers that a shape has.
template <class F>
Outputs folded(const Node& node, int64_t start, const F& f) {
  const HostNumbers x = node.value(0).numbers();
  Size out = start;
  for (const Size& s : x.ints) out = f(out, s);
  const bool keeps = node.integer("keepdims", 1) != 0;
  return {HostNumbers{.dtype = x.dtype,
                      .shape = keeps ? std::vector<int64_t>(x.shape.size(), 1)
                                     : std::vector<int64_t>(),
                      .ints = {out},
                      .floats = {}}};
}

bool folds_whole(const Node& node) {
  const Value& x = node.value(0);
  return node.folds() && x.rank() == 1 && is_int(x.dtype()) &&
         axes_to_reduce(node, 1).has_value();
}

Outputs sum(const Node& node) {
  if (folds_whole(node))
    return folded(node, 0, [](const Size& a, const Size& b) { return a + b; });
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) { return x.sum(a, k); });
}
Outputs product(const Node& node) {
  if (folds_whole(node))
    return folded(node, 1, [](const Size& a, const Size& b) { return a * b; });
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) { return x.prod(a, k); });
}
Outputs mean(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) { return x.mean(a, k); });
}

// What an extreme of nothing is: the other end of the type's range.
Number end_of_range(DType dtype, bool lowest) {
  if (is_float(dtype)) {
    const double most = std::numeric_limits<double>::infinity();
    return lowest ? -most : most;
  }
  if (dtype == DType::Bool) return lowest ? 0 : 1;
  const int bits = int(size_bytes(dtype)) * 8;
  if (is_unsigned(dtype)) return lowest ? uint64_t{0} : ~uint64_t{0} >> (64 - bits);
  const int64_t high = int64_t((uint64_t{1} << (bits - 1)) - 1);
  return lowest ? -high - 1 : high;
}

template <bool Largest>
Outputs extreme(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& axes, bool keep) -> Tensor {
    if (is_empty_along(x, axes)) {
      const Tensor like = x.cast(DType::F32).sum(axes, keep);
      return Tensor::full(like.sizes(), end_of_range(x.dtype(), Largest),
                          {.dtype = x.dtype(), .device = x.device()});
    }
    if (x.dtype() == DType::Bool) return Largest ? x.any(axes, keep) : x.all(axes, keep);
    return Largest ? x.max(axes, keep) : x.min(axes, keep);
  });
}

Outputs norm1(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) { return x.abs().sum(a, k); });
}
Outputs norm2(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) {
    return x.cast(accumulator(x.dtype())).square().sum(a, k).sqrt();
  });
}
Outputs sum_of_squares(const Node& node) {
  return reduced(node,
                 [](const Tensor& x, const Axes& a, bool k) { return x.square().sum(a, k); });
}
Outputs log_of_sum(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) { return x.sum(a, k).log(); });
}
Outputs log_sum_exp(const Node& node) {
  return reduced(node, [](const Tensor& x, const Axes& a, bool k) -> Tensor {
    if (is_empty_along(x, a)) return x.exp().sum(a, k).log();
    Axes axes = a;
    if (axes.empty())
      for (int64_t i = 0; i < x.dim(); i++) axes.push_back(i);
    const Tensor wide = is_float(x.dtype()) ? x : x.cast(DType::F32);
    return axes.empty() ? wide : wide.logsumexp(axes, k);
  });
}

// ---- along one axis

template <bool Largest>
Outputs position(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t axis = axis_of(node.integer("axis", 0), x.dim());
  const bool keep = node.integer("keepdims", 1) != 0;
  const auto first = [&](const Tensor& t) {
    return (Largest ? t.argmax(axis, keep) : t.argmin(axis, keep)).cast(DType::I64);
  };
  if (!node.integer("select_last_index", 0)) return {first(x)};
  return {x.size(axis) - 1 - first(x.flip({axis}))};
}

// `inclusive` gives running values up to each element; `start` is what there is before the first.
template <class F>
Outputs running(const Node& node, int64_t start, const F& inclusive) {
  Tensor x = node.tensor(0);
  const int64_t axis = axis_of(node.integer(1), x.dim());
  const bool reverse = node.integer("reverse", 0) != 0;
  if (reverse) x = x.flip({axis});
  Tensor out = inclusive(x, axis).cast(x.dtype());
  if (node.integer("exclusive", 0)) {
    std::vector<int64_t> pads(size_t(x.dim()) * 2);
    const auto at = size_t(x.dim() - 1 - axis) * 2;
    pads[at] = 1, pads[at + 1] = -1;
    out = out.pad(pads, start).cast(x.dtype());
  }
  return {reverse ? out.flip({axis}) : out};
}
Outputs running_sum(const Node& node) {
  return running(node, 0, [](const Tensor& x, int64_t axis) { return x.cumsum(axis); });
}
Outputs running_product(const Node& node) {
  return running(node, 1, [](const Tensor& x, int64_t axis) { return x.cumprod(axis); });
}

// Before version 13 all axes from `axis` on are one.
template <class F>
Outputs along_axis(const Node& node, const F& f) {
  const Tensor x = node.tensor(0);
  if (node.version() >= 13) return {f(x, axis_of(node.integer("axis", -1), x.dim()))};
  const int64_t axis = axis_of(node.integer("axis", 1), x.dim());
  return {f(x.flatten(axis), axis).reshape(x.sizes())};
}
Outputs softmax(const Node& node) {
  return along_axis(node, [](const Tensor& x, int64_t axis) { return x.softmax(axis); });
}
Outputs log_softmax(const Node& node) {
  return along_axis(node, [](const Tensor& x, int64_t axis) { return x.log_softmax(axis); });
}
// 1 where the first of the largest is, else 0.
Outputs hardmax(const Node& node) {
  return along_axis(node, [](const Tensor& x, int64_t axis) {
    Sizes sizes(size_t(x.dim()), 1);
    sizes[size_t(axis)] = x.size(axis);
    const Tensor places = Tensor::arange(Number(0), Number(x.size(axis)), 1,
                                         {.dtype = DType::I32, .device = x.device()});
    return (x.argmax(axis, true) == places.reshape(sizes)).cast(x.dtype());
  });
}

constexpr Operator kRows[] = {
    {"", "ArgMax", 1, kNewest, position<true>},
    {"", "ArgMin", 1, kNewest, position<false>},
    {"", "CumProd", 26, kNewest, running_product},
    {"", "CumSum", 11, kNewest, running_sum},
    {"", "Hardmax", 1, kNewest, hardmax},
    {"", "LogSoftmax", 1, kNewest, log_softmax},
    {"", "ReduceL1", 1, kNewest, norm1},
    {"", "ReduceL2", 1, kNewest, norm2},
    {"", "ReduceLogSum", 1, kNewest, log_of_sum},
    {"", "ReduceLogSumExp", 1, kNewest, log_sum_exp},
    {"", "ReduceMax", 1, kNewest, extreme<true>},
    {"", "ReduceMean", 1, kNewest, mean},
    {"", "ReduceMin", 1, kNewest, extreme<false>},
    {"", "ReduceProd", 1, kNewest, product},
    {"", "ReduceSum", 1, kNewest, sum},
    {"", "ReduceSumSquare", 1, kNewest, sum_of_squares},
    {"", "Softmax", 1, kNewest, softmax},
};

}  // namespace

std::span<const Operator> reduce_operators() { return kRows; }

}  // namespace tuff::onnx
