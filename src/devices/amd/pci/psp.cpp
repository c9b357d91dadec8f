#include "devices/amd/pci/psp.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kReady = 1u << 31, kReadyAndStatus = 0x8000'ffff;
constexpr uint32_t kKernelRing = 2u << 16, kDestroyRings = 3u << 16;
constexpr uint32_t kFrameDwords = 16, kPspPageBytes = 4096;

// In the order in which the bootloader wants them.
struct BootStep {
  SosType type;
  uint32_t command;
};
constexpr BootStep kBootSteps[] = {
    {SosType::KeyDatabase, 0x80000},     {SosType::Spl, 0x1000'0000},
    {SosType::SystemDriver, 0x10000},    {SosType::SocDriver, 0xb0000},
    {SosType::InterfaceDriver, 0xd0000}, {SosType::DebugDriver, 0xc0000},
    {SosType::RasDriver, 0xe0000},       {SosType::Sos, 0x20000},
};

// Linux waits so long after such commands, since mailboxes may not be ready sooner.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

uint32_t lower_half(uint64_t v) { return uint32_t(v); }
uint32_t upper_half(uint64_t v) { return uint32_t(v >> 32); }

}  // namespace

// The buffer of a command: what is asked for, and behind it the answer.
struct Psp::Command {
  static constexpr size_t kDwords = 256, kId = 2, kBody = 7, kStatus = 216, kProtectedSize = 220;
  enum Id : uint32_t { SetupTmr = 5, LoadIpFirmware = 6, LoadToc = 0x20, AutoloadRlc = 0x21 };
  Command(Id id, std::initializer_list<uint32_t> body) {
    dwords[kId] = id;
    std::copy(body.begin(), body.end(), dwords.begin() + kBody);
  }
  std::array<uint32_t, kDwords> dwords{};
};

Psp::Psp(const GpuRegisters& registers, const PspMemory& memory)
    : registers_(registers), memory_(memory) {
  if (memory.message.address % kPspAlignment || memory.protected_memory.address % kPspAlignment)
    fail<InvalidArgument>("AMD: memory for the PSP at {:#x} and {:#x} is not aligned to {} bytes",
                          memory.message.address, memory.protected_memory.address, kPspAlignment);
  for (const VramWindow* page : {&memory.ring, &memory.command, &memory.fence})
    if (page->size_bytes < kPspPageBytes)
      fail<InvalidArgument>("AMD: {} bytes for the PSP, of a page", page->size_bytes);
}

void Psp::start(const AmdFirmware& firmware) {
  load_sos(firmware);
  create_ring();
  const SosComponent* const toc = firmware.find(SosType::Toc);
  if (toc == nullptr) fail<IoError>("AMD: the PSP's firmware has no TOC");
  const uint32_t protected_bytes = load_toc(*toc);
  load(firmware.smu);  // before there is protected memory
  set_up_protected_memory(protected_bytes);
  for (const FirmwarePart& part : firmware.parts) load(part);
  submit({Command::AutoloadRlc, {}}, "the PSP does not start RLC's loading");
}

// ---- the bootloader

void Psp::put_message(std::span<const uint8_t> bytes, const char* what) {
  const VramWindow& m = memory_.message;
  if (bytes.size() > m.size_bytes)
    fail<Unsupported>("AMD: {} is {} bytes long, of {} that there is room for", what, bytes.size(),
                      m.size_bytes);
  std::memcpy(m.host, bytes.data(), bytes.size());
  std::memset(m.host + bytes.size(), 0, m.size_bytes - bytes.size());
  registers_.flush_writes();
}

void Psp::load_by_bootloader(const SosComponent& component, uint32_t command) {
  registers_.wait_for("the PSP's bootloader is not ready", reg::PspBootloader, kReady, kReady);
  put_message(component.bytes, "a component of the PSP's firmware");
  registers_.write(reg::PspBootloaderMemory, uint32_t(memory_.message.address / kPspAlignment));
  registers_.write(reg::PspBootloader, command);
  if (component.type != SosType::Sos)
    registers_.wait_for("the PSP's bootloader does not take a component", reg::PspBootloader,
                        kReady, kReady);
}

