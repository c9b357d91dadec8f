// TensorImpl: what a Tensor points to, and the wrapping between Tensor and UOp.
// Used inside tensor and by nn and tests. Every live impl is registered, so that realize can
// replace computed nodes by memory in all of them.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <tuff/tensor.h>
#include "engine/buffer.h"
#include "ir/scalar_eval.h"
#include "ir/uop.h"
#include "tensor/guards.h"

namespace tuff {

namespace detail {

// The call of a Jit's function that this thread is in; 0: none.
inline constinit thread_local uint64_t function_call = 0;

class ViewLink;

}  // namespace detail

struct TensorImpl {
  TensorImpl(ir::UOp u, std::string on_device);
  ~TensorImpl();
  TensorImpl(const TensorImpl&) = delete;
  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // For the registry. False for a tensor that another thread is making or destroying.
  bool retain_if_live() const noexcept;
  // False, and nothing done, where that would destroy it.
  bool release_unless_last() const noexcept;
  uint32_t ref_count() const noexcept { return refs_.load(std::memory_order_relaxed); }
  ir::UOp uop;         // read under a BuildGuard, replaced under a ReplaceGuard (guards.h)
  std::string device;  // canonical; also for constants, which have none in the graph
  std::atomic<bool> requires_grad{false};
  Ref<TensorImpl> grad;
  Ref<detail::ViewLink> viewed;  // what it is a view of (view_link.h), for whoever writes to it
  std::thread::id assigned_by;  // who called assign() last; as uop
  // A Jit's function computed it while it was captured and kept it elsewhere than in its results:
  // replays do not.
  std::atomic<bool> left_behind{false};
  const uint64_t made_in = detail::function_call;
  uint64_t number = 0;  // of no other tensor, before or after

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

namespace detail {

Tensor wrap(ir::UOp u, const std::string& device);
// As long as it lives, results on this thread have gradients.
class GradGuard {
 public:
  GradGuard();
  ~GradGuard();
  GradGuard(const GradGuard&) = delete;

 private:
  bool before_;
};
// A tensor's node, for as long as the tensor is there; no thread replaces it meanwhile. Where
// what is built of it is registered by the same statement nothing more is needed.
class Loaded {
 public:
  explicit Loaded(const ir::UOp& u) : node_(u) {}
  operator const ir::UOp&() const { return node_; }
  const ir::Node* operator->() const { return node_.get(); }
  const ir::Node* get() const { return node_.get(); }
  friend bool operator==(const Loaded& a, const Loaded& b) { return a.node_ == b.node_; }

