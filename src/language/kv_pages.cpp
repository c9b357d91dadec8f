#include "language/kv_pages.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/check.h"

namespace tuff::language {
namespace {

constexpr int64_t kBlock = 32;
constexpr double kMost = 127;  // of the numbers of a block
constexpr std::array<const char*, 4> kCacheNames{"f16", "bf16", "f32", "q8_0"};  // as CacheType

DType dtype_of(CacheType type) {
  static constexpr DType kTypes[] = {DType::F16, DType::BF16, DType::F32, DType::I8};
  return kTypes[size_t(type)];
}

// (..., size) in blocks, by their scales (..., size / kBlock).
Tensor scaled(const Tensor& numbers, const Tensor& scales) {
  return (numbers.unflatten(-1, {scales.size(-1), kBlock}) * scales.unsqueeze(-1)).flatten(-2);
}

// (slots, heads, size) -> (sequences, heads, positions, size)
Tensor picked(const Tensor& memory, const Tensor& table) {
  const int64_t heads = memory.size(1), size = memory.size(2);
  const Size sequences = table.size(0), pages = table.size(1);
  const Tensor by_page =
      memory.reshape({memory.size(0) / kPagePositions, kPagePositions * heads * size});
  return Tensor::embedding(by_page, table)
      .reshape({sequences, pages, kPagePositions, heads, size})
      .permute({0, 3, 1, 2, 4})
      .reshape({sequences, heads, pages * kPagePositions, size});
}

}  // namespace

CacheType cache_type(const std::string& name) {
  const auto found = std::ranges::find(kCacheNames, name);
  if (found == kCacheNames.end())
    fail<InvalidArgument>("a cache of {}: one of {} was wanted", name, fmt::join(kCacheNames, ", "));
  return CacheType(found - kCacheNames.begin());
}

void require_cache(CacheType type, int64_t head_size) {
  if (type == CacheType::Q8_0 && head_size % kBlock != 0)
    fail<InvalidArgument>("a cache of q8_0 has blocks of {} elements, which a head's {} are no "
                          "multiple of: f16 takes any", kBlock, head_size);
}

KvPages::KvPages(CacheType type, int64_t pages, int64_t heads, int64_t size,
                 const std::string& device) {
  const auto zeros = [&](int64_t elements, DType dtype) {
    return Tensor::empty({pages * kPagePositions, heads, elements}, {dtype, device}).zero_();
  };
  numbers_ = zeros(size, dtype_of(type));
  if (type == CacheType::Q8_0) scales_ = zeros(size / kBlock, DType::F16);
}

// A position that is not seen weighs nothing, but nothing times infinity is no number.
void KvPages::put(const Tensor& slots, const Tensor& rows) {
  if (!in_blocks()) {
    numbers_.index_put_({slots}, rows.to(numbers_.dtype()).nan_to_num());
    return;
  }
  const Tensor blocks = rows.nan_to_num().unflatten(-1, {scales_.size(-1), kBlock});
  const Tensor scales = (blocks.abs().max({-1}, true) / kMost).to(DType::F16).nan_to_num();
  const Tensor divisors = scales.to(DType::F32);
  const Tensor numbers = Tensor::where(divisors > 0, blocks / divisors, 0.0).round();
  numbers_.index_put_({slots}, numbers.clamp(-kMost, kMost).to(DType::I8).flatten(-2));
  scales_.index_put_({slots}, scales.squeeze(-1));
}

Tensor KvPages::rows(const Tensor& slots) const {
  const auto at = [&](const Tensor& memory) {
    return memory.index_select(0, slots).to(DType::F32);
  };
  return in_blocks() ? scaled(at(numbers_), at(scales_)) : at(numbers_);
}

Tensor KvPages::of(const Tensor& table) const {
  const auto by = [&](const Tensor& memory) { return picked(memory, table).to(DType::F32); };
  return in_blocks() ? scaled(by(numbers_), by(scales_)) : by(numbers_);
}

std::vector<Tensor> KvPages::memory() const {
  return in_blocks() ? std::vector<Tensor>{numbers_, scales_} : std::vector<Tensor>{numbers_};
}

}  // namespace tuff::language
