// Comparison of a device's result with the expected one, in units of the last place. Called by
// run_case and by the random graphs. Must never know where either came from.
#pragma once

#include <optional>
#include <string>

#include "check/case.h"

namespace tuff::check {

// Distance of two floats of one dtype in the order of their bit patterns: 1 for neighbours, across
// zero and up to infinity too. NaN to NaN is 0, NaN to a number infinite.
double ulp_distance(const Scalar& a, const Scalar& b);

struct Comparison {
  bool equal = true;
  double error_ulp = 0;  // the largest; infinite where a NaN, an infinity or a dtype is wrong
  std::string message;   // the worst element in words; empty if equal
};

// Every element within budget_ulp. Integers and bools have to be equal; zeros of either sign and
// all NaNs count as equal, as no specification promises their sign or payload.
// `flushed`: what is also right where a device may flush denormals: the result for inputs whose
// denormals are zeros; expected denormals may then be zeros as well.
Comparison compare(const ir::HostArray& got, const ir::HostArray& want, double budget_ulp,
                   Scale scale = Scale::Element, const ir::HostArray* flushed = nullptr);

bool is_denormal(const Scalar& v);
// The array with its denormals replaced by zeros; nullopt if it has none.
std::optional<ir::HostArray> without_denormals(const ir::HostArray& a);

}  // namespace tuff::check
