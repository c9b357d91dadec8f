// ClDevice: hcq::Device on OpenCL, joined from its parts. Used by the registry's functions
// (opencl_device.cpp) and by those for applications (interop.cpp). Knows nothing of how devices are
// chosen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/opencl/queue.h"

namespace tuff::devices::opencl {

class ClDevice final : public hcq::Device, private hcq::Adoption {
 public:
  // `queue`: an application's, or null. Beside an application's there is none for copies: their
  // order is that of its calls.
  explicit ClDevice(std::shared_ptr<Context> context, cl_command_queue queue = nullptr)
      : context_(std::move(context)),
        info_(describe(context_->facts, context_->name)),
        target_(target_of(context_->facts)),
        events_(std::make_shared<WaitingEvents>(context_)),
        memory_(context_),
        queue_(*this, context_, events_, memory_, queue) {
    if (context_->facts.queues.copy_queue && !queue)
      copies_.emplace(*this, context_, events_, memory_, nullptr);
  }
  ~ClDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override {
    fail_if_lost();
    return memory_.map(size_bytes, kind);
  }
  void unmap_block(const hcq::MemoryBlock& block) noexcept override { memory_.unmap(block); }
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override {
    fail_if_lost();
    return load_programs(context_, binaries);
  }
  hcq::Adoption* adoption() override { return this; }
  ClQueue& compute_queue() override { return queue_; }
  ClQueue* copy_queue() override { return copies_ ? &*copies_ : nullptr; }
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override {
    return std::make_unique<ClSignal>(events_, value);
  }
  Context& context() { return *context_; }
  Memory& memory() { return memory_; }

 protected:
  void on_lost() noexcept override {
    queue_.abandon();
    if (copies_) copies_->abandon();
    events_->abandon();
  }

 private:
  // In interop.cpp: memory objects that others in the process know.
  NativePart native_part(const hcq::Span& span) override;
  std::optional<NativeMemory> over_native(uint64_t handle) override;

  std::shared_ptr<Context> context_;
  hcq::DeviceInfo info_;
  Target target_;
  std::shared_ptr<WaitingEvents> events_;
  Memory memory_;
  ClQueue queue_;
  std::optional<ClQueue> copies_;
};

// InvalidArgument for any other device.
ClDevice& native(hcq::Device& device);

}  // namespace tuff::devices::opencl
