// What a call is told whose arguments fit none of a function's signatures. pybind11 would print
// every argument, and so compute every tensor among them, and every signature; here it is one more
// overload, the last, that asks tuff._arguments which argument it is.
#include <algorithm>
#include <cstring>

#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

// The first argument of a call, or that there is none. Not taken in the first of pybind11's two
// passes, in which nothing is converted yet.
struct First {
  py::handle object;
};

py::object nothing() {
  static const py::handle& marker =
      *new py::handle(py::module_::import("builtins").attr("object")().release());
  return py::reinterpret_borrow<py::object>(marker);
}

}  // namespace
}  // namespace tuff::python

namespace pybind11::detail {
template <>
struct type_caster<tuff::python::First> {
  PYBIND11_TYPE_CASTER(tuff::python::First, const_name("object"));
  bool load(handle source, bool convert) {
    value.object = source;
    return convert;
  }
};
}  // namespace pybind11::detail

namespace tuff::python {
namespace {

// A tensor's operators answer NotImplemented, and so Python asks the other operand.
bool is_operator(py::handle owner, const std::string& name) {
  static constexpr const char* kOperators[] = {
      "add", "sub",    "mul",    "truediv", "floordiv", "mod", "pow", "matmul", "divmod", "and",
      "or",  "xor",    "lshift", "rshift",  "lt",       "gt",  "le",  "ge",     "eq",     "ne"};
  if (!owner.is(py::type::of<Tensor>())) return false;
  return std::ranges::any_of(kOperators, [&](const std::string& word) {
    return name == "__" + word + "__" || name == "__r" + word + "__";
  });
}

// What pybind11 made of a function.
struct Bound {
  py::object owner;
  std::string name;
  PyCFunctionObject* function;
  bool is_method;
};

[[noreturn]] void refuse(const Bound& bound, const std::string& doc, const py::list& given,
                         const py::kwargs& kwargs) {
  const py::object error = py::module_::import("tuff._arguments")
                               .attr("error")(bound.name, bound.owner, doc, given, kwargs);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw py::error_already_set();
}

py::list given_of(const First& first, const py::args& args) {
  py::list given;
  if (!first.object.is(nothing())) given.append(first.object);
  for (const py::handle a : args) given.append(a);
  return given;
}

void explain(const Bound& bound) {
  PyMethodDef* const method = bound.function->m_ml;
  if (method->ml_doc == nullptr || is_operator(bound.owner, bound.name)) return;
  const std::string doc = method->ml_doc;
  const py::sibling sibling(py::handle(reinterpret_cast<PyObject*>(bound.function)));
  if (bound.is_method) {
    const auto last = [bound, doc](const py::object& self, const First& first, const py::args& args,
                                   const py::kwargs& kwargs) {
      py::list given = given_of(first, args);
      given.insert(0, self);
      refuse(bound, doc, given, kwargs);
    };
    py::cpp_function(last, py::name(method->ml_name), py::is_method(bound.owner), sibling,
                     py::arg() = nothing());
    // As a function, without a tensor: pybind11 takes no None for one.
    const auto of_none = [bound, doc](const py::args& args, const py::kwargs& kwargs) {
      const bool is_given = args.empty() ? kwargs.contains("self") : !args[0].is_none();
      if (is_given) throw py::reference_cast_error();  // to the next signature
      refuse(bound, doc, py::list(args), kwargs);
    };
    py::cpp_function(of_none, py::name(method->ml_name), py::is_method(bound.owner), sibling);
  } else {
    const auto last = [bound, doc](const First& first, const py::args& args,
                                   const py::kwargs& kwargs) {
      refuse(bound, doc, given_of(first, args), kwargs);
    };
    py::cpp_function(last, py::name(method->ml_name), py::scope(bound.owner), sibling,
                     py::arg() = nothing());
  }
  // The docstring is that of what the function takes.
  std::free(const_cast<char*>(method->ml_doc));
  method->ml_doc = strdup(doc.c_str());
}

void add(py::handle owner, const std::string& name, PyObject* member, bool is_method) {
  if (PyInstanceMethod_Check(member)) {
    member = PyInstanceMethod_GET_FUNCTION(member);
    is_method = true;
  }
  if (!PyCFunction_Check(member)) return;
  const Bound bound{py::reinterpret_borrow<py::object>(owner), name,
                    reinterpret_cast<PyCFunctionObject*>(member), is_method};
  guard_calls(bound.function);
  explain(bound);
}

void explain_members(py::handle scope) {
  const py::list members = py::dict(scope.attr("__dict__")).attr("items")();
  for (const py::handle item : members) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    const std::string name = text_of(pair[0]);
    py::object member = pair[1];
    if (PyType_Check(member.ptr()) && name != "__class__") {
      if (!PyExceptionClass_Check(member.ptr())) explain_members(member);
    } else if (PyModule_Check(member.ptr())) {
      explain_members(member);
    } else if (PyObject_TypeCheck(member.ptr(), &PyProperty_Type)) {
      for (const char* accessor : {"fget", "fset"})
        add(scope, name, py::object(member.attr(accessor)).ptr(), true);
    } else {
      if (Py_IS_TYPE(member.ptr(), &PyStaticMethod_Type)) member = member.attr("__func__");
      add(scope, name, member.ptr(), false);
    }
  }
}

}  // namespace

void explain_arguments(py::module_& m) { explain_members(m); }

}  // namespace tuff::python
