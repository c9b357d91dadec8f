#include "casters.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "module.h"

namespace tuff::python {
namespace {

bool is_of_numpy(py::handle object) {
  const std::string module = py::str(py::type::handle_of(object).attr("__module__"));
  return module.rfind("numpy", 0) == 0;
}

// Scalars of NumPy, and its arrays without axes: what has item() and no extent.
bool is_numpy_scalar(py::handle object) {
  return is_of_numpy(object) && py::hasattr(object, "item") && py::hasattr(object, "ndim") &&
         py::object(object.attr("ndim")).equal(py::int_(0));
}

std::optional<Number> whole_number(py::handle object) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) return Number(int64_t(v));
  if (overflow > 0) {
    const unsigned long long u = PyLong_AsUnsignedLongLong(object.ptr());
    if (!PyErr_Occurred()) return Number(uint64_t(u));
    PyErr_Clear();
  }
  throw InvalidArgument("the number " + std::string(py::str(object)) + " has more than 64 bits");
}

// Of Python's own numbers.
std::optional<Number> plain_number_from(py::handle object) {
  PyObject* o = object.ptr();
  if (PyBool_Check(o)) return Number(o == Py_True);
  if (PyLong_Check(o)) return whole_number(object);
  if (PyFloat_Check(o)) return Number(PyFloat_AS_DOUBLE(o));
  return {};
}

// The value of a scalar. NumPy's long double gives itself, which Python's float holds as well as it
// can; arrays of objects may hold anything.
std::optional<Number> number_of_numpy(py::handle scalar) {
  const py::object item = scalar.attr("item")();
  if (is_of_numpy(item) && PyObject_HasAttrString(item.ptr(), "dtype") &&
      py::object(item.attr("dtype").attr("kind")).equal(py::str("f")))
    return plain_number_from(py::float_(item));
  return plain_number_from(item);
}

std::optional<DType> dtype_of_type(py::handle type) {
  if (type.is(py::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)))) return DType::F32;
  if (type.is(py::handle(reinterpret_cast<PyObject*>(&PyLong_Type)))) return DType::I32;
  if (type.is(py::handle(reinterpret_cast<PyObject*>(&PyBool_Type)))) return DType::Bool;
  const std::string module = py::str(type.attr("__module__"));
  if (module != "numpy") return {};
  std::string name = py::str(type.attr("__name__"));
  return parse_dtype(name == "bool_" ? "bool" : name);
}

// What __index__() gives; nothing where there is none, or an array has several elements.
py::object index_of(py::handle object) {
  if (!object || !PyIndex_Check(object.ptr())) return {};
  if (py::isinstance<Tensor>(object)) {
    const auto& t = object.cast<const Tensor&>();
    const Sizes sizes = t.sizes();
    const auto is_one = [](const Size& s) { return s.is_number() && s == 1; };
    if (!is_int(t.dtype()) || !std::ranges::all_of(sizes, is_one)) return {};
  }
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!index) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();  // arrays have __index__() and refuse it where they are none
    return {};
  }
  return index;
}

}  // namespace

py::object dtype_object(DType t) {
  // Leaked on purpose: they would be released after the interpreter.
  static auto& objects = *new std::array<py::object, kDTypeCount>();
  py::object& o = objects[size_t(t)];
  if (!o) o = py::cast(DTypeObject{t});
  return o;
}

std::optional<DType> dtype_from(py::handle object) {
  if (py::isinstance<DTypeObject>(object)) return object.cast<DTypeObject>().value;
  if (py::isinstance<py::str>(object)) return parse_dtype(text_of(object));
  if (PyType_Check(object.ptr())) return dtype_of_type(object);
  if (is_of_numpy(object) && py::hasattr(object, "itemsize") && py::hasattr(object, "kind"))
    return parse_dtype(text_of(py::str(object.attr("name"))));
  return {};
}

py::object size_object(const Size& size) {
  if (size.is_number()) return py::int_(int64_t(size));
  return py::cast(SizeObject{size});
}

std::optional<Size> size_from(py::handle object) {
  if (py::isinstance<SizeObject>(object)) return object.cast<SizeObject>().size;
  if (PyBool_Check(object.ptr()) || py::isinstance<Tensor>(object) ||
      !PyIndex_Check(object.ptr()) || (is_of_numpy(object) && !is_numpy_scalar(object)))
    return {};
  const std::optional<int64_t> v = whole_from(object);
  return v ? std::optional<Size>(*v) : std::nullopt;
}

