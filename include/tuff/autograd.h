// What users say about gradients beyond backward(): functions with gradients of their own,
// activations that are computed again, and gradients of functions (vjp, jvp, Jacobians). Called by
// programs. All of it builds graphs: nothing runs before a value is asked for, and it works inside
// of a Jit.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <tuff/tensor.h>

namespace tuff {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensor(const Tensor&)>;
using TensorsFunction = std::function<Tensors(const Tensors&)>;

namespace autograd {

/// What forward() leaves for backward().
class FunctionContext {
 public:
  /// Arguments, results and what was computed in between. A result that backward() uses has the
  /// function's own gradient when gradients of gradients are taken.
  void save_for_backward(Tensors tensors) { saved_ = std::move(tensors); }
  const Tensors& saved_tensors() const { return saved_; }

 private:
  Tensors saved_;
};

/// A function whose gradient is given (PyTorch's autograd::Function).
///
///     const autograd::Function square_root{
///         [](autograd::FunctionContext& context, const Tensors& x) {
///           Tensors y{x[0].sqrt()};
///           context.save_for_backward(y);
///           return y;
///         },
///         [](autograd::FunctionContext& context, const Tensors& g) {
///           return Tensors{g[0] / (context.saved_tensors()[0] * 2)};
///         }};
///     const Tensor y = square_root({x})[0];
///
/// Both are called once by each call, one after the other: backward() gets tensors that stand for
/// the gradients of the results, in their shapes and dtypes (undefined for results that are no
/// floats), and what it computes of them is a graph that backward() and gradient() put the
/// gradients into. It must not read values that depend on them. What forward() computes is fused
/// with what is around it as if it had been written there; no gradient flows through it.
struct Function {
  using Part = std::function<Tensors(FunctionContext&, const Tensors&)>;
  Part forward;
  /// As many gradients as there are arguments, in their shapes; undefined: none.
  Part backward;
  /// InvalidArgument and ShapeError for gradients that do not fit the arguments, and for arguments
  /// or results on several devices.
  Tensors operator()(const Tensors& arguments) const;
};

/// A pair as vjp() and jvp() give it.
struct Derivatives {
  Tensors outputs;
  Tensors derivatives;
};

/// f(inputs), and v times the Jacobian matrix: the gradients of sum(outputs * v) by the inputs, in
/// the inputs' shapes, zeros where an output does not depend on one. v has the outputs' shapes; it
/// may be left out for one output of one element. Tensors that f uses besides its arguments are
/// constants. ShapeError for a v that does not fit, InvalidArgument for inputs that are no floats.
Derivatives vjp(const TensorsFunction& f, const Tensors& inputs, const Tensors& v = {});
/// f(inputs), and the Jacobian matrix times v, which has the inputs' shapes: how the outputs change
/// with inputs that move along v. By the gradient of vjp() in its v, which is linear in it.
Derivatives jvp(const TensorsFunction& f, const Tensors& inputs, const Tensors& v);
/// The derivatives of every element of f(x) by every element of x: f(x)'s extents, then x's. One
/// vjp() of as many v as f(x) has elements, by vmap(): what it computes on the way has that many
/// times the room.
Tensor jacrev(const TensorFunction& f, const Tensor& x);
/// The same by each of several inputs.
Tensors jacrev(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);
/// The same derivatives, f(x)'s extents and then x's, by one jvp() of as many v as x has elements:
/// for functions of few elements that give many.
Tensor jacfwd(const TensorFunction& f, const Tensor& x);
/// The same by each of several inputs.
Tensors jacfwd(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);
/// The second derivatives of a function of one element: x's extents twice. ShapeError for another.
Tensor hessian(const TensorFunction& f, const Tensor& x);

}  // namespace autograd

/// The function that computes f for every slice of its arguments along an axis, side by side: f is
/// called once, with tensors that stand for a slice each, and the graph that it builds gets another
/// axis (no loop). in_dims: per argument the axis, or none for one that is the same for all slices;
/// axis 0 of all if none are given. Results have the slices along out_dim. Random numbers in f are
/// the same for all slices. f must not read values or write memory that depends on its arguments.
/// The function throws InvalidArgument if no argument is sliced, ShapeError for different numbers
/// of slices.
TensorsFunction vmap(TensorsFunction f, std::vector<std::optional<int64_t>> in_dims = {},
                     int64_t out_dim = 0);
/// The same of one argument, sliced along in_dim, and one result.
TensorFunction vmap(TensorFunction f, int64_t in_dim = 0, int64_t out_dim = 0);

/// f(arguments). For gradients, what f computes between its arguments and its results is not kept
/// but computed again, once the gradients of its results are there: of a chain of such functions
/// memory holds the arguments of each, and what is inside of one at a time (Chen et al., 2016).
/// What is computed again has the same bits, random numbers included; sums of gradients may be
/// added up in another order where that makes other kernels. Tensors that f uses besides its
/// arguments have gradients as always; those that are no memory yet are computed again too, down
/// to memory, so what is large belongs to the arguments. InvalidArgument for several devices.
Tensors checkpoint(const TensorsFunction& f, const Tensors& arguments);
Tensor checkpoint(const TensorFunction& f, const Tensor& argument);

}  // namespace tuff
