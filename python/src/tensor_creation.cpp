// How tensors come to be, from extents, numbers and lists, and the functions that take several.
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

// What every function that makes a tensor takes at the end.
#define TUFF_OPTIONS(type) \
  py::kw_only(), arg("dtype") = (type), arg("device") = "", arg("requires_grad") = false

struct Filled {
  const char* name;
  Tensor (*function)(const Sizes&, const TensorOptions&);
  const char* doc;
};
constexpr Filled kFilled[] = {
    {"empty", &Tensor::empty, "Memory with whatever it holds."},
    {"zeros", &Tensor::zeros, "Zeros."},
    {"ones", &Tensor::ones, "Ones."},
    {"rand", &Tensor::rand, "Uniform in [0, 1); the same bits on every device for one seed."},
    {"randn", &Tensor::randn, "Standard normal."},
};

struct Kaiming {
  const char* name;
  Tensor (*function)(const Sizes&, double, FanMode, const TensorOptions&);
  const char* doc;
};
constexpr Kaiming kKaiming[] = {
    {"kaiming_uniform", &Tensor::kaiming_uniform,
     "Initial weights (out, in, ...) before a leaky ReLU of slope `a`, uniform."},
    {"kaiming_normal", &Tensor::kaiming_normal,
     "Initial weights (out, in, ...) before a leaky ReLU of slope `a`, normal."},
};

struct Glorot {
  const char* name;
  Tensor (*function)(const Sizes&, double, const TensorOptions&);
  const char* doc;
};
constexpr Glorot kGlorot[] = {
    {"glorot_uniform", &Tensor::glorot_uniform, "Initial weights before tanh, uniform."},
    {"glorot_normal", &Tensor::glorot_normal, "Initial weights before tanh, normal."},
};

Tensor arange(Number start, std::optional<Number> end, Number step, std::optional<DType> dtype,
              const std::string& device, bool requires_grad) {
  const Number first = end ? start : Number(0), last = end ? *end : start;
  return Tensor::arange(first, last, step, {dtype.value_or(DType::Void), device, requires_grad});
}

void bind_filled(TensorClass& c) {
  for (const Filled& f : kFilled)
    c.def_static(
        f.name,
        [f](const Sizes& sizes, DType t, const std::string& device, bool grad) {
          return f.function(sizes, {t, device, grad});
        },
        arg("sizes"), TUFF_OPTIONS(DType::F32), f.doc);
  for (const Filled& f : kFilled)
    c.def_static(
        f.name,
        [f](const Size& first, const Size& second, const py::args& more, DType t,
            const std::string& device, bool grad) {
          Sizes sizes{first, second};
          for (const Size& s : sizes_from(f.name, more)) sizes.push_back(s);
          return f.function(sizes, {t, device, grad});
        },
        arg("first"), arg("second"), arg("dtype") = DType::F32, arg("device") = "",
        arg("requires_grad") = false, "The same of extents one by one.");
  for (const Kaiming& f : kKaiming)
    c.def_static(
        f.name,
        [f](const Sizes& sizes, double a, FanMode mode, DType t, const std::string& device,
            bool grad) { return f.function(sizes, a, mode, {t, device, grad}); },
        arg("sizes"), arg("a") = 0.0, arg("mode") = FanMode::In, TUFF_OPTIONS(DType::F32), f.doc);
  for (const Glorot& f : kGlorot)
    c.def_static(
        f.name,
        [f](const Sizes& sizes, double gain, DType t, const std::string& device, bool grad) {
          return f.function(sizes, gain, {t, device, grad});
        },
        arg("sizes"), arg("gain") = 1.0, TUFF_OPTIONS(DType::F32), f.doc);
  c.def_static(
      "full",
      [](const Sizes& sizes, Number value, DType t, const std::string& device, bool grad) {
        return Tensor::full(sizes, value, {t, device, grad});
      },
      arg("sizes"), arg("value"), TUFF_OPTIONS(DType::F32), "One value everywhere.");
}

