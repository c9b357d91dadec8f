// tuff.onnx: models of that format, loaded, described and called.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <tuff/onnx.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/parse_number.h"
#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Path = std::filesystem::path;
using onnx::Description;
using onnx::Model;
using onnx::OperatorUse;
using onnx::Session;
using onnx::ValueInfo;

// Texts of a file may be no UTF-8.
py::str text(const std::string& t) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(t.data(), py::ssize_t(t.size()), "replace"));
}

py::object shape_of(const ValueInfo& v) {
  if (!v.has_rank) return py::none();
  py::tuple out(v.shape.size());
  for (size_t i = 0; i < v.shape.size(); i++) {
    const auto extent = parse_number<int64_t>(v.shape[i]);
    out[i] = extent              ? py::object(py::int_(*extent))
             : v.shape[i] == "?" ? py::object(py::none())
                                 : py::object(text(v.shape[i]));
  }
  return out;
}

py::dict parameters_of(const Model& model) {
  py::dict out;
  for (const auto& [name, tensor] : model.parameters()) out[text(name)] = tensor;
  return out;
}

// A tensor, or what tuff.tensor() makes one of.
Tensor tensor_from(const py::handle& value) {
  return py::isinstance<Tensor>(value) ? value.cast<Tensor>() : tensor_of(value);
}

// What the model declares as a sequence is a list of tensors, and None is no value.
onnx::Item item_from(const std::vector<ValueInfo>& infos, const std::string& name,
                     const py::handle& value) {
  if (value.is_none()) return {};
  const auto info = std::ranges::find(infos, name, &ValueInfo::name);
  const bool is_list = py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
  if (info == infos.end() || !info->is_sequence || !is_list) return tensor_from(value);
  std::vector<Tensor> out;
  for (const py::handle& element : value) out.push_back(tensor_from(element));
  return out;
}

void add_inputs(onnx::Items& inputs, const Model& model, const py::dict& given) {
  for (const auto& [key, value] : given) {
    if (!py::isinstance<py::str>(key))
      throw py::type_error("inputs are named by str, not " + type_name(key));
    const std::string name = text_of(key);
    if (!inputs.emplace(name, item_from(model.description().inputs, name, value)).second)
      throw py::type_error("input '" + name + "' is given twice");
  }
}

onnx::Items inputs_from(const Model& model, const py::args& args, const py::kwargs& named) {
  if (args.size() > 1 || (args.size() == 1 && !py::isinstance<py::dict>(args[0])))
    throw py::type_error("a model is called with its inputs by name, or with a dict of them");
  onnx::Items inputs;
  if (args.size() == 1) add_inputs(inputs, model, args[0]);
  add_inputs(inputs, model, named);
  return inputs;
}

template <class Named>
py::dict outputs_of(const Model& model, const Named& values) {
  py::dict out;
  for (const ValueInfo& v : model.description().outputs)
    out[text(v.name)] = py::cast(values.at(v.name));
  return out;
}

py::dict call(const Model& model, const py::args& args, const py::kwargs& named) {
  const onnx::Items inputs = inputs_from(model, args, named);
  const onnx::Items values = [&] {
    const Unlocked others;  // what decides shapes is waited for
    return model.run(inputs);
  }();
  return outputs_of(model, values);
}

py::dict call_session(Session& session, const py::args& args, const py::kwargs& named) {
  const Model& model = session.model();
  onnx::Values inputs;
  for (const auto& [name, item] : inputs_from(model, args, named))
    if (const auto* tensor = std::get_if<Tensor>(&item)) inputs.emplace(name, *tensor);
  const onnx::Values values = [&] {
    const Unlocked others;
    return session(inputs);
  }();
  return outputs_of(model, values);
}

void bind_facts_of_models(py::module_& m) {
  py::class_<ValueInfo>(m, "ValueInfo", "An input or output of a model.")
      .def_property_readonly("name", [](const ValueInfo& v) { return text(v.name); })
      .def_readonly("type", &ValueInfo::type, "\"FLOAT\", \"INT64\", \"sequence of FLOAT\".")
      .def_property_readonly(
          "dtype",
          [](const ValueInfo& v) {
            return v.dtype == DType::Void ? py::object(py::none()) : dtype_object(v.dtype);
          },
          "Of its tensors; None where tuff cannot compute with them.")
      .def_readonly("is_sequence", &ValueInfo::is_sequence, "Of tensors: a list.")
      .def_readonly("is_optional", &ValueInfo::is_optional,
                    "May be None; as an input it may be left out.")
      .def_property_readonly("shape", &shape_of,
                             "Numbers, names, None for what is not known; None for any rank.")
      .def("__repr__", [](const ValueInfo& v) {
        return py::str("<ValueInfo {} {} {}>").format(text(v.name), v.type, shape_of(v));
      });
  py::class_<OperatorUse>(m, "OperatorUse", "An operator that a model uses.")
      .def_property_readonly("domain", [](const OperatorUse& o) { return text(o.domain); })
      .def_property_readonly("name", [](const OperatorUse& o) { return text(o.name); })
      .def_readonly("version", &OperatorUse::version)
      .def_readonly("count", &OperatorUse::count, "Nodes, those of inner graphs too.")
      .def_property_readonly(
          "missing", [](const OperatorUse& o) { return text(o.missing); },
          "Why it cannot be run; \"\": it can.")
      .def("__repr__", [](const OperatorUse& o) {
        return py::str("<OperatorUse {}:{} {} x {}>")
            .format(text(o.domain), text(o.name), o.version, o.count);
      });
}

