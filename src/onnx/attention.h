// Attention as several operators of both domains have it. Called by operators.
#pragma once

#include <tuff/tensor.h>

namespace tuff::onnx {

// (n, t, heads * d) as (n, heads, t, d), and back.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor join_heads(const Tensor& x);
// Each head of (n, heads, t, d) so many times in a row.
Tensor repeat_heads(const Tensor& x, int64_t times);

// Pairs of the first `dims` features of (n, heads, t, d), turned by the angles whose cosines and
// sines are (n or 1, t, dims / 2): neighbours if interleaved, else one of each half.
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t dims,
               bool interleaved);

}  // namespace tuff::onnx
