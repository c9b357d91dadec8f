// Functions of Tensor as tables: movement, element-wise functions, reductions, networks.
#include "function_tables.h"

namespace tuff::python {
namespace {

using py::arg;

constexpr Unary kUnary[] = {
    {"neg", &Tensor::neg, "-x"},
    {"abs", &Tensor::abs, "|x|"},
    {"sign", &Tensor::sign, "-1, 0 or 1"},
    {"reciprocal", &Tensor::reciprocal, "1 / x"},
    {"sqrt", &Tensor::sqrt, "Square root."},
    {"rsqrt", &Tensor::rsqrt, "1 / sqrt(x)"},
    {"exp", &Tensor::exp, "e to the power of x"},
    {"exp2", &Tensor::exp2, "2 to the power of x"},
    {"log", &Tensor::log, "Natural logarithm."},
    {"log2", &Tensor::log2, "Logarithm to base 2."},
    {"sin", &Tensor::sin, "Sine of radians."},
    {"cos", &Tensor::cos, "Cosine of radians."},
    {"tan", &Tensor::tan, "Tangent of radians."},
    {"tanh", &Tensor::tanh, "Hyperbolic tangent."},
    {"erf", &Tensor::erf, "Error function."},
    {"sigmoid", &Tensor::sigmoid, "1 / (1 + exp(-x))"},
    {"relu", &Tensor::relu, "max(x, 0)"},
    {"silu", &Tensor::silu, "x * sigmoid(x)"},
    {"trunc", &Tensor::trunc, "Rounded toward 0."},
    {"floor", &Tensor::floor, "Rounded down."},
    {"ceil", &Tensor::ceil, "Rounded up."},
    {"round", &Tensor::round, "Rounded, half to even."},
    {"square", &Tensor::square, "x * x"},
    {"bitwise_not", &Tensor::bitwise_not, "Every bit turned; also ~x."},
    {"logical_not", &Tensor::logical_not, "Bool: is x 0?"},
    {"isnan", &Tensor::isnan, "Bool: is x not a number?"},
    {"isinf", &Tensor::isinf, "Bool: is x infinite?"},
    {"contiguous", &Tensor::contiguous, "Asks for memory of its own in row-major order."},
    {"clone", &Tensor::clone, "A copy in memory of its own; gradients flow through it."},
    {"detach", &Tensor::detach,
     "The value, without gradient: a view that may be written where the tensor has requires_grad."},
};

constexpr Binary kBinary[] = {
    {"maximum", &Tensor::maximum, "other", "The larger of two; NaN if either is."},
    {"minimum", &Tensor::minimum, "other", "The smaller of two; NaN if either is."},
    {"matmul", &Tensor::matmul, "other", "(..., n, k) x (..., k, m); also the operator @."},
    {"take", &Tensor::take, "index",
     "Elements of the flattened tensor, in the shape of the index."},
};

constexpr WithNumber kWithNumber[] = {
    {"pow", &Tensor::pow, &Tensor::pow, "exponent",
     "Within 2 ULP; whole numbers up to 4 by multiplication, within 4."},
    {"floor_divide", &Tensor::floor_divide, &Tensor::floor_divide, "other",
     "The quotient rounded down; also //."},
    {"remainder", &Tensor::remainder, &Tensor::remainder, "other", "x - y * floor(x / y); also %."},
    {"fmod", &Tensor::fmod, &Tensor::fmod, "other", "x - y * trunc(x / y)"},
};

struct Reduce {
  const char* name;
  Tensor (Tensor::*function)(const Axes&, bool) const;
  const char* doc;
};
constexpr Reduce kReduce[] = {
    {"sum", &Tensor::sum,
     "Over all axes, or those given. Bools and integers give int64, unsigned ones uint64."},
    {"mean", &Tensor::mean, "The mean over all axes, or those given."},
    {"max", &Tensor::max, "The largest over all axes, or those given; NaN if there is one."},
    {"min", &Tensor::min, "The smallest over all axes, or those given; NaN if there is one."},
    {"prod", &Tensor::prod,
     "The product over all axes, or those given; dtypes as those of sum()."},
    {"any", &Tensor::any, "Bool: is one of the elements other than 0?"},
    {"all", &Tensor::all, "Bool: is every one of the elements other than 0?"},
    {"logsumexp", &Tensor::logsumexp, "log(sum(exp(x))) over all axes, or those given."},
};

struct Spread {
  const char* name;
  Tensor (Tensor::*function)(const Axes&, bool, int64_t) const;
  const char* doc;
};
constexpr Spread kSpread[] = {
    {"var", &Tensor::var, "Variance, divided by max(0, count - correction)."},
    {"std", &Tensor::std, "Standard deviation, the root of var()."},
};

struct Along {
  const char* name;
  Tensor (Tensor::*function)(int64_t) const;
  const char* parameter;
  const char* doc;
};
constexpr Along kAlong[] = {
    {"cumsum", &Tensor::cumsum, "dim", "Running sums along an axis."},
    {"unsqueeze", &Tensor::unsqueeze, "dim", "A new axis of extent 1."},
    {"one_hot", &Tensor::one_hot, "classes", "Integers -> (..., classes) of int32."},
};

// Extents given one by one or as a list.
struct Shaped {
  const char* name;
  Tensor (Tensor::*function)(const Sizes&) const;
  const char* doc;
};
constexpr Shaped kShaped[] = {
    {"reshape", &Tensor::reshape, "The same elements in another shape; one extent may be -1."},
    {"view", &Tensor::view, "The same as reshape()."},
    {"expand", &Tensor::expand, "Repeats axes of extent 1; -1 keeps an extent."},
    {"repeat", &Tensor::repeat, "Repeats whole axes so many times."},
};

Axes axes_from(const char* function, const py::args& args) {
  Axes axes;
  for (const Size& s : sizes_from(function, args)) axes.push_back(s);
  return axes;
}

}  // namespace

void bind_movement(TensorClass& c) {
  for (const Shaped& f : kShaped)
    c.def(
        f.name,
        [f](const Tensor& x, const py::args& sizes) {
          return (x.*f.function)(sizes_from(f.name, sizes));
        },
        f.doc);
  c.def(
      "permute",
      [](const Tensor& x, const py::args& d) { return x.permute(axes_from("permute", d)); },
      "Axes in another order.");
  c.def(
      "flip", [](const Tensor& x, const py::args& d) { return x.flip(axes_from("flip", d)); },
      "Axes turned round; all of them if none is given.");
  c.def("transpose", &Tensor::transpose, arg("dim0"), arg("dim1"), "Two axes exchanged.");
  c.def_property_readonly("T", &Tensor::T, "The last two axes exchanged.");
  c.def(
      "pad",
      [](const Tensor& x, const std::vector<int64_t>& padding, Number value, PadMode mode) {
        return mode == PadMode::Constant ? x.pad(padding, value) : x.pad(padding, mode);
      },
      arg("padding"), arg("value") = 0, arg("mode") = PadMode::Constant,
      "(last before, last after, the one before that, ...); negative values crop. mode: "
      "\"constant\", \"reflect\", \"replicate\" or \"circular\".");
  c.def("shrink", &Tensor::shrink, arg("ranges"), "The part [begin, end) of every axis.");
  c.def("slice", &Tensor::slice, arg("dim"), arg("start") = py::none(), arg("stop") = py::none(),
        arg("step") = 1, "start:stop:step of one axis.");
  c.def("narrow", &Tensor::narrow, arg("dim"), arg("start"), arg("length"),
        "`length` elements of an axis from `start`.");
  c.def("select", &Tensor::select, arg("dim"), arg("index"), "One element of an axis.");
  c.def("squeeze", &Tensor::squeeze, arg("dim") = py::none(), "Without axes of extent 1.");
  c.def("flatten", &Tensor::flatten, arg("start_dim") = 0, arg("end_dim") = -1,
        "Several axes as one.");
  c.def("split", &Tensor::split, arg("size"), arg("dim") = 0, "Parts of so many elements.");
  c.def("split", &Tensor::split_with_sizes, arg("sizes"), arg("dim") = 0,
        "The same as split_with_sizes().");
  c.def("split_with_sizes", &Tensor::split_with_sizes, arg("sizes"), arg("dim") = 0,
        "Parts of these sizes.");
  c.def("chunk", &Tensor::chunk, arg("chunks"), arg("dim") = 0, "So many parts.");
  c.def("tril", &Tensor::tril, arg("diagonal") = 0, "Elements on and below a diagonal, else 0.");
  c.def("triu", &Tensor::triu, arg("diagonal") = 0, "Elements on and above a diagonal, else 0.");
  c.def("gather", &Tensor::gather, arg("dim"), arg("index"),
        "out[i][j] = x[index[i][j]][j] for dim 0, and so on.");
  c.def("index_select", &Tensor::index_select, arg("dim"), arg("index"), "Rows of one axis.");
}

void bind_elementwise(TensorClass& c) {
  bind_tables(c, kUnary, kBinary, kWithNumber);
  const auto shift = [&](const char* name, auto operation, const char* doc) {
    c.def(
        name, [operation](const Tensor& x, const Tensor& count) { return operation(x, count); },
        arg("count"), doc);
    c.def(
        name, [operation](const Tensor& x, Number count) { return operation(x, count); },
        arg("count"), doc);
  };
  shift(
      "bitwise_left_shift", [](const Tensor& x, const auto& count) { return x << count; },
      "Counts below 0, or of the width and more, leave 0.");
  shift(
      "bitwise_right_shift", [](const Tensor& x, const auto& count) { return x >> count; },
      "Counts below 0, or of the width and more, leave 0 or the sign.");
  for (const Along& f : kAlong) c.def(f.name, f.function, arg(f.parameter), f.doc);
  c.def("leaky_relu", &Tensor::leaky_relu, arg("negative_slope") = 0.01,
        "x, or negative_slope * x below 0.");
  c.def(
      "gelu", [](const Tensor& x, const std::string& how) { return x.gelu(how); },
      arg("approximate") = "none", "x * Phi(x), Phi by erf (\"none\") or by tanh (\"tanh\").");
  c.def("softplus", &Tensor::softplus, arg("beta") = 1.0, arg("threshold") = 20.0,
        "log(1 + exp(beta x)) / beta; x itself where beta x > threshold.");
  c.def(
      "clamp",
      [](const Tensor& x, std::optional<Number> min, std::optional<Number> max) {
        return x.clamp(min, max);
      },
      arg("min") = py::none(), arg("max") = py::none(),
      "Kept inside bounds, either of which may be left out.");
  c.def(
      "clamp",
      [](const Tensor& x, const MaybeTensor& min, const MaybeTensor& max) {
        return x.clamp(given(min), given(max));
      },
      arg("min") = py::none(), arg("max") = py::none(), "The same between tensors.");
  c.def("masked_fill", &Tensor::masked_fill, arg("mask"), arg("value"),
        "The value where the bool mask holds.");
  c.def("cast", &Tensor::cast, arg("dtype"), "The values as another dtype.");
  c.def("bitcast", &Tensor::bitcast, arg("dtype"), "The bits as another dtype of the same size.");
  c.def("to", py::overload_cast<const std::string&>(&Tensor::to, py::const_), arg("device"),
        "A copy on another device; the tensor itself if it is there.");
  c.def(
      "to",
      [](const Tensor& x, const std::vector<std::string>& devices) { return x.shard(devices); },
      arg("devices"), "A copy on each of several devices: shard(devices).");
  c.def("to", py::overload_cast<DType>(&Tensor::to, py::const_), arg("dtype"),
        "The same as cast().");
}

void bind_reductions(TensorClass& c) {
  for (const Reduce& f : kReduce)
    c.def(
        f.name,
        [f](const Tensor& x, const AxesArgument& dims, bool keepdim) {
          return (x.*f.function)(dims.axes, keepdim);
        },
        arg("dims") = AxesArgument{}, arg("keepdim") = false, f.doc);
  for (const Spread& f : kSpread)
    c.def(
        f.name,
        [f](const Tensor& x, const AxesArgument& dims, bool keepdim, int64_t correction) {
          return (x.*f.function)(dims.axes, keepdim, correction);
        },
        arg("dims") = AxesArgument{}, arg("keepdim") = false, arg("correction") = 1, f.doc);
  c.def("argmax", &Tensor::argmax, arg("dim") = py::none(), arg("keepdim") = false,
        "Where the largest is, the first of equals, as int32; int64 on axes of 2^31 and more.");
  c.def("argmin", &Tensor::argmin, arg("dim") = py::none(), arg("keepdim") = false,
        "Where the smallest is, the first of equals, as int32; int64 on axes of 2^31 and more.");
  c.def("softmax", &Tensor::softmax, arg("dim") = -1, "exp(x) / sum(exp(x)) along an axis.");
  c.def("log_softmax", &Tensor::log_softmax, arg("dim") = -1, "The logarithm of softmax().");
}

void bind_networks(TensorClass& c) {
  c.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
        return x.linear(weight, given(bias));
      },
      arg("weight"), arg("bias") = py::none(), "x @ weight.T + bias; weight (out, in).");
  c.def(
      "layernorm",
      [](const Tensor& x, const Sizes& normalized, const MaybeTensor& weight,
         const MaybeTensor& bias,
         double eps) { return x.layernorm(normalized, given(weight), given(bias), eps); },
      arg("normalized"), arg("weight") = py::none(), arg("bias") = py::none(), arg("eps") = 1e-5,
      "Over the last axes, which have the shape `normalized`.");
  c.def(
      "rms_norm",
      [](const Tensor& x, const Sizes& normalized, const MaybeTensor& weight,
         std::optional<double> eps) { return x.rms_norm(normalized, given(weight), eps); },
      arg("normalized"), arg("weight") = py::none(), arg("eps") = py::none(),
      "x / sqrt(mean(x^2) + eps) over the last axes.");
  c.def(
      "batchnorm",
      [](const Tensor& x, const Tensor& mean, const Tensor& var, const MaybeTensor& weight,
         const MaybeTensor& bias, bool training, double momentum, double eps) {
        return x.batchnorm(mean, var, given(weight), given(bias), training, momentum, eps);
      },
      arg("running_mean"), arg("running_var"), arg("weight") = py::none(), arg("bias") = py::none(),
      arg("training") = false, arg("momentum") = 0.1, arg("eps") = 1e-5,
      "(N, C, ...) normalized per channel.");
  c.def("dropout", &Tensor::dropout, arg("p") = 0.5,
        "Zeroes with probability p and scales the rest; only in training mode.");
}

}  // namespace tuff::python
