#include "check/expected.h"

#include <algorithm>

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

}  // namespace

bool is_expected(const CaseResult& r, const Case& c, const std::string& device) {
  if (r.verdict == Verdict::Pass) return true;
  if (r.verdict != Verdict::Unsupported) return false;
  const TargetFeatures& f = engine::Device::get(device)->target().features;
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return !(f.*row.feature) &&
           std::find(c.dtypes.begin(), c.dtypes.end(), row.dtype) != c.dtypes.end();
  });
}

}  // namespace tuff::check
