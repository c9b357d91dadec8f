// Python's operators, and NumPy's indexing.
#include <variant>

#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

// An operand of another kind is asked in turn, and Python names both if it knows nothing either.
const py::is_operator kOperator;

// Both as tensors of the dtype that the operation has.
Tensor as_tensor_like(const Tensor& t, Number n) {
  const DType common = strengthen(promote(t.dtype(), n.dtype()));
  return t.cast(common).full_like(n);
}

template <class Operation>
void bind_operator(TensorClass& c, const char* name, const char* reflected, Operation operation) {
  c.def(name, [operation](const Tensor& a, const Tensor& b) { return operation(a, b); }, kOperator);
  c.def(name, [operation](const Tensor& a, Number b) { return operation(a, b); }, kOperator);
  c.def(reflected, [operation](const Tensor& a, Number b) { return operation(b, a); }, kOperator);
}

template <class Operation>
void bind_comparison(TensorClass& c, const char* name, Operation operation) {
  c.def(name, [operation](const Tensor& a, const Tensor& b) { return operation(a, b); }, kOperator);
  c.def(name, [operation](const Tensor& a, Number b) { return operation(a, b); }, kOperator);
}

void bind_arithmetic(TensorClass& c) {
  bind_operator(c, "__add__", "__radd__", [](const auto& a, const auto& b) { return a + b; });
  bind_operator(c, "__sub__", "__rsub__", [](const auto& a, const auto& b) { return a - b; });
  bind_operator(c, "__mul__", "__rmul__", [](const auto& a, const auto& b) { return a * b; });
  bind_operator(c, "__truediv__", "__rtruediv__",
                [](const auto& a, const auto& b) { return a / b; });
  bind_operator(c, "__mod__", "__rmod__", [](const auto& a, const auto& b) { return a % b; });
  bind_operator(c, "__and__", "__rand__", [](const auto& a, const auto& b) { return a & b; });
  bind_operator(c, "__or__", "__ror__", [](const auto& a, const auto& b) { return a | b; });
  bind_operator(c, "__xor__", "__rxor__", [](const auto& a, const auto& b) { return a ^ b; });
  bind_operator(c, "__lshift__", "__rlshift__",
                [](const auto& a, const auto& b) { return a << b; });
  bind_operator(c, "__rshift__", "__rrshift__",
                [](const auto& a, const auto& b) { return a >> b; });
  c.def(
      "__floordiv__", [](const Tensor& a, const Tensor& b) { return a.floor_divide(b); },
      kOperator);
  c.def("__floordiv__", [](const Tensor& a, Number b) { return a.floor_divide(b); }, kOperator);
  c.def(
      "__rfloordiv__",
      [](const Tensor& a, Number b) { return as_tensor_like(a, b).floor_divide(a); }, kOperator);
  c.def("__pow__", [](const Tensor& a, const Tensor& b) { return a.pow(b); }, kOperator);
  c.def("__pow__", [](const Tensor& a, Number b) { return a.pow(b); }, kOperator);
  c.def("__rpow__", [](const Tensor& a, Number b) { return Tensor::pow(b, a); }, kOperator);
  c.def("__matmul__", [](const Tensor& a, const Tensor& b) { return a.matmul(b); }, kOperator);
  c.def("__neg__", [](const Tensor& a) { return -a; });
  c.def("__pos__", [](const Tensor& a) { return a; });
  c.def("__abs__", &Tensor::abs);
  c.def("__invert__", [](const Tensor& a) { return ~a; });
}

Index index_from(py::handle item) {
  if (item.is_none()) return indexing::None;
  if (item.is(py::handle(Py_Ellipsis))) return indexing::Ellipsis;
  if (py::isinstance<Tensor>(item)) return item.cast<Tensor>();
  const auto end = [](py::handle bound) -> std::optional<int64_t> {
    if (bound.is_none()) return {};
    const std::optional<Size> s = size_from(bound);
    if (!s) throw py::type_error("slices of tensors have whole numbers or nothing at their ends");
    return int64_t(*s);
  };
  if (py::isinstance<py::slice>(item))
    return indexing::Slice{end(item.attr("start")), end(item.attr("stop")),
                           end(item.attr("step")).value_or(1)};
  if (PyBool_Check(item.ptr()))
    throw InvalidArgument("index: a bool is no position; use None for a new axis");
  if (const auto at = size_from(item)) return int64_t(*at);
  if (py::isinstance<py::str>(item)) throw py::type_error("a tensor is not indexed with a string");
  const auto t = py::module_::import("tuff").attr("tensor")(item).cast<Tensor>();
  // A list of nothing has no numbers to tell its dtype by.
  return t.numel() == 0 && py::isinstance<py::list>(item) ? t.cast(DType::I32) : t;
}

