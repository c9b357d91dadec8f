// Runs the text of dialects with workgroups on the host: compiled as C against a prelude of the
// tests' own, each work-item a stack of its own, which changes at barriers and shuffles. So what a
// kernel computes is seen without a GPU; what the real prelude says is not, but for OpenCL's, which
// runs over the tests' library.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/os.h"
#include "render/renderer.h"

namespace tuff::render {

class WorkitemRun {
 public:
  // Compiles all at once, for the target's subgroups and matrices. Unsupported without a C
  // compiler.
  WorkitemRun(std::span<const Source> sources, const Target& t);
  // Runs every workgroup; arguments as in the argument block. Throws InternalError where some
  // work-items of a workgroup end and others wait.
  void run(const Source& source, std::span<const uint64_t> buffers,
           std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) const;

 private:
  std::optional<os::Library> library_;
  uint32_t subgroup_size_;
  bool opencl_;
};

// The same as a runner of all of a dialect's kernels (amdgpu_runs.h).
class KernelRunner;
std::unique_ptr<KernelRunner> on_the_host(std::span<const Source> sources, const Target& t);

}  // namespace tuff::render
