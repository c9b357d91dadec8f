// GpuFunction: an emulated GPU on the PCI bus, before any driver: its registers, its ROM, two
// falcons, FSP where it has that, and what their signed programs and the GSP's firmware do, as far
// as the host can see it. Made by tests. Programs are known by their code and signature, which the
// maker names; nothing is executed. What a driver must not do is told.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/swref/published (registers),
// kernel_gsp_tu102.c, kernel_gsp_gh100.c and their neighbours (what programs leave behind). Never
// compared with hardware.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/kernel/pages.h"
#include "emu/nv/pci/booter.h"
#include "emu/nv/pci/falcon_model.h"
#include "emu/nv/pci/fsp_model.h"
#include "emu/nv/pci/gsp_firmware.h"

namespace tuff::emu::nv {

// By which a falcon's boot ROM knows a program.
struct SignedProgram {
  std::vector<uint8_t> code, signature;  // the latter that of the version that fuses ask for
  uint32_t physical = 0, entry = 0;      // of the code
  uint32_t engine_mask = 0, ucode_id = 0;
  uint32_t fuses = 0;                    // bits that are blown
};

struct GpuOptions {
  uint32_t boot_0 = 0xb72000a1, boot_42 = 0x172a1000;  // GA102, revision A1
  uint64_t video_bytes = 8ull << 30;
  std::vector<uint8_t> rom;
  SignedProgram fwsec, load, unload;
  uint32_t fwsec_interfaces = 0;  // in its data
  GspFiles files;
  std::optional<FmcFiles> fmc;   // of a GPU that FSP starts
  uint64_t fsp_ready = 0x200bc;  // its register
  std::vector<std::vector<uint32_t>> sequences;  // of GspFirmware
  // What programs say that went wrong, instead of what they do; 0: nothing.
  uint32_t frts_error = 0, sb_error = 0, booter_error = 0;
};

class GpuFunction final : public pci::Function {
 public:
  // `objects` answer the firmware's calls.
  // Doorbells are those that the objects' engines look at.
  GpuFunction(GpuOptions options, std::unique_ptr<pci::HostMemory> memory, Objects& objects,
              FalconModel::Told mistake);
  ~GpuFunction() override;
  uint32_t read(size_t bar, uint64_t offset) override;
  void write(size_t bar, uint64_t offset, uint32_t value) override;
  intptr_t map(size_t bar, uint64_t offset, size_t size_bytes, int protection) override;
  void reset() override;
  void unmapped(uint64_t address, uint64_t size_bytes) override;

  // As the GPU reads 8 bytes of a table; false: there is none.
  bool read_table(bool video, uint64_t address, uint64_t& entry) const;
  std::byte* video() const { return video_.data(); }
  bool is_protected() const { return protected_end_ != 0; }
  const GspFirmware* firmware() const { return firmware_.get(); }
  FalconModel& gsp() { return *gsp_; }
  FalconModel& sec2() { return *sec2_; }
  uint32_t resets = 0, invalidates = 0;  // the latter: how often it was to forget tables

 private:
  FalconModel* falcon_at(uint64_t& offset);
  bool takes(const FalconModel& falcon, const SignedProgram& program) const;
  bool run_fwsec(FalconModel& falcon);
  bool run_booter(FalconModel& falcon);
  void protect(const std::vector<uint32_t>& arguments);
  uint32_t load_firmware(uint64_t description);
  uint32_t unload_firmware();
  uint32_t take_message(uint32_t kind, const std::vector<uint32_t>& payload);
  std::optional<uint32_t> read_of_fsp(uint64_t offset);
  PhysicalMemory physical_memory();
  void power_on();
  void invalidate(uint32_t value);
  std::optional<uint32_t> kept_register(uint64_t offset) const;
  static uint64_t mailboxes(const FalconModel& falcon);

  const GpuOptions options_;
  const std::unique_ptr<pci::HostMemory> memory_;
  Objects& objects_;
  const FalconModel::Told mistake_;
  Pages rom_, video_;
  std::unique_ptr<FalconModel> gsp_, sec2_;
  std::unique_ptr<FspModel> fsp_;  // of one that is started by it
  GspFirmware::World world_;
  std::unique_ptr<GspFirmware> firmware_;
  uint64_t protected_begin_ = 0, protected_end_ = 0;
  uint32_t frts_scratch_ = 0, sb_scratch_ = 0;
  uint32_t own_start_reads_ = 0;  // that are left until the GPU's own start has ended
  uint32_t invalidating_ = 0;     // likewise, until tables are forgotten
  uint32_t aperture_block_ = 0;
  bool handed_off_ = false, booted_ = false;
};

}  // namespace tuff::emu::nv
