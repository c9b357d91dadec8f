// GspFirmware: what runs on the emulated GSP once the booter has started it, in the place of
// NVIDIA's: reads its arguments, asks for sequences, says that it is ready, and answers calls by
// the objects of emu/nv/rm, which answer the kernel driver's system calls, too.
// Source: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/interface/gsp_abi_check.c
// (offsets), src/nvidia/src/kernel/vgpu/rpc.c. Never compared with hardware.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/nv/pci/gsp_channels.h"
#include "emu/nv/pci/gsp_end.h"
#include "emu/nv/rm/objects.h"
#include "emu/pci/bus.h"

namespace tuff::emu::nv {

class GspFirmware {
 public:
  using Told = std::function<void(const std::string&)>;
  struct World {
    pci::HostMemory& memory;
    Objects& objects;
    PhysicalMemory physical;
    uint64_t video_bytes = 0, host_end = 0;        // all, and what is the host's of that
    std::vector<std::vector<uint32_t>> sequences;  // before it is ready, one after another
    Told mistake;
  };
  // `arguments`: the address of libos's.
  GspFirmware(const World& world, uint64_t arguments);
  ~GspFirmware();
  GspFirmware(const GspFirmware&) = delete;
  // There are commands, or it goes on after a sequence that has suspended it.
  void ring();
  void resume();
  // Of a VA space: where its table is, if it has one.
  std::optional<uint64_t> directory(nvrm::Handle space) const;
  GspChannels& channels() { return channels_; }
  bool has_ended() const { return ended_; }
  bool is_suspended() const { return suspended_; }

 private:
  std::optional<uint64_t> read_arguments(uint64_t arguments);
  uint64_t queues_of(uint64_t address);
  void check_log(uint64_t address, uint64_t size_bytes);
  void take_startup(const GspCommand& command);
  void go_on();
  void answer(const GspCommand& command);
  uint32_t alloc(std::vector<uint8_t>& payload);
  uint32_t control(std::vector<uint8_t>& payload);
  uint32_t free(const std::vector<uint8_t>& payload);
  uint32_t set_directory(const std::vector<uint8_t>& payload, bool set);
  void fill_static_info(std::vector<uint8_t>& payload) const;
  void fill_regions(std::vector<uint8_t>& payload) const;
  void fill_graphics_facts(std::span<std::byte> parameters) const;
  static void leave_out_bit(std::span<std::byte> parameters);
  uint32_t refused(const RmRefused& why) const;
  std::byte* host(uint64_t address, uint64_t size_bytes) const;

  const World& world_;
  std::optional<GspEnd> end_;
  GspChannels channels_;
  uint32_t startup_ = 0;       // messages that came before it was ready
  size_t next_sequence_ = 0;
  bool suspended_ = false, ready_ = false, ended_ = false;
};

}  // namespace tuff::emu::nv
