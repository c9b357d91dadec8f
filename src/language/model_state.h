// What a Model holds. Shared by Model and Sequence.
#pragma once

#include <string>
#include <vector>

#include <tuff/language.h>

#include "language/config.h"
#include "language/weights.h"

namespace tuff::language {

struct Model::State {
  static std::shared_ptr<const State> read(const std::string& path, const LoadOptions& options);
  Config config;
  Description description;
  Tokenizer tokenizer;
  Weights weights;
  std::string device;
  // Frequencies are divided by these, in a text of so many positions.
  const std::vector<float>& rope_factors(int64_t positions) const;
};

}  // namespace tuff::language
