#include "devices/amd/pci/pci_gpu.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::amd {
namespace {

// Registers that are there before anything is known of the GPU, in bytes.
constexpr uint64_t kMemorySize = 4 * 0xde3, kMmIndex = 0, kMmData = 4, kMmIndexHigh = 4 * 6;
constexpr size_t kRegisterBar = 5, kMemoryBar = 0;

// What the start takes, by offsets in memory.
constexpr uint64_t kRing = 0, kCommand = 0x1000, kFence = 0x2000, kSpare = 0x3000, kFault = 0x4000,
                   kSmuTable = 0x8000, kDescriptors = 0x10000, kMessage = 1u << 20,
                   kProtected = 8u << 20, kTables = 32u << 20;
constexpr size_t kMessageBytes = 4u << 20, kProtectedBytes = 20u << 20;
constexpr size_t kDescriptorsBytes = 0x10000;
constexpr uint64_t kTablePage = 4096;
// Of memory that the host does not map: between where Linux puts programs and their libraries, and
// below the hole in the middle of 48 bits.
constexpr uint64_t kFirstAddress = 0x2000'0000'0000, kEndOfAddresses = 0x4000'0000'0000;

// Of a Navi 31. Registers lie elsewhere in others.
struct KnownBlock {
  Hwid id;
  IpVersion version;
};
constexpr KnownBlock kNavi31[] = {
    {Hwid::Gc, {11, 0, 0}},   {Hwid::Mmhub, {3, 0, 0}}, {Hwid::Hdp, {6, 0, 0}},
    {Hwid::Sdma0, {6, 0, 0}}, {Hwid::Nbif, {4, 3, 0}},  {Hwid::Mp0, {13, 0, 0}},
    {Hwid::Mp1, {13, 0, 0}},
};

void check_blocks(const Discovery& d) {
  for (const KnownBlock& known : kNavi31) {
    const IpVersion found = d.block(known.id).version;
    if (found != known.version)
      fail<Unsupported>("AMD: the GPU's {} has version {}; by PCI {} is known (Navi 31)",
                        name(known.id), to_text(found), to_text(known.version));
  }
  (void)d.block(Hwid::Smuio);  // has the clock
}

}  // namespace

PciGpu::PciGpu(std::shared_ptr<os::Kernel> kernel, const PciFunction& function, uint64_t timeout_ms)
    : device_(kernel, function),
      timeout_ms_(timeout_ms),
      addresses_("AMD", kFirstAddress, kEndOfAddresses) {
  try {
    start(*kernel);
  } catch (...) {
    end();
    throw;
  }
}

PciGpu::~PciGpu() { end(); }

void PciGpu::start(os::Kernel& kernel) {
  read_discovery_table();
  check_blocks(discovery_);
  const AmdFirmware firmware = load_amd_firmware(kernel, discovery_);
  registers_.emplace(device_, discovery_, timeout_ms_);
  mapped_ = device_.map(kMemoryBar, 0, kStartBytes);
  reset_if_started();
  device_.start_dma();
  registers_->place_flush();
  start_hubs();
  psp_.emplace(*registers_, PspMemory{window(kMessage, kMessageBytes), window(kRing, kTablePage),
                                      window(kCommand, kTablePage), window(kFence, kTablePage),
                                      window(kProtected, kProtectedBytes)});
  std::memset(mapped_ + kFence, 0, kTablePage);
  psp_->start(firmware);
  Smu(*registers_).start(window(kSmuTable, kTablePage).address);
  compute_.emplace(*registers_);
  compute_->wait_for_firmware();
  const auto [begin, end] = multimedia_->memory();
  graphics_->start({begin, end, entry_offset_ + kSpare, entry_offset_ + kFault, table_->root(), 0,
                    kEndOfTableAddresses - 1});
  graphics_started_ = true;
  publish();
  compute_->start(firmware.mec_start);
  copies_.emplace(*registers_);
  copies_->start();
}

