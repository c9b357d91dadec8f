// Python's operators, and NumPy's indexing.
#include <variant>

#include "base/check.h"
#include "module.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

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

// Arrays of NumPy and others are copied to where the tensor is.
Tensor from_array(const Tensor& like, const py::buffer& array) {
  return tensor_of(array).to(like.device());
}

// x * 1 may be x itself, whose memory what is done to the result in place must not reach.
Tensor apart(const Tensor& result, const Tensor& x) {
  return x.is_realized() && detail::uop(result) == detail::uop(x) ? copied(x) : result;
}

template <class Operation>
void bind_comparison(TensorClass& c, const char* name, Operation operation) {
  c.def(
      name,
      [operation](const Tensor& a, const Tensor& b) { return apart(apart(operation(a, b), a), b); },
      kOperator);
  c.def(
      name, [operation](const Tensor& a, Number b) { return apart(operation(a, b), a); },
      kOperator);
  c.def(
      name,
      [operation](const Tensor& a, const py::buffer& b) { return operation(a, from_array(a, b)); },
      kOperator);
}

template <class Operation>
void bind_operator(TensorClass& c, const char* name, const char* reflected, Operation operation) {
  bind_comparison(c, name, operation);
  c.def(
      reflected, [operation](const Tensor& a, Number b) { return apart(operation(b, a), a); },
      kOperator);
  c.def(
      reflected,
      [operation](const Tensor& a, const py::buffer& b) { return operation(from_array(a, b), a); },
      kOperator);
}

// x += y writes x, as x[...] = x + y does: whoever holds the tensor sees it.
template <class Operation>
void bind_in_place(TensorClass& c, const char* name, Operation operation) {
  c.def(
      name,
      [operation, name](const py::object& self, const py::object& other) -> py::object {
        auto& x = self.cast<Tensor&>();
        // Of a view that is not what it would be now: x[0] += 1 after x += 1.
        const Tensor now = detail::current(x);
        const py::object left = now.impl() == x.impl() ? self : py::cast(now);
        const py::object right = other.is(self) ? left : other;
        const py::object result =
            py::reinterpret_steal<py::object>(operation(left.ptr(), right.ptr()));
        if (!result) throw py::error_already_set();
        if (!py::isinstance<Tensor>(result)) return result;
        const Tensor value = result.cast<Tensor>();
        if (value.dtype() != x.dtype())
          fail<InvalidArgument>(
              "{}: {} does not hold the result, which is {}: x = x + y makes a "
              "tensor of its own",
              name, tuff::name(x.dtype()), tuff::name(value.dtype()));
        x.index_put_({indexing::Ellipsis}, value);
        return self;
      },
      arg("other"));
}

struct Floored {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a.floor_divide(b); }
  Tensor operator()(const Tensor& a, Number b) const { return a.floor_divide(b); }
  Tensor operator()(Number a, const Tensor& b) const {
    return as_tensor_like(b, a).floor_divide(b);
  }
};
struct Power {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a.pow(b); }
  Tensor operator()(const Tensor& a, Number b) const { return a.pow(b); }
  Tensor operator()(Number a, const Tensor& b) const { return Tensor::pow(a, b); }
};

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
  bind_operator(c, "__floordiv__", "__rfloordiv__", Floored());
  bind_operator(c, "__pow__", "__rpow__", Power());
  c.def("__matmul__", [](const Tensor& a, const Tensor& b) { return a.matmul(b); }, kOperator);
  c.def(
      "__matmul__", [](const Tensor& a, const py::buffer& b) { return a.matmul(from_array(a, b)); },
      kOperator);
  c.def(
      "__rmatmul__",
      [](const Tensor& a, const py::buffer& b) { return from_array(a, b).matmul(a); }, kOperator);
  const auto both = [](const py::object& a, const py::object& b) {
    return py::make_tuple(a.attr("__floordiv__")(b), a.attr("__mod__")(b));
  };
  c.def("__divmod__", both, kOperator);
  c.def("__neg__", [](const Tensor& a) { return -a; });
  c.def("__pos__", [](const Tensor& a) { return apart(a, a); });
  c.def("__abs__", [](const Tensor& a) { return apart(a.abs(), a); });
  c.def("__invert__", [](const Tensor& a) { return ~a; });
}

