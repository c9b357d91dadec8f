// vmap(): the graph of one slice, made one for all of them (ir/batch.h).
#include <algorithm>

#include <tuff/autograd.h>

#include "base/check.h"
#include "ir/batch.h"
#include "ir/rule.h"
#include "tensor/impl.h"

namespace tuff {

using detail::uop;

Tensor detail::stand_in(DType t, const Sizes& sizes, const std::string& device) {
  const BuildGuard section;
  return wrap(ir::place_of(t, shape_of(sizes), device), device);
}

std::vector<Tensor> detail::batched(const std::vector<Tensor>& results, const Size& count,
                                    const std::vector<std::pair<Tensor, Tensor>>& values) {
  const BuildGuard section;
  std::vector<ir::UOp> roots;
  ir::UOpMap<ir::UOp> map;
  for (const Tensor& t : results) roots.push_back(uop(t));
  for (const auto& [one, many] : values) map.emplace(uop(one), uop(many));
  const std::vector<ir::UOp> nodes = ir::batched(roots, dim_of(count), map);
  std::vector<Tensor> out;
  for (size_t i = 0; i < nodes.size(); i++) out.push_back(wrap(nodes[i], results[i].device()));
  return out;
}

namespace {

using InDims = std::vector<std::optional<int64_t>>;

// The arguments, those that are sliced with the slices in front.
struct Slices {
  Tensors in_front;
  std::vector<bool> sliced;
  Size count = -1;
};
Slices slices_of(const Tensors& arguments, const InDims& in_dims) {
  if (!in_dims.empty() && in_dims.size() != arguments.size())
    fail<InvalidArgument>("vmap: {} in_dims for {} arguments", in_dims.size(), arguments.size());
  Slices out;
  for (size_t k = 0; k < arguments.size(); k++) {
    const std::optional<int64_t> d = in_dims.empty() ? std::optional<int64_t>(0) : in_dims[k];
    out.sliced.push_back(d.has_value());
    out.in_front.push_back(d ? arguments[k].movedim({*d}, {0}) : arguments[k]);
    if (!d) continue;
    const Size n = out.in_front.back().size(0);
    if (!detail::same(out.count, -1) && !detail::same(out.count, n))
      fail<ShapeError>("vmap: argument {} has {} slices along axis {}, the ones before have {}", k,
                       n, *d, out.count);
    out.count = n;
  }
  if (std::ranges::count(out.sliced, true) == 0)
    fail<InvalidArgument>("vmap: no argument is sliced: give one an axis in in_dims");
  return out;
}

Tensors mapped(const TensorsFunction& f, const Tensors& arguments, const InDims& in_dims,
               int64_t out_dim) {
  const Slices slices = slices_of(arguments, in_dims);
  std::vector<std::pair<Tensor, Tensor>> values;
  Tensors given;
  for (size_t k = 0; k < arguments.size(); k++) {
    const Tensor& many = slices.in_front[k];
    if (!slices.sliced[k]) {
      given.push_back(many);
      continue;
    }
    Sizes own = many.sizes();
    own.erase(own.begin());
    given.push_back(detail::stand_in(many.dtype(), own, many.device()));
    values.emplace_back(given.back(), many);
  }
  Tensors out = detail::batched(f(detail::same_values(given)), slices.count, values);
  for (Tensor& y : out) y = y.movedim({0}, {out_dim});
  return out;
}

}  // namespace

TensorsFunction vmap(TensorsFunction f, InDims in_dims, int64_t out_dim) {
  return [f = std::move(f), in_dims = std::move(in_dims), out_dim](const Tensors& arguments) {
    return mapped(f, arguments, in_dims, out_dim);
  };
}

TensorFunction vmap(TensorFunction f, int64_t in_dim, int64_t out_dim) {
  return [f = std::move(f), in_dim, out_dim](const Tensor& argument) {
    return mapped([&](const Tensors& x) { return Tensors{f(x[0])}; }, {argument}, {in_dim},
                  out_dim)[0];
  };
}

}  // namespace tuff
