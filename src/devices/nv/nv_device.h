// NvDevice: one of NVIDIA's GPUs as hcq sees it. Made by nv_open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/os_fork.h"
#include "devices/nv/nv.h"
#include "devices/nv/queue.h"
#include "devices/owned_blocks.h"

namespace tuff::devices::nv {

hcq::DeviceInfo describe(const GpuFacts& facts, const std::string& driver,
                         const std::string& driver_version, const std::string& name, bool emulated);

class NvDevice final : public hcq::Device, private hcq::Peers {
 public:
  NvDevice(NvIface& iface, std::unique_ptr<Space> space, const std::string& name);
  ~NvDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override;
  void unmap_block(const hcq::MemoryBlock& block) noexcept override;
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override;
  hcq::Queue& compute_queue() override { return *compute_; }
  hcq::Queue* copy_queue() override { return &*copy_; }
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override;
  void check_status() override;
  hcq::Peers* peers() override { return this; }
  Space& space() { return *space_; }

 protected:
  void on_lost() noexcept override;

 private:
  bool reaches(const hcq::Device& other) const override;
  void share(const hcq::MemoryBlock& block, hcq::Device& to) override;
  [[noreturn]] void lose(const ChannelError& error, std::string findings);

  // In a child of fork() nothing may be asked of the driver: its objects are the parent's.
  bool is_childs() const { return os::forks() != forks_; }
  const uint32_t forks_ = os::forks();
  // Copies of what the iface has: devices may outlive the registry's own.
  TakeFindings take_findings_;
  Assemble assemble_;
  const std::unique_ptr<Space> space_;
  hcq::DeviceInfo info_;
  Target target_;
  const std::unique_ptr<ChannelGroup> group_;
  SemaphorePages semaphores_;
  OwnedBlocks<Buffer> blocks_;
  std::optional<NvQueue> compute_, copy_;
};

}  // namespace tuff::devices::nv
