// What tuff.Kernel is made of: a kernel without its gradient, which is a function of Python.
#include <cstring>

#include <tuff/kernel.h>

#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

std::vector<uint32_t> words_of(const std::string& bytes) {
  if (bytes.size() % sizeof(uint32_t) != 0)
    throw InvalidArgument("Kernel: spirv has " + std::to_string(bytes.size()) +
                          " bytes: a module is of 32-bit words");
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

}  // namespace

void bind_kernel(py::module_& m) {
  py::class_<Kernel>(m, "KernelLaunch", "What tuff.Kernel is made of.")
      .def(py::init([](std::string name, std::string glsl, const py::bytes& spirv,
                       std::string entry, std::string c, std::string opencl,
                       std::array<int64_t, 3> local,
                       std::vector<std::pair<std::string, Number>> constants) {
             KernelOptions o{.name = std::move(name), .glsl = std::move(glsl)};
             o.spirv = words_of(spirv);
             o.entry = std::move(entry);
             o.c = std::move(c);
             o.opencl = std::move(opencl);
             o.local = local;
             o.constants = std::move(constants);
             return Kernel(std::move(o));
           }),
           arg("name"), arg("glsl"), arg("spirv"), arg("entry"), arg("c"), arg("opencl"),
           arg("local"), arg("constants"))
      .def(
          "launch",
          [](const Kernel& k, const Tensors& inputs,
             const std::vector<std::pair<Sizes, DType>>& outputs, std::array<int64_t, 3> groups) {
            std::vector<KernelOutput> declared;
            for (const auto& [sizes, dtype] : outputs) declared.push_back({sizes, dtype});
            return k(inputs, declared, groups);
          },
          arg("inputs"), arg("outputs"), arg("groups"), "What calling a tuff.Kernel does.");
}

}  // namespace tuff::python
