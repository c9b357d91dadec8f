// AmdDevice: one of AMD's GPUs as hcq sees it. Made by amd_open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/amd/amd.h"
#include "devices/amd/gpu_state.h"
#include "devices/amd/queue.h"
#include "devices/machine_findings.h"
#include "devices/owned_blocks.h"

namespace tuff::devices::amd {

HardwareQueueSetup compute_setup(const GpuFacts& facts);
// `driver`: "KFD".
hcq::DeviceInfo describe(const GpuFacts& facts, const std::string& driver, const std::string& name,
                         bool emulated);

class AmdDevice final : public hcq::Device, private hcq::Peers {
 public:
  // `info` as describe() makes it.
  AmdDevice(AmdIface& iface, std::unique_ptr<Space> space, hcq::DeviceInfo info);
  ~AmdDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override;
  void unmap_block(const hcq::MemoryBlock& block) noexcept override;
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override;
  hcq::Queue& compute_queue() override { return *compute_; }
  hcq::Queue* copy_queue() override { return &*copy_; }
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override;
  hcq::Peers* peers() override { return this; }
  void check_status() override;

  GpuState& gpu() { return *gpu_; }

 protected:
  void on_lost() noexcept override;

 private:
  bool reaches(const hcq::Device& other) const override;
  void share(const hcq::MemoryBlock& block, hcq::Device& to) override;
  void leave_to_parent() noexcept;
  [[noreturn]] void lose(const std::string& reason, std::optional<uint64_t> address);

  // A copy of what the iface has: devices may outlive the registry's own.
  TakeFindings take_findings_;
  hcq::DeviceInfo info_;
  Target target_;
  OwnedBlocks<Buffer> blocks_;
  std::unique_ptr<GpuState> gpu_;
  std::unique_ptr<AmdQueue> compute_, copy_;
};

}  // namespace tuff::devices::amd
