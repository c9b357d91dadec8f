// FWSEC protects memory, then a booter on SEC2 checks the firmware and starts it (Ampere, Ada).
#include <optional>

#include "base/check.h"
#include "devices/nv/pci/gsp_start.h"
#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kTransferBlock = 256;  // to falcons
constexpr uint64_t kNoArgument = 0x000000ff000000ff;  // of a booter that ends the firmware

void check_blocks(uint32_t offset, const char* what) {
  if (offset % kTransferBlock)
    fail<IoError>("NV: {} begins at {:#x}, not at a block of {} bytes", what, offset,
                  kTransferBlock);
}

class BooterStart final : public GspStart {
 public:
  explicit BooterStart(const GspParts& parts)
      : parts_(parts), sec2_(parts.device, kSec2Falcon, parts.timeout_ms) {}
  bool is_clean() const override {
    registers().wait_for_own_start();
    return !registers().has_protected_memory() && parts_.gsp.is_halted();
  }
  void prepare() override;
  Bytes description(const FirmwareRanges& r) const override {
    return memory_description(layout_, parts_.firmware.bootloader, r.image_table, r.image_bytes,
                              r.bootloader, r.signature);
  }
  void start(uint64_t description, uint64_t libos_arguments) override;
  void resume() override;
  void end() override;

 private:
  const BootRegisters& registers() const { return parts_.registers; }
  const std::string& address() const { return parts_.device.function().address; }
  void run_fwsec(FwsecCommand command);
  void protect_memory();
  void run_booter(const Booter& booter, uint64_t argument);
  void require_running(const char* what) const;

  const GspParts parts_;
  Falcon sec2_;
  std::optional<Fwsec> fwsec_;
  MemoryLayout layout_;
  uint64_t libos_arguments_ = 0;
};

void BooterStart::prepare() {
  registers().wait_for_own_start();
  parts_.gsp.wait_until_halted();
  if (registers().has_protected_memory())
    fail<DeviceLost>("{}: memory is protected by a driver before this one, and a reset has not "
                     "changed that; restart the machine",
                     address());
  if (registers().is_for_development())
    fail<Unsupported>("{}: a GPU for development, whose programs are signed otherwise", address());
  fwsec_ = read_fwsec(registers().rom());
  if (fwsec_->has_loader)
    fail<Unsupported>("{}: FWSEC has a loader of its own, as on Turing", address());
  layout_ = memory_layout(registers().memory_bytes(), registers().screen_bytes(),
                          parts_.firmware.gsp.image.size(),
                          parts_.firmware.bootloader.image.size());
}

// ---- signed programs

void BooterStart::run_fwsec(FwsecCommand command) {
  const uint32_t version = registers().fuse_version(kGspFalcon, fwsec_->ucode_id);
  const Bytes data = fwsec_data(*fwsec_, command, layout_.frts, version);
  FalconProgram p;
  p.code_bytes = uint32_t(fwsec_->code.bytes.size());
  p.code_physical = fwsec_->code.physical;
  p.code_virtual = fwsec_->code.virtual_address;
  p.data_bytes = uint32_t(data.size());
  p.data_physical = fwsec_->data.physical;
  p.signature_offset = fwsec_->signature_offset;
  p.engine_mask = fwsec_->engine_mask;
  p.ucode_id = fwsec_->ucode_id;
  for (const uint32_t offset : {p.code_physical, p.code_virtual, p.data_physical})
    check_blocks(offset, "a part of FWSEC");
  p.code_address = parts_.memory.keep(fwsec_->code.bytes).address;
  p.data_address = parts_.memory.keep(data).address;
  parts_.gsp.reset();
  parts_.gsp.run(p, 0);
  parts_.memory.drop_last(2);
}

void BooterStart::protect_memory() {
  run_fwsec(FwsecCommand::Frts);
  const uint32_t error = registers().frts_error();
  const auto [begin, last] = registers().protected_memory();
  if (error != 0 || last == 0 || begin != layout_.frts)
    fail<DeviceLost>("{}: FWSEC did not protect memory at {:#x}: error {:#x}, WPR2 is {:#x} to "
                     "{:#x}",
                     address(), layout_.frts, error, begin, last);
}

void BooterStart::run_booter(const Booter& booter, uint64_t argument) {
  const Bytes image =
      signed_image(booter, registers().fuse_version(kSec2Falcon, booter.ucode_id));
  check_blocks(booter.code_offset, "a booter's code");
  check_blocks(booter.data_offset, "a booter's data");
  FalconProgram p;
  const DmaRange range = parts_.memory.keep(image);
  p.code_address = range.address + booter.code_offset;
  p.code_bytes = booter.code_bytes;
  p.code_virtual = booter.code_offset;
  p.data_address = range.address + booter.data_offset;
  p.data_bytes = booter.data_bytes;
  p.signature_offset = booter.signature_offset - booter.data_offset;
  p.engine_mask = booter.engine_mask;
  p.ucode_id = booter.ucode_id;
  sec2_.reset();
  const uint32_t error = sec2_.run(p, argument).first;
  parts_.memory.drop_last(1);
  if (error != 0) fail<DeviceLost>("{}: the booter failed: {:#x}", address(), error);
}

// ---- begin and end

void BooterStart::require_running(const char* what) const {
  parts_.gsp.set_version(parts_.firmware.bootloader.app_version);
  if (!parts_.gsp.runs_riscv())
    fail<DeviceLost>("{}: the booter did not {} the GSP", address(), what);
}

void BooterStart::start(uint64_t description, uint64_t libos_arguments) {
  libos_arguments_ = libos_arguments;
  protect_memory();
  parts_.gsp.reset_to_riscv();
  parts_.gsp.set_mailboxes(libos_arguments);
  run_booter(parts_.firmware.load, description);
  require_running("start");
}

void BooterStart::resume() {
  parts_.gsp.reset_to_riscv();
  parts_.gsp.set_mailboxes(libos_arguments_);
  sec2_.start();
  registers().wait_for_handoff();
  if (const uint32_t error = sec2_.mailbox())
    fail<DeviceLost>("{}: the booter failed to resume the GSP: {:#x}", address(), error);
  require_running("resume");
}

void BooterStart::end() {
  run_fwsec(FwsecCommand::Sb);
  if (const uint32_t error = registers().sb_error())
    fail<DeviceLost>("FWSEC failed: {:#x}", error);
  run_booter(parts_.firmware.unload, kNoArgument);
  if (registers().has_protected_memory()) fail<DeviceLost>("memory is still protected");
}

}  // namespace

std::unique_ptr<GspStart> start_by_booter(const GspParts& parts) {
  return std::make_unique<BooterStart>(parts);
}

}  // namespace tuff::devices::nv