template <class Pairs>
py::list pairs_of(const Pairs& pairs) {
  py::list out;
  for (const auto& [key, value] : pairs) out.append(py::make_tuple(text(key), value));
  return out;
}

void bind_description(py::module_& m) {
  py::class_<Description>(m, "Description", "What a model is, nothing of which is run.")
      .def_readonly("ir_version", &Description::ir_version)
      .def_property_readonly("producer", [](const Description& d) { return text(d.producer); })
      .def_property_readonly(
          "opsets", [](const Description& d) { return pairs_of(d.opsets); },
          "(domain, version) of each set of operators.")
      .def_readonly("inputs", &Description::inputs)
      .def_readonly("outputs", &Description::outputs)
      .def_readonly("operators", &Description::operators, "Sorted by domain and name.")
      .def_readonly("parameters", &Description::parameters,
                    "Elements of all initializers and Constants.")
      .def_property_readonly(
          "rewrites", [](const Description& d) { return pairs_of(d.rewrites); },
          "(rule, count) of what load() makes fewer operators of.")
      .def_property_readonly("metadata", [](const Description& d) {
        py::dict out;
        for (const auto& [key, value] : d.metadata) out[text(key)] = text(value);
        return out;
      });
}

void bind_session(py::module_& m) {
  using Bounds = std::map<std::string, std::pair<int64_t, int64_t>>;
  py::class_<Session>(m, "Session",
                      "A model whose calls are replayed: of inputs of the same shapes and dtypes "
                      "the first runs it, the second captures it.")
      .def(py::init([](const Model& model, const std::optional<Bounds>& dynamic, size_t graphs) {
             return Session(model, {.dynamic = dynamic.value_or(Bounds{}), .graphs = graphs});
           }),
           arg("model"), arg("dynamic") = py::none(), arg("graphs") = 8,
           "dynamic: the model's names of extents that one graph serves, with the least and the "
           "most of each: {\"batch\": (1, 64)}; graphs: so many are kept.")
      .def("__call__", &call_session, "As the model's call, but that outputs are realized.")
      .def_property_readonly("model", [](const Session& s) { return s.model(); })
      .def_property_readonly("why_not_captured", &Session::why_not_captured,
                             "Why the last call was none of a captured graph; \"\": it was, or "
                             "may be the next time.")
      .def_property_readonly("stats", &Session::stats, "Of the graph used last.");
}

// The function that Python's export() made: of a list of tensors, a list of tensors.
void bind_save(py::module_& m) {
  m.def(
      "_save",
      [](const Path& path, const py::function& function, const std::vector<Tensor>& inputs,
         std::vector<std::string> input_names, std::vector<std::string> output_names,
         std::vector<DynamicAxis> dynamic, const py::dict& parameters, uint64_t external_from,
         bool draws) {
        const auto run = [&](const std::vector<Tensor>& given) {
          const py::tuple arguments = py::make_tuple(given);
          const auto results =
              py::reinterpret_steal<py::object>(call_python(function.ptr(), arguments.ptr()));
          if (!results) throw py::error_already_set();
          return results.cast<std::vector<Tensor>>();
        };
        onnx::save(path.string(), run, inputs,
                   {.input_names = std::move(input_names),
                    .output_names = std::move(output_names),
                    .dynamic = std::move(dynamic),
                    .parameters = state_from(parameters),
                    .external_from = external_from,
                    .draws = draws});
      },
      arg("path"), arg("function"), arg("inputs"), arg("input_names"), arg("output_names"),
      arg("dynamic"), arg("parameters"), arg("external_from"),
      arg("draws"));
}

}  // namespace

void bind_onnx(py::module_& parent) {
  py::module_ m = parent.def_submodule("onnx", "Models in ONNX files.");
  bind_facts_of_models(m);
  bind_description(m);
  py::class_<Model>(m, "Model", "A function from inputs to outputs by name. Copies share.")
      .def(
          "__call__", &call,
          "All outputs, in the model's order; inputs by name or as a dict: tensors, or what "
          "tensor() takes. A sequence is a list of them, an empty optional None.")
      .def("description", &Model::description)
      .def_property_readonly("device", &Model::device, "\"\" is the default device.")
      .def_property_readonly("inputs", [](const Model& x) { return x.description().inputs; })
      .def_property_readonly("outputs", [](const Model& x) { return x.description().outputs; })
      .def_property_readonly("parameters", &parameters_of,
                             "The initializers by name; what is assigned to one is used, and "
                             "nothing is folded from then on.");
  bind_session(m);
  bind_save(m);
  m.def(
      "load",
      [](const Path& path, const std::string& device, bool optimize) {
        const Unlocked others;
        return onnx::load(path.string(), {.device = device, .optimize = optimize});
      },
      arg("path"), arg("device") = "", arg("optimize") = true,
      "Reads a model's structure, its contents when they are used. optimize: what follows a layer "
      "is folded into its weights at the first call, unless parameters have been asked for.");
  m.def(
      "describe",
      [](const Path& path) {
        const Unlocked others;
        return onnx::describe(path.string());
      },
      arg("path"), "Of any model, also of one that load() refuses.");
}

}  // namespace tuff::python
