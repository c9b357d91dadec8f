// KfdBuffer: memory that a GPU reaches at the address at which this process has reserved it,
// whether the host maps it there or not. Made by Process.
#pragma once

#include <optional>
#include <vector>

#include "devices/amd/kfd/calls.h"
#include "devices/amd/space.h"

namespace tuff::devices::amd {

class Process;
struct Gpu;

class KfdBuffer final : public Buffer {
 public:
  KfdBuffer(Process& process, Gpu& gpu, const BufferRequest& request);  // by Process::allocate
  ~KfdBuffer() override;
  uint64_t address() const override { return range_->address(); }
  size_t size_bytes() const override { return range_->size_bytes(); }
  std::byte* host() const override { return host_; }
  uint64_t handle() const override { return handle_; }
  // On a further GPU: its queues and kernels reach the same bytes at the same address. False: it
  // was mapped there before. Throws where the GPUs have no link.
  bool map_to(const Gpu& gpu);
  // The kernel keeps it to the end of the process, and refuses to free it.
  void leave_to_kernel() { kept_ = true; }

 private:
  void allocate(const BufferRequest& request);
  void release() noexcept;
  Process& process_;
  Gpu& gpu_;
  std::optional<AddressRange> range_;
  std::byte* host_ = nullptr;
  uint64_t handle_ = 0;
  bool allocated_ = false, kept_ = false;
  std::vector<uint32_t> mapped_to_;  // gpu ids
};

}  // namespace tuff::devices::amd
