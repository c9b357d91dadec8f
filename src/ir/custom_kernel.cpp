#include "ir/custom_kernel.h"

#include <functional>

namespace tuff::ir {

CustomKernelArg::CustomKernelArg(Ref<const CustomKernel> k, std::array<uint32_t, 3> g,
                                 std::vector<CustomOutput> o, int64_t n)
    : kernel(std::move(k)), groups(g), outputs(std::move(o)), number(n) {}
CustomKernelArg::CustomKernelArg(const CustomKernelArg&) = default;
CustomKernelArg& CustomKernelArg::operator=(const CustomKernelArg&) = default;
CustomKernelArg::CustomKernelArg(CustomKernelArg&&) noexcept = default;
CustomKernelArg& CustomKernelArg::operator=(CustomKernelArg&&) noexcept = default;
CustomKernelArg::~CustomKernelArg() = default;

bool CustomKernelArg::operator==(const CustomKernelArg& o) const {
  return number == o.number && groups == o.groups && outputs == o.outputs &&
         (kernel == o.kernel || equal(*kernel, *o.kernel));
}

bool equal(const CustomKernel& a, const CustomKernel& b) {
  return a.name == b.name && a.glsl == b.glsl && a.opencl == b.opencl && a.c == b.c &&
         a.spirv == b.spirv && a.entry == b.entry && a.local == b.local &&
         a.constants == b.constants;
}

uint64_t content_hash(const CustomKernel& k) {
  uint64_t h = 0;
  const auto mix = [&](uint64_t v) { h = (h ^ v) * 0x9fb21c651e98df25ull, h ^= h >> 29; };
  const auto text = [&](const std::string& s) { mix(std::hash<std::string>()(s)); };
  for (const std::string* s : {&k.name, &k.glsl, &k.opencl, &k.c, &k.entry}) text(*s);
  for (uint32_t word : k.spirv) mix(word);
  for (uint32_t n : k.local) mix(n);
  for (const auto& [name, value] : k.constants) text(name), text(value);
  return h;
}

std::string languages_of(const CustomKernel& k) {
  std::string out;
  const auto add = [&](const char* name, bool given) {
    if (given) out += (out.empty() ? "" : " and ") + std::string(name);
  };
  add("GLSL", !k.glsl.empty());
  add("SPIR-V", !k.spirv.empty());
  add("C", !k.c.empty());
  add("OpenCL C", !k.opencl.empty());
  return out;
}

UOp custom_kernel(const CustomKernelArg& arg, std::span<const UOp> inputs) {
  return make(Op::CustomKernel, arg.outputs.at(size_t(arg.number)).dtype, inputs, arg);
}

UOp launch_of_output(const Node& output) {
  CustomKernelArg whole = output.get<CustomKernelArg>();
  whole.number = kWholeKernel;
  return make(Op::CustomKernel, DType::Void, output.src(), std::move(whole));
}

UOp custom_kernel_ast(const Node& output) {
  CustomKernelArg whole = output.get<CustomKernelArg>();
  whole.number = kWholeKernel;
  std::vector<UOp> params;
  const auto add = [&](DType t, int64_t count) {
    params.push_back(param(int32_t(params.size()), t, count));
  };
  for (const CustomOutput& o : whole.outputs) {
    int64_t count = 1;
    for (int64_t n : o.shape) count *= n;
    add(o.dtype, count);
  }
  for (const UOp& s : output.src()) add(s->dtype, element_count(s->shape));
  return make(Op::CustomKernel, DType::Void, params, std::move(whole));
}

}  // namespace tuff::ir