void bind_indices(TensorClass& c) {
  c.def_static(
      "logspace",
      [](double start, double end, int64_t steps, double base, DType t, const std::string& device,
         bool grad) { return Tensor::logspace(start, end, steps, base, {t, device, grad}); },
      arg("start"), arg("end"), arg("steps"), arg("base") = 10.0, TUFF_OPTIONS(DType::F32),
      "base to the power of each of linspace(start, end, steps).");
  c.def_static("tril_indices", &Tensor::tril_indices, arg("rows"), arg("columns"),
               arg("offset") = 0, arg("device") = "",
               "Rows and columns of the elements on and below a diagonal.");
  c.def_static("triu_indices", &Tensor::triu_indices, arg("rows"), arg("columns"),
               arg("offset") = 0, arg("device") = "",
               "Rows and columns of the elements on and above a diagonal.");
}

void bind_drawn(TensorClass& c) {
  c.def_static(
      "uniform",
      [](const Sizes& sizes, double low, double high, DType t, const std::string& device,
         bool grad) { return Tensor::uniform(sizes, low, high, {t, device, grad}); },
      arg("sizes"), arg("low"), arg("high"), TUFF_OPTIONS(DType::F32), "Uniform in [low, high).");
  c.def_static(
      "normal",
      [](double mean, double std, const Sizes& sizes, DType t, const std::string& device,
         bool grad) { return Tensor::normal(mean, std, sizes, {t, device, grad}); },
      arg("mean"), arg("std"), arg("sizes"), TUFF_OPTIONS(DType::F32),
      "Normal of this mean and standard deviation.");
  c.def_static(
      "randint",
      [](int64_t low, int64_t high, const Sizes& sizes, DType t, const std::string& device,
         bool grad) { return Tensor::randint(low, high, sizes, {t, device, grad}); },
      arg("low"), arg("high"), arg("sizes"), TUFF_OPTIONS(DType::I32),
      "Whole numbers in [low, high).");
  c.def_static(
      "randint",
      [](int64_t high, const Sizes& sizes, DType t, const std::string& device, bool grad) {
        return Tensor::randint(0, high, sizes, {t, device, grad});
      },
      arg("high"), arg("sizes"), TUFF_OPTIONS(DType::I32), "Whole numbers in [0, high).");
  c.def_static(
      "randperm",
      [](int64_t n, DType t, const std::string& device, bool grad) {
        return Tensor::randperm(n, {t, device, grad});
      },
      arg("n"), TUFF_OPTIONS(DType::I32), "0..n-1 in random order.");
  c.def_static(
      "exponential",
      [](const Sizes& sizes, double rate, DType t, const std::string& device, bool grad) {
        return Tensor::exponential(sizes, rate, {t, device, grad});
      },
      arg("sizes"), arg("rate") = 1.0, TUFF_OPTIONS(DType::F32),
      "Times until an event that comes `rate` times per unit of time.");
  c.def_static(
      "trunc_normal",
      [](const Sizes& sizes, double mean, double std, double low, double high, DType t,
         const std::string& device, bool grad) {
        return Tensor::trunc_normal(sizes, mean, std, low, high, {t, device, grad});
      },
      arg("sizes"), arg("mean") = 0.0, arg("std") = 1.0, arg("low") = -2.0, arg("high") = 2.0,
      TUFF_OPTIONS(DType::F32), "normal() of what lies in [low, high].");
  c.def_static(
      "scaled_uniform",
      [](const Sizes& sizes, DType t, const std::string& device, bool grad) {
        return Tensor::scaled_uniform(sizes, {t, device, grad});
      },
      arg("sizes"), TUFF_OPTIONS(DType::F32),
      "Uniform in [-1, 1), over the root of the number of elements.");
  c.def(
      "bernoulli",
      [](const Tensor& x, std::optional<double> p) { return p ? x.bernoulli(*p) : x.bernoulli(); },
      arg("p") = py::none(), "1 with the probability that each element is, or with p; else 0.");
  c.def("poisson", &Tensor::poisson,
        "Counts of events, of which each element is the expected number.");
  c.def_static("manual_seed", &Tensor::manual_seed, arg("seed"), "Begins the random numbers anew.");
  c.def_static("get_rng_state", &Tensor::get_rng_state, arg("device") = "",
               "Where a device's random numbers are, for set_rng_state().");
  c.def_static("set_rng_state", &Tensor::set_rng_state, arg("state"), arg("device") = "",
               "Goes on from there.");
}

