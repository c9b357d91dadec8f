// Kernels that users write, as ops of the graph. Called by programs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tuff/autograd.h>

namespace tuff {

/// The gradients of a kernel's inputs, one for each, undefined where there is none, of those of its
/// outputs (undefined for outputs that are no floats) and of the inputs. It is called once by each
/// call of the kernel, as autograd::Function's backward() is, and may call other kernels.
using KernelGradient = std::function<Tensors(const Tensors& gradients, const Tensors& inputs)>;

/// What a kernel is made of. Arguments are its outputs, then its inputs, in the order of the call,
/// each of them one buffer of its elements in row-major order.
struct KernelOptions {
  std::string name = {};  // a C identifier: errors and profiles show it
  /// For Vulkan devices (and AMD's with AMD_COMPILER=aco): a compute shader, argument k at
  /// `layout(std430, set = 0, binding = k) buffer`. glslangValidator compiles it.
  std::string glsl = {};
  /// The same as a module, if there is no `glsl`, and its entry point.
  std::vector<uint32_t> spirv = {};
  std::string entry = "main";
  /// For the CPU: C that defines a function of that name. It is called once for each workgroup,
  /// with pointers (to const for inputs), which the group's `unsigned x, y, z` may follow.
  std::string c = {};
  /// For OpenCL devices, CUDA and NV: OpenCL C 1.2 that defines a `__kernel` of that name, whose
  /// parameters are `__global` pointers (to const for inputs), and the size of a workgroup.
  std::string opencl = {};
  std::array<int64_t, 3> local{1, 1, 1};
  /// Macros of `glsl`, `c` and `opencl`: 32-bit integers or floats.
  std::vector<std::pair<std::string, Number>> constants = {};
  KernelGradient gradient = {};  // none: an error where a gradient is asked for
};

/// An output of a kernel.
struct KernelOutput {
  Sizes sizes = {};
  DType dtype = DType::F32;
};

/// A kernel of one's own as an op: scheduled, captured, replayed and ordered against other kernels
/// as they are. What it reads is computed first, nothing is fused into it, and it writes nothing
/// but its outputs, which are new memory; elements that it does not store are undefined.
///
///     const Kernel doubled({.name = "doubled", .c = R"(
///       void doubled(float* out, const float* in, unsigned x) { out[x] = 2 * in[x]; })"});
///     const Tensor y = doubled({x}, {{x.sizes()}}, {x.size(0), 1, 1})[0];
class Kernel {
 public:
  /// InvalidArgument for a name that is no identifier, for no text at all, and for constants that
  /// 32 bits do not hold. Texts are compiled when a device first runs them.
  explicit Kernel(KernelOptions options);
  /// One launch of so many workgroups along x, y and z. All inputs are on one device.
  ///
  /// InvalidArgument or ShapeError for no inputs, none or empty outputs, and for groups that are no
  /// positive 32-bit numbers; Unsupported for symbolic extents. When it is realized: Unsupported
  /// where no language of the device was given or its compiler is not there, CompileError for what
  /// does not compile or is not what was declared.
  Tensors operator()(const Tensors& inputs, const std::vector<KernelOutput>& outputs,
                     std::array<int64_t, 3> groups) const;
  const std::string& name() const;

 private:
  struct Definition;
  std::shared_ptr<const Definition> definition_;  // shared with copies
};

}  // namespace tuff
