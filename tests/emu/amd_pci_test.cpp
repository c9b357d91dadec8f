// The emulated Navi 31 under a driver of the test's own, written from Linux's sources: the start in
// order, and what is told of a start that is not: order, firmware, flushes, tables, silence.
#include <gtest/gtest.h>

#include <cstring>

#include "emu/amd/pci/gpu_function.h"
#include "emu/amd/pci/sample_firmware.h"

namespace tuff::emu::amd {
namespace {

constexpr uint64_t kMessage = 1u << 20, kTables = 2u << 20;  // places in memory
constexpr uint64_t kRing = 0x1000, kCommand = 0x2000, kFence = 0x3000;

// psp_v13_0.c, smu_cmn.c and gmc_v11_0.c, as far as they are needed.
struct ScriptedDriver {
  std::vector<std::string> told;
  GpuFunction gpu{{64u << 20, {}, [this](const std::string& what) { told.push_back(what); }}};
  uint32_t fence = 0;

  std::byte* memory(uint64_t offset) { return gpu.memory().pages().data() + offset; }
  void put(uint64_t offset, uint32_t value) { std::memcpy(memory(offset), &value, sizeof value); }
  uint32_t get(uint64_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, memory(offset), sizeof value);
    return value;
  }
  uint32_t read(uint64_t at) { return gpu.read(5, at); }
  void write(uint64_t at, uint32_t value) { gpu.write(5, at, value); }
  void flush() { write(0x7f000, 0); }
  bool was_told(const std::string& what) const {
    for (const std::string& t : told)
      if (t.find(what) != std::string::npos) return true;
    return false;
  }

  // A firmware of a type as samples have it.
  void put_firmware(uint32_t type) {
    for (uint32_t i = 0; i < 64; ++i) *memory(kMessage + i) = std::byte(uint8_t(type + i));
  }
  void boot(uint32_t command, uint32_t type) {
    put_firmware(type);
    flush();
    write(place::PspBootloaderMemory, uint32_t((DeviceMemory::kBegin + kMessage) >> 20));
    write(place::PspBootloader, command);
  }
  void boot_all() {
    write(place::RemapHdpFlush, 0x7f000);
    boot(0x80000, 3), boot(0x10000000, 5), boot(0x10000, 2), boot(0xb0000, 7);
    boot(0xd0000, 8), boot(0xc0000, 9), boot(0xe0000, 10), boot(0x20000, 1);
  }
  void make_ring() {
    write(place::PspRingLow, uint32_t(DeviceMemory::kBegin + kRing));
    write(place::PspRingHigh, uint32_t((DeviceMemory::kBegin + kRing) >> 32));
    write(place::PspRingSize, 4096);
    write(place::PspRingControl, 2u << 16);
  }
  // The status; ~0 where there is no answer.
  uint32_t submit(uint32_t id, uint64_t address, uint32_t size_bytes, uint32_t type) {
    const uint32_t at = read(place::PspRingWritePointer);
    const uint64_t high = DeviceMemory::kBegin >> 32;
    std::memset(memory(kCommand), 0, 1024);
    put(kCommand + 8, id);
    put(kCommand + 28, uint32_t(address));
    put(kCommand + 32, uint32_t(address >> 32));
    put(kCommand + 36, size_bytes);
    put(kCommand + 40, type);
    const uint64_t frame[] = {kCommand, high, 1024, kFence, high, ++fence};
    for (size_t i = 0; i < std::size(frame); ++i)
      put(kRing + 4 * at + 4 * i, uint32_t(frame[i]));
    flush();
    write(place::PspRingWritePointer, (at + 16) % 1024);
    return get(kFence) == fence ? get(kCommand + 864) : ~0u;
  }
  uint32_t load(uint32_t type) {
    put_firmware(type);
    return submit(6, DeviceMemory::kBegin + kMessage, 64, type);
  }
  uint32_t load_toc() {
    put_firmware(4);
    return submit(0x20, DeviceMemory::kBegin + kMessage, 64, 0);
  }
  uint32_t protect() {
    return submit(5, DeviceMemory::kBegin + (8u << 20), PspModel::kProtectedBytes, 0);
  }
  void load_all() {
    make_ring();
    EXPECT_EQ(load_toc(), 0u);
    EXPECT_EQ(load(18), 0u);
    EXPECT_EQ(protect(), 0u);
    for (const uint32_t type : {71u, 72u, 89u, 94u, 68u, 69u, 26u, 48u, 25u, 7u, 8u})
      EXPECT_EQ(load(type), 0u) << type;
    EXPECT_EQ(submit(0x21, 0, 0, 0), 0u);
  }
  uint32_t ask_smu(uint32_t message) {
    write(place::SmuAnswer, 0);
    write(place::SmuMessage, message);
    return read(place::SmuAnswer);
  }

