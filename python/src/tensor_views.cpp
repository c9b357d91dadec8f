// TensorViews, TensorProducts, TensorStatistics and TensorWrites.
#include "module.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff::python {
namespace {

using py::arg;

void bind_cuts(TensorClass& c) {
  c.def("unbind", &Tensor::unbind, arg("dim") = 0, "select() of every position of an axis.");
  c.def("tensor_split",
        py::overload_cast<int64_t, int64_t>(&Tensor::tensor_split, py::const_), arg("sections"),
        arg("dim") = 0, "So many parts, of which the first are one longer.");
  c.def("tensor_split", &Tensor::tensor_split_at, arg("indices"), arg("dim") = 0,
        "Parts that begin at these positions, the first at 0.");
  const auto split = [&](const char* name, auto sections, auto indices, const char* doc) {
    c.def(name, sections, arg("sections"), doc);
    c.def(name, indices, arg("indices"), "Parts that begin at these positions, the first at 0.");
  };
  split("hsplit", &Tensor::hsplit, &Tensor::hsplit_at, "Parts of axis 1, of a vector's axis 0.");
  split("vsplit", &Tensor::vsplit, &Tensor::vsplit_at, "Parts of axis 0.");
  split("dsplit", &Tensor::dsplit, &Tensor::dsplit_at, "Parts of axis 2.");
  c.def("unflatten", &Tensor::unflatten, arg("dim"), arg("sizes"),
        "One axis cut into several; one extent may be -1.");
  c.def("unfold", &Tensor::unfold, arg("dim"), arg("size"), arg("step"),
        "Windows along an axis, as a last axis of their own.");
  c.def("as_strided", &Tensor::as_strided, arg("sizes"), arg("stride"), arg("offset") = 0,
        "Elements of the flattened tensor, so many apart along each axis.");
  c.def(
      "rearrange",
      [](const Tensor& x, const std::string& pattern, const py::kwargs& sizes) {
        std::vector<std::pair<std::string, int64_t>> extents;
        for (const auto& [name, extent] : sizes) {
          const std::optional<int64_t> n = whole_from(extent);
          if (!n)
            throw py::type_error("rearrange(): " + text_of(name) + " has to be an int, not " +
                                 type_name(extent));
          extents.emplace_back(text_of(name), *n);
        }
        return x.rearrange(pattern, extents);
      },
      arg("pattern"),
      "Axes by names, in einops' notation: x.rearrange(\"b (h p) c -> b h (p c)\", p=2).");
  c.def("pad_to", &Tensor::pad_to, arg("sizes"), arg("value") = 0,
        "A value behind the axes up to these extents; -1 keeps one.");
  c.def("shrink_to", &Tensor::shrink_to, arg("sizes"),
        "The first elements of the axes; -1 keeps an extent.");
}

void bind_diagonals(TensorClass& c) {
  c.def("diag", &Tensor::diag, arg("diagonal") = 0,
        "A matrix with this diagonal, or the diagonal of this matrix.");
  c.def("diagonal", &Tensor::diagonal, arg("offset") = 0, arg("dim1") = 0, arg("dim2") = 1,
        "A diagonal of two axes, as the last axis.");
  c.def("diag_embed", &Tensor::diag_embed, arg("offset") = 0, arg("dim1") = -2, arg("dim2") = -1,
        "The last axis on a diagonal of two new ones.");
  c.def("trace", &Tensor::trace, "The sum of the main diagonal.");
  c.def("diagflat", &Tensor::diagflat, arg("offset") = 0,
        "A matrix with the flattened tensor on a diagonal.");
  c.def("diagonal_scatter", &Tensor::diagonal_scatter, arg("source"), arg("offset") = 0,
        arg("dim1") = 0, arg("dim2") = 1, "Another tensor in the place of diagonal().");
}

void bind_replaced_parts(TensorClass& c) {
  c.def("select_scatter", &Tensor::select_scatter, arg("source"), arg("dim"), arg("index"),
        "Another tensor in the place of select().");
  c.def("slice_scatter", &Tensor::slice_scatter, arg("source"), arg("dim") = 0,
        arg("start") = py::none(), arg("end") = py::none(), arg("step") = 1,
        "Another tensor in the place of slice().");
  c.def("as_strided_scatter", &Tensor::as_strided_scatter, arg("source"), arg("sizes"),
        arg("stride"), arg("offset") = 0, "Another tensor in the place of as_strided().");
  c.def(
      "diff",
      [](const Tensor& x, int64_t n, int64_t dim, const MaybeTensor& prepend,
         const MaybeTensor& append) { return x.diff(n, dim, given(prepend), given(append)); },
      arg("n") = 1, arg("dim") = -1, arg("prepend") = py::none(), arg("append") = py::none(),
      "n times the differences of neighbours along an axis.");
  c.def("unravel_index", &Tensor::unravel_index, arg("sizes"),
        "Where positions of a flattened tensor of these sizes are: one tensor per axis.");
  c.def("combinations", &Tensor::combinations, arg("r") = 2, arg("with_replacement") = false,
        "Every choice of r elements of a vector, in order.");
  c.def("t", &Tensor::t, "Two axes exchanged; vectors and scalars as they are.");
}

void bind_grids(TensorClass& c) {
  c.def_static("meshgrid", &Tensor::meshgrid, arg("tensors"), arg("indexing") = GridOrder::Rows,
               "Grids of coordinates, one for each vector; \"xy\" exchanges the first two axes.");
  c.def_static("hstack", &Tensor::hstack, arg("tensors"), "Side by side.");
  c.def_static("vstack", &Tensor::vstack, arg("tensors"), "Below each other.");
  c.def_static("dstack", &Tensor::dstack, arg("tensors"), "Behind each other.");
  c.def_static("column_stack", &Tensor::column_stack, arg("tensors"),
               "Side by side, vectors as columns.");
  const auto several = [&](const char* name, auto function, const char* doc) {
    // First, since a tensor is a sequence of tensors too.
    c.def_static(
        name,
        [function, name](const Tensor& first, const py::args& more) {
          std::vector<Tensor> tensors{first};
          for (const py::handle t : more) {
            if (!py::isinstance<Tensor>(t))
              throw py::type_error(std::string(name) + "(): argument " +
                                   std::to_string(tensors.size()) + " has to be a Tensor, not " +
                                   type_name(t));
            tensors.push_back(t.cast<Tensor>());
          }
          return function(tensors);
        },
        arg("first"), doc);
    c.def_static(name, function, arg("tensors"), doc);
  };
  several("block_diag", &Tensor::block_diag, "Matrices along a diagonal, zeros elsewhere.");
  several("broadcast_tensors", &Tensor::broadcast_tensors,
          "All expanded to the shape that they have together.");
  several("cartesian_prod", &Tensor::cartesian_prod,
          "Every choice of one element of each vector, as rows.");
}

// At points x, or dx apart.
template <class AtPoints, class Apart>
void bind_integral(TensorClass& c, const char* name, AtPoints at_points, Apart apart,
                   const char* doc) {
  c.def(
      name,
      [=](const Tensor& y, const MaybeTensor& x, std::optional<double> dx, int64_t dim) {
        if (x && dx) fail<InvalidArgument>("{}: x and dx are given; leave one out", name);
        return x ? (y.*at_points)(*x, dim) : (y.*apart)(dx.value_or(1), dim);
      },
      arg("x") = py::none(), py::kw_only(), arg("dx") = py::none(), arg("dim") = -1, doc);
}
void bind_integrals(TensorClass& c) {
  using AtPoints = Tensor (Tensor::*)(const Tensor&, int64_t) const;
  using Apart = Tensor (Tensor::*)(double, int64_t) const;
  bind_integral<AtPoints, Apart>(c, "trapezoid", &Tensor::trapezoid, &Tensor::trapezoid,
                                 "The integral along an axis by the trapezoidal rule.");
  bind_integral<AtPoints, Apart>(c, "cumulative_trapezoid", &Tensor::cumulative_trapezoid,
                                 &Tensor::cumulative_trapezoid, "Its running values.");
}

}  // namespace

