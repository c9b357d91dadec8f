#include "devices/nv/pci/gsp.h"

#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kKnownFirmware = "570.144";  // whose arguments and calls are known
constexpr size_t kTransferBlock = 256;               // of transfers to falcons
constexpr uint32_t kSuspended = 0x80000000;
constexpr uint64_t kNoArgument = 0x000000ff000000ff;  // of a booter that ends the firmware

void check_blocks(uint32_t offset, const char* what) {
  if (offset % kTransferBlock)
    fail<IoError>("NV: {} begins at {:#x}, not at a block of {} bytes", what, offset,
                  kTransferBlock);
}

const Chip& startable(const Chip& chip, const Firmware& firmware) {
  if (chip.family->starter != GspStarter::Booter)
    fail<Unsupported>("NV: {} starts its system processor by FSP, which is not built", chip.name);
  if (firmware.version != kKnownFirmware)
    fail<Unsupported>("NV: firmware {} is in {}; known are the calls of {}", firmware.version,
                      firmware.folder, kKnownFirmware);
  return chip;
}

}  // namespace

Gsp::Gsp(PciDevice& device, Firmware firmware, uint64_t timeout_ms)
    : device_(device),
      firmware_(std::move(firmware)),
      timeout_ms_(timeout_ms),
      registers_(device, timeout_ms),
      chip_(startable(registers_.chip(), firmware_)),
      gsp_(device, kGspFalcon, timeout_ms),
      sec2_(device, kSec2Falcon, timeout_ms) {
  registers_.wait_for_own_start();
  if (registers_.has_protected_memory() || !gsp_.is_halted()) device_.reset();
  try {
    boot();
  } catch (...) {
    reset_gpu();
    throw;
  }
}

Gsp::~Gsp() {
  try {
    unload();
  } catch (const Error& e) {
    log_warn("NV: {}: ending the GSP's firmware: {}", device_.function().address, e.what());
    reset_gpu();
  }
}

