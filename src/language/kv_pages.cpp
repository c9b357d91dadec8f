#include "language/kv_pages.h"

namespace tuff::language {
namespace {

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

KvPages::KvPages(DType dtype, int64_t pages, int64_t heads, int64_t size,
                 const std::string& device)
    : numbers_(Tensor::empty({pages * kPagePositions, heads, size}, {dtype, device}).zero_()) {}

void KvPages::put(const Tensor& slots, const Tensor& rows) {
  // A position that is not seen weighs nothing, but nothing times infinity is no number.
  numbers_.index_put_({slots}, rows.to(numbers_.dtype()).nan_to_num());
}

Tensor KvPages::rows(const Tensor& slots) const {
  return numbers_.index_select(0, slots).to(DType::F32);
}

Tensor KvPages::of(const Tensor& table) const { return picked(numbers_, table).to(DType::F32); }

}  // namespace tuff::language
