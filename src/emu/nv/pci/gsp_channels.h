// GspChannels: what the emulated firmware does for channels beside the objects that the kernel
// driver has, too: VA spaces by page tables, memory by physical addresses, contexts of the graphics
// engine, errors as events. Owned by GspFirmware; called with the bus's lock held.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/src/kernel/gpu/fifo/
// kernel_channel.c (_kchannelSendChannelAllocRpc: which memory is named), src/nvidia/generated/
// g_rpc-structures.h (rpc_rc_triggered_v17_02), gpu_vaspace.c (gvaspaceCopyServerReservedPdes).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "emu/nv/pci/graphics_contexts.h"
#include "emu/nv/rm/objects.h"
#include "emu/pci/bus.h"

namespace tuff::emu::nv {

class GspChannels final : public ChannelAddresses {
 public:
  // `host_end`: of the video memory that is the host's. `tell` takes the payload of an event.
  using Tell = std::function<void(uint32_t function, const std::vector<uint8_t>& payload)>;
  GspChannels(Objects& objects, pci::HostMemory& bus, const PhysicalMemory& memory,
              const uint64_t& host_end, Tell tell);
  ~GspChannels() override;

  // A table for a VA space that has none. RmRefused.
  void set_table(nvrm::Handle client, nvrm::Handle space, uint64_t root, uint32_t entries);
  void unset_table(nvrm::Handle space);
  const TableMappings* table(nvrm::Handle space) const;
  // False: it is none of these controls. RmRefused.
  bool control(const nvrm::Control& c, std::span<std::byte> parameters);
  void before_free(nvrm::Handle object);
  void read_tables();
  void unmapped(uint64_t address, uint64_t size_bytes);

  std::byte* userd(const nvrm::ChannelParameters& parameters) override;
  void check_context(nvrm::Handle client, nvrm::Handle channel) override;
  void failed(uint32_t channel, const ChannelError& error) override;

 private:
  struct Table {
    std::unique_ptr<TableMappings> mappings;
    bool reserved = false;  // a part of it is the firmware's
  };
  void check_memory(const char* what, const nvrm::MemoryDescription& m, uint64_t bytes,
                    uint64_t alignment) const;
  void add_table(nvrm::Handle client, nvrm::Handle space, uint64_t root, bool reserved);
  void copy_reserved(const nvrm::Control& c, const nvrm::CopyReservedDirectories& request);
  void promote(const nvrm::Control& c, const nvrm::PromoteContext& request);
  Objects& objects_;
  pci::HostMemory& bus_;
  const PhysicalMemory& memory_;
  const uint64_t& host_end_;
  const Tell tell_;
  std::map<nvrm::Handle, Table> tables_;  // by VA space
  GraphicsContexts contexts_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tuff::emu::nv