// Word by word past BAR 0, which may be small.
void PciGpu::read_discovery_table() {
  const uint32_t mib = device_.read(kRegisterBar, kMemorySize);
  if (mib == 0 || mib == ~0u)
    fail<DeviceLost>("{}: the GPU does not answer: its memory is said to have {:#x} MiB",
                     device_.function().address, mib);
  memory_bytes_ = uint64_t{mib} << 20;
  if (memory_bytes_ < 4 * kStartBytes)
    fail<Unsupported>("{}: the GPU has {} MiB of memory", device_.function().address, mib);
  memory_.emplace(device_.function().address + ": VRAM", kStartBytes, memory_bytes_ - kKeptBytes,
                  0);
  std::vector<uint8_t> bytes(kDiscoveryBytes);
  for (uint64_t at = 0; at < bytes.size(); at += sizeof(uint32_t)) {
    const uint64_t from = memory_bytes_ - kDiscoveryBeforeEnd + at;
    constexpr uint32_t in_memory = 1u << 31;
    device_.write(kRegisterBar, kMmIndexHigh, uint32_t(from >> 31));
    device_.write(kRegisterBar, kMmIndex, uint32_t(from & 0x7fff'ffff) | in_memory);
    const uint32_t word = device_.read(kRegisterBar, kMmData);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  discovery_ = read_discovery(bytes);
}

// By its management unit while that answers, or else the function alone.
void PciGpu::reset_if_started() {
  const auto started = [&] { return registers_->read(reg::PspSignOfLife) != 0; };
  if (!started()) return;
  const Smu smu(*registers_);
  if (smu.is_alive()) {
    smu.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(Smu::kResetMs));
  } else {
    device_.reset();
  }
  if (started())
    fail<DeviceLost>("{}: the GPU has been started and does not obey a reset",
                     device_.function().address);
}

void PciGpu::start_hubs() {
  multimedia_.emplace(*registers_, Hub::Multimedia);
  graphics_.emplace(*registers_, Hub::Graphics);
  const auto [begin, end] = multimedia_->memory();
  first_address_ = begin;
  last_address_ = end;
  entry_offset_ = multimedia_->memory_offset();
  next_table_ = kTables;
  table_ = std::make_unique<PageTable>(static_cast<TableMemory&>(*this));
  multimedia_->start({begin, end, entry_offset_ + kSpare, entry_offset_ + kFault, table_->root(), 0,
                      kEndOfTableAddresses - 1});
}

std::optional<HubFault> PciGpu::take_fault() const {
  if (const auto fault = graphics_->take_fault()) return fault;
  return multimedia_->take_fault();
}

VramWindow PciGpu::descriptor_memory() const { return window(kDescriptors, kDescriptorsBytes); }

VramWindow PciGpu::window(uint64_t offset, size_t size_bytes) const {
  return {mapped_ + offset, first_address_ + offset, entry_offset_ + offset, size_bytes};
}

// A GPU that has been started is reset, so that nothing runs on in memory that is given back.
void PciGpu::end() noexcept {
  try {
    if (was_reset_) copies_.reset(), compute_.reset(), psp_.reset();
    if (copies_) copies_->deactivate();
    if (compute_) compute_->deactivate();
    if (psp_) psp_->destroy_ring();
  } catch (const Error& e) {
    log_warn("closing {}: {}", device_.function().address, e.what());
  }
  try {
    if (registers_) reset_if_started();
  } catch (const Error& e) {
    log_warn("closing {}: {}", device_.function().address, e.what());
  }
  graphics_started_ = false;
  multimedia_.reset();
  table_.reset();
  if (mapped_) device_.unmap(mapped_, kStartBytes);
}

void PciGpu::reset(const std::string& why) noexcept {
  if (was_reset_.exchange(true)) return;
  log_warn("{}: the GPU is reset: {}", device_.function().address, why);
  try {
    reset_if_started();
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

// Where the GPU has its own memory for its processors, no table is asked.
void PciGpu::map(uint64_t address, uint64_t size_bytes, uint64_t physical,
                 PageAttributes attributes) {
  if (was_reset_) fail<DeviceLost>("{}: the GPU has been reset", device_.function().address);
  if (address <= last_address_ && address + size_bytes > first_address_)
    fail<Unsupported>("{}: {:#x} is among the addresses of the GPU's own memory",
                      device_.function().address, address);
  std::lock_guard lock(mutex_);
  try {
    table_->map(address, size_bytes, physical, attributes);
  } catch (const DeviceLost& e) {
    reset(e.what());  // entries may be there already
    throw;
  }
}

void PciGpu::unmap(uint64_t address, uint64_t size_bytes) {
  if (was_reset_) return;
  std::lock_guard lock(mutex_);
  table_->unmap(address, size_bytes);
}

// ---- memory for tables

uint64_t PciGpu::allocate() {
  if (next_table_ + kTablePage > kStartBytes)
    fail<OutOfMemory>("AMD: no room for page tables beyond {} bytes", kStartBytes - kTables);
  const uint64_t at = next_table_;
  next_table_ += kTablePage;
  std::memset(mapped_ + at, 0, kTablePage);
  return entry_offset_ + at;
}

// Tables end all together, with the start's memory.
void PciGpu::free(uint64_t) noexcept {}

void PciGpu::write(uint64_t address, uint64_t entry) {
  auto* const at = mapped_ + (address - entry_offset_);
  *reinterpret_cast<volatile uint64_t*>(at) = entry;
}

void PciGpu::publish() {
  if (was_reset_) return;
  if (graphics_started_) graphics_->flush();
  multimedia_->flush();
}

}  // namespace tuff::devices::amd
