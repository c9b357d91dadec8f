// The engines' registers: what a compute queue's descriptor has by Linux's structure, what of it
// goes into registers and when, the copy engine's ring, and engines that do not obey.
#include "devices/amd/pci/engines.h"

#include <tuff/error.h>

#include "devices/amd/pci/scripted_gpu.h"

namespace tuff::devices::amd {
namespace {

constexpr EngineQueue kQueue = {0x2000'0010'0000, 65536, 0x2000'0020'0080, 0x2000'0020'0038,
                                0x2000'0030'0000, 4096,  0x80'0000'5000};
constexpr uint64_t kGc0 = 4 * 0x1260, kGc1 = 4 * 0xa000, kNbif3 = 4 * 0x10400;

// Places by v11_structs.h (bytes / 4), values by gc_11_0_0_sh_mask.h.
TEST(AmdEngines, ADescriptorAsLinuxLaysItOut) {
  const QueueDescriptor d = queue_descriptor(kQueue);
  EXPECT_EQ(d[0], 0xc031'0800u);
  for (const size_t engine : {92, 96, 104, 108, 176, 180, 184, 188})
    EXPECT_EQ(d[engine / 4], ~0u) << "compute units of a shader engine";
  EXPECT_EQ(d[512 / 4], 0x5000u);
  EXPECT_EQ(d[516 / 4], 0x80u);
  EXPECT_EQ(d[520 / 4], 0u) << "not active before it is told";
  EXPECT_EQ(d[648 / 4], 1u << 8) << "CP_MQD_CONTROL: PRIV_STATE";
  EXPECT_EQ(d[660 / 4], 0x2000'0030'0000u >> 8 & 0xffff'ffff);
  EXPECT_EQ(d[664 / 4], 0x20u);
  EXPECT_EQ(d[668 / 4], 9u) << "2^(9 + 1) dwords";
  EXPECT_EQ(d[724 / 4], 0u) << "no AQL";
}

TEST(AmdEngines, QueuesThatCannotBe) {
  for (const auto change : std::initializer_list<void (*)(EngineQueue&)>{
           [](EngineQueue& q) { q.ring_bytes = 65536 + 4096; },
           [](EngineQueue& q) { q.ring_bytes = 2048; },
           [](EngineQueue& q) { q.ring_address += 128; },
           [](EngineQueue& q) { q.write_pointer_address += 4; },
           [](EngineQueue& q) { q.read_pointer_address += 2; },
           [](EngineQueue& q) { q.end_of_pipe_bytes = 100; },
           [](EngineQueue& q) { q.end_of_pipe_bytes = 16384; },
           [](EngineQueue& q) { q.end_of_pipe_address += 1; },
           [](EngineQueue& q) { q.descriptor_address += 4; }}) {
    EngineQueue q = kQueue;
    change(q);
    EXPECT_THROW(queue_descriptor(q), InvalidArgument);
  }
}

TEST(AmdEngines, AQueueGoesIntoItsRegisters) {
  GpuScene s;
  const ComputeEngine engine(s.registers);
  const QueueDescriptor d = queue_descriptor(kQueue);
  s.gpu->log.clear();
  engine.activate(d);
  const auto& log = s.gpu->log;
  using Write = std::pair<uint64_t, uint32_t>;
  ASSERT_EQ(log.size(), 3 + 56u);
  EXPECT_EQ(log.front(), Write(kGc1 + 4 * 0x900, 1u << 2)) << "ME 1, pipe 0, queue 0 is chosen";
  for (uint32_t n = 0; n < 56; ++n)
    EXPECT_EQ(log[1 + n], Write(kGc0 + 4 * (0x1fa9 + n), d[0x80 + n]));
  EXPECT_EQ(log[57], Write(kGc0 + 4 * 0x1fab, 1)) << "active when all is there";
  EXPECT_EQ(log[58], Write(kGc1 + 4 * 0x900, 0));
  const auto reg = [&](uint32_t n) { return s.gpu->registers[kGc0 + 4 * n]; };
  EXPECT_EQ(reg(0x1fb1), 0x2000'0010'0000u >> 8 & 0xffff'ffff);
  EXPECT_EQ(reg(0x1fb2), 0x20u);
  EXPECT_EQ(reg(0x1fb4), 0x20'0080u);
  EXPECT_EQ(reg(0x1fb6), 0x20'0038u);
  EXPECT_EQ(reg(0x1fb8), 1u << 30 | 6u << 2);
  EXPECT_EQ(reg(0x1fba), 13u | 5u << 8) << "2^(13 + 1) dwords";
  EXPECT_EQ(reg(0x1fac), 0u) << "VMID 0";
}

TEST(AmdEngines, AQueueEndsOrDoesNot) {
  GpuScene s(5);
  const ComputeEngine engine(s.registers);
  engine.deactivate();  // none is active
  EXPECT_EQ(s.gpu->registers[kGc0 + 4 * 0x1fc1], 0u);
  engine.activate(queue_descriptor(kQueue));
  s.gpu->hung = true;
  const std::string why = error_of<DeviceLost>([&] { engine.deactivate(); });
  EXPECT_NE(why.find("the compute queue does not end"), std::string::npos) << why;
  EXPECT_EQ(s.gpu->registers[kGc0 + 4 * 0x1fc1], 2u);
  EXPECT_EQ(s.gpu->registers[kGc0 + 4 * 0x1f73], 1u);
  s.gpu->hung = false;
  engine.deactivate();
}

TEST(AmdEngines, TheComputeEngineStarts) {
  GpuScene s(5);
  const ComputeEngine engine(s.registers);
  EXPECT_THROW(engine.wait_for_firmware(), DeviceLost);
  s.gpu->registers[kGc1 + 4 * 0x4e82] = 1u << 31;
  s.gpu->registers[kGc0 + 4 * 0xf40] = 1u << 31;
  EXPECT_NE(error_of<DeviceLost>([&] { engine.wait_for_firmware(); }).find("come to rest"),
            std::string::npos);
  s.gpu->registers[kGc0 + 4 * 0xf40] = 0;
  engine.wait_for_firmware();
  s.gpu->registers[kGc1 + 4 * 0x2904] = 1u << 30;  // halted, as after its loading
  engine.start(0x7'0000'3000);
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x2900], 0xc000'0c00u);
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x2938], 1u);
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x2904], 1u << 26) << "active, not halted, no reset";
  EXPECT_EQ(s.gpu->registers[kNbif3 + 4 * 0x4f7640], 1u | 3u << 1 | 3u << 28);
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x9e4], 0xc00cu);
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x9e3], 0x1'0002u);
}