std::optional<Number> number_from(py::handle object) {
  if (const std::optional<Number> n = plain_number_from(object)) return n;
  if (py::isinstance<SizeObject>(object)) return Number(object.cast<SizeObject>().size);
  if (py::isinstance<Tensor>(object) || object.is_none()) return {};
  if (is_numpy_scalar(object)) return number_of_numpy(object);
  return {};
}

std::optional<int64_t> whole_from(py::handle object) {
  const py::object index = index_of(object);
  if (!index) return {};
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  return overflow == 0 ? std::optional<int64_t>(v) : std::nullopt;
}

std::optional<uint64_t> unsigned_from(py::handle object, uint64_t largest) {
  const py::object index = index_of(object);
  if (!index) return {};
  const unsigned long long v = PyLong_AsUnsignedLongLong(index.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return {};
  }
  return v <= largest ? std::optional<uint64_t>(v) : std::nullopt;
}

std::optional<Items> items_of(py::handle object, size_t most) {
  PyObject* o = object.ptr();
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o)) return {};
  if (!PySequence_Check(o)) return {};
  if (py::isinstance<Tensor>(object) && object.cast<const Tensor&>().dim() == 0) return {};
  const Py_ssize_t count = PySequence_Size(o);
  if (count < 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();  // an array without axes, say
    return {};
  }
  if (size_t(count) > most)
    throw InvalidArgument("a sequence of " + std::to_string(count) + " numbers, where at most " +
                          std::to_string(most) + " are taken");
  Items items;
  items.reserve(size_t(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    items.push_back(py::reinterpret_steal<py::object>(PySequence_GetItem(o, i)));
    if (!items.back()) throw py::error_already_set();
  }
  return items;
}

std::string text_of(py::handle text) {
  Py_ssize_t length = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
  if (utf8 == nullptr) throw py::error_already_set();
  return {utf8, size_t(length)};
}

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

Sizes sizes_from(const char* function, const py::args& args) {
  std::optional<Items> items;
  if (args.size() == 1 && !size_from(args[0])) items = items_of(args[0]);
  if (!items) items = items_of(args);
  Sizes sizes;
  for (const py::object& item : *items) {
    const std::optional<Size> s = size_from(item);
    if (!s && PyLong_Check(item.ptr()) && !PyBool_Check(item.ptr())) {
      PyErr_Format(PyExc_OverflowError, "%s(): argument %zu does not fit 64 bits", function,
                   sizes.size());
      throw py::error_already_set();
    }
    if (!s)
      throw py::type_error(std::string(function) + "(): argument " + std::to_string(sizes.size()) +
                           " has to be an int, not " + type_name(item));
    sizes.push_back(*s);
  }
  return sizes;
}

namespace {

struct FloatInfo {
  DType dtype;
};

void bind_finfo(py::module_& m) {
  py::class_<FloatInfo>(m, "finfo", "The limits of a dtype of floats, as PyTorch's torch.finfo.")
      .def(py::init([](DType t) {
             if (!is_float(t))
               fail<InvalidArgument>("finfo: {} is no dtype of floats", name(t));
             return FloatInfo{t};
           }),
           py::arg("dtype") = DType::F32)
      .def_property_readonly("dtype", [](const FloatInfo& f) { return f.dtype; })
      .def_property_readonly("bits", [](const FloatInfo& f) { return row(f.dtype).storage_bits; })
      .def_property_readonly(
          "eps", [](const FloatInfo& f) { return std::ldexp(1.0, -row(f.dtype).mantissa_bits); },
          "From 1 to the next number.")
      .def_property_readonly("max", [](const FloatInfo& f) { return largest_value(f.dtype); })
      .def_property_readonly("min", [](const FloatInfo& f) { return -largest_value(f.dtype); })
      .def_property_readonly(
          "tiny", [](const FloatInfo& f) { return smallest_normal(f.dtype); },
          "The least number above 0 of full precision.")
      .def_property_readonly("smallest_normal",
                             [](const FloatInfo& f) { return smallest_normal(f.dtype); })
      .def("__repr__", [](const FloatInfo& f) {
        return fmt::format("finfo(tuff.{}: max={}, eps={}, tiny={})", name(f.dtype),
                           largest_value(f.dtype), std::ldexp(1.0, -row(f.dtype).mantissa_bits),
                           smallest_normal(f.dtype));
      });
}

}  // namespace

