// A kernel that a user wrote: its texts, and what is declared of them. Made by tensor, compared by
// content; read by sched (which orders it), render (which compiles it) and engine. Knows no
// compiler and no device.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

struct CustomKernel : RefCounted {
  std::string name;                    // an identifier; in C and OpenCL C the function's
  std::string glsl, opencl, c;         // empty: not given
  std::vector<uint32_t> spirv;
  std::string entry = "main";          // of `spirv`
  std::array<uint32_t, 3> local{1, 1, 1};  // of `opencl`, whose text need not say it
  std::vector<std::pair<std::string, std::string>> constants;  // macros of the texts
};
bool equal(const CustomKernel& a, const CustomKernel& b);
uint64_t content_hash(const CustomKernel& k);
std::string languages_of(const CustomKernel& k);  // "GLSL and C": what was given

// The memory of output `number` of a launch that reads `inputs`, which are no scalars of the graph
// but memory: the scheduler stores what is not.
UOp custom_kernel(const CustomKernelArg& arg, std::span<const UOp> inputs);
// The launch that a node on the tensor floor is an output of: equal for all of its outputs.
UOp launch_of_output(const Node& output);
// The kernel floor's node of that launch.
UOp custom_kernel_ast(const Node& output);

}  // namespace tuff::ir
