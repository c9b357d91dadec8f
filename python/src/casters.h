// How arguments and results pass between Python and tuff: element types, extents, axes, numbers,
// pairs. Used by every file of the module, which has to see the same casters in all of them.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::python {

namespace py = pybind11;

// What Python sees of an element type; one object for each, see dtype_object().
struct DTypeObject {
  DType value;
};
py::object dtype_object(DType t);
// A DType, its name, a dtype or scalar type of NumPy, or one of float, int, bool; nothing for other
// objects. InvalidArgument for a name that is none.
std::optional<DType> dtype_from(py::handle object);

// A symbolic extent; those that are numbers are Python's ints.
struct SizeObject {
  Size size;
};
py::object size_object(const Size& size);
std::optional<Size> size_from(py::handle object);

// bool, int, float, scalars of NumPy and symbolic extents; nothing for other objects.
std::optional<Number> number_from(py::handle object);

// A whole number of 64 bits: what has __index__(), but no tensor of several elements, which would
// be computed in vain. Nothing for other objects and larger numbers.
std::optional<int64_t> whole_from(py::handle object);
std::optional<uint64_t> unsigned_from(py::handle object, uint64_t largest);

// The elements of a sequence, each kept alive: items may be made on demand (range, arrays), and
// Python code that runs while they are read may change the sequence. Nothing for other objects,
// texts and arrays without axes; InvalidArgument for more than `most`.
using Items = std::vector<py::object>;
constexpr size_t kMostItems = size_t(1) << 20;  // of extents and axes
std::optional<Items> items_of(py::handle object, size_t most = kMostItems);

// Of a str; UnicodeEncodeError where UTF-8 has no such text.
std::string text_of(py::handle text);

// "float", for messages; never the object itself, which may be a tensor still to be computed.
std::string type_name(py::handle object);

// One axis, several, or None for what C++ calls {}.
struct AxesArgument {
  Axes axes;
};

// None stands for an undefined tensor both ways.
using MaybeTensor = std::optional<Tensor>;
inline Tensor given(const MaybeTensor& t) { return t ? *t : Tensor(); }
// For the numbers of windows, of {}.
using MaybeAxes = std::optional<PerAxis>;
inline PerAxis given(const MaybeAxes& a) { return a.value_or(PerAxis()); }
// One factor, several, or none.
using Factors = std::optional<std::variant<double, std::vector<double>>>;
inline std::vector<double> given(const Factors& f) {
  if (!f) return {};
  if (const double* one = std::get_if<double>(&*f)) return {*one};
  return std::get<std::vector<double>>(*f);
}
inline MaybeTensor shown(const Tensor& t) { return t.defined() ? MaybeTensor(t) : MaybeTensor(); }

// f(2, 3), f([2, 3]) and f((2, 3)) are the same. TypeErrors name function and argument.
Sizes sizes_from(const char* function, const py::args& args);

}  // namespace tuff::python

