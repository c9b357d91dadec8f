// FSP checks the first program of the GSP (FMC), which checks the firmware (Hopper, Blackwell). It
// decides where everything lies, from sizes.
#include "base/check.h"
#include "devices/nv/pci/fsp.h"
#include "devices/nv/pci/gsp_start.h"

namespace tuff::devices::nv {
namespace {

class FspStart final : public GspStart {
 public:
  explicit FspStart(const GspParts& parts)
      : parts_(parts),
        fsp_(parts.device, parts.chip.family->fsp.ready_register, parts.timeout_ms) {}
  bool is_clean() const override {
    fsp_.wait_until_ready();
    return fsp_.is_idle() && !parts_.registers.has_protected_memory();
  }
  void prepare() override {
    fsp_.wait_until_ready();
    if (parts_.registers.has_protected_memory())
      fail<DeviceLost>("{}: memory is protected by a driver before this one, and a reset has not "
                       "changed that; restart the machine",
                       parts_.device.function().address);
    sizes_.heap_bytes = heap_bytes(parts_.registers.memory_bytes(), kHopperHeap);
    sizes_.open_heap_bytes = parts_.chip.family->fsp.open_heap_bytes;
    sizes_.reserved_bytes = parts_.chip.family->fsp.reserved_bytes;
  }
  Bytes description(const FirmwareRanges& r) const override {
    return memory_wish(sizes_, parts_.firmware.bootloader, r.image_table, r.image_bytes,
                       r.bootloader, r.signature);
  }
  void start(uint64_t description, uint64_t libos_arguments) override;
  // It resets nothing by the host.
  void resume() override {
    fail<DeviceLost>("{}: the GSP asks for a booter, which it has not",
                     parts_.device.function().address);
  }
  void end() override { parts_.gsp.wait_until_riscv_halted(); }

 private:
  const GspParts parts_;
  const Fsp fsp_;
  MemorySizes sizes_;
};

// The end of memory that FSP leaves alone is that of the open heap and of what is reserved.
void FspStart::start(uint64_t description, uint64_t libos_arguments) {
  const uint64_t image = parts_.memory.keep(parts_.firmware.fmc.image).address;
  const uint64_t arguments =
      parts_.memory.keep(fmc_arguments(description, libos_arguments)).address;
  fsp_.call(FspMessage::ChainOfTrust,
            chain_of_trust(parts_.firmware.fmc, parts_.chip.family->fsp.message_version, image,
                           arguments, sizes_.open_heap_bytes + sizes_.reserved_bytes));
  if (const uint32_t error = parts_.gsp.wait_for_release(arguments))
    fail<DeviceLost>("{}: the GSP's first program failed: {:#x}",
                     parts_.device.function().address, error);
  parts_.gsp.set_version(parts_.firmware.bootloader.app_version);
  if (!parts_.gsp.runs_riscv())
    fail<DeviceLost>("{}: FSP did not start the GSP", parts_.device.function().address);
}

}  // namespace

std::unique_ptr<GspStart> start_by_fsp(const GspParts& parts) {
  return std::make_unique<FspStart>(parts);
}

}  // namespace tuff::devices::nv