void bind_views(TensorClass& c) {
  c.def(
      "roll",
      [](const Tensor& x, const AxesArgument& shifts, const AxesArgument& dims) {
        return x.roll(shifts.axes, dims.axes);
      },
      arg("shifts"), arg("dims") = AxesArgument{},
      "Elements moved on along axes, the last ones to the front; of the flattened tensor if no "
      "axes are given.");
  c.def("repeat_interleave", &Tensor::repeat_interleave, arg("repeats"), arg("dim") = py::none(),
        "Every element so many times in a row.");
  c.def(
      "tile",
      [](const Tensor& x, const py::args& sizes) { return x.tile(sizes_from("tile", sizes)); },
      "repeat(), with counts of 1 in front where there are fewer than axes.");
  c.def(
      "movedim",
      [](const Tensor& x, const AxesArgument& source, const AxesArgument& destination) {
        return x.movedim(source.axes, destination.axes);
      },
      arg("source"), arg("destination"), "Axes to other places; the others keep their order.");
  c.def("swapaxes", &Tensor::swapaxes, arg("axis0"), arg("axis1"), "Two axes exchanged.");
  c.def(
      "broadcast_to",
      [](const Tensor& x, const py::args& sizes) {
        return x.broadcast_to(sizes_from("broadcast_to", sizes));
      },
      "The same as expand().");
  c.def("expand_as", &Tensor::expand_as, arg("other"), "expand() to the shape of another.");
  c.def("view_as", &Tensor::view_as, arg("other"), "view() in the shape of another.");
  c.def("reshape_as", &Tensor::reshape_as, arg("other"), "reshape() to the shape of another.");
  c.def("ravel", &Tensor::ravel, "All axes as one.");
  c.def("rot90", &Tensor::rot90, arg("k") = 1, arg("dims") = Axes{0, 1},
        "Turned by k quarters from the first axis towards the second.");
  c.def("fliplr", &Tensor::fliplr, "Axis 1 turned round.");
  c.def("flipud", &Tensor::flipud, "Axis 0 turned round.");
  c.def("atleast_1d", &Tensor::atleast_1d, "With one axis at least.");
  c.def("atleast_2d", &Tensor::atleast_2d, "With two axes at least, new ones in front.");
  c.def("atleast_3d", &Tensor::atleast_3d, "With three axes at least.");
  bind_cuts(c);
  bind_diagonals(c);
  bind_replaced_parts(c);
  bind_grids(c);
}