void bind_arithmetic_in_place(TensorClass& c) {
  bind_in_place(c, "__iadd__", PyNumber_Add);
  bind_in_place(c, "__isub__", PyNumber_Subtract);
  bind_in_place(c, "__imul__", PyNumber_Multiply);
  bind_in_place(c, "__itruediv__", PyNumber_TrueDivide);
  bind_in_place(c, "__imatmul__", PyNumber_MatrixMultiply);
  bind_in_place(c, "__ifloordiv__", PyNumber_FloorDivide);
  bind_in_place(c, "__imod__", PyNumber_Remainder);
  bind_in_place(c, "__iand__", PyNumber_And);
  bind_in_place(c, "__ior__", PyNumber_Or);
  bind_in_place(c, "__ixor__", PyNumber_Xor);
  bind_in_place(c, "__ilshift__", PyNumber_Lshift);
  bind_in_place(c, "__irshift__", PyNumber_Rshift);
  bind_in_place(c, "__ipow__",
                [](PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); });
}

Index index_from(py::handle item) {
  if (item.is_none()) return indexing::None;
  if (item.is(py::handle(Py_Ellipsis))) return indexing::Ellipsis;
  if (py::isinstance<Tensor>(item)) return item.cast<Tensor>();
  const auto end = [](py::handle bound) -> std::optional<Size> {
    if (bound.is_none()) return {};
    std::optional<Size> s = size_from(bound);
    if (!s) throw py::type_error("slices of tensors have whole numbers or nothing at their ends");
    return s;
  };
  if (py::isinstance<py::slice>(item))
    return indexing::Slice{end(item.attr("start")), end(item.attr("stop")),
                           int64_t(end(item.attr("step")).value_or(1))};
  if (PyBool_Check(item.ptr()))
    throw InvalidArgument("index: a bool is no position; use None for a new axis");
  if (const auto at = size_from(item)) return int64_t(*at);
  if (PyLong_Check(item.ptr())) throw IndexError("index: a number of more than 64 bits");
  if (py::isinstance<py::str>(item)) throw py::type_error("a tensor is not indexed with a string");
  const auto t = tensor_of(item);
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
  return tensor_of(value).to(x.device());
}

void put_in_place(Tensor& x, const py::object& indices, const py::object& value) {
  std::visit([&](const auto& v) { x.index_put_(indices_from(x, indices), v); },
             value_from(x, value));
}

Tensor put(const Tensor& x, const py::object& indices, const py::object& value, bool accumulate) {
  return std::visit(
      [&](const auto& v) { return x.index_put(indices_from(x, indices), v, accumulate); },
      value_from(x, value));
}
Tensor& index_put_in_place(Tensor& x, const py::object& indices, const py::object& value,
                           bool accumulate) {
  std::visit([&](const auto& v) { x.index_put_(indices_from(x, indices), v, accumulate); },
             value_from(x, value));
  return x;
}

}  // namespace

void bind_operators(TensorClass& c) {
  bind_arithmetic(c);
  bind_arithmetic_in_place(c);
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
        "Replaces what the indices pick, in place: memory is written, and no more of it than the "
        "range of each axis that numbers and slices pick; what is still to be computed becomes the "
        "result, with its gradients. x[0][1] = 2 changes x as x[0, 1] = 2 does: x[0] is a view. "
        "Other views that were taken before keep their values. Slices of numbers may have ends "
        "that vary inside a Jit: cache[n - 1:n] = row.");
  c.def("index_put", &put, arg("indices"), arg("value"), arg("accumulate") = false,
        "A copy with what the indices pick replaced, or added to; the value is broadcast and cast.");
  c.def("index_put_", &index_put_in_place, arg("indices"), arg("value"), arg("accumulate") = false,
        "index_put() in place.");
  c.def("nonzero", &nonzero, "Where elements are not 0: (count, axes) of int32.");
  c.def("__contains__", [](const py::object& t, const py::object& value) {
    const py::object same = t.attr("__eq__")(value);
    return py::isinstance<Tensor>(same) && same.attr("any")().attr("item")().cast<bool>();
  });
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
