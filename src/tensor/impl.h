// TensorImpl: what a Tensor points to, and the wrapping between Tensor and UOp.
// Used inside tensor and by nn and tests. Every live impl is registered, so that realize can
// replace computed nodes by memory in all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tuff/tensor.h>
#include "engine/buffer.h"
#include "graph/uop.h"

namespace tuff {

struct TensorImpl : RefCounted {
  TensorImpl(graph::UOp u, std::string on_device);
  ~TensorImpl() override;
  graph::UOp uop;
  std::string device;  // canonical; also for constants, which have none in the graph
  bool requires_grad = false;
  Ref<TensorImpl> grad;
};

namespace detail {

Tensor wrap(graph::UOp u, const std::string& device);
inline const graph::UOp& uop(const Tensor& t) {
  if (!t.defined()) fail<InvalidArgument>("an undefined tensor was used");
  return t.impl()->uop;
}
// Same device, a new node.
Tensor derive(const Tensor& from, graph::UOp u);
graph::Shape shape_of(const Sizes& sizes);
std::string text(const Sizes& sizes);
// dim counted from the end if negative; ShapeError naming axis, rank and function.
int64_t wrap_dim(const char* what, int64_t dim, int64_t rank);
Sizes wrap_dims(const char* what, const Sizes& dims,
                int64_t rank);  // all axes if empty; duplicates are an error
// The Buffer behind a realized tensor (through reshapes), or null.
Ref<engine::Buffer> buffer_of(const Tensor& t);
Ref<engine::Buffer> buffer_of(const graph::UOp& u);
// Broadcast of two shapes (NumPy); ShapeError naming function and shapes.
Sizes broadcast_sizes(const char* what, const Sizes& a, const Sizes& b);
// Both brought to the common dtype, shape and device.
std::pair<Tensor, Tensor> unify(const char* what, const Tensor& a, const Tensor& b,
                                bool keep_dtypes = false);
Tensor number_like(const Tensor& t, Number v);  // a constant of the promoted dtype on t's device
void for_each_live(const std::function<void(TensorImpl&)>& fn);
// Generators with numbers drawn since they were last stored: their pending states are realized
// along.
std::vector<Tensor> pending_generator_states();
void generators_realized();

}  // namespace detail
}  // namespace tuff
