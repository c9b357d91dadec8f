// Every public function of Tensor, forwards and backwards, on every device of this machine: against
// the reference interpreter within the tolerance of check/functions.h, and against PyTorch's values
// within 2e-5.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "check/functions.h"
#include "check/reference.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using check::contents;
using check::difference;
using check::Function;
using check::functions;
using check::interpret;
using check::Precision;
using check::tolerance;
using graph::HostArray;
using nlohmann::json;

constexpr double kAgainstPyTorch = 2e-5;

const std::map<std::string, json>& rows() {
  static const std::map<std::string, json> by_name = [] {
    std::ifstream file(TUFF_SOURCE_DIR "/tests/data/tensor_values.json");
    std::map<std::string, json> out;
    const json all = json::parse(file);
    for (const json& row : all.at("cases")) out[row.at("name")] = row;
    return out;
  }();
  return by_name;
}

HostArray array_of(DType t, const Sizes& shape, const std::vector<double>& values) {
  HostArray a{t, shape, std::vector<std::byte>(values.size() * size_bytes(t))};
  for (size_t i = 0; i < values.size(); i++)
    store_scalar(Scalar::of_double(t, values[i]), a.bytes.data() + i * size_bytes(t));
  return a;
}
HostArray array_of(const json& j) {
  return array_of(parse_dtype(j.at("dtype").get<std::string>()), j.at("shape"), j.at("values"));
}

Tensor on_device(const HostArray& a, const std::string& device) {
  Tensor t = Tensor::from_bytes(a.bytes.data(), a.shape, {a.dtype, device});
  return is_float(a.dtype) ? t.set_requires_grad() : t;
}

// 1/8, 2/8 ... 7/8, 1/8 ...: the weights that tensor-values.py gives the result before it sums.
Tensor weights(const Tensor& like) {
  std::vector<float> w(size_t(like.numel()));
  for (size_t i = 0; i < w.size(); i++) w[i] = float(i % 7 + 1) / 8;
  return Tensor::from(w, like.sizes(), {.device = like.device()});
}

void check_backward(const Function& c, const json& row, const std::string& device) {
  std::vector<Tensor> x;
  for (const json& j : row.at("inputs")) x.push_back(on_device(array_of(j), device));
  const Tensor out = c.run(x);
  (out * weights(out)).sum().backward();
  for (size_t i = 0; i < x.size(); i++) {
    if (row.at("grads").at(i).is_null()) continue;
    const HostArray torch = array_of(DType::F32, x[i].sizes(), row.at("grads").at(i));
    const Tensor g = x[i].grad();
    if (!g.defined()) {  // an undefined gradient stands for zeros
      EXPECT_EQ(difference(array_of(DType::F32, x[i].sizes(),
                                    std::vector<double>(size_t(x[i].numel()), 0)),
                           torch, 0),
                "")
          << "gradient " << i << " is missing";
      continue;
    }
    const HostArray want = interpret({g}).at(0), got = contents(g);
    EXPECT_EQ(
        difference(got, want, std::max(tolerance(c.precision), tolerance(Precision::Rounded))), "")
        << "gradient " << i << ", interpreter";
    EXPECT_EQ(difference(got, torch, kAgainstPyTorch), "") << "gradient " << i << ", PyTorch";
  }
}

void check_case(const Function& c, const std::string& device) {
  const json& row = rows().at(c.name);
  std::vector<Tensor> x;
  for (const json& j : row.at("inputs")) x.push_back(on_device(array_of(j), device));
  const Tensor out = x.empty() ? c.run(x).to(device) : c.run(x);
  EXPECT_EQ(out.device(), device);
  const HostArray want = interpret({out}).at(0), got = contents(out);
  EXPECT_EQ(difference(got, want, tolerance(c.precision)), "") << "interpreter";
  EXPECT_EQ(difference(got, array_of(row.at("out")),
                       c.precision == Precision::Exact ? 1e-7 : kAgainstPyTorch),
            "")
      << "PyTorch";
  if (row.contains("grads")) check_backward(c, row, device);
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, EveryFunctionForwardsAndBackwards) {
  for (const Function& c : functions()) {
    SCOPED_TRACE(c.name);
    try {
      check_case(c, GetParam());
    } catch (const Error& e) {
      ADD_FAILURE() << e.kind() << ": " << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, testing::ValuesIn(devices()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char ch) { return !isalnum(static_cast<unsigned char>(ch)); },
      '_');
  return name;
});

TEST(ConformanceTable, HasARowForEveryCaseAndACaseForEveryRow) {
  std::map<std::string, int> seen;
  for (const Function& c : functions()) seen[c.name]++;
  for (const auto& [name, row] : rows()) EXPECT_EQ(seen[name], 1) << name;
  EXPECT_EQ(seen.size(), rows().size());
}

}  // namespace
}  // namespace tuff::test