TEST(AmdEngines, TheCopyEnginesRing) {
  GpuScene s;
  const CopyEngine engine(s.registers);
  const auto reg = [&](uint32_t n) -> uint32_t& { return s.gpu->registers[kGc0 + 4 * n]; };
  s.gpu->registers[kGc1 + 4 * 0x589a] = 1 | 1u << 13 | 1u << 14;
  reg(0x3c) = 0xffff'ffff;
  engine.start();
  EXPECT_EQ(s.gpu->registers[kGc1 + 4 * 0x589a], 1u << 14);
  EXPECT_EQ(reg(0x3c), (0xffff'ffffu & ~0x1fu) | 9u);
  EXPECT_EQ(s.gpu->registers[kNbif3 + 4 * 0x4f7642],
            1u | 0xeu << 1 | 0x200u << 7 | 4u << 17 | 3u << 28);
  engine.activate(kQueue);
  EXPECT_EQ(reg(0x81), 0x2000'0010'0000u >> 8 & 0xffff'ffff);
  EXPECT_EQ(reg(0x82), 0x20u);
  EXPECT_EQ(reg(0x88), 0x2000u);
  EXPECT_EQ(reg(0x89), 0x20'0080u);
  EXPECT_EQ(reg(0xb2), 0x2000u);
  EXPECT_EQ(reg(0xb3), 0x20'0038u);
  EXPECT_EQ(reg(0xab), 0x200u << 2);
  EXPECT_EQ(reg(0x92), 1u << 28);
  EXPECT_EQ(reg(0xb5), 0u) << "pointers may be used";
  EXPECT_EQ(reg(0x80) & 0x3f, 1u | 14u << 1) << "2^14 dwords";
  engine.deactivate();
  EXPECT_EQ(reg(0x80) & 1, 0u);
  EXPECT_EQ(reg(0x92), 0u);
  EXPECT_EQ(reg(0xda8), 0u);
  EngineQueue bad = kQueue;
  bad.ring_bytes = 5000;
  EXPECT_THROW(engine.activate(bad), InvalidArgument);
}

}  // namespace
}  // namespace tuff::devices::amd
