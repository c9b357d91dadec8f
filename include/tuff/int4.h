// Integers of 4 bits, two in a byte, and weights made of them. Called by programs and by
// nn::LinearInt4. They are functions over U8 and no dtype: every room takes an element for a whole
// number of bytes.
#pragma once

#include <tuff/tensor.h>

namespace tuff {

/// Two neighbours along `dim` in each byte, the first in the low half: U8, half as long there. Of
/// integers of any dtype the low four bits count, so that -8..7 and 0..15 are kept. InvalidArgument
/// for floats and bools, ShapeError for an odd extent: pad it by one.
Tensor pack_int4(const Tensor& x, int64_t dim = -1);

/// pack_int4() back, twice as long along `dim`: I8 in -8..7 (two's complement), or U8 in 0..15.
/// InvalidArgument unless packed is U8.
Tensor unpack_int4(const Tensor& packed, bool is_signed = true, int64_t dim = -1);

/// A weight (out, in) as numbers q in 0..15: w = (q - zero) * scale, with a scale and a zero point
/// for each `in / groups` neighbours of a row.
struct Int4Weight {
  Tensor packed;  // U8 (out, in / 2), as pack_int4() has it
  Tensor scales;  // (out, groups), of the weight's dtype
  Tensor zeros;   // U8 (out, groups); undefined: 8 everywhere
};

/// The numbers nearest to a weight. Symmetric: zero points are 8 and a scale is the group's largest
/// magnitude / 7.5; else scales and zero points cover what the group has, 0 included, so that 0
/// stays 0. Where no number of a group is clamped the error is half a scale at most. Floats of 8
/// bits have scales of F32. InvalidArgument for integers and unless group_size is even and divides
/// `in`, ShapeError unless weight is (out, in).
Int4Weight quantize_int4(const Tensor& weight, int64_t group_size = 32, bool symmetric = false);

/// (q - zero) * scale, (out, in), of the scales' dtype. Zeros may be of any dtype, and undefined
/// for 8. ShapeError unless scales and zeros are (out, in / group_size).
Tensor dequantize_int4(const Tensor& packed, const Tensor& scales, const Tensor& zeros = {},
                       int64_t group_size = 32);

/// x @ dequantize_int4(...).T + bias of x (..., in): (..., out), of x's dtype. The weight is
/// decoded in registers beside a product with one row, and on GPUs beside any; elsewhere a product
/// of several rows stores it first, for its own time. Gradients reach x, scales, floating zeros and
/// the bias. Arguments as dequantize_int4() takes them.
Tensor linear_int4(const Tensor& x, const Tensor& packed, const Tensor& scales,
                   const Tensor& zeros = {}, int64_t group_size = 32, const Tensor& bias = {});

}  // namespace tuff