  // A page at 4 KiB * n, through four tables, in MMHUB's context 0.
  uint64_t mmhub(uint32_t offset) const { return register_place(Block::Mmhub, 0, offset); }
  void put_entry(uint64_t table, uint64_t n, uint64_t entry) {
    std::memcpy(memory(table + 8 * n), &entry, sizeof entry);
  }
  void map(uint64_t n, uint64_t physical) { put_entry(kTables + 0x3000, n, physical | 0x77); }
  void start_hub() {
    const uint64_t tables = DeviceMemory::kEntryOffset + kTables;
    for (uint64_t level = 0; level < 3; ++level)
      put_entry(kTables + 0x1000 * level, 0, (tables + 0x1000 * (level + 1)) | 1);
    write(mmhub(0x740 + 0x6b), uint32_t(tables) | 1);
    write(mmhub(0x740 + 0x6c), uint32_t(tables >> 32));
    write(mmhub(0x740 + 0xab), 511);
    write(mmhub(0x740), 1 | 3 << 1);
  }
  void invalidate() {
    EXPECT_EQ(read(mmhub(0x762)) & 1, 1u);
    write(mmhub(0x774), 1 | 0x1f << 19);
    EXPECT_EQ(read(mmhub(0x786)) & 1, 1u);
    write(mmhub(0x762), 0);
  }
};

TEST(EmuAmdPci, StartsInOrder) {
  ScriptedDriver d;
  EXPECT_EQ(d.read(place::kConfigMemsize), 64u);
  d.boot_all();
  EXPECT_NE(d.read(place::PspSignOfLife), 0u);
  EXPECT_EQ(d.read(place::RLC_RLCS_BOOTLOAD_STATUS), 0u);
  d.load_all();
  EXPECT_EQ(d.read(place::RLC_RLCS_BOOTLOAD_STATUS) >> 31, 1u);
  EXPECT_EQ(d.ask_smu(6), 1u);
  EXPECT_EQ(d.told, std::vector<std::string>());
  d.write(place::SmuDebugMessage, 2);
  EXPECT_EQ(d.gpu.resets(), 1u);
  EXPECT_EQ(d.read(place::PspSignOfLife), 0u) << "it is as after power on";
  d.boot_all();
  d.load_all();
  EXPECT_EQ(d.told, std::vector<std::string>()) << "a second run";
}

TEST(EmuAmdPci, TheDiscoveryTableIsReadByIndex) {
  ScriptedDriver d;
  const uint64_t at = (64u << 20) - (64u << 10);
  d.write(place::kMmIndexHigh, uint32_t(at >> 31));
  d.write(place::kMmIndex, uint32_t(at) | 1u << 31);
  EXPECT_EQ(d.read(place::kMmData), 0x28211407u);
  d.write(place::kMmIndex, uint32_t(at));
  EXPECT_EQ(d.read(place::kMmData), ~0u) << "no memory is meant";
}

TEST(EmuAmdPci, TheBootloaderTellsWhatIsWrong) {
  {
    ScriptedDriver d;
    d.write(place::RemapHdpFlush, 0x7f000);
    d.boot(0x10000, 2);
    EXPECT_TRUE(d.was_told("SYSDRV out of order"));
    EXPECT_EQ(d.read(place::PspBootloader) >> 31, 0u) << "and does not answer";
  }
  {
    ScriptedDriver d;
    d.write(place::RemapHdpFlush, 0x7f000);
    d.boot(0x80000, 4);
    EXPECT_TRUE(d.was_told("no firmware of type 3"));
  }
  ScriptedDriver d;
  d.boot(0x80000, 3);  // flushes have no place
  EXPECT_TRUE(d.was_told("not flushed"));
}

TEST(EmuAmdPci, TheRingTellsWhatIsWrong) {
  ScriptedDriver d;
  d.make_ring();
  EXPECT_TRUE(d.was_told("sOS does not run"));
  d.boot_all();
  EXPECT_EQ(d.load_toc(), ~0u);
  EXPECT_TRUE(d.was_told("has no ring"));
  d.make_ring();
  EXPECT_NE(d.protect(), 0u);
  EXPECT_TRUE(d.was_told("before LOAD_TOC"));
  EXPECT_EQ(d.load_toc(), 0u);
  EXPECT_NE(d.load(71), 0u);
  EXPECT_TRUE(d.was_told("before SETUP_TMR"));
  EXPECT_EQ(d.protect(), 0u);
  d.put_firmware(72);
  EXPECT_NE(d.submit(6, DeviceMemory::kBegin + kMessage, 64, 71), 0u);
  EXPECT_TRUE(d.was_told("no firmware of type 71"));
  EXPECT_NE(d.submit(0x21, 0, 0, 0), 0u);
  EXPECT_TRUE(d.was_told("AUTOLOAD_RLC without"));
  EXPECT_NE(d.submit(6, DeviceMemory::kBegin - 4096, 64, 71), 0u);
  EXPECT_TRUE(d.was_told("has no memory"));
  d.gpu.psp().hang_after(0);
  EXPECT_EQ(d.load(71), ~0u);
}

TEST(EmuAmdPci, TheSmuNeedsFirmwareAndAClearedAnswer) {
  ScriptedDriver d;
  EXPECT_EQ(d.ask_smu(2), 0u);
  EXPECT_TRUE(d.was_told("has no firmware"));
  d.gpu.reset();
  d.boot_all();
  d.load_all();
  EXPECT_EQ(d.ask_smu(0x7777), 0xfeu);
  EXPECT_FALSE(d.was_told("not cleared"));
  d.write(place::SmuMessage, 2);
  EXPECT_TRUE(d.was_told("not cleared"));
  d.gpu.smu().hang();
  EXPECT_EQ(d.ask_smu(2), 0u);
}

TEST(EmuAmdPci, ATranslationStaysUntilItIsToBeForgotten) {
  ScriptedDriver d;
  d.start_hub();
  HubModel& hub = d.gpu.multimedia();
  d.map(5, 0x40000);
  d.invalidate();
  ASSERT_TRUE(hub.translate(0x5010, true));
  EXPECT_EQ(hub.translate(0x5010, true)->physical, 0x40010u);
  d.map(5, 0x80000);
  EXPECT_EQ(d.told, std::vector<std::string>());
  EXPECT_EQ(hub.translate(0x5010, true)->physical, 0x40010u);
  EXPECT_TRUE(d.was_told("no invalidation"));
  d.told.clear();
  d.invalidate();
  EXPECT_EQ(hub.translate(0x5010, true)->physical, 0x80010u);
  EXPECT_EQ(d.told, std::vector<std::string>());
  d.write(d.mmhub(0x774), 1 | 0x1f << 19);
  EXPECT_TRUE(d.was_told("semaphore"));
}

TEST(EmuAmdPci, FaultsAreKeptUntilTheyAreCleared) {
  ScriptedDriver d;
  d.start_hub();
  HubModel& hub = d.gpu.multimedia();
  EXPECT_FALSE(hub.translate(0x7123, true));
  EXPECT_FALSE(hub.translate(0x8000, false));
  EXPECT_EQ(d.read(d.mmhub(0x70c)) >> 18 & 1, 1u) << "the first, which wrote";
  EXPECT_EQ(d.read(d.mmhub(0x70d)), 7u);
  d.write(d.mmhub(0x708), 1);
  EXPECT_EQ(d.read(d.mmhub(0x70c)), 0u);
  d.put_entry(kTables + 0x3000, 9, 0x40000 | 0x37);  // not to be written
  EXPECT_TRUE(hub.translate(0x9000, false));
  EXPECT_FALSE(hub.translate(0x9000, true));
  EXPECT_EQ(d.read(d.mmhub(0x70c)) >> 4 & 15, 4u) << "permission to write";
  EXPECT_FALSE(hub.translate(uint64_t{512} << 12, false)) << "beyond the context's last page";
}

}  // namespace
}  // namespace tuff::emu::amd
