// C kernels in this process, whatever queue runs them: the Target that they are compiled for, and
// their object files loaded. Called by the CPU device and by the random-order device. Must never
// know queues, lists or memory.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/arith.h"
#include "base/target.h"
#include "hcq/device.h"
#include "render/binary.h"

namespace tuff::devices {

// TUFF_THREADS, or one per core. Throws InvalidArgument for what is out of range.
uint32_t cpu_thread_count();
// This machine's processor as the target of a device of that kind.
Target cpu_target(const std::string& kind);

// Scratch memory of groups that run one at a time: a vector of these.
struct alignas(render::kScratchAlignment) ScratchLine {
  std::array<std::byte, render::kScratchAlignment> bytes;
};
inline size_t scratch_lines(uint32_t size_bytes) {
  return ceil_div<size_t>(size_bytes, sizeof(ScratchLine));
}

// A loaded kernel: a function to be called for each group. The time of one group is learned where
// it runs: see CpuPool::run.
class CpuProgram : public hcq::Program {
 public:
  CpuProgram(const render::Binary& b, render::CpuKernelFn fn)
      : Program(b), fn_(fn), scratch_bytes_(b.shared_bytes) {}
  render::CpuKernelFn fn() const { return fn_; }
  uint32_t scratch_bytes() const { return scratch_bytes_; }  // what fn needs beside its arguments
  std::atomic<uint32_t>& cost_ns() const { return cost_ns_; }

 private:
  render::CpuKernelFn fn_;
  uint32_t scratch_bytes_;
  mutable std::atomic<uint32_t> cost_ns_{0};
};

// Thread-safe. Programs keep their code when the loader goes.
class CpuLoader {
 public:
  // CpuPrograms. Throws CompileError for what is no object file, and for a symbol that is not
  // there.
  std::vector<std::unique_ptr<hcq::Program>> load(std::span<const render::Binary> binaries);

 private:
  struct Image;
  std::shared_ptr<Image> image(const render::Binary& b);
  std::mutex mutex_;
  std::map<const void*, std::weak_ptr<Image>> images_;
};

}  // namespace tuff::devices