 private:
  const BuildGuard section_;
  const ir::UOp& node_;
};
[[noreturn]] void refuse_left_behind();
inline Loaded uop(const Tensor& t) {
  if (!t.defined()) fail<InvalidArgument>("an undefined tensor was used");
  if (t.impl()->left_behind.load(std::memory_order_relaxed)) [[unlikely]]
    refuse_left_behind();
  return Loaded(t.impl()->uop);
}
// The tensor that a base of class Tensor is a part of.
template <class Part>
const Tensor& self(const Part* part) {
  return static_cast<const Tensor&>(*part);
}
template <class Part>
Tensor& self(Part* part) {
  return static_cast<Tensor&>(*part);
}
// Same device, a new node; detached while gradients are off.
Tensor derive(const Tensor& from, ir::UOp u);
ir::Shape shape_of(const Sizes& sizes);
ir::Dim dim_of(const Size& s);
Size size_of(const ir::Dim& d);
Sizes sizes_of(const ir::Shape& shape);
// Equal whatever the variables are; where == would refuse to answer, false.
bool same(const Size& a, const Size& b);
bool same(const Sizes& a, const Sizes& b);
// "T in 1..64, B in 1..8": the variables of symbolic extents.
std::string varying_text(const Sizes& sizes);
// Unsupported naming the function, for those that know no symbolic extents.
void require_numbers(const char* what, const Sizes& sizes);
// v, or the bound that it is beyond. The bounds of symbolic extents decide, or the comparison
// refuses.
Size clamped(const Size& v, const Size& low, const Size& high);
// A product of extents.
Size product(std::span<const Size> extents);
std::string text(const Sizes& sizes);
std::string text(const Axes& axes);
// InvalidArgument naming the function for dtypes that no tensor has.
void require_element_type(const char* what, DType t);
// A new tensor, with the gradient that its options ask for.
Tensor finish(Tensor t, const TensorOptions& o);
// One axis with zeros before and after it.
Tensor pad_axis(const Tensor& x, int64_t d, const Size& before, const Size& after);
// One axis cut into two of these extents.
Tensor unflatten(const Tensor& x, int64_t d, const Size& outer, const Size& inner);
// The node where it is on a device; constants and counters know none, which Contiguous then names.
ir::UOp placed(const ir::UOp& u, const std::string& device);
// dim counted from the end if negative; IndexError naming axis, rank and function.
int64_t wrap_dim(const char* what, int64_t dim, int64_t rank);
Axes wrap_dims(const char* what, const Axes& dims,
               int64_t rank);  // all axes if empty; duplicates are an error
// The Buffer behind a realized tensor (through reshapes and detach), or null.
Ref<engine::Buffer> buffer_of(const Tensor& t);
Ref<engine::Buffer> buffer_of(const ir::UOp& u);
// Realizes it; never null.
Ref<engine::Buffer> memory_of(const Tensor& t);
// InvalidArgument naming the function while a Jit's function is captured, where the tensor's value
// may be another one at a replay, or where what the host writes would not be written by one.
void require_host_read(const char* what, const Tensor& t);
void require_host_write(const char* what, const Tensor& t);
// Realizes them and waits until they are there; IoError or DeviceLost if they cannot be.
void wait_for(const std::vector<Tensor>& tensors);
// Broadcast of two shapes (NumPy); ShapeError naming function and shapes.
Sizes broadcast_sizes(const char* what, const Sizes& a, const Sizes& b);
// Both brought to the common dtype, shape and device.
std::pair<Tensor, Tensor> unify(const char* what, const Tensor& a, const Tensor& b,
                                bool keep_dtypes = false);
// A tensor over memory of the caller: what strides mean is settled, then `make` is asked for a
// Buffer of `count` elements, `lead` bytes in front of the first element. Checks all but the
// memory.
struct BlobLayout {
  const Sizes& sizes;
  const BlobOptions& blob;
  const TensorOptions& options;
};
using MakeBuffer = std::function<Ref<engine::Buffer>(int64_t count, size_t lead)>;
Tensor tensor_over(const BlobLayout& of, const MakeBuffer& make);
// What an assignment to the tensor writes: memory, or its pending version; null where there is
// none.
ir::UOp assign_target(const Tensor& t);
// What assign() does, for optimizers and loaded state, which move tensors that have requires_grad.
void store(Tensor& to, const Tensor& value);
// The same of a part that value has the shape of; what is around it is not touched.
void store_part(Tensor& to, const ir::Pairs& part, const Tensor& value);
// x becomes another node, in no memory but that of the node.
void replace(Tensor& x, const Tensor& changed);
// What functions in place do: x becomes the value, broadcast and of x's dtype; memory is written,
// what is still to be computed is replaced.
Tensor& overwrite(const char* what, Tensor& x, const Tensor& value);
// Another dtype or device for a tensor and all of its copies, the value computed at once and without
// its history; the gradient too.
void convert(const Tensor& t, DType to, const std::string& device);
// InvalidArgument for a tensor that has requires_grad while gradients are on; `instead` is what to
// do.
void require_no_gradient(const char* what, const Tensor& t, const char* instead);
// InvalidArgument if the memory that the tensor stands for was lent as read-only. A
// tensor of a mapped file gets memory of its own.
void make_writable(const char* what, Tensor& t);
void require_same_device(const char* what, const Tensor& a, const Tensor& b);
Scalar scalar_of(DType t, Number v);
Tensor number_like(const Tensor& t, Number v);  // a constant of the promoted dtype on t's device
// Integers and bools become f32 where real numbers are computed; what is composed of several ops
// computes f16 and bf16 in f32 as well and rounds once.
DType real_dtype(DType t);
DType compute_dtype(DType t);
inline Tensor as_float(const Tensor& x) { return x.cast(real_dtype(x.dtype())); }
// In a scope of Autocast: what is multiplied, and the dtype that a reduction, norm, softmax or loss
// of t gives; elsewhere x and t.
Tensor factor(const Tensor& x);
// Tensor::matmul of the operands as they are, for functions that Autocast leaves whole.
Tensor matmul(const Tensor& a, const Tensor& b);
DType total_dtype(DType t);
// x in that dtype: what functions that need the range of F32 compute with in such a scope.
inline Tensor widened(const Tensor& x) { return x.cast(total_dtype(x.dtype())); }
template <class F>
Tensor computed_wide(const Tensor& x, F&& f) {
  return f(x.cast(compute_dtype(x.dtype()))).cast(real_dtype(x.dtype()));
}
template <class F>
Tensor totalled(const Tensor& x, F&& f) {
  return f(x.cast(compute_dtype(x.dtype()))).cast(total_dtype(real_dtype(x.dtype())));
}
// The dtype of positions on an axis: I32 wherever it holds them.
DType position_dtype(const Size& n);
// The indices 0..n-1 along axis d of a tensor of `rank` axes, of that dtype.
Tensor counter(const Size& n, int64_t d, int64_t rank, const std::string& device);
// The sum in x's own dtype, of integers also.
Tensor own_sum(const char* what, const Tensor& x, const Axes& dims);
// The same with Add, Mul or Max.
Tensor own_reduction(const char* what, ir::Op op, const Tensor& x, const Axes& dims);
// hit is bool, true for at most one position of the summed axes: what x holds there, or 0. The
// scheduler turns it into one load.
Tensor pick(const Tensor& hit, const Tensor& x, const Axes& dims);
// What the gradient of a linear function of a tensor of these sizes is, given that of its result;
// while gradients are off as well.
Tensor adjoint(const Sizes& sizes, const Tensor& gradient,
               const std::function<Tensor(const Tensor&)>& linear);
// A tensor without a value, equal to no other; and tensors computed for `count` values of such
// ones, which have an axis of that extent in front.
// Other tensors of the same nodes: for functions of users, which may write to them in place.
std::vector<Tensor> same_values(std::vector<Tensor> tensors);
Tensor stand_in(DType t, const Sizes& sizes, const std::string& device);
std::vector<Tensor> batched(const std::vector<Tensor>& results, const Size& count,
                            const std::vector<std::pair<Tensor, Tensor>>& values);
void require_integers(const char* what, const Tensor& index);
// log(1 + e) for e in 0..1, accurate for small e, with an accurate gradient.
Tensor log1p_of_unit(const Tensor& e);
// e^x of f32 or f64. In f32 by the device's own exp2 and the rounded product with log2(e), within
// |x| ULP and a few: for sums of many and for what is rounded to 16 bits. exp() has no such error.
Tensor quick_exp(const Tensor& x);
// |x| without a rule for the sign of 0: where only exp2(-|x|) is wanted.
Tensor magnitude(const Tensor& x);
// This thread's assignments that are not realized yet, oldest first.
std::vector<Tensor> pending_assigns();
// A tensor that still is where it was; undefined if it has gone.
struct Weak {
  TensorImpl* at;
  uint64_t number;
};
std::vector<Tensor> those_alive(std::span<const Weak> tensors);
// As BuildGuard does: `fn` may look at nodes, and make no tensor.
void for_each_live(const std::function<void(TensorImpl&)>& fn);
// Generators with numbers drawn since they were last stored: their pending states are realized
// along.
std::vector<Tensor> pending_generator_states();
void generators_realized();
// Forgets the device's generator: its next random numbers begin anew.
void drop_generator(const std::string& device);

// What the variables of symbolic extents are while a Jit captures on this thread.
const ir::VariableValues& bound_variables();
class BoundVariables {
 public:
  explicit BoundVariables(ir::VariableValues values);
  ~BoundVariables();
  BoundVariables(const BoundVariables&) = delete;

 private:
  ir::VariableValues before_;
};

}  // namespace detail
}  // namespace tuff

template <>
struct fmt::formatter<tuff::Size> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const tuff::Size& s, Context& context) const {
    return fmt::formatter<std::string>::format(s.str(), context);
  }
};
