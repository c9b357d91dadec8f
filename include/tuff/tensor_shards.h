// TensorShards: tensors on several devices: a part of class Tensor, which inherits it. Users
// include tensor.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

class Tensor;

/// A tensor on several devices, with a part of one axis, or a copy of all of it, on each: a group.
/// device() names a group by its devices, "CPU,CPU:1", and every function that takes a device takes
/// such a name; what it makes there is copied to each.
///
/// What is computed of tensors of one group is computed by each of its devices with what it holds:
/// shapes, gradients, optimizers and Jit know nothing of it. Where an operation needs what another
/// device holds it is copied; docs/design/shards.md says where that is. item(), to(device) and
/// copies to the host give the whole. Random numbers are those of the group's first device.
class TensorShards {
 public:
  /// On these devices, in this order: along an axis in equal parts, or without one as copies. The
  /// tensor itself if it lies so; on one device as to(device). Gradients flow back to where it was.
  /// InvalidArgument for no device, or one that is named twice; IndexError for no axis of the
  /// tensor; ShapeError for an axis that does not divide among the devices, or whose extent varies.
  Tensor shard(const std::vector<std::string>& devices, std::optional<int64_t> axis = {}) const;
  /// In place, as to_(): parameters become those on several devices, with their gradients.
  Tensor& shard_(const std::vector<std::string>& devices, std::optional<int64_t> axis = {});
  /// As the other tensor lies: shard() on its devices along its axis, or to(device).
  Tensor shard_like(const Tensor& other) const;
  /// The axis along which devices hold parts; none if each holds all of it.
  std::optional<int64_t> shard_axis() const;
  /// What devices hold, combined element by element and given to each: of parts along an axis a
  /// tensor of one part's shape, of copies the tensor's own. op is "sum", "mean", "max", "min" or
  /// "prod" (InvalidArgument otherwise). A tensor of one device is its own result.
  Tensor all_reduce(std::string_view op = "sum") const;

 protected:
  TensorShards() = default;
  ~TensorShards() = default;
  TensorShards(const TensorShards&) = default;
  TensorShards& operator=(const TensorShards&) = default;
};

/// One tensor for each of the given ones, on its device: all of them combined element by element,
/// in the order given, so that all have the same bits. What torch.distributed does with each process'
/// tensor, of tensors that one process holds. op as Tensor::all_reduce()'s. InvalidArgument for no
/// tensors and for different dtypes, ShapeError for different shapes.
std::vector<Tensor> all_reduce(const std::vector<Tensor>& tensors, std::string_view op = "sum");

}  // namespace tuff
