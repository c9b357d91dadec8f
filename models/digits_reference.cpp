#include "models/digits_reference.h"

#include <cmath>

#include "base/check.h"
#include "io/idx.h"

namespace tuff::models {
namespace {

// He initialization: deviation sqrt(2 / fan in) (He et al., "Delving deep into rectifiers", 2015).
void add_layer(std::vector<ReferenceParameter>& list, const std::string& name,
               std::vector<uint32_t> shape) {
  double fan_in = 1;
  for (size_t d = 1; d < shape.size(); ++d) fan_in *= shape[d];
  const uint32_t out = shape[0];
  list.push_back({name + ".w", std::move(shape), std::sqrt(2.0 / fan_in)});
  list.push_back({name + ".b", {out}, 0, 0.0f});
}

}  // namespace

std::vector<ReferenceParameter> digits_parameters(const DigitsNetRecipe& r) {
  if (r.rows < 4 || r.cols < 4) {
    fail<InvalidArgument>("digits: images of {} x {} are too small; two poolings need 4 x 4",
                          r.rows, r.cols);
  }
  if (r.channels1 == 0 || r.channels2 == 0 || r.hidden == 0) {
    fail<InvalidArgument>("digits: {}, {} channels and {} hidden units: each must be at least 1",
                          r.channels1, r.channels2, r.hidden);
  }
  std::vector<ReferenceParameter> list;
  add_layer(list, "conv1", {r.channels1, 1, 5, 5});
  add_layer(list, "conv2", {r.channels2, r.channels1, 5, 5});
  add_layer(list, "fc1", {r.hidden, r.channels2 * (r.rows / 2 / 2) * (r.cols / 2 / 2)});
  add_layer(list, "fc2", {io::kImageClasses, r.hidden});
  return list;
}

void digits_batch(const DigitsNetRecipe& recipe, uint32_t step, uint32_t image_count,
                  std::span<uint32_t> rows) {
  if (image_count == 0)
    fail<InvalidArgument>("digits: a batch from 0 images; at least 1 is needed");
  TUFF_CHECK(rows.size() == recipe.batch);
  const ReferenceRandom random(recipe.seed);
  for (uint32_t i = 0; i < recipe.batch; ++i) {
    rows[i] = random.bits(kDigitsTrainStream, step * recipe.batch + i) % image_count;
  }
}

}  // namespace tuff::models
