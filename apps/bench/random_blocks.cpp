#include "bench/random_blocks.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <tuff/error.h>
#include "base/check.h"
#include "io/dequantize.h"
#include "io/formats/gguf.h"

namespace tuff::bench {
namespace {

constexpr int64_t kDrawn = 4096;
constexpr float kLeast = 0.01f, kMost = 4;  // of a block's largest number

// Blocks drawn bit by bit; those are usable whose numbers are finite and as large as weights.
struct Pool {
  int64_t elements, bytes;
  std::vector<uint8_t> drawn;
  std::vector<float> values;
  std::vector<int64_t> usable;

  Pool(std::string_view type, const io::BlockType& block, DType dtype, std::mt19937& random,
       const std::string& device)
      : elements(block.elements), bytes(block.size_bytes), drawn(size_t(kDrawn * bytes)) {
    for (uint8_t& b : drawn) b = uint8_t(random());
    const Tensor blocks = Tensor::from(drawn, {kDrawn, bytes}, {.device = device});
    values = io::dequantize(type, blocks).cast(dtype).cast(DType::F32).to_vector<float>();
    for (int64_t n = 0; n < kDrawn; n++) {
      float largest = 0;
      bool finite = true;
      for (int64_t i = 0; i < elements; i++) {
        const float v = values[size_t(n * elements + i)];
        finite = finite && std::isfinite(v);
        largest = std::max(largest, std::abs(v));
      }
      if (finite && largest >= kLeast && largest <= kMost) usable.push_back(n);
    }
    TUFF_CHECK(!usable.empty(), "none of {} random blocks of {} is usable", kDrawn, type);
  }
};

}  // namespace

PackedWeights random_weights(std::string_view type, int64_t rows, int64_t columns, DType dtype,
                             uint32_t seed, const std::string& device) {
  const io::BlockType* block = io::can_dequantize(type) ? io::gguf_block(type) : nullptr;
  if (!block)
    fail<InvalidArgument>("\"{}\" is no type of packed weights; {} are", type,
                          io::decoded_types());
  if (columns % block->elements != 0)
    fail<InvalidArgument>("{} packs {} numbers in a block, which does not divide rows of {}", type,
                          block->elements, columns);
  std::mt19937 random(seed);
  const Pool pool(type, *block, dtype, random, device);
  const int64_t count = rows * columns / pool.elements;
  std::vector<uint8_t> bytes;
  PackedWeights out;
  bytes.reserve(size_t(count * pool.bytes));
  out.values.reserve(size_t(count * pool.elements));
  for (int64_t n = 0; n < count; n++) {
    const int64_t one = pool.usable[random() % pool.usable.size()];
    const auto packed = pool.drawn.begin() + one * pool.bytes;
    const auto values = pool.values.begin() + one * pool.elements;
    bytes.insert(bytes.end(), packed, packed + pool.bytes);
    out.values.insert(out.values.end(), values, values + pool.elements);
  }
  out.blocks = Tensor::from(bytes, {count, pool.bytes}, {.device = device});
  out.blocks.realize();
  return out;
}

}  // namespace tuff::bench
