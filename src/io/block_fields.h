// Bits of packed blocks as tensors of numbers. Called by the decoders of dequantize.cpp and
// dequantize_grids.cpp.
#pragma once

#include <tuff/tensor.h>

namespace tuff::io {

// Bytes [begin, begin + count) of every block, as whole numbers.
inline Tensor bytes(const Tensor& blocks, int64_t begin, int64_t count) {
  return blocks.narrow(1, begin, count).cast(DType::I32);
}
inline Tensor signed_bytes(const Tensor& blocks, int64_t begin, int64_t count) {
  return blocks.narrow(1, begin, count).bitcast(DType::I8).cast(DType::I32);
}
// Two bytes of every block as a half-precision number: (n, 1).
inline Tensor half(const Tensor& blocks, int64_t begin) {
  const Tensor low = blocks.narrow(1, begin, 1).cast(DType::U16),
               high = blocks.narrow(1, begin + 1, 1).cast(DType::U16);
  return (low | (high << 8)).bitcast(DType::F16).cast(DType::F32);
}
// 0, step, 2*step ... along axis `axis` of `rank`.
inline Tensor steps(const Tensor& like, int64_t count, int64_t step, int64_t axis, int64_t rank) {
  Sizes sizes(size_t(rank), 1);
  sizes[size_t(axis)] = count;
  return Tensor::arange(0, count * step, step, {.dtype = DType::I32, .device = like.device()})
      .reshape(sizes);
}
// (n, m) bytes -> (n, fields, m): `fields` numbers of `bits` from each, the lowest first.
inline Tensor fields(const Tensor& packed, int64_t count, int64_t bits) {
  return (packed.unsqueeze(1) >> steps(packed, count, bits, 1, 3)) & ((1 << bits) - 1);
}
// (n, m) bytes -> (n, m * fields): those of each byte side by side.
inline Tensor fields_of_each(const Tensor& packed, int64_t count, int64_t bits) {
  const Tensor each = packed.unsqueeze(2) >> steps(packed, count, bits, 2, 3);
  return (each & ((1 << bits) - 1)).flatten(1);
}
inline Tensor as_float(const Tensor& t) { return t.cast(DType::F32); }

// A block's factor, (n, 1), times those of its groups, (n, groups), for each element of `quants`,
// (n, groups, elements). Both are repeated before they are multiplied: the scheduler decodes bytes
// anew wherever they are read, but stores products that are repeated.
inline Tensor group_factors(const Tensor& d, const Tensor& whole, const Tensor& quants) {
  return d.unsqueeze(2).expand(quants.sizes()) *
         as_float(whole).unsqueeze(2).expand(quants.sizes());
}

}  // namespace tuff::io