void bind_products(TensorClass& c) {
  c.def("dot", &Tensor::dot, arg("other"), "(n) . (n): one number.");
  c.def("vdot", &Tensor::vdot, arg("other"), "The same as dot().");
  c.def("mv", &Tensor::mv, arg("vector"), "(n, k) x (k)");
  c.def("mm", &Tensor::mm, arg("other"), "(n, k) x (k, m)");
  c.def("bmm", &Tensor::bmm, arg("other"), "(b, n, k) x (b, k, m)");
  c.def("outer", &Tensor::outer, arg("other"), "(n), (m) -> (n, m)");
  c.def("inner", &Tensor::inner, arg("other"),
        "Sums of products over the last axis of both: (..., k), (..., k).");
  c.def("tensordot", py::overload_cast<const Tensor&, int64_t>(&Tensor::tensordot, py::const_),
        arg("other"), arg("dims") = 2,
        "Sums of products over the last axes of this tensor and the first of the other.");
  c.def(
      "tensordot",
      [](const Tensor& x, const Tensor& other, const std::pair<Axes, Axes>& dims) {
        return x.tensordot(other, dims.first, dims.second);
      },
      arg("other"), arg("dims"), "The same over two lists of axes, pair by pair.");
  c.def("vander", &Tensor::vander, arg("N") = py::none(), arg("increasing") = false,
        "Powers of the elements of a vector, columns from the highest on.");
  c.def("addmv", &Tensor::addmv, arg("matrix"), arg("vector"), arg("beta") = 1.0,
        arg("alpha") = 1.0, "beta x + alpha mv(matrix, vector)");
  c.def("addr", &Tensor::addr, arg("a"), arg("b"), arg("beta") = 1.0, arg("alpha") = 1.0,
        "beta x + alpha outer(a, b)");
  c.def("addbmm", &Tensor::addbmm, arg("a"), arg("b"), arg("beta") = 1.0, arg("alpha") = 1.0,
        "beta x + alpha times the sum of bmm(a, b) over the batch");
  c.def("cross", &Tensor::cross, arg("other"), arg("dim") = -1,
        "The vector at right angles to two of 3 elements.");
  c.def("kron", &Tensor::kron, arg("other"), "Every element times the other, block by block.");
  c.def("addmm", &Tensor::addmm, arg("a"), arg("b"), arg("beta") = 1.0, arg("alpha") = 1.0,
        "beta x + alpha mm(a, b)");
  c.def("baddbmm", &Tensor::baddbmm, arg("a"), arg("b"), arg("beta") = 1.0, arg("alpha") = 1.0,
        "beta x + alpha bmm(a, b)");
}

