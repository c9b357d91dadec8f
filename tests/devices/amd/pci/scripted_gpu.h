// A GPU's registers in BAR 5 of a function on the emulated bus, as a script: PSP, SMU and the two
// memory hubs, written from Linux's sources, which keep what they were told and note what was told
// wrongly. It sees of memory what was there at the last flush of the host's writes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/error_of.h"
#include "devices/amd/pci/psp.h"
#include "emu/amd/pci/sample_firmware.h"
#include "emu/kernel/pages.h"
#include "emu/pci/bus.h"

namespace tuff::devices::amd {

class ScriptedGpu final : public emu::pci::Function {
 public:
  static constexpr uint64_t kMemoryBegin = 0x80'0000'0000, kMemoryBytes = 64u << 20;
  static constexpr uint32_t kSaidMib = 1024;
  static constexpr uint64_t kRegisterBytes = 1u << 20, kFlush = 0x7f000;
  // Of blocks in the sample table, in bytes; beyond BAR 5: MP0's second segment would be.
  static constexpr uint64_t kPsp = 4 * 0x16000, kSmu = 4 * 0x16000, kGc = 4 * 0x1260,
                            kMmhub = 4 * 0x1a000, kSemaphore = kMmhub + 4 * 0x762;
  enum Psp : uint32_t {
    C35 = 0x63,
    C36 = 0x64,
    C64 = 0x80,
    C67 = 0x83,
    C69 = 0x85,
    C70,
    C71,
    C81 = 0x91
  };

  uint32_t read(size_t bar, uint64_t at) override {
    EXPECT_EQ(bar, 5u);
    if (at == 4 * 0x15) return registers[registers[4 * 0x14]];
    if (at == 4) return discovery_word();
    if (at == kSemaphore && registers[at] == 1) has_semaphore_ = true;
    return registers[at];
  }
  void write(size_t bar, uint64_t at, uint32_t value) override {
    EXPECT_EQ(bar, 5u);
    if (at == kFlush) {
      if (registers[4 * (0xd20 + 0x12d)] != kFlush) mistakes.push_back("a flush that is nowhere");
      if (needs_flushes) std::memcpy(seen.data(), memory.data(), kSeenBytes);
      return;
    }
    if (at == 4 * 0x15) at = registers[4 * 0x14];
    registers[at] = value;
    log.emplace_back(at, value);
    if (at == kPsp + 4 * C35) load(value);
    if (at == kGc + 4 * 0x1fc1 && !hung) registers[kGc + 4 * 0x1fab] = 0;
    if (at == kSmu + 4 * 0x28b && value == 2 && !ignores_reset) reset();
    if (at == kPsp + 4 * C64) control_ring(value);
    if (at == kPsp + 4 * C67) take_frame();
    if (at == kSemaphore) {
      has_semaphore_ = false;
      registers[at] = 1;
    }
    if (at == kSmu + 4 * 0x282) answer_smu(value);
    if (at == kGc + 4 * 0x16bc && !hung) registers[kGc + 4 * 0x16ce] = value & 0xffff;
    if (at == kMmhub + 4 * 0x774) {
      if (!has_semaphore_) mistakes.push_back("MMHUB is flushed without its semaphore");
      if (!hung) registers[kMmhub + 4 * 0x786] = value & 0xffff;
    }
  }
  intptr_t map(size_t bar, uint64_t offset, size_t size_bytes, int protection) override {
    if (bar == 2 && offset == 0)
      return doorbells.map_at(nullptr, size_bytes, protection, MAP_SHARED);
    if (bar != 0 || offset != 0) return -EINVAL;
    return memory.map_at(nullptr, size_bytes, protection, MAP_SHARED);
  }
  void reset() override {
    ++resets;
    if (ignores_reset) return;
    registers.clear();
    power_on();
  }
  void power_on() {
    registers[4 * 0xde3] = kSaidMib;
    registers[kMmhub + 4 * 0x8ec] = kMemoryBegin >> 24;
    registers[kMmhub + 4 * 0x8ed] = (kMemoryBegin >> 24) + 63;
    registers[kPsp + 4 * C35] = 1u << 31;
    registers[kSemaphore] = 1;
  }
  uint32_t& psp(uint32_t n) { return registers[kPsp + 4 * n]; }
  const std::byte* memory_at(uint64_t address, size_t size_bytes) {
    const uint64_t at = address - kMemoryBegin, end = needs_flushes ? kSeenBytes : kMemoryBytes;
    const std::byte* const begin = needs_flushes ? seen.data() : memory.data();
    if (at <= end && size_bytes <= end - at) return begin + at;
    mistakes.push_back(fmt::format("{} bytes at {:#x}", size_bytes, address));
    return begin;
  }
  uint32_t word(uint64_t address) {
    uint32_t v = 0;
    std::memcpy(&v, memory_at(address, sizeof v), sizeof v);
    return v;
  }

  std::map<uint64_t, uint32_t> registers;
  std::vector<std::pair<uint64_t, uint32_t>> log;
  emu::Pages memory = emu::Pages::make(kMemoryBytes, std::make_shared<emu::PageFile>());
  emu::Pages doorbells = emu::Pages::make(4096, std::make_shared<emu::PageFile>());
  // What it sees where flushes are looked at: so much of memory.
  static constexpr size_t kSeenBytes = 8u << 20;
  std::vector<std::byte> seen = std::vector<std::byte>(kSeenBytes);
  bool needs_flushes = true;
  std::vector<std::string> mistakes, done;
  bool hung = false;          // nothing is answered any more
  uint32_t hung_after = ~0u;  // so many steps of `done`
  uint32_t refused_type = 0;  // of firmware
  uint32_t smu_answer = 1;
  int resets = 0;
  bool ignores_reset = false;
  emu::amd::samples::SampleTable blocks;
  uint32_t toc_bytes = 2u << 20;