namespace pybind11::detail {

template <>
struct type_caster<tuff::DType> {
  PYBIND11_TYPE_CASTER(tuff::DType, const_name("DType"));
  bool load(handle source, bool) {
    const std::optional<tuff::DType> t = tuff::python::dtype_from(source);
    if (t) value = *t;
    return t.has_value();
  }
  static handle cast(tuff::DType t, return_value_policy, handle) {
    return tuff::python::dtype_object(t).release();
  }
};

template <>
struct type_caster<tuff::Size> {
  PYBIND11_TYPE_CASTER(tuff::Size, const_name("int"));
  bool load(handle source, bool) {
    const std::optional<tuff::Size> s = tuff::python::size_from(source);
    if (s) value = *s;
    return s.has_value();
  }
  static handle cast(const tuff::Size& s, return_value_policy, handle) {
    return tuff::python::size_object(s).release();
  }
};

template <>
struct type_caster<tuff::Sizes> {
  PYBIND11_TYPE_CASTER(tuff::Sizes, const_name("Sequence[int]"));
  bool load(handle source, bool) {
    if (const auto one = tuff::python::size_from(source)) {
      value = {*one};
      return true;
    }
    const auto items = tuff::python::items_of(source);
    if (!items) return false;
    value.clear();
    for (const object& item : *items) {
      const auto s = tuff::python::size_from(item);
      if (!s) return false;
      value.push_back(*s);
    }
    return true;
  }
  static handle cast(const tuff::Sizes& sizes, return_value_policy, handle) {
    tuple out(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) out[i] = tuff::python::size_object(sizes[i]);
    return out.release();
  }
};

// pybind11 would round what has __int__() and no __index__(): Decimal, NumPy's floats, tensors.
template <>
struct type_caster<int64_t> {
  PYBIND11_TYPE_CASTER(int64_t, const_name("int"));
  bool load(handle source, bool) {
    const std::optional<int64_t> n = tuff::python::whole_from(source);
    if (n) value = *n;
    return n.has_value();
  }
  static handle cast(int64_t n, return_value_policy, handle) { return PyLong_FromLongLong(n); }
};

template <class T>
struct unsigned_caster {
  PYBIND11_TYPE_CASTER(T, const_name("int"));
  bool load(handle source, bool) {
    const auto n = tuff::python::unsigned_from(source, std::numeric_limits<T>::max());
    if (n) value = T(*n);
    return n.has_value();
  }
  static handle cast(T n, return_value_policy, handle) { return PyLong_FromUnsignedLongLong(n); }
};
template <>
struct type_caster<uint32_t> : unsigned_caster<uint32_t> {};
template <>
struct type_caster<uint64_t> : unsigned_caster<uint64_t> {};

template <class Element>
struct items_caster : list_caster<std::vector<Element>, Element> {
  bool load(handle source, bool convert) {
    const auto items = tuff::python::items_of(source);
    if (!items) return false;
    this->value.clear();
    for (const object& item : *items) {
      make_caster<Element> element;
      if (!element.load(item, convert)) return false;
      this->value.push_back(cast_op<const Element&>(element));
    }
    return true;
  }
};
template <>
struct type_caster<std::vector<int64_t>> : items_caster<int64_t> {};
template <>
struct type_caster<std::vector<tuff::Tensor>> : items_caster<tuff::Tensor> {};

template <>
struct type_caster<tuff::python::AxesArgument> {
  PYBIND11_TYPE_CASTER(tuff::python::AxesArgument, const_name("int | Sequence[int] | None"));
  bool load(handle source, bool convert) {
    value.axes.clear();
    if (source.is_none()) return true;
    make_caster<int64_t> one;
    if (one.load(source, convert)) {
      value.axes = {cast_op<int64_t>(one)};
      return true;
    }
    make_caster<tuff::Axes> several;
    if (!several.load(source, convert)) return false;
    value.axes = cast_op<tuff::Axes&&>(std::move(several));
    return true;
  }
  static handle cast(const tuff::python::AxesArgument& a, return_value_policy p, handle parent) {
    if (a.axes.empty()) return none().release();
    return make_caster<tuff::Axes>::cast(a.axes, p, parent);
  }
};

template <>
struct type_caster<tuff::PerAxis> {
  PYBIND11_TYPE_CASTER(tuff::PerAxis, const_name("int | Sequence[int]"));
  bool load(handle source, bool convert) {
    make_caster<int64_t> all;
    if (all.load(source, convert)) {
      value = cast_op<int64_t>(all);
      return true;
    }
    make_caster<std::vector<int64_t>> each;
    if (!each.load(source, convert)) return false;
    value = cast_op<std::vector<int64_t>&&>(std::move(each));
    return true;
  }
  static handle cast(const tuff::PerAxis& p, return_value_policy policy, handle parent) {
    const std::vector<int64_t>& each = p.values();
    if (each.empty()) return none().release();
    if (each.size() == 1) return PyLong_FromLongLong(each[0]);
    return tuple(reinterpret_steal<object>(
                     make_caster<std::vector<int64_t>>::cast(each, policy, parent)))
        .release();
  }
};

template <>
struct type_caster<tuff::Padding> {
  PYBIND11_TYPE_CASTER(tuff::Padding,
                       const_name("int | Sequence[int] | Sequence[tuple[int, int]] | str"));
  bool load(handle source, bool convert) {
    if (isinstance<str>(source)) {
      value = tuff::Padding(tuff::python::text_of(source));
      return true;
    }
    make_caster<tuff::PerAxis> each;
    if (each.load(source, convert)) {
      value = tuff::Padding(cast_op<const tuff::PerAxis&>(each));
      return true;
    }
    const auto items = tuff::python::items_of(source);
    if (!items) return false;
    std::vector<std::pair<int64_t, int64_t>> sides;
    for (const object& item : *items) {
      make_caster<std::pair<int64_t, int64_t>> pair;
      if (!pair.load(item, convert)) return false;
      sides.push_back(cast_op<std::pair<int64_t, int64_t>>(pair));
    }
    value = tuff::Padding(std::move(sides));
    return true;
  }
  static handle cast(const tuff::Padding& p, return_value_policy policy, handle parent) {
    if (p.same()) return str("same").release();
    std::vector<int64_t> each;
    for (const auto& [before, after] : p.sides()) {
      if (before != after)
        return make_caster<std::vector<std::pair<int64_t, int64_t>>>::cast(p.sides(), policy,
                                                                           parent);
      each.push_back(before);
    }
    return make_caster<tuff::PerAxis>::cast(tuff::PerAxis(each), policy, parent);
  }
};

// Words that stand for the values of an enumeration.
template <class Enum, class Rows>
bool load_word(handle source, const Rows& rows, Enum& value) {
  if (!isinstance<str>(source)) return false;
  const std::string word = tuff::python::text_of(source);
  std::string known;
  for (const auto& [text, e] : rows) {
    if (word == text) {
      value = e;
      return true;
    }
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw tuff::InvalidArgument("\"" + word + "\" is none of: " + known);
}
template <class Enum, class Rows>
handle cast_word(Enum value, const Rows& rows) {
  for (const auto& [text, e] : rows) {
    if (e == value) return str(text).release();
  }
  return none().release();
}

#define TUFF_WORDS(Type, ...)                                                               \
  template <>                                                                               \
  struct type_caster<Type> {                                                                \
    static constexpr std::pair<const char*, Type> kRows[] = {__VA_ARGS__};                  \
    PYBIND11_TYPE_CASTER(Type, const_name("str"));                                          \
    bool load(handle source, bool) { return load_word(source, kRows, value); }              \
    static handle cast(Type v, return_value_policy, handle) { return cast_word(v, kRows); } \
  }
TUFF_WORDS(tuff::Reduction, {"none", tuff::Reduction::None}, {"mean", tuff::Reduction::Mean},
           {"sum", tuff::Reduction::Sum}, {"batchmean", tuff::Reduction::BatchMean});
TUFF_WORDS(tuff::PadMode, {"constant", tuff::PadMode::Constant},
           {"reflect", tuff::PadMode::Reflect}, {"replicate", tuff::PadMode::Replicate},
           {"circular", tuff::PadMode::Circular}, {"zeros", tuff::PadMode::Constant});
TUFF_WORDS(tuff::Interpolation, {"linear", tuff::Interpolation::Linear},
           {"lower", tuff::Interpolation::Lower}, {"higher", tuff::Interpolation::Higher},
           {"nearest", tuff::Interpolation::Nearest},
           {"midpoint", tuff::Interpolation::Midpoint});
TUFF_WORDS(tuff::GridOrder, {"ij", tuff::GridOrder::Rows}, {"xy", tuff::GridOrder::Columns});
TUFF_WORDS(tuff::FanMode, {"in", tuff::FanMode::In}, {"out", tuff::FanMode::Out});
#undef TUFF_WORDS

// A Number cannot be made of nothing, as PYBIND11_TYPE_CASTER wants it.
template <>
struct type_caster<tuff::Number> {
  static constexpr auto name = const_name("int | float");
  template <class>
  using cast_op_type = tuff::Number;
  bool load(handle source, bool) {
    value_ = tuff::python::number_from(source);
    return value_.has_value();
  }
  operator tuff::Number() const { return *value_; }
  static handle cast(const tuff::Number& n, return_value_policy, handle) {
    if (n.varies()) return tuff::python::size_object(n.extent()).release();
    if (n.dtype() == tuff::DType::Bool) return bool_(n.int_value() != 0).release();
    if (n.dtype() == tuff::DType::WeakInt) return int_(n.int_value()).release();
    return float_(n.value()).release();
  }

 private:
  std::optional<tuff::Number> value_;
};

}  // namespace pybind11::detail
