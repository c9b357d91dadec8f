#include "devices/nv/pci/falcon.h"

#include <chrono>
#include <thread>

#include "base/arith.h"
#include "base/check.h"
#include "devices/nv/pci/chip.h"

namespace tuff::devices::nv {
namespace {

// Offsets from a falcon's base.
enum Register : uint32_t {
  kMailbox0 = 0x040,
  kMailbox1 = 0x044,
  kOs = 0x080,
  kManager = 0x084,  // written by the driver: which chip it is
  kHardware2 = 0x0f4,
  kCpuControl = 0x100,
  kBootVector = 0x104,
  kDmaControl = 0x10c,
  kDmaBase = 0x110,
  kDmaMemoryOffset = 0x114,
  kDmaCommand = 0x118,
  kDmaOffset = 0x11c,
  kDmaBaseHigh = 0x128,
  kCpuControlAlias = 0x130,
  kEngine = 0x3c0,
  kTransfer0 = 0x600,  // FBIF: how accesses of DMA context 0 go out
  kTransferControl = 0x624,
  kSignatureKind = 0x1180,  // of the boot ROM
  kUcodeId = 0x1198,
  kEngineMask = 0x119c,
  kSignatureOffset = 0x1210,
  kRiscvControl = 0x1388,
  kCoreSelect = 0x1668,
};
constexpr uint32_t kInReset = 1;
constexpr uint32_t kHasRiscv = 1u << 10, kScrubs = 1u << 12, kLockedDown = 1u << 13;
constexpr uint32_t kForeign = 0xbadf4100, kForeignMask = 0xffffff00;  // what is read then
constexpr uint32_t kStart = 1u << 1, kHalted = 1u << 4, kThroughAlias = 1u << 6;
constexpr uint32_t kFull = 1u << 0, kIdle = 1u << 1, kSecure = 1u << 2, kToCode = 1u << 4,
                   k256Bytes = 6u << 8;
constexpr uint32_t kCoherentHost = 1, kPhysical = 1u << 2, kPhysicalWithoutContext = 1u << 7;
constexpr uint32_t kRsa3072 = 1;
constexpr uint32_t kCoreValid = 1u << 0, kRiscvCore = 1u << 4, kFetchesFromBootRom = 1u << 8;
constexpr uint32_t kRiscvActive = 1u << 7;
constexpr uint32_t kTransferBytes = 256;

}  // namespace

Falcon::Falcon(const PciDevice& device, uint64_t base, uint64_t timeout_ms)
    : device_(device), base_(base), timeout_ms_(timeout_ms) {}

void Falcon::wait_for(const char* what, uint32_t offset, uint32_t mask, uint32_t value) const {
  const AwaitedRegister r = wait_for_register(device_, 0, base_ + offset, mask, value,
                                              std::chrono::milliseconds(timeout_ms_));
  if (!r.arrived)
    fail<DeviceLost>("{}: the falcon at {:#x} did not {} within {} ms (register {:#x} has {:#x})",
                     device_.function().address, base_, what, timeout_ms_, offset, r.seen);
}

void Falcon::reset_engine() {
  write(kEngine, kInReset);
  read(kEngine);  // it has arrived
  write(kEngine, 0);
  wait_for("empty its memory", kHardware2, kScrubs, 0);
}

void Falcon::reset() {
  reset_engine();
  if (read(kHardware2) & kHasRiscv) {
    write(kCoreSelect, 0);
    wait_for("choose its falcon core", kCoreSelect, kCoreValid, kCoreValid);
  }
  write(kManager, device_.read(0, kBoot0));
}

void Falcon::reset_to_riscv() {
  reset_engine();
  write(kCoreSelect, kRiscvCore | kFetchesFromBootRom);
}

bool Falcon::runs_riscv() const { return read(kRiscvControl) & kRiscvActive; }

bool Falcon::is_halted() const {
  return !(read(kEngine) & kInReset) && read(kCpuControl) & kHalted;
}

// `offset` is what the falcon adds to the base, and, of code, the virtual address that it gets.
void Falcon::load(uint64_t address, uint32_t size_bytes, uint32_t physical, uint32_t offset,
                  bool code) {
  TUFF_CHECK(address >= offset && (address - offset) % kTransferBytes == 0 &&
                 (physical | offset) % kTransferBytes == 0,
             "{:#x} {:#x} {:#x}", address, physical, offset);
  const uint64_t base = (address - offset) / kTransferBytes;
  wait_for("end a transfer", kDmaCommand, kFull, 0);
  write(kDmaBase, uint32_t(base));
  write(kDmaBaseHigh, uint32_t(base >> 32));
  for (uint32_t done = 0; done < size_bytes; done += kTransferBytes) {
    wait_for("end a transfer", kDmaCommand, kFull, 0);
    write(kDmaMemoryOffset, physical + done);
    write(kDmaOffset, offset + done);
    write(kDmaCommand, k256Bytes | (code ? kToCode | kSecure : 0));
  }
  wait_for("end its transfers", kDmaCommand, kIdle, kIdle);
}

void Falcon::start() {
  const bool alias = read(kCpuControl) & kThroughAlias;
  write(alias ? kCpuControlAlias : kCpuControl, kStart);
}

void Falcon::wait_until_halted() const { wait_for("halt", kCpuControl, kHalted, kHalted); }

void Falcon::set_mailboxes(uint64_t argument) {
  write(kMailbox0, uint32_t(argument));
  write(kMailbox1, uint32_t(argument >> 32));
}

uint32_t Falcon::mailbox() const { return read(kMailbox0); }

void Falcon::wait_for_mailbox(const char* what, uint32_t value) const {
  wait_for(what, kMailbox0, ~0u, value);
}

// As long as another has it, registers say so, or have what it was started with: an address of
// whole pages, whose low word is no error, which would be a small number.
uint32_t Falcon::wait_for_release(uint64_t argument) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const bool late = Clock::now() >= end;
    const uint32_t error = read(kMailbox0), hardware = read(kHardware2);
    const bool foreign = (error & kForeignMask) == kForeign || hardware == 0 ||
                         (hardware & kForeignMask) == kForeign;
    const bool begins = error != 0 && error == uint32_t(argument);
    if (!foreign && !begins && error != 0) return error;
    if (!foreign && !begins && !(hardware & kLockedDown)) return 0;
    if (late)
      fail<DeviceLost>("{}: the GSP was not released within {} ms (registers have {:#x}, {:#x})",
                       device_.function().address, timeout_ms_, error, hardware);
    std::this_thread::yield();
  }
}

void Falcon::wait_until_riscv_halted() const {
  wait_for("halt its other core", kRiscvControl, kHalted, kHalted);
}

void Falcon::allow_physical() {
  write(kTransferControl, read(kTransferControl) | kPhysicalWithoutContext);
  write(kDmaControl, 0);
}

void Falcon::set_version(uint32_t version) { write(kOs, version); }

std::pair<uint32_t, uint32_t> Falcon::run(const FalconProgram& p, uint64_t argument) {
  allow_physical();
  write(kTransfer0, kCoherentHost | kPhysical);
  load(p.code_address, p.code_bytes, p.code_physical, p.code_virtual, true);
  load(p.data_address, p.data_bytes, p.data_physical, 0, false);
  write(kSignatureOffset, p.signature_offset);
  write(kEngineMask, p.engine_mask);
  write(kUcodeId, p.ucode_id);
  write(kSignatureKind, kRsa3072);
  write(kBootVector, p.code_virtual);
  set_mailboxes(argument);
  start();
  wait_until_halted();
  return {read(kMailbox0), read(kMailbox1)};
}

}  // namespace tuff::devices::nv
