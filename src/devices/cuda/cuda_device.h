// CudaDevice: hcq::Device on CUDA's driver API, joined from its parts. Made by cuda_open. Knows
// nothing of how devices are chosen.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "devices/cuda/memory.h"
#include "devices/cuda/queue.h"

namespace tuff::devices::cuda {

class CudaDevice final : public hcq::Device, private hcq::Adoption, private hcq::Peers {
 public:
  explicit CudaDevice(std::shared_ptr<Context> context);
  ~CudaDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override;
  void unmap_block(const hcq::MemoryBlock& block) noexcept override { memory_.unmap(block); }
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override;
  hcq::Queue& compute_queue() override { return *compute_; }
  hcq::Queue* copy_queue() override { return copy_ ? &*copy_ : nullptr; }
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override;
  hcq::Adoption* adoption() override { return this; }
  hcq::Peers* peers() override { return this; }
  const std::shared_ptr<Context>& context() const { return context_; }
  // Of its queues, that of the compute queue first.
  std::vector<CUstream> streams() const;

 protected:
  void on_lost() noexcept override { context_->give_up(); }

 private:
  std::optional<hcq::ForeignMemory> over_host(void* data, size_t size_bytes) override;
  NativePart native_part(const hcq::Span& span) override;
  std::optional<NativeMemory> over_native(uint64_t address) override;
  bool reaches(const hcq::Device& other) const override;
  void share(const hcq::MemoryBlock& block, hcq::Device& to) override;
  void lose(const std::string& reason);

  std::shared_ptr<Context> context_;
  hcq::DeviceInfo info_;
  Target target_;
  Memory memory_;
  std::shared_ptr<SignalWords> words_;
  std::optional<CudaQueue> compute_, copy_;
  std::mutex peers_mutex_;
  std::set<CUcontext> reached_by_;  // contexts that were let into this one's memory
};

}  // namespace tuff::devices::cuda
