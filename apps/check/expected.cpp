#include "check/expected.h"

#include <algorithm>

#include "check/suite.h"
#include "engine/device.h"

namespace tuff::check {
namespace {

struct Row {
  DType dtype;
  bool TargetFeatures::* feature;
};
constexpr Row kRows[] = {
#define TUFF_EXPECTED_UNSUPPORTED(dtype, feature, reason) {DType::dtype, &TargetFeatures::feature},
#include "check/expected_unsupported.def"
#undef TUFF_EXPECTED_UNSUPPORTED
};

bool may_refuse(const Target& target, DType t) {
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return row.dtype == t && !(target.features.*row.feature);
  });
}

}  // namespace

bool is_expected(const CaseResult& r, const Case& c, const std::string& device) {
  if (r.verdict == Verdict::Pass) return true;
  if (r.verdict != Verdict::Unsupported) return false;
  const Target& target = engine::Device::get(device)->target();
  return std::any_of(c.dtypes.begin(), c.dtypes.end(),
                     [&](DType t) { return may_refuse(target, t); });
}

std::vector<DType> supported_dtypes(const Target& target) {
  std::vector<DType> out;
  for (const DType t : memory_dtypes()) {
    if (!may_refuse(target, t)) out.push_back(t);
  }
  return out;
}

}  // namespace tuff::check