void Psp::load_sos(const AmdFirmware& firmware) {
  if (is_alive())
    fail<DeviceLost>("{}: the PSP's system runs already: the GPU has not been reset",
                     registers_.device().function().address);
  for (const BootStep& step : kBootSteps)
    if (const SosComponent* c = firmware.find(step.type)) load_by_bootloader(*c, step.command);
  settle();
  registers_.wait_for_any("the PSP's system has not started", reg::PspSignOfLife);
}

// ---- the ring

void Psp::create_ring() {
  registers_.wait_for("the PSP's system is not ready for a ring", reg::PspRingControl, kReady,
                      kReady);
  registers_.write(reg::PspRingLow, lower_half(memory_.ring.address));
  registers_.write(reg::PspRingHigh, upper_half(memory_.ring.address));
  registers_.write(reg::PspRingSize, kPspPageBytes);
  registers_.write(reg::PspRingControl, kKernelRing);
  settle();
  registers_.wait_for("the PSP has not made a ring", reg::PspRingControl, kReadyAndStatus, kReady);
}

void Psp::destroy_ring() {
  if (!is_alive() || registers_.read(reg::PspRingSize) == 0) return;
  registers_.write(reg::PspRingControl, kDestroyRings);
  settle();
  registers_.wait_for("the PSP has not given up its ring", reg::PspRingControl, kReady, kReady);
}

uint32_t Psp::submit(const Command& command, const char* what) {
  const uint32_t write_pointer = registers_.read(reg::PspRingWritePointer);
  const uint32_t ring_dwords = kPspPageBytes / sizeof(uint32_t);
  if (write_pointer >= ring_dwords || write_pointer % kFrameDwords != 0)
    fail<DeviceLost>("{}: the PSP's write pointer is {:#x}", registers_.device().function().address,
                     write_pointer);
  std::memcpy(memory_.command.host, command.dwords.data(), sizeof command.dwords);
  const uint64_t buffer = memory_.command.address, fence = memory_.fence.address;
  const uint32_t frame[kFrameDwords] = {lower_half(buffer),    upper_half(buffer),
                                        sizeof command.dwords, lower_half(fence),
                                        upper_half(fence),     ++fence_};
  std::memcpy(memory_.ring.host + write_pointer * sizeof(uint32_t), frame, sizeof frame);
  registers_.flush_writes();
  registers_.write(reg::PspRingWritePointer, (write_pointer + kFrameDwords) % ring_dwords);

  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(registers_.timeout_ms());
  const std::atomic_ref passed(*reinterpret_cast<uint32_t*>(memory_.fence.host));
  while (passed.load(std::memory_order_acquire) != fence_) {
    if (Clock::now() >= end) registers_.fail_wait(what);
    std::this_thread::yield();
  }
  Command answer = command;
  std::memcpy(answer.dwords.data(), memory_.command.host, sizeof answer.dwords);
  if (const uint32_t status = answer.dwords[Command::kStatus]; status != 0)
    fail<DeviceLost>("{}: {}: status {:#x}", registers_.device().function().address, what, status);
  return answer.dwords[Command::kProtectedSize];
}

uint32_t Psp::load_toc(const SosComponent& toc) {
  put_message(toc.bytes, "the TOC");
  const uint64_t at = memory_.message.address;
  return submit({Command::LoadToc, {lower_half(at), upper_half(at), uint32_t(toc.bytes.size())}},
                "the PSP does not take the TOC");
}

void Psp::set_up_protected_memory(uint32_t size_bytes) {
  constexpr uint32_t is_virtual = 1u << 1;
  const VramWindow& m = memory_.protected_memory;
  if (size_bytes > m.size_bytes)
    fail<Unsupported>("AMD: the PSP wants {} bytes of protected memory, of {} that are set aside",
                      size_bytes, m.size_bytes);
  submit({Command::SetupTmr,
          {lower_half(m.address), upper_half(m.address), size_bytes, is_virtual,
           lower_half(m.physical), upper_half(m.physical)}},
         "the PSP does not protect memory");
}

void Psp::load(const FirmwarePart& part) {
  put_message(part.bytes, "a part of the firmware");
  const uint64_t at = memory_.message.address;
  const std::string what =
      fmt::format("the PSP does not load firmware of type {}", uint32_t(part.type));
  submit({Command::LoadIpFirmware,
          {lower_half(at), upper_half(at), uint32_t(part.bytes.size()), uint32_t(part.type)}},
         what.c_str());
}

}  // namespace tuff::devices::amd
