// Every function of Tensor, forwards and backwards, with the operands of tensor_values.json in
// every dtype that the function takes: float operands as every float type, and as every integer and
// bool in quarters; integers as every integer and bool.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "check/function_values.h"
#include "check/functions.h"
#include "check/suite.h"
#include "check/values.h"
#include "tensor/impl.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::UOp;
using nlohmann::json;

// What one function is given: as stored, and what that says of the dtypes it takes.
struct Stored {
  Arrays inputs;
  bool has_float = false, has_int = false;
  bool has_gradient = false;
};

// What JSON has no number for stands there as a word: "nan", "inf", "-inf", "-0".
double number_from(const json& v) {
  return v.is_string() ? std::stod(v.get<std::string>()) : v.get<double>();
}

HostArray array_from(const json& j) {
  const DType t = parse_dtype(j.at("dtype").get<std::string>());
  std::vector<Scalar> values;
  for (const json& v : j.at("values")) values.push_back(Scalar::of_double(t, number_from(v)));
  return array_of(t, j.at("shape").get<ir::IntVec>(), values);
}

const std::map<std::string, Stored>& stored() {
  static const auto by_name = [] {
    std::map<std::string, Stored> out;
    const json all = json::parse(function_values());
    for (const json& row : all.at("cases")) {
      Stored s;
      for (const json& j : row.at("inputs")) {
        s.inputs.push_back(array_from(j));
        s.has_float |= is_float(s.inputs.back().dtype);
        s.has_int |= is_int(s.inputs.back().dtype);
      }
      s.has_gradient = row.contains("grads");
      out.emplace(row.at("name").get<std::string>(), std::move(s));
    }
    return out;
  }();
  return by_name;
}

// A float operand's value among the integers: four times as large, so that most differ.
Scalar whole(const Scalar& v, DType t) {
  const double quarters = std::rint(4 * v.as_double());
  return Scalar::of_double(DType::F64, is_unsigned(t) ? std::abs(quarters) : quarters).cast(t);
}

// The operands in the dtype under test: the floats among them, or the integers where there is no
// float. What stands beside floats (indices, masks) stays.
Arrays converted(const Stored& s, DType t) {
  Arrays out = s.inputs;
  for (HostArray& a : out) {
    if (s.has_float ? !is_float(a.dtype) : !is_int(a.dtype)) continue;
    std::vector<Scalar> values;
    for (int64_t i = 0; i < a.count(); i++) {
      const Scalar v = a.at(i);
      values.push_back(s.has_float && !is_float(t) ? whole(v, t) : v.cast(t));
    }
    a = array_of(t, a.shape, values);
  }
  return out;
}

// Seed 0 gives the values as stored; others deal the floats of each operand out anew.
void shuffle(Arrays& arrays, uint64_t seed, const std::string& name) {
  if (seed == 0) return;
  Draw draw(seed, name);
  for (HostArray& a : arrays) {
    if (!is_float(a.dtype)) continue;
    const size_t width = size_bytes(a.dtype);
    for (int64_t i = a.count() - 1; i > 0; i--) {
      const int64_t j = draw.integer(0, i);
      std::swap_ranges(a.bytes.begin() + i * int64_t(width),
                       a.bytes.begin() + (i + 1) * int64_t(width),
                       a.bytes.begin() + j * int64_t(width));
    }
  }
}

Budget budget_for(Precision p, bool backward) {
  const double relative = std::max(tolerance(p), backward ? tolerance(Precision::Rounded) : 0);
  // The tolerances are parts of the largest magnitude in f32: as many last places of another type.
  const double ulp = relative / 0x1p-23;
  if (ulp == 0) return {};
  return {ulp, ulp, Scale::Largest, "check/functions.h: Precision"};
}

std::vector<Tensor> wrapped(const Roots& inputs, const std::string& device) {
  std::vector<Tensor> out;
  for (const UOp& u : inputs) {
    out.push_back(detail::wrap(u, device));
    if (is_float(u->dtype)) out.back().set_requires_grad();
  }
  return out;
}

UOp placed(const Tensor& t, const std::string& device) {
  const UOp u = detail::uop(t);
  if (u->device) return u;
  return ir::make(ir::Op::Contiguous, u->dtype, {u}, ir::Placement{{device}});
}

Roots forward(const Function& f, const Roots& inputs, const std::string& device) {
  Tensor::manual_seed(1);
  return {placed(f.run(wrapped(inputs, device)), device)};
}

// Weights 1/8 to 7/8, so that no two neighbouring gradients are equal. From host memory: what is
// made of constants alone would know no device.
Tensor weighted(const Tensor& out, const std::string& device) {
  std::vector<float> w(size_t(out.numel()));
  for (size_t i = 0; i < w.size(); i++) w[i] = float(i % 7 + 1) / 8;
  return out * Tensor::from(w, out.sizes(), {.device = device}).cast(out.dtype());
}

Roots backward(const Function& f, const Roots& inputs, const std::string& device) {
  Tensor::manual_seed(1);
  const std::vector<Tensor> x = wrapped(inputs, device);
  std::vector<Tensor> leaves;
  for (const Tensor& t : x) {
    if (is_float(t.dtype())) leaves.push_back(t);
  }
  Roots out;
  for (const Tensor& g : weighted(f.run(x), device).sum().gradient(leaves)) {
    if (g.defined()) out.push_back(placed(g, device));
  }
  return out;
}

Case function_case(const Function& f, const Stored& s, DType t, bool is_backward) {
  Case c;
  c.op = "Tensor." + f.name;
  c.dtype = t;
  c.dtypes = {t};
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), is_backward ? "backward" : "forward");
  c.budget = budget_for(f.precision, is_backward);
  c.inputs = [&s, t, name = c.name](uint64_t seed) {
    Arrays out = converted(s, t);
    shuffle(out, seed, name);
    return out;
  };
  c.build = [&f, is_backward](const Roots& inputs, const std::string& device) {
    return is_backward ? backward(f, inputs, device) : forward(f, inputs, device);
  };
  return c;
}

}  // namespace

void append_function_cases(std::vector<Case>& out) {
  for (const Function& f : functions()) {
    const Stored& s = stored().at(f.name);
    if (!s.has_float && !s.has_int) {
      out.push_back(function_case(f, s, s.inputs.empty() ? DType::F32 : DType::Bool, false));
      continue;
    }
    for (const DType t : memory_dtypes()) {
      if ((is_float(t) && !s.has_float) || refuses(f, t)) continue;
      out.push_back(function_case(f, s, t, false));
      if (is_float(t) && s.has_gradient) out.push_back(function_case(f, s, t, true));
    }
    const bool of_8_bits = f.name == "matmul" || f.name == "softmax" || f.name == "sort";
    for (const DType t : float8_dtypes())
      if (of_8_bits) out.push_back(function_case(f, s, t, false));
  }
}

}  // namespace tuff::check
