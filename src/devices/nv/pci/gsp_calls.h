// GspCalls: calls of the resource manager that a GPU's system processor (GSP) runs, over queues:
// where objects are made, asked and freed without a kernel driver; and what it tells unasked. Made
// by the boot by PCI. Knows no classes and no registers. As firmware 570.144 lays calls out.
// Sources: open-gpu-kernel-modules @8ec351a (570.144): src/nvidia/inc/kernel/vgpu/
// rpc_global_enums.h (numbers), src/nvidia/generated/g_rpc-structures.h and src/nvidia/interface/
// gsp_abi_check.c (layouts), src/nvidia/src/kernel/vgpu/rpc.c (rpcRmApiAlloc_GSP and its like).
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "devices/nv/pci/gsp_queue.h"
#include "devices/nv/rm/object_calls.h"

namespace tuff::devices::nv {

// Sizes of what is passed differ between branches of the driver, and so of its firmware.
const nvrm::Branch& gsp_branch();

namespace gsp_call {
inline constexpr uint32_t Free = 10, UnloadingGuestDriver = 47, SetPageDirectory = 54,
                          GetStaticInfo = 65, RmControl = 76, UnsetPageDirectory = 79,
                          RmAlloc = 103, InitDone = 0x1001,
                          RunCpuSequencer = 0x1002, RcTriggered = 0x1004, OsErrorLog = 0x1006;
}

// An error that a channel was ended by.
struct GspChannelError {
  uint32_t channel = 0, code = 0;  // of nverror.h
  std::optional<uint64_t> address;  // that the MMU has faulted at
};

// After an answer that did not come, or was damaged, every call is a DeviceLost at once: the next
// answer would be that to another one.
class GspCalls final : public ObjectCalls {
 public:
  // `gpu` begins its warnings. `run_sequence` takes the payload of RunCpuSequencer. `on_lost` is
  // called once, before the first DeviceLost is thrown: objects can no longer be freed, so what
  // they use must be stopped otherwise.
  GspCalls(GspQueues& queues, std::string gpu,
           std::function<void(std::span<const uint8_t>)> run_sequence,
           std::function<void()> on_lost = {});
  // Waits until the firmware is ready, running its sequences, and makes the root object. DeviceLost
  // where it says that it has failed.
  void start();
  // No call from here on; objects are gone with it.
  void stop();

  nvrm::Handle root() const override { return root_; }
  nvrm::Handle alloc(nvrm::Handle parent, uint32_t object_class, const char* name,
                     std::span<std::byte> parameters) override;
  void free(nvrm::Handle parent, nvrm::Handle object) noexcept override;
  using ObjectCalls::control;
  void control(nvrm::Handle object, uint32_t command, const char* name,
               std::span<std::byte> parameters) const override;
  // What a VA space of a device means from here on: a table in video memory, or none any more.
  void set_page_directory(nvrm::Handle device, nvrm::Handle space, uint64_t root,
                          uint32_t entries) const;
  void unset_page_directory(nvrm::Handle device, nvrm::Handle space) const;
  // What it says of the GPU (GspStaticConfigInfo).
  std::vector<uint8_t> static_info() const;
  bool is_lost() const;
  // No call is made from here on, as after an answer that did not come.
  void lose(const std::string& why) noexcept;
  // What it has told since the last time; without a call that waits for an answer.
  std::vector<GspChannelError> take_errors();

 private:
  // Header and parameters, with the answer's in their place.
  template <class Header>
  void call(uint32_t function, const std::string& name, Header& header,
            std::span<std::byte> parameters) const;
  GspMessage ask(uint32_t function, std::span<const uint8_t> payload) const;
  template <class Talk>
  auto talk(Talk talk) const;
  void set_lost(const std::string& why) const;
  void take(const GspMessage& event) const;

  GspQueues& queues_;
  const std::string gpu_;
  const std::function<void(std::span<const uint8_t>)> run_sequence_;
  const std::function<void()> on_lost_;
  mutable std::mutex mutex_;
  mutable std::string lost_;  // why; empty: it is not
  mutable std::vector<GspChannelError> errors_;
  nvrm::Handle root_ = 0, next_;
};

}  // namespace tuff::devices::nv
