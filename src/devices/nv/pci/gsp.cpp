#include "devices/nv/pci/gsp.h"

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kKnownFirmware = "570.144";  // whose arguments and calls are known
constexpr uint32_t kSuspended = 0x80000000;

const Chip& startable(const Chip& chip, const Firmware& firmware) {
  if (firmware.version != kKnownFirmware)
    fail<Unsupported>("NV: firmware {} is in {}; known are the calls of {}", firmware.version,
                      firmware.folder, kKnownFirmware);
  return chip;
}

std::unique_ptr<GspStart> start_of(const GspParts& parts) {
  const bool booter = parts.chip.family->starter == GspStarter::Booter;
  return booter ? start_by_booter(parts) : start_by_fsp(parts);
}

}  // namespace

Gsp::Gsp(PciDevice& device, Firmware firmware, uint64_t timeout_ms)
    : device_(device),
      firmware_(std::move(firmware)),
      timeout_ms_(timeout_ms),
      registers_(device, timeout_ms),
      chip_(startable(registers_.chip(), firmware_)),
      gsp_(device, kGspFalcon, timeout_ms),
      memory_(device),
      start_(start_of({device, firmware_, registers_, chip_, gsp_, memory_, timeout_ms})) {
  if (!start_->is_clean()) device_.reset();
  device_.start_dma();
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
  constexpr int kTries = 2;
  for (int i = 0; i < kTries && !was_reset_; ++i) {
    try {
      device_.reset();
      was_reset_ = true;
    } catch (const Error& e) {
      log_warn("{}", e.what());
    }
  }
}

void Gsp::write_arguments() {
  constexpr size_t page = 4096;
  std::vector<std::pair<std::string, DmaRange>> ranges;
  for (const char* name : kLogNames) {
    const DmaRange log = memory_.keep({}, kLogBytes);
    write_log_header(memory_.host(kLogBytes), log.address);
    ranges.emplace_back(name, log);
  }
  const DmaRange queues = memory_.keep({}, GspQueues::kBytes);
  queues_.emplace(memory_.host(GspQueues::kBytes), queues.address,
                  [this] { registers_.ring_gsp(); }, timeout_ms_);
  ranges.emplace_back(kRmArguments, memory_.keep(rm_arguments(queues), page));
  libos_arguments_ = memory_.keep(libos_arguments(ranges), page).address;

  const Bytes& image = firmware_.gsp.image;
  const DmaRange table = memory_.keep({}, image_table_bytes(image.size()));
  write_image_table(memory_.host(table.size_bytes), table.address, image);
  const Bytes& signature = firmware_.gsp.signature;
  FirmwareRanges firmware;
  firmware.image_table = table.address;
  firmware.image_bytes = image.size();
  firmware.bootloader = memory_.keep(firmware_.bootloader.image);
  firmware.signature = memory_.keep(signature, align_up(signature.size(), kSignatureAlignment));
  description_ = memory_.keep(start_->description(firmware)).address;
  queues_->send(kSetSystemInfo, system_info(device_.function(), registers_.identity()));
  queues_->send(kSetRegistry, registry());
}

// ---- begin and end

void Gsp::boot() {
  start_->prepare();
  write_arguments();
  start_->start(description_, libos_arguments_);
  queues_->link();
  calls_ = std::make_shared<GspCalls>(
      *queues_, device_.function().address,
      [this](std::span<const uint8_t> m) { run_sequence(m, device_, *this); },
      [this] { reset_gpu(); });
  calls_->start();
}

void Gsp::unload() {
  calls_->stop();
  gsp_.wait_for_mailbox("say that it has ended", kSuspended);
  start_->end();
}

// ---- what its own sequences ask for

void Gsp::reset() {
  gsp_.reset();
  gsp_.allow_physical();
}

void Gsp::start() { gsp_.start(); }

void Gsp::wait_until_halted() { gsp_.wait_until_halted(); }

void Gsp::resume() { start_->resume(); }

}  // namespace tuff::devices::nv
