// Video memory and VA spaces on the emulated GPU: pieces on both sides of the aperture's end, and
// page tables that this process writes through the aperture, as the GPU walks them.
#include "devices/nv/pci/gsp_va_space.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include "base/error_of.h"
#include "devices/nv/pci/gsp_scene.h"
#include "devices/nv/pci/video_memory.h"
#include "devices/nv/rm/space.h"
#include "emu/nv/pci/mmu.h"

namespace tuff::devices::nv::test {
namespace {

constexpr uint64_t kMiB = 1u << 20, kApertureBytes = 1u << 28;

struct SpaceScene : GspScene {
  explicit SpaceScene(const std::function<void(emu::nv::GpuOptions&)>& change = {},
                      uint32_t sm = 86)
      : GspScene(change, sm) {}
  emu::nv::Translation translate(uint64_t root, uint64_t address) const {
    return emu::nv::translate(
        uint32_t(gsp.chip().family->mmu),
        [&](bool video, uint64_t at, uint64_t& entry) { return gpu->read_table(video, at, entry); },
        true, root, address);
  }
  const ChipFamily& family() const { return *gsp.chip().family; }
  std::unique_ptr<PciDevice> device = take();
  Gsp gsp{*device, files, 1000};
  std::vector<MemoryRegion> regions = {{0, 4ull << 30}};
};

TEST(NvVideoMemory, PiecesByWhoIsToSeeThem) {
  SpaceScene s;
  VideoMemory memory(*s.device, s.family(), s.regions, 1000);
  const uint64_t seen = memory.reserve(2 * kMiB, 2 * kMiB, true);
  const uint64_t other = memory.reserve(2 * kMiB, 2 * kMiB, false);
  EXPECT_LE(seen + 2 * kMiB, kApertureBytes);
  EXPECT_GE(other, kApertureBytes);
  EXPECT_EQ(memory.reserve(2 * kMiB, 2 * kMiB, false), other + 2 * kMiB) << "no gap between pieces";
  std::memset(memory.host(seen), 0x5a, 2 * kMiB);
  EXPECT_EQ(s.gpu->video()[seen + 12345], std::byte{0x5a}) << "the GPU has what the host wrote";
  // All that is left before the aperture's end, but for the first piece, which is never given out.
  memory.reserve(kApertureBytes - 4 * kMiB, 4096, true);
  EXPECT_EQ(error_of<OutOfMemory>([&] { memory.reserve(4096, 4096, true); }),
            "0000:41:00.0: no visible video memory is left for 4096 bytes");
  memory.give_back(seen);
  EXPECT_EQ(memory.reserve(2 * kMiB, 2 * kMiB, true), seen);
}

TEST(NvVideoMemory, AnApertureForAll) {
  SpaceScene s;
  const MemoryRegion small[] = {{0, 64 * kMiB}};
  VideoMemory memory(*s.device, s.family(), small, 1000);
  const uint64_t piece = memory.reserve(kMiB, 4096, false);
  EXPECT_LT(piece, 64 * kMiB) << "the host sees it, though it need not";
  EXPECT_THROW(memory.reserve(64 * kMiB, 4096, false), OutOfMemory);
}

TEST(NvVideoMemory, OutOfTheAperturesReach) {
  SpaceScene s;
  const MemoryRegion far[] = {{kApertureBytes, 2 * kApertureBytes}};
  EXPECT_THROW(VideoMemory(*s.device, s.family(), far, 1000), Unsupported);
}

void walk_tables(SpaceScene& s) {
  const std::shared_ptr<GspCalls> calls = s.gsp.calls();
  nvrm::DeviceParameters parameters{};
  parameters.client_share = calls->root();
  const Object device(calls, calls->root(), nvrm::object::Device, "device", parameters);
  VideoMemory memory(*s.device, s.family(), s.regions, 1000);
  const uint64_t piece = memory.reserve(4 * kMiB, 2 * kMiB, false);
  std::optional<DmaMemory> host(std::in_place, *s.device, 8192);
  nvrm::Handle handle = 0;
  {
    GspVaSpace space(calls, device.handle(), s.gsp.chip().family->mmu, memory);
    handle = space.handle();
    const auto root = s.gpu->firmware()->directory(handle);
    ASSERT_TRUE(root);
    EXPECT_FALSE(s.translate(*root, kFirstAddress).is_mapped());
    const uint64_t address = space.map(piece, 4 * kMiB, 2 * kMiB, {});
    const uint64_t other =
        space.map(host->address(), 8192, 4096, {.aperture = Aperture::System, .cached = false});
    EXPECT_EQ(address, kFirstAddress);
    EXPECT_GT(s.gpu->invalidates, 0u) << "the GPU was told";
    const auto first = s.translate(*root, address + 3 * kMiB + 5);
    ASSERT_TRUE(first.is_mapped()) << first.fault;
    EXPECT_TRUE(first.video);
    EXPECT_EQ(first.physical, piece + 3 * kMiB + 5);
    EXPECT_EQ(first.page_bytes, 2 * kMiB);
    const auto second = s.translate(*root, other + 4096);
    ASSERT_TRUE(second.is_mapped()) << second.fault;
    EXPECT_FALSE(second.video);
    EXPECT_EQ(second.physical, host->address() + 4096);
    const auto& engines = s.objects.find(calls->root(), handle).space->context->addresses;
    const auto video = engines.find(address + 3 * kMiB), system = engines.find(other);
    ASSERT_TRUE(video && system);
    EXPECT_EQ(video->buffer->memory, s.gpu->video() + piece) << "what engines reach";
    EXPECT_EQ(system->buffer->memory, host->host());
    const uint32_t before = s.gpu->invalidates;
    space.unmap(address, 4 * kMiB);
    EXPECT_FALSE(s.translate(*root, address).is_mapped());
    EXPECT_FALSE(engines.find(address));
    EXPECT_GT(s.gpu->invalidates, before);
    host.reset();
    EXPECT_FALSE(engines.find(other)) << "the IOMMU has nothing there";
    space.unmap(other, 8192);
  }
  EXPECT_FALSE(s.gpu->firmware()->directory(handle)) << "no table of memory that is given back";
}

TEST(NvGspSpace, TheGpuWalksOurTables) {
  {
    SpaceScene s;
    walk_tables(s);
  }
  const Fmc fmc = sample_files().fmc;
  SpaceScene s([&](auto& o) { make_hopper(o, fmc); }, 90);
  walk_tables(s);
}

// The register says at once, or never, that tables are forgotten.
TEST(NvVideoMemory, AGpuThatDoesNotForgetIsLost) {
  SpaceScene s;
  VideoMemory memory(*s.device, s.family(), s.regions, 0);
  EXPECT_EQ(error_of<DeviceLost>([&] { memory.publish(); }),
            "0000:41:00.0: the GPU did not forget page tables within 0 ms");
}

}  // namespace
}  // namespace tuff::devices::nv::test
