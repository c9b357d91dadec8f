// The order of elements along an axis, found without comparing on the host: keys that are unsigned
// integers, their stable order, positions by binary search. Called by sorting, selection, random
// numbers and whoever writes to places in their order. Must never know of devices.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

// Unsigned integers (U32, or U64 for elements of 64 bits) that are in the order of x's elements:
// -0 equals 0, every NaN is above all else; descending: in the reverse order.
Tensor order_keys(const Tensor& x, bool descending = false);

// Where the elements of the last axis come from when they are sorted by these U32 or U64 keys,
// equal ones as they stood: I32, or I64 for axes of more than 2^31 - 1 elements. Kernels alone, as
// many as the extent asks for: in a Jit it is captured like any other function. Only the lowest
// `bits` of keys may be set.
Tensor stable_order(const Tensor& keys, int bits = 64);
// The first `count` of them, for which what cannot be among them is dropped on the way.
Tensor first_in_order(const Tensor& keys, int64_t count);

// Where the elements of such an order went to: x.gather(-1, order).gather(-1, inverse) is x.
Tensor inverse_order(const Tensor& order);

// Elements of the last axis: out[..., j] = x[..., at[..., j]], leading extents equal or 1. No
// position is looked at: one outside gives 0.
Tensor taken(const Tensor& x, const Tensor& at);

// How many elements of the last axis of a sorted tensor (..., n) stand before each of `values`
// (..., m), leading extents equal or 1: those that are below it, or not above it.
Tensor count_before(const Tensor& sorted, const Tensor& values, bool right);

}  // namespace tuff::detail
