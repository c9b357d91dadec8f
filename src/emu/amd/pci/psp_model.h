// PspModel: what the security processor of an emulated Navi 31 does as far as a host sees it: the
// bootloader's mailbox, the kernel's ring, the commands that load firmware. It knows firmware by
// its content and tells what comes in the wrong order. Part of the GPU's function; nothing is
// executed.
// Sources: Linux, drivers/gpu/drm/amd/amdgpu/psp_v13_0.c, amdgpu_psp.c (order, command buffers),
// psp_gfx_if.h (frames, commands, answers). Never compared with hardware.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "emu/amd/pci/device_memory.h"

namespace tuff::emu::amd {

class PspModel {
 public:
  static constexpr uint32_t kProtectedBytes = 4u << 20;
  static constexpr uint32_t kSmuFirmware = 18;  // its type
  PspModel(DeviceMemory& memory, Told told) : memory_(memory), told_(std::move(told)) {
    power_on();
  }
  void power_on();
  uint32_t read(uint64_t place) const;
  void write(uint64_t place, uint32_t value);
  static bool has(uint64_t place);
  bool has_loaded(uint32_t type) const { return loaded_.count(type) != 0; }
  bool is_autoloaded() const { return autoloaded_; }
  // Answers nothing once it has taken so many components and commands.
  void hang_after(uint32_t steps) { steps_left_ = steps; }

 private:
  uint32_t& word(uint64_t place);
  bool takes_step();
  bool is_firmware(uint64_t address, uint32_t size_bytes, uint32_t type, const char* who);
  void boot(uint32_t command);
  void control_ring(uint32_t value);
  void take_frames(uint32_t write_pointer);
  void take_frame(const uint32_t* frame);
  uint32_t execute(const uint32_t* command, uint32_t& protected_bytes);
  uint32_t load(uint64_t address, uint32_t size_bytes, uint32_t type);
  uint32_t autoload();

  DeviceMemory& memory_;
  const Told told_;
  std::vector<uint32_t> words_;  // C2PMSG registers
  size_t next_component_ = 0;
  uint32_t read_pointer_ = 0, steps_left_ = ~0u;
  bool has_ring_ = false, has_toc_ = false, is_protected_ = false, autoloaded_ = false;
  std::set<uint32_t> loaded_;
};

}  // namespace tuff::emu::amd