void bind_statistics(TensorClass& c) {
  const auto over = [&](const char* name, auto function, const char* doc) {
    c.def(
        name,
        [function](const Tensor& x, const AxesArgument& dims, bool keepdim) {
          return (x.*function)(dims.axes, keepdim);
        },
        arg("dims") = AxesArgument{}, arg("keepdim") = false, doc);
  };
  over("amax", &Tensor::amax, "The same as max().");
  over("amin", &Tensor::amin, "The same as min().");
  over("nansum", &Tensor::nansum, "sum() with NaN as 0.");
  over("nanmean", &Tensor::nanmean, "mean() of what is not NaN.");
  c.def(
      "sum_to_size",
      [](const Tensor& x, const py::args& sizes) {
        return x.sum_to_size(sizes_from("sum_to_size", sizes));
      },
      "The sum over axes that these sizes do not have, or have as 1.");
  const auto moments = [&](const char* name, auto function, const char* doc) {
    c.def(
        name,
        [function](const Tensor& x, const AxesArgument& dims, bool keepdim, int64_t correction) {
          return (x.*function)(dims.axes, keepdim, correction);
        },
        arg("dims") = AxesArgument{}, arg("keepdim") = false, arg("correction") = 1, doc);
  };
  moments("var_mean", &Tensor::var_mean, "var() and mean().");
  moments("std_mean", &Tensor::std_mean, "std() and mean().");
  c.def("aminmax", &Tensor::aminmax, arg("dim") = py::none(), arg("keepdim") = false,
        "The smallest and the largest, of all axes or one.");
  c.def("max_with_indices", &Tensor::max_with_indices, arg("dim"), arg("keepdim") = false,
        "The largest of an axis, and where it is: what PyTorch's max(dim) gives.");
  c.def("min_with_indices", &Tensor::min_with_indices, arg("dim"), arg("keepdim") = false,
        "The smallest of an axis, and where it is: what PyTorch's min(dim) gives.");
  c.def(
      "norm",
      [](const Tensor& x, double p, const AxesArgument& dims, bool keepdim) {
        return x.norm(p, dims.axes, keepdim);
      },
      arg("p") = 2.0, arg("dims") = AxesArgument{}, arg("keepdim") = false,
      "(sum of |x|^p)^(1/p); p may be 0 or infinite.");
  c.def(
      "count_nonzero",
      [](const Tensor& x, const AxesArgument& dims) { return x.count_nonzero(dims.axes); },
      arg("dims") = AxesArgument{}, "How many elements are not 0, as int64.");
  c.def("cosine_similarity", &Tensor::cosine_similarity, arg("other"), arg("dim") = 1,
        arg("eps") = 1e-8, "The cosine of the angle between vectors along an axis.");
  c.def("cdist", &Tensor::cdist, arg("other"), arg("p") = 2.0,
        "(..., n, k), (..., m, k) -> (..., n, m): distances of all pairs of rows.");
  c.def("dist", &Tensor::dist, arg("other"), arg("p") = 2.0, "The norm of x - other.");
  c.def("pdist", &Tensor::pdist, arg("p") = 2.0,
        "The distances of each row to all that come after it.");
  c.def("pairwise_distance", &Tensor::pairwise_distance, arg("other"), arg("p") = 2.0,
        arg("eps") = 1e-6, arg("keepdim") = false,
        "The norm along the last axis of x - other + eps.");
  c.def("renorm", &Tensor::renorm, arg("p"), arg("dim"), arg("maxnorm"),
        "Slices of an axis whose p-norm is above maxnorm, scaled down to it.");
  bind_integrals(c);
  c.def("cov", &Tensor::cov, arg("correction") = 1, "Covariances of rows over columns.");
  c.def("corrcoef", &Tensor::corrcoef, "Pearson's coefficients of rows over columns.");
  // The host waits for the answer: others run meanwhile.
  const auto answered = [](const Tensor& everywhere) {
    wait_for(everywhere);
    return everywhere.item() != 0;
  };
  c.def(
      "allclose",
      [answered](const Tensor& x, const Tensor& other, double rtol, double atol, bool equal_nan) {
        return answered(x.isclose(other, rtol, atol, equal_nan).all());
      },
      arg("other"), arg("rtol") = 1e-5, arg("atol") = 1e-8, arg("equal_nan") = false,
      "Does isclose() hold everywhere? Waits for the values.");
  c.def(
      "equal",
      [answered](const Tensor& x, const Tensor& other) {
        return x.sizes() == other.sizes() && answered((x == other).all());
      },
      arg("other"), "The same shape and equal elements? Waits for the values.");
}

