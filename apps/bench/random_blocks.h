// Weights packed in blocks of a GGUF type, for benches of products: random bits whose numbers are
// of the size that models' weights have. Called by the rows of kernel_rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::bench {

struct PackedWeights {
  Tensor blocks;              // U8 (rows * columns / elements of a block, bytes of a block)
  std::vector<float> values;  // (rows, columns), row-major
};
// Values are rounded to `dtype`, as the product has them. InvalidArgument names the types that there
// are, or the number that has to divide the columns.
PackedWeights random_weights(std::string_view type, int64_t rows, int64_t columns, DType dtype,
                             uint32_t seed, const std::string& device);

}  // namespace tuff::bench
