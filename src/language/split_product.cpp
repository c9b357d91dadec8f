#include "language/split_product.h"

#include <algorithm>

#include "engine/device.h"

namespace tuff::language {
namespace {

constexpr int64_t kSide = 16, kSummed = 32;  // of a matrix, and what one product of two sums
constexpr int64_t kPair = 2;                 // rows of the right factor lie interleaved by it
constexpr int64_t kParts = 2;                // bfloat16 of a number
constexpr int64_t kBlock = 64;               // numbers of packed weights that share bytes, at most
constexpr int64_t kTile = 2 * kSide;         // what fills the registers divides rows and outputs
constexpr int64_t kLeastRows = 128;          // for which splitting the weights is worth it

bool has_registers(const std::string& device) {
  if (device.find(',') != device.npos) return false;
  const Target& t = engine::Device::get(device)->target();
  const MatrixShape wanted{kSide, kSide, kSummed, DType::BF16, DType::BF16, DType::F32};
  return !t.has_local && std::ranges::find(t.matrix_shapes, wanted) != t.matrix_shapes.end();
}

// The first or, where `second` is one, the second bfloat16 of each number.
Tensor part_of(const Tensor& number, const Tensor& second) {
  return (number - number.to(DType::BF16).to(DType::F32) * second).to(DType::BF16);
}
// 0 and 1 along axis `axis` of `rank`.
Tensor part_numbers(const Tensor& like, size_t axis, size_t rank) {
  Sizes sizes(rank, 1);
  sizes[axis] = kParts;
  return Tensor::arange(0, kParts, 1, {.dtype = DType::F32, .device = like.device()})
      .reshape(sizes);
}

}  // namespace

Tensor split_product(const Tensor& x, const Tensor& weights) {
  if (is_grad_enabled() || x.dim() != 2 || !x.size(0).is_number() || x.dtype() != DType::F32 ||
      weights.dtype() != DType::F32)
    return {};
  const int64_t rows = int64_t(x.size(0)), in = int64_t(x.size(1)), out = int64_t(weights.size(0));
  if (rows < kLeastRows || rows % kTile || out % kTile || in % kSummed ||
      !has_registers(x.device()))
    return {};
  const int64_t r = rows / kSide, o = out / kSide, k = in / kSummed;
  // Matrices one after the other, as the product reads them; a row's two parts side by side, and
  // those of lines that are decoded of the same bytes.
  const int64_t lines = in % kBlock == 0 ? kBlock / kSummed : 1, blocks = k / lines;
  const Tensor left =
      weights.reshape({o, kSide, blocks, lines, 1, kSummed}).permute({0, 2, 1, 3, 4, 5});
  const Tensor maps = part_of(left, part_numbers(x, 4, 6)).contiguous();
  const Tensor right =
      x.reshape({r, kSide, k, 1, kSummed / kPair, kPair}).permute({0, 2, 3, 4, 1, 5});
  const Tensor values = part_of(right, part_numbers(x, 2, 6)).contiguous();
  // (rows: r, kSide; outputs: o, kSide; summed: blocks, lines, parts of x, of weights, pairs)
  const int64_t pairs = kSummed / kPair;
  const Tensor by_row = values.permute({0, 4, 1, 2, 3, 5})
                            .reshape({r, kSide, 1, 1, blocks, lines, kParts, 1, pairs, kPair});
  const Tensor by_output =
      maps.permute({0, 2, 1, 3, 4, 5})
          .reshape({1, 1, o, kSide, blocks, lines, 1, kParts, pairs, kPair});
  const Tensor products = by_row.to(DType::F32) * by_output.to(DType::F32);
  return products.sum({4, 5, 6, 7, 8, 9}).reshape({rows, out}).contiguous();
}

}  // namespace tuff::language
