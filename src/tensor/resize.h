// Elements of images at computed places, and weights of them. Called by resize and grid_sample.
#pragma once

#include <array>

#include <tuff/tensor.h>

namespace tuff::detail {

// The elements of an axis at these places, integers of one axis, that lie on it: one load each.
Tensor elements_at(const Tensor& x, int64_t d, const Tensor& at);

// The cubic of Keys (1981) at a distance of 0 or more.
Tensor cubic(const Tensor& off, double a);
// Of four elements in a row that weigh on a place f behind the second one, f in 0..1.
std::array<Tensor, 4> cubic_weights(const Tensor& f, double a);

}  // namespace tuff::detail