void bind_dtypes(py::module_& m) {
  py::class_<DTypeObject>(m, "DType", "An element type: tuff.float32, tuff.int64, ...")
      .def_property_readonly("name", [](const DTypeObject& d) { return name(d.value); })
      .def_property_readonly(
          "itemsize", [](const DTypeObject& d) { return size_bytes(d.value); },
          "Bytes of one element.")
      .def_property_readonly("is_float", [](const DTypeObject& d) { return is_float(d.value); })
      .def_property_readonly("is_int", [](const DTypeObject& d) { return is_int(d.value); })
      .def_property_readonly("is_signed", [](const DTypeObject& d) { return is_signed(d.value); })
      .def("__repr__", [](const DTypeObject& d) { return "tuff." + std::string(name(d.value)); })
      .def("__eq__",
           [](const DTypeObject& a, py::object b) -> py::object {
             std::optional<DType> other;
             try {
               other = dtype_from(b);
             } catch (const InvalidArgument&) {  // a name or a type that is none of a dtype
             }
             if (!other) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             return py::bool_(a.value == *other);
           })
      .def("__hash__", [](const DTypeObject& d) { return int(d.value); })
      // The name of the one object of this dtype, for pickle.
      .def("__reduce__", [](const DTypeObject& d) {
        return d.value == DType::Bool ? "bool_" : std::string(name(d.value));
      });
  for (int i = 0; i < kDTypeCount; i++) {
    const auto t = DType(i);
    if (t != DType::Void && t != DType::Index && !is_weak(t))
      m.attr(t == DType::Bool ? "bool_" : name(t)) = dtype_object(t);
  }
  bind_finfo(m);
  m.def("promote", &promote, py::arg("a"), py::arg("b"),
        "The dtype that an operation of two dtypes has.");
}

template <class Operation>
auto size_operator(Operation operation) {
  return [operation](const SizeObject& a, const Size& b) { return operation(a.size, b); };
}
template <class Operation>
auto reflected(Operation operation) {
  return [operation](const SizeObject& a, const Size& b) { return operation(b, a.size); };
}

void bind_sizes(py::module_& m) {
  py::class_<SizeObject> c(
      m, "Size",
      "A symbolic extent of an axis that varies inside a Jit. Arithmetic gives "
      "symbolic extents; comparisons are refused where bounds leave them open.");
  const auto add = [](const Size& a, const Size& b) { return a + b; };
  const auto sub = [](const Size& a, const Size& b) { return a - b; };
  const auto mul = [](const Size& a, const Size& b) { return a * b; };
  const auto div = [](const Size& a, const Size& b) { return a / b; };
  const auto mod = [](const Size& a, const Size& b) { return a % b; };
  c.def("__add__", size_operator(add)).def("__radd__", reflected(add));
  c.def("__sub__", size_operator(sub)).def("__rsub__", reflected(sub));
  c.def("__mul__", size_operator(mul)).def("__rmul__", reflected(mul));
  c.def("__floordiv__", size_operator(div)).def("__rfloordiv__", reflected(div));
  c.def("__mod__", size_operator(mod)).def("__rmod__", reflected(mod));
  c.def("__eq__", size_operator([](const Size& a, const Size& b) { return a == b; }));
  c.def("__ne__", size_operator([](const Size& a, const Size& b) { return a != b; }));
  c.def("__lt__", size_operator([](const Size& a, const Size& b) { return a < b; }));
  c.def("__gt__", size_operator([](const Size& a, const Size& b) { return a > b; }));
  c.def("__le__", size_operator([](const Size& a, const Size& b) { return a <= b; }));
  c.def("__ge__", size_operator([](const Size& a, const Size& b) { return a >= b; }));
  c.def("__repr__", [](const SizeObject& s) { return s.size.str(); });
  c.def("__int__", [](const SizeObject& s) { return int64_t(s.size); });
  c.def_property_readonly("min", [](const SizeObject& s) { return s.size.min(); });
  c.def_property_readonly("max", [](const SizeObject& s) { return s.size.max(); });
}

}  // namespace tuff::python
