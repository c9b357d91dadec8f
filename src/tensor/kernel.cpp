// Kernels that users write, as nodes of the graph (ir/custom_kernel.h).
#include <tuff/kernel.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/check.h"
#include "ir/custom_kernel.h"
#include "ir/device_group.h"
#include "tensor/impl.h"

namespace tuff {

using ir::UOp;

struct Kernel::Definition {
  Ref<const ir::CustomKernel> kernel;
  KernelGradient gradient;
};

namespace {

constexpr size_t kAxes = 3;

bool is_identifier(const std::string& s) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::ranges::all_of(s, fits);
}

// As a literal of C and GLSL.
std::string literal(const std::string& kernel, const std::string& name, const Number& v) {
  if (v.dtype() != DType::WeakFloat) {
    const int64_t n = v.int_value();
    if (n < INT32_MIN || n > int64_t{UINT32_MAX})
      fail<InvalidArgument>("kernel {}: constant {} is {}: 32 bits do not hold it", kernel, name,
                            n);
    return n > INT32_MAX ? fmt::format("{}u", n) : fmt::format("({})", n);
  }
  const auto f = static_cast<float>(v.value());
  if (!std::isfinite(f))
    fail<InvalidArgument>("kernel {}: constant {} is {}: no literal says that", kernel, name,
                          v.value());
  return fmt::format("({:#.9g}f)", f);
}

std::array<uint32_t, kAxes> positive(const std::string& kernel, const char* what,
                                     const std::array<int64_t, kAxes>& n) {
  std::array<uint32_t, kAxes> out{};
  for (size_t d = 0; d < kAxes; d++) {
    if (n[d] < 1 || n[d] > INT32_MAX)
      fail<InvalidArgument>("kernel {}: {} {} along {}: give 1 or more", kernel, n[d], what,
                            "xyz"[d]);
    out[d] = uint32_t(n[d]);
  }
  return out;
}

Ref<const ir::CustomKernel> made_of(KernelOptions& o) {
  if (!is_identifier(o.name))
    fail<InvalidArgument>("Kernel: the name \"{}\" is no identifier", o.name);
  if (o.glsl.empty() && o.spirv.empty() && o.c.empty() && o.opencl.empty())
    fail<InvalidArgument>("kernel {}: no text was given: glsl, spirv, c or opencl", o.name);
  auto k = make_ref<ir::CustomKernel>();
  for (const auto& [name, value] : o.constants) {
    if (!is_identifier(name))
      fail<InvalidArgument>("kernel {}: the constant's name \"{}\" is no identifier", o.name, name);
    k->constants.emplace_back(name, literal(o.name, name, value));
  }
  k->local = positive(o.name, "invocations", o.local);
  k->name = std::move(o.name);
  k->glsl = std::move(o.glsl);
  k->spirv = std::move(o.spirv);
  k->entry = std::move(o.entry);
  k->c = std::move(o.c);
  k->opencl = std::move(o.opencl);
  return Ref<const ir::CustomKernel>(k.get());
}

std::vector<ir::CustomOutput> declared(const std::string& kernel,
                                       const std::vector<KernelOutput>& outputs) {
  if (outputs.empty()) fail<InvalidArgument>("kernel {}: it has no outputs", kernel);
  std::vector<ir::CustomOutput> out;
  for (const KernelOutput& o : outputs) {
    detail::require_element_type("Kernel", o.dtype);
    detail::require_numbers("Kernel", o.sizes);
    ir::CustomOutput& to = out.emplace_back();
    to.dtype = o.dtype;
    for (const Size& n : o.sizes) {
      if (int64_t(n) < 1)
        fail<ShapeError>("kernel {}: an output of {} has no elements", kernel,
                         detail::text(o.sizes));
      to.shape.push_back(int64_t(n));
    }
  }
  return out;
}

const std::string& device_of(const std::string& kernel, const Tensors& inputs) {
  if (inputs.empty())
    fail<InvalidArgument>("kernel {}: it reads nothing: give it a tensor, which says the device",
                          kernel);
  for (const Tensor& x : inputs) {
    detail::require_numbers("Kernel", x.sizes());
    detail::require_same_device("Kernel", inputs[0], x);
    if (x.numel() == 0) fail<ShapeError>("kernel {}: an input has no elements", kernel);
    if (ir::is_group(x.device()))
      fail<Unsupported>("kernel {} reads a tensor on {}: give it tensors of one device", kernel,
                        x.device());
  }
  return inputs[0].impl()->device;
}

Tensors launched(const ir::CustomKernelArg& arg, const Tensors& inputs) {
  const std::string device = device_of(arg.kernel->name, inputs);
  const detail::BuildGuard section;
  std::vector<UOp> src;
  for (const Tensor& x : inputs) src.push_back(detail::placed(detail::uop(x), device));
  Tensors out;
  ir::CustomKernelArg of_output = arg;
  for (size_t k = 0; k < arg.outputs.size(); k++) {
    of_output.number = int64_t(k);
    out.push_back(detail::wrap(ir::custom_kernel(of_output, src), device));
  }
  return out;
}

}  // namespace

Kernel::Kernel(KernelOptions options) {
  auto definition = std::make_shared<Definition>();
  definition->gradient = std::move(options.gradient);
  definition->kernel = made_of(options);
  definition_ = std::move(definition);
}

const std::string& Kernel::name() const { return definition_->kernel->name; }

Tensors Kernel::operator()(const Tensors& inputs, const std::vector<KernelOutput>& outputs,
                           std::array<int64_t, kAxes> groups) const {
  const ir::CustomKernelArg arg(definition_->kernel, positive(name(), "workgroups", groups),
                                declared(name(), outputs), 0);
  if (!definition_->gradient) return launched(arg, inputs);
  const autograd::Function function{
      [&](autograd::FunctionContext& context, const Tensors& x) {
        context.save_for_backward(x);
        return launched(arg, x);
      },
      [&](autograd::FunctionContext& context, const Tensors& g) {
        return definition_->gradient(g, context.saved_tensors());
      }};
  return function(inputs);
}

}  // namespace tuff