void bind_counted(TensorClass& c) {
  c.def_static(
      "arange", &arange, arg("start"), arg("end") = py::none(), arg("step") = 1,
      TUFF_OPTIONS(py::none()),
      "start, start+step, ... before end, or 0, 1, ... before the only number given; int32 "
      "for whole numbers, else float32.");
  c.def_static(
      "linspace",
      [](Number start, Number end, int64_t steps, DType t, const std::string& device, bool grad) {
        return Tensor::linspace(start, end, steps, {t, device, grad});
      },
      arg("start"), arg("end"), arg("steps"), TUFF_OPTIONS(DType::F32),
      "`steps` values from start to end, both included.");
  c.def_static(
      "eye",
      [](const Size& n, const std::optional<Size>& m, DType t, const std::string& device,
         bool grad) { return Tensor::eye(n, m.value_or(n), {t, device, grad}); },
      arg("n"), arg("m") = py::none(), TUFF_OPTIONS(DType::F32), "Ones on the diagonal.");
}

}  // namespace

void bind_creation(TensorClass& c) {
  bind_filled(c);
  bind_indices(c);
  bind_drawn(c);
  bind_counted(c);
  c.def("empty_like", &Tensor::empty_like, "Memory of this shape, dtype and device.");
  c.def("full_like", &Tensor::full_like, arg("value"), "One value in this shape.");
  c.def("zeros_like", &Tensor::zeros_like, "Zeros in this shape.");
  c.def("ones_like", &Tensor::ones_like, "Ones in this shape.");
  c.def("rand_like", &Tensor::rand_like, "Uniform in [0, 1), in this shape.");
  c.def("randn_like", &Tensor::randn_like, "Standard normal, in this shape.");

  c.def_static("cat", &Tensor::cat, arg("tensors"), arg("dim") = 0, "Side by side along an axis.");
  c.def_static("stack", &Tensor::stack, arg("tensors"), arg("dim") = 0, "Along a new axis.");
  c.def_static(
      "einsum",
      [](const std::string& equation, const std::vector<Tensor>& operands) {
        return Tensor::einsum(equation, operands);
      },
      arg("equation"), arg("operands"), "Einstein's summation: einsum(\"ij,jk->ik\", [a, b]).");
  constexpr const char* kWhere = "x where the bool condition holds, else y.";
  using T = const Tensor&;
  c.def_static("where", py::overload_cast<T, T, T>(&Tensor::where), arg("condition"), arg("x"),
               arg("y"), kWhere);
  c.def_static("where", py::overload_cast<T, T, Number>(&Tensor::where), arg("condition"), arg("x"),
               arg("y"), kWhere);
  c.def_static("where", py::overload_cast<T, Number, T>(&Tensor::where), arg("condition"), arg("x"),
               arg("y"), kWhere);
  c.def_static("where", py::overload_cast<T, Number, Number>(&Tensor::where), arg("condition"),
               arg("x"), arg("y"), kWhere);
  c.def_static(
      "scaled_dot_product_attention",
      [](T q, T k, T v, const MaybeTensor& mask, double dropout_p, bool is_causal,
         std::optional<double> scale) {
        return Tensor::scaled_dot_product_attention(q, k, v, given(mask), dropout_p, is_causal,
                                                    scale);
      },
      arg("q"), arg("k"), arg("v"), arg("attn_mask") = py::none(), arg("dropout_p") = 0.0,
      arg("is_causal") = false, arg("scale") = py::none(),
      "Attention of (..., T, D); a bool mask attends where it is true.");
  c.def_static("embedding", &Tensor::embedding, arg("weight"), arg("index"),
               "weight (V, C), integers (...) -> (..., C).");
}

}  // namespace tuff::python