// Whatever runs there reaches no memory any more.
void Gsp::reset_gpu() noexcept {
  try {
    device_.reset();
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

void Gsp::require_clean() const {
  registers_.wait_for_own_start();
  gsp_.wait_until_halted();
  if (registers_.has_protected_memory())
    fail<DeviceLost>("{}: memory is protected by a driver before this one, and a reset has not "
                     "changed that; restart the machine",
                     device_.function().address);
  if (registers_.is_for_development())
    fail<Unsupported>("{}: a GPU for development, whose programs are signed otherwise",
                      device_.function().address);
}

// ---- memory

// Kept until the end, at an address of the GPU's.
DmaRange Gsp::keep(std::span<const uint8_t> bytes, size_t size_bytes) {
  const size_t size = std::max(size_bytes, bytes.size());
  const DmaMemory& memory = *memory_.emplace_back(std::make_unique<DmaMemory>(device_, size));
  std::memcpy(memory.host(), bytes.data(), bytes.size());
  return {memory.address(), size};
}

void Gsp::write_arguments() {
  constexpr size_t page = 4096;
  std::vector<std::pair<std::string, DmaRange>> ranges;
  for (const char* name : kLogNames) {
    const DmaRange log = keep({}, kLogBytes);
    write_log_header({memory_.back()->host(), kLogBytes}, log.address);
    ranges.emplace_back(name, log);
  }
  const DmaRange queues = keep({}, GspQueues::kBytes);
  queues_.emplace(std::span(memory_.back()->host(), GspQueues::kBytes), queues.address,
                  [this] { registers_.ring_gsp(); }, timeout_ms_);
  ranges.emplace_back(kRmArguments, keep(rm_arguments(queues), page));
  libos_arguments_ = keep(libos_arguments(ranges), page).address;

  const Bytes& image = firmware_.gsp.image;
  const DmaRange table = keep({}, image_table_bytes(image.size()));
  write_image_table({memory_.back()->host(), table.size_bytes}, table.address, image);
  const DmaRange bootloader = keep(firmware_.bootloader.image);
  const Bytes& signature = firmware_.gsp.signature;
  const DmaRange signed_by = keep(signature, align_up(signature.size(), kSignatureAlignment));
  description_ = keep(memory_description(layout_, firmware_.bootloader, table.address,
                                         image.size(), bootloader, signed_by))
                     .address;
  queues_->send(kSetSystemInfo, system_info(device_.function(), registers_.identity()));
  queues_->send(kSetRegistry, registry());
}

// ---- signed programs

void Gsp::run_fwsec(FwsecCommand command) {
  const uint32_t version = registers_.fuse_version(kGspFalcon, fwsec_->ucode_id);
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
  p.code_address = keep(fwsec_->code.bytes).address;
  p.data_address = keep(data).address;
  gsp_.reset();
  gsp_.run(p, 0);
  memory_.resize(memory_.size() - 2);
}

void Gsp::protect_memory() {
  run_fwsec(FwsecCommand::Frts);
  const uint32_t error = registers_.frts_error();
  const auto [begin, last] = registers_.protected_memory();
  if (error != 0 || last == 0 || begin != layout_.frts)
    fail<DeviceLost>("{}: FWSEC did not protect memory at {:#x}: error {:#x}, WPR2 is {:#x} to "
                     "{:#x}",
                     device_.function().address, layout_.frts, error, begin, last);
}

void Gsp::run_booter(const Booter& booter, uint64_t argument) {
  const Bytes image = signed_image(booter, registers_.fuse_version(kSec2Falcon, booter.ucode_id));
  check_blocks(booter.code_offset, "a booter's code");
  check_blocks(booter.data_offset, "a booter's data");
  FalconProgram p;
  const DmaRange range = keep(image);
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
  memory_.pop_back();
  if (error != 0)
    fail<DeviceLost>("{}: the booter failed: {:#x}", device_.function().address, error);
}

// ---- begin and end

void Gsp::boot() {
  require_clean();
  fwsec_ = read_fwsec(registers_.rom());
  if (fwsec_->has_loader)
    fail<Unsupported>("{}: FWSEC has a loader of its own, as on Turing",
                      device_.function().address);
  layout_ = memory_layout(registers_.memory_bytes(), registers_.screen_bytes(),
                          firmware_.gsp.image.size(), firmware_.bootloader.image.size());
  write_arguments();
  protect_memory();
  gsp_.reset_to_riscv();
  gsp_.set_mailboxes(libos_arguments_);
  run_booter(firmware_.load, description_);
  gsp_.set_version(firmware_.bootloader.app_version);
  if (!gsp_.runs_riscv())
    fail<DeviceLost>("{}: the booter did not start the GSP", device_.function().address);
  queues_->link();
  calls_ = std::make_shared<GspCalls>(
      *queues_, device_.function().address,
      [this](std::span<const uint8_t> m) { run_sequence(m, device_, *this); });
  calls_->start();
}

void Gsp::unload() {
  calls_->stop();
  gsp_.wait_for_mailbox("say that it has ended", kSuspended);
  run_fwsec(FwsecCommand::Sb);
  if (const uint32_t error = registers_.sb_error())
    fail<DeviceLost>("FWSEC failed: {:#x}", error);
  run_booter(firmware_.unload, kNoArgument);
  if (registers_.has_protected_memory()) fail<DeviceLost>("memory is still protected");
}

// ---- what its own sequences ask for

void Gsp::reset() {
  gsp_.reset();
  gsp_.allow_physical();
}

void Gsp::start() { gsp_.start(); }

void Gsp::wait_until_halted() { gsp_.wait_until_halted(); }

void Gsp::resume() {
  gsp_.reset_to_riscv();
  gsp_.set_mailboxes(libos_arguments_);
  sec2_.start();
  registers_.wait_for_handoff();
  if (const uint32_t error = sec2_.mailbox())
    fail<DeviceLost>("{}: the booter failed to resume the GSP: {:#x}", device_.function().address,
                     error);
  gsp_.set_version(firmware_.bootloader.app_version);
  if (!gsp_.runs_riscv())
    fail<DeviceLost>("{}: the booter did not resume the GSP", device_.function().address);
}

}  // namespace tuff::devices::nv
