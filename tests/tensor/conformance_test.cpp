// Every public function of Tensor, forwards and backwards, on every device of this machine: against
// the reference interpreter within the tolerance of check/functions.h, and against PyTorch's values
// within 2e-5.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "check/functions.h"
#include "tensor/devices.h"
#include "tensor/reference.h"
#include "tensor/stored_values.h"
#include "tensor/view_link.h"

namespace tuff::test {
namespace {

using check::Function;
using check::functions;
using check::Precision;
using check::tolerance;
using ir::HostArray;

constexpr double kAgainstPyTorch = 2e-5;

Tensor on_device(const HostArray& a, const std::string& device) {
  Tensor t = Tensor::from_bytes(a.bytes.data(), a.shape, {a.dtype, device});
  return is_float(a.dtype) ? t.set_requires_grad() : t;
}

void check_backward(const Function& c, const Row& row, const std::string& device) {
  std::vector<Tensor> x;
  for (const HostArray& a : row.inputs) x.push_back(on_device(a, device));
  const Tensor out = c.run(x);
  (out * weights(out)).sum().backward();
  for (size_t i = 0; i < x.size(); i++) {
    if (row.gradients[i].empty() && x[i].numel() > 0) continue;
    if (!is_float(x[i].dtype())) continue;
    const HostArray torch = array_of(DType::F32, x[i].sizes(), row.gradients[i]);
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
  const Row& row = stored_row(c.name);
  std::vector<Tensor> x;
  for (const HostArray& a : row.inputs) x.push_back(on_device(a, device));
  const Tensor out = x.empty() ? c.run(x).to(device) : c.run(x);
  EXPECT_EQ(out.device(), device);
  const HostArray want = interpret({out}).at(0), got = contents(out);
  EXPECT_EQ(difference(got, want, tolerance(c.precision)), "") << "interpreter";
  EXPECT_EQ(difference(got, row.out, c.precision == Precision::Exact ? 1e-7 : kAgainstPyTorch), "")
      << "PyTorch";
  if (!row.gradients.empty()) check_backward(c, row, device);
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
  const std::vector<std::string> names = stored_names();
  for (const std::string& name : names) EXPECT_EQ(seen[name], 1) << name;
  EXPECT_EQ(seen.size(), names.size());
}

// Results that write what they were made of, as PyTorch's do.
constexpr const char* kViews =
    " reshape permute transpose T expand shrink slice_step slice_negative slice_from_end narrow"
    " select index squeeze squeeze_dim unsqueeze flatten split chunk split_with_sizes"
    " reshape_scalar expand_scalar flatten_scalar index_slices index_reversed index_none einsum_transpose diagonal"
    " diagonal_none tensor_split tensor_split_at movedim swapaxes broadcast_to expand_as unflatten"
    " ravel shrink_to rearrange";
// And those that are what they were made of.
constexpr const char* kThemselves = " dropout_outside_training";
TEST(Views, OfFunctionsAreMovementAlone) {
  std::string views, themselves;
  for (const Function& c : functions()) {
    std::vector<Tensor> x;
    for (const HostArray& a : stored_row(c.name).inputs) x.push_back(on_device(a, "CPU"));
    if (x.empty()) continue;
    const Tensor out = c.run(x);
    if (detail::is_view(out)) views += " " + c.name;
    if (std::ranges::any_of(x, [&](const Tensor& t) { return t.impl() == out.impl(); }))
      themselves += " " + c.name;
  }
  EXPECT_EQ(views, kViews);
  EXPECT_EQ(themselves, kThemselves);
}

}  // namespace
}  // namespace tuff::test
