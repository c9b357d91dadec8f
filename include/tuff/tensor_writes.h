// TensorWrites: functions that change a tensor: a part of class Tensor, which inherits it. Users
// include tensor.h.
#pragma once

#include <optional>
#include <string>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// A tensor changed in place, with the rules of Tensor::index_put_(): memory is written, as
/// assign() does; what is still to be computed becomes the result, with its gradients. Copies
/// share, so that all of them see it. A view, x[0], writes x, and no more of its memory than the
/// view; other views of x that were taken before keep their values. Values broadcast to this
/// tensor's shape (ShapeError otherwise).
///
/// InvalidArgument for a tensor with requires_grad and its views, except under a NoGradGuard, for
/// an expand() and for a result of another dtype than the tensor's.
class TensorWrites {
 public:
  Tensor& add_(const Tensor& other);
  Tensor& add_(Number other);
  Tensor& sub_(const Tensor& other);
  Tensor& sub_(Number other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Number other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(Number other);
  Tensor& clamp_(std::optional<Number> min, std::optional<Number> max = {});
  /// The value in this tensor's dtype.
  Tensor& fill_(Number value);
  Tensor& zero_();
  /// Cast, and from another device if it is there.
  Tensor& copy_(const Tensor& source);
  /// The value where the (bool) mask holds, in this tensor's dtype.
  Tensor& masked_fill_(const Tensor& mask, Number value);
  /// What copies of this tensor have, on another device from now on, with requires_grad as it was;
  /// the gradient moves along. What was computed of it before stays where it is.
  Tensor& to_(const std::string& device);

 protected:
  TensorWrites() = default;
  ~TensorWrites() = default;
  TensorWrites(const TensorWrites&) = default;
  TensorWrites& operator=(const TensorWrites&) = default;
};

}  // namespace tuff