 private:
  uint32_t discovery_word() {
    const uint64_t at = uint64_t{registers[24]} << 31 | (registers[0] & 0x7fff'ffff);
    emu::amd::samples::Bytes table = emu::amd::samples::sample_discovery(blocks);
    table.resize(kDiscoveryBytes);
    const uint64_t begin = (uint64_t{kSaidMib} << 20) - (64u << 10);
    uint32_t v = 0;
    if (at >= begin && at + 4 <= begin + table.size())
      std::memcpy(&v, table.data() + (at - begin), sizeof v);
    return v;
  }
  bool has_semaphore_ = false;
  void step(std::string what) {
    done.push_back(std::move(what));
    if (done.size() >= hung_after) hung = true;
  }
  // Components begin with their type.
  void load(uint32_t command) {
    if (psp(C81) != 0) mistakes.push_back("the bootloader is gone");
    step(fmt::format("boot {:#x} of type {}", command, word(uint64_t{psp(C36)} << 20) & 0xff));
    if (hung) return;
    if (command == 0x20000) {
      psp(C81) = 0x8012;
      psp(C64) = 1u << 31;
    } else {
      psp(C35) = 1u << 31;
    }
  }
  void control_ring(uint32_t command) {
    if (psp(C81) == 0) mistakes.push_back("a ring before sOS runs");
    step(fmt::format("ring control {:#x}", command));
    if (command == 3u << 16) psp(C71) = 0;
    if (!hung) psp(C64) = 1u << 31;
  }
  void take_frame() {
    const uint64_t ring = uint64_t{psp(C70)} << 32 | psp(C69);
    const uint64_t at = ring + uint64_t{(psp(C67) + psp(C71) / 4 - 16) % (psp(C71) / 4)} * 4;
    const auto pair = [&](uint64_t a) { return uint64_t{word(a + 4)} << 32 | word(a); };
    const uint64_t buffer = pair(at), fence = pair(at + 12);
    if (word(at + 8) != 1024) mistakes.push_back("a command of another size");
    const uint32_t id = word(buffer + 8);
    const auto body = [&](uint32_t n) { return word(buffer + 28 + 4 * n); };
    uint32_t status = 0, answer = 0;
    if (id == 6) {
      const uint32_t first = word(pair(buffer + 28)) & 0xff, type = body(3);
      // Stacks of pipes are one part of the file.
      if (first != type && !(type > 94 && type <= 97 && first == 94))
        mistakes.push_back(fmt::format("firmware {} told as {}", first, type));
      step(fmt::format("load {} of {} bytes", type, body(2)));
      if (type == refused_type) status = 0xffff000a;
    } else if (id == 0x20) {
      step(fmt::format("toc of {} bytes", body(2)));
      answer = toc_bytes;
    } else {
      step(fmt::format("command {:#x} {:#x} {:#x}", id, body(0), body(2)));
    }
    if (hung) return;
    if (id == 6 && body(3) == 18) registers[kSmu + 4 * 0x29a] = 1;
    if (id == 0x21) registers[4 * (0xa000 + 0x4e82)] = 1u << 31;
    put_word(buffer + 864, status);
    put_word(buffer + 880, answer);
    put_word(fence, word(at + 20));
  }
  void put_word(uint64_t address, uint32_t value) {
    memory_at(address, sizeof value);
    std::memcpy(memory.data() + (address - kMemoryBegin), &value, sizeof value);
  }
  void answer_smu(uint32_t message) {
    step(fmt::format("smu {:#x} {:#x}", message, registers[kSmu + 4 * 0x292]));
    if (hung) return;
    if (message == 2) registers[kSmu + 4 * 0x292] = 0x4e7e00;
    registers[kSmu + 4 * 0x29a] = smu_answer;
  }
};

struct GpuScene {
  explicit GpuScene(uint64_t timeout_ms = 2000)
      : registers((bus->add({"0000:03:00.0",
                             0x1002,
                             0x744c,
                             0x030000,
                             "vfio-pci",
                             "9",
                             {0, 0, 0, 0, 0, ScriptedGpu::kRegisterBytes},
                             gpu}),
                   device = std::make_unique<PciDevice>(bus, pci_function(*bus, "0000:03:00.0")),
                   *device),
                  discovery, timeout_ms) {
    gpu->power_on();
    registers.place_flush();
  }
  ~GpuScene() {
    EXPECT_EQ(gpu->mistakes, std::vector<std::string>());
    EXPECT_EQ(found, std::vector<std::string>());
  }
  VramWindow window(uint64_t at, size_t size_bytes) {
    return {gpu->memory.data() + at, ScriptedGpu::kMemoryBegin + at, at, size_bytes};
  }
  PspMemory psp_memory() {
    return {window(1u << 20, 1u << 20), window(0, 4096), window(4096, 4096), window(8192, 4096),
            window(4u << 20, 4u << 20)};
  }

  std::vector<std::string> found;
  emu::Reports reports{[this](const emu::Finding& f) { found.push_back(to_text(f)); }};
  std::shared_ptr<ScriptedGpu> gpu = std::make_shared<ScriptedGpu>();
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
  std::unique_ptr<PciDevice> device;
  Discovery discovery = read_discovery(emu::amd::samples::sample_discovery());
  GpuRegisters registers;
};

}  // namespace tuff::devices::amd