std::vector<Index> indices_from(const Tensor& x, const py::object& given) {
  std::vector<Index> indices;
  if (py::isinstance<py::tuple>(given)) {
    for (const py::handle item : py::reinterpret_borrow<py::tuple>(given))
      indices.push_back(index_from(item));
  } else {
    indices.push_back(index_from(given));
  }
  for (Index& i : indices) {
    // Positions that were given as a list come from the host: they go where the tensor is.
    if (const Tensor* t = std::get_if<Tensor>(&i.value()); t && t->device() != x.device())
      i = Index(t->to(x.device()));
  }
  return indices;
}

Tensor index(const Tensor& x, const py::object& given) {
  const std::vector<Index> indices = indices_from(x, given);
  for (const Index& i : indices) {
    // The host reads how many elements a mask picks: others run meanwhile.
    if (const Tensor* t = std::get_if<Tensor>(&i.value()); t && t->dtype() == DType::Bool)
      wait_for(*t);
  }
  return x.index(indices);
}

Tensor nonzero(const Tensor& x) {
  wait_for(x);
  return x.nonzero();
}

// A number keeps all of its digits: a tensor of it would be int32 or float32.
using Put = std::variant<Number, Tensor>;
Put value_from(const Tensor& x, const py::object& value) {
  if (const std::optional<Number> number = number_from(value)) return *number;
  if (py::isinstance<Tensor>(value)) return value.cast<Tensor>();
  return py::module_::import("tuff").attr("tensor")(value).cast<Tensor>().to(x.device());
}

void put_in_place(Tensor& x, const py::object& indices, const py::object& value) {
  std::visit([&](const auto& v) { x.index_put_(indices_from(x, indices), v); },
             value_from(x, value));
}

Tensor put(const Tensor& x, const py::object& indices, const py::object& value) {
  return std::visit([&](const auto& v) { return x.index_put(indices_from(x, indices), v); },
                    value_from(x, value));
}

}  // namespace

void bind_operators(TensorClass& c) {
  bind_arithmetic(c);
  bind_comparison(c, "__lt__", [](const auto& a, const auto& b) { return a < b; });
  bind_comparison(c, "__gt__", [](const auto& a, const auto& b) { return a > b; });
  bind_comparison(c, "__le__", [](const auto& a, const auto& b) { return a <= b; });
  bind_comparison(c, "__ge__", [](const auto& a, const auto& b) { return a >= b; });
  bind_comparison(c, "__eq__", [](const auto& a, const auto& b) { return a == b; });
  bind_comparison(c, "__ne__", [](const auto& a, const auto& b) { return a != b; });
  // Equality is element by element, so tensors are told apart by what they are.
  c.def("__hash__", [](const Tensor& t) { return std::hash<const void*>()(t.impl()); });
  // Operators of NumPy's arrays leave tensors to the operators above.
  c.attr("__array_ufunc__") = py::none();
}

void bind_indexing(TensorClass& c) {
  c.def(
      "__getitem__", &index, arg("indices"),
      "Whole numbers, slices, None, ... and tensors, lists or arrays of integers or bools. How "
      "many "
      "elements a mask of bools picks depends on data, so it is computed at once: inside a Jit use "
      "where() or masked_fill().");
  c.def("__setitem__", &put_in_place, arg("indices"), arg("value"),
        "Replaces what the indices pick, in place: memory is written, what is still to be computed "
        "becomes the result, with its gradients. x[0, 1] = 2 changes x; x[0][1] = 2 does not.");
  c.def("index_put", &put, arg("indices"), arg("value"),
        "A copy with what the indices pick replaced; the value is broadcast and cast.");
  c.def("nonzero", &nonzero, "Where elements are not 0: (count, axes) of int32.");
  c.def("__len__", [](const Tensor& t) {
    if (t.dim() == 0) throw py::type_error("len() of a tensor without axes");
    return int64_t(t.size(0));
  });
  c.def("__iter__", [](const Tensor& t) {
    if (t.dim() == 0) throw py::type_error("a tensor without axes is not iterable");
    py::list rows;
    for (int64_t i = 0; i < int64_t(t.size(0)); i++) rows.append(t.select(0, i));
    return py::iter(rows);
  });
}

}  // namespace tuff::python
