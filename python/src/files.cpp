// Tensors in files: load(), save() and the dictionary between them.
#include <pybind11/stl/filesystem.h>
#include <tuff/io.h>

#include <filesystem>
#include <limits>

#include "base/check.h"
#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Path = std::filesystem::path;

py::object to_python(const MetadataValue& v);

struct ToPython {
  py::object operator()(std::monostate) const { return py::none(); }
  py::object operator()(bool b) const { return py::bool_(b); }
  py::object operator()(int64_t n) const { return py::int_(n); }
  py::object operator()(uint64_t n) const { return py::int_(n); }
  py::object operator()(double x) const { return py::float_(x); }
  py::object operator()(const std::string& s) const { return py::str(s); }
  py::object operator()(const MetadataValue::List& list) const {
    py::list out;
    for (const MetadataValue& v : list) out.append(to_python(v));
    return out;
  }
};
py::object to_python(const MetadataValue& v) { return std::visit(ToPython(), v.value); }

constexpr int kDeepest = 64;  // a list may contain itself

MetadataValue whole_number(const py::handle& v) {
  if (const auto n = whole_from(v)) return {*n};
  if (const auto n = unsigned_from(v, std::numeric_limits<uint64_t>::max())) return {*n};
  throw std::overflow_error("metadata: a number that does not fit 64 bits");
}

MetadataValue from_python(const py::handle& v, int depth = 0) {
  if (v.is_none()) return {};
  if (py::isinstance<py::bool_>(v)) return {v.cast<bool>()};
  if (py::isinstance<py::int_>(v)) return whole_number(v);
  if (py::isinstance<py::float_>(v)) return {v.cast<double>()};
  if (py::isinstance<py::str>(v)) return {text_of(v)};
  if (py::isinstance<py::list>(v) || py::isinstance<py::tuple>(v)) {
    if (depth == kDeepest)
      fail<InvalidArgument>("metadata: lists of more than {} levels", kDeepest);
    MetadataValue::List out;
    const std::optional<Items> items = items_of(v, std::numeric_limits<size_t>::max());
    for (const py::object& item : *items) out.push_back(from_python(item, depth + 1));
    return {std::move(out)};
  }
  throw py::type_error("metadata is None, bool, int, float, str or a list of these, not " +
                       type_name(v));
}

py::dict metadata_of(const TensorDict& d) {
  py::dict out;
  for (const auto& [key, value] : d.metadata()) out[py::str(key)] = to_python(value);
  return out;
}

Tensor item(const TensorDict& d, const std::string& name) {
  if (!d.contains(name)) throw py::key_error(name);
  const Unlocked others;  // its contents are read now, and it is nobody else's yet
  return d.at(name);
}

TensorDict from_dict(const py::dict& tensors) {
  TensorDict out;
  for (const nn::NamedTensor& t : state_from(tensors)) out.set(t.name, t.tensor);
  return out;
}

// What is given is left as it is: a TensorDict's copies share.
void save_dict(const Path& path, const TensorDict& given, const py::dict& metadata, bool compress) {
  TensorDict d;
  for (const std::string& name : given.names()) {
    const Tensor t = item(given, name);
    if (t.is_realized()) wait_for(t);
    d.set(name, t);
  }
  for (const auto& [key, value] : given.metadata()) d.set_metadata(key, value);
  for (const auto& [key, value] : metadata) {
    if (!py::isinstance<py::str>(key))
      throw py::type_error("keys of metadata are str, not " + type_name(key));
    d.set_metadata(text_of(key), from_python(value));
  }
  const auto interruptible = [](uint64_t, uint64_t) {
    const Locked locked;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  const Unlocked others;
  save(path.string(), d, {.compress = compress, .progress = interruptible});
}

}  // namespace

void bind_files(py::module_& m) {
  py::class_<TensorInfo>(m, "TensorInfo", "What a file says of a tensor, its contents unread.")
      .def_readonly("name", &TensorInfo::name)
      .def_readonly("type", &TensorInfo::type, "As the format spells it: \"F32\", \"Q4_K\".")
      .def_readonly("dtype", &TensorInfo::dtype)
      .def_property_readonly("shape",
                             [](const TensorInfo& i) { return py::tuple(py::cast(i.shape)); })
      .def_readonly("size_bytes", &TensorInfo::size_bytes, "As they are stored.")
      .def_readonly("offset", &TensorInfo::offset, "In the file, in an archive in the member.")
      .def_readonly("file", &TensorInfo::file)
      .def("__repr__", [](const TensorInfo& i) {
        return "<TensorInfo " + i.name + " " + i.type + " " +
               py::repr(py::tuple(py::cast(i.shape))).cast<std::string>() + ">";
      });
  py::class_<TensorDict>(m, "TensorDict",
                         "Tensors by name, in order. Of a loaded one the contents of a tensor are "
                         "read when it is first asked for.")
      .def(py::init<>())
      .def(py::init(&from_dict), arg("tensors"))
      .def("__len__", &TensorDict::size)
      .def("__contains__", &TensorDict::contains, arg("name"))
      .def("__iter__", [](const TensorDict& d) { return py::iter(py::cast(d.names())); })
      .def("__getitem__", &item, arg("name"))
      .def("__setitem__", &TensorDict::set, arg("name"), arg("tensor"))
      .def(
          "__delitem__",
          [](TensorDict& d, const std::string& name) {
            if (!d.contains(name)) throw py::key_error(name);
            d.erase(name);
          },
          arg("name"))
      .def("keys", &TensorDict::names)
      .def("values",
           [](const TensorDict& d) {
             py::list out;
             for (const std::string& name : d.names()) out.append(item(d, name));
             return out;
           })
      .def("items",
           [](const TensorDict& d) {
             py::list out;
             for (const std::string& name : d.names())
               out.append(py::make_tuple(name, item(d, name)));
             return out;
           })
      .def("info", &TensorDict::info, "Of every tensor, without reading contents.")
      .def_property_readonly("format", &TensorDict::format,
                             "\"safetensors\", \"gguf\" ...; \"\": none.")
      .def_property_readonly("metadata", &metadata_of, "A copy, as a dict.");
  m.def(
      "load",
      [](const Path& path, const std::string& device, bool mmap) {
        const Unlocked others;
        return load(path.string(), {.device = device, .mmap = mmap});
      },
      arg("path"), arg("device") = "", arg("mmap") = false,
      "Opens safetensors (also by .index.json), .npy, .npz, PyTorch's checkpoints, GGUF or IDX. "
      "With "
      "mmap tensors on the CPU are views of the file's pages; assign() gives them memory of their "
      "own.");
  m.def("save", &save_dict, arg("path"), arg("tensors"), arg("metadata") = py::dict(),
        arg("compress") = false,
        "Writes .safetensors, .npz or .npy, told by the name's ending: whole or not at all.");
  py::implicitly_convertible<py::dict, TensorDict>();
}

}  // namespace tuff::python
