// The fixed recipe of the digits ConvNet: shapes and initial values of its parameters, batches.
// Two 5x5 convolutions (padding 2), each with ReLU and 2x2 max pooling, then two Linear layers with
// ReLU between. Called by `tuff train digits`; scripts/digits-reference.py is its PyTorch twin.
// Must never know tensors or devices.
#pragma once

#include <span>

#include "models/reference_random.h"

namespace tuff::models {

struct DigitsNetRecipe {
  uint32_t rows = 28, cols = 28;  // of an image; at least 4 each
  uint32_t channels1 = 16, channels2 = 32, hidden = 128;
  uint32_t batch = 64;
  uint32_t seed = 1;
  double learning_rate = 1e-3;  // AdamW, betas 0.9 and 0.999, epsilon 1e-8, no weight decay
};

inline constexpr uint32_t kDigitsTrainStream = 0x10000;

// conv1.w [out, in, 5, 5], conv1.b, conv2.w, conv2.b, fc1.w [out, in], fc1.b, fc2.w, fc2.b.
// InvalidArgument if a size is 0 or the image is too small to be pooled twice.
std::vector<ReferenceParameter> digits_parameters(const DigitsNetRecipe& recipe);

// Indices of the images in one step's batch: rows.size() == recipe.batch. InvalidArgument if there
// are no images.
void digits_batch(const DigitsNetRecipe& recipe, uint32_t step, uint32_t image_count,
                  std::span<uint32_t> rows);

}  // namespace tuff::models