void bind_writes(TensorClass& c) {
  const auto with_number = [&](const char* name, Tensor& (Tensor::*tensor)(const Tensor&),
                               Tensor& (Tensor::*number)(Number), const char* doc) {
    c.def(name, tensor, arg("other"), doc);
    c.def(name, number, arg("other"), doc);
  };
  with_number("add_", &Tensor::add_, &Tensor::add_, "x += y");
  with_number("sub_", &Tensor::sub_, &Tensor::sub_, "x -= y");
  with_number("mul_", &Tensor::mul_, &Tensor::mul_, "x *= y");
  with_number("div_", &Tensor::div_, &Tensor::div_, "x /= y");
  c.def("clamp_", &Tensor::clamp_, arg("min") = py::none(), arg("max") = py::none(),
        "clamp() in place.");
  c.def("fill_", &Tensor::fill_, arg("value"), "The value everywhere, in place.");
  c.def("zero_", &Tensor::zero_, "0 everywhere, in place.");
  c.def("copy_", &Tensor::copy_, arg("source"), "Another tensor's values, broadcast and cast.");
  c.def("masked_fill_", &Tensor::masked_fill_, arg("mask"), arg("value"),
        "masked_fill() in place.");
  // What functions in place are made of in Python (tuff/_names.py): what a view is by now, and a
  // value in a tensor's place, which has memory of its own.
  c.def("_current", [](const Tensor& x) { return detail::current(x); });
  c.def("_overwrite", [](const py::object& self, const std::string& name, const Tensor& value,
                         const std::vector<Tensor>& operands) {
    auto& x = self.cast<Tensor&>();
    bool is_operand = false;
    for (const Tensor& t : operands) is_operand |= detail::uop(t) == detail::uop(value);
    detail::overwrite(name.c_str(), x, is_operand ? value.clone() : value);
    return self;
  });
  c.def("to_", &Tensor::to_, arg("device"), "On another device from now on, with its gradient.");
}

}  // namespace tuff::python
