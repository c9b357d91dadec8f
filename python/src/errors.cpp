// One class of Python for each kind of tuff::Error, with the builtin that says the same.
#include <array>
#include <cstring>

#include "module.h"

namespace tuff::python {
namespace {

struct ErrorRow {
  const char* kind;  // tuff::Error::kind()
  PyObject** builtin;
  const char* doc;
  const char* parent = nullptr;  // a kind above, else Error
  PyObject* type = nullptr;
};
std::array<ErrorRow, 9> rows = {{
    {"InvalidArgument", &PyExc_ValueError, "A value outside what the function takes."},
    {"IndexError", &PyExc_IndexError, "An axis or a position that is not there.",
     "InvalidArgument"},
    {"ShapeError", &PyExc_ValueError, "Shapes, axes or sizes that do not fit."},
    {"OutOfMemory", &PyExc_MemoryError, "Host or device memory exhausted."},
    {"CompileError", &PyExc_RuntimeError, "A compiler or driver refused a kernel."},
    {"Unsupported", &PyExc_NotImplementedError, "The device or build lacks a feature; named."},
    {"DeviceLost", &PyExc_RuntimeError, "The device failed; later calls on it fail fast."},
    {"IoError", &PyExc_OSError, "A file or stream; the path is in the text."},
    {"InternalError", &PyExc_AssertionError, "A bug in tuff, please report."},
}};
PyObject* base = nullptr;

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& e) {
    for (const ErrorRow& row : rows) {
      if (std::strcmp(row.kind, e.kind()) == 0) return PyErr_SetString(row.type, e.what());
    }
    PyErr_SetString(base, e.what());
  }
}

PyObject* new_type(const char* name, const char* doc, const py::object& bases) {
  PyObject* type =
      PyErr_NewExceptionWithDoc(("tuff." + std::string(name)).c_str(), doc, bases.ptr(), nullptr);
  if (type == nullptr) throw py::error_already_set();
  return type;
}

}  // namespace

void bind_errors(py::module_& m) {
  base = new_type("Error", "What tuff fails with.",
                  py::reinterpret_borrow<py::object>(PyExc_Exception));
  m.attr("Error") = py::handle(base);
  for (ErrorRow& row : rows) {
    const py::object parent = m.attr(row.parent ? row.parent : "Error");
    row.type = new_type(row.kind, row.doc, py::make_tuple(parent, py::handle(*row.builtin)));
    m.attr(row.kind) = py::handle(row.type);
  }
  py::register_exception_translator(&translate);
}

}  // namespace tuff::python
