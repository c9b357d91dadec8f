// What the emulated firmware refuses of channels that are made by addresses, so that a driver that
// leaves it out is found.
#include <gtest/gtest.h>
#include <tuff/error.h>

#include <cstring>
#include <optional>

#include "devices/nv/pci/channel_memory.h"
#include "devices/nv/pci/graphics_context.h"
#include "devices/nv/pci/gsp_scene.h"

namespace tuff::devices::nv::test {
namespace {

constexpr uint64_t kPage = 4096;

// As PciGpu makes the golden context, up to its channel.
struct ChannelScene : GspScene {
  ChannelScene() {
    std::memset(ring.host(), 0, kPage);
    p.gpfifo_address = space.map(ring.address(), kPage, kPage, {});
    p.gpfifo_entries = 32;
    p.va_space = space.handle();
    p.engine = nvrm::kEngineGraphics;
    memory.describe(p, ring.address() + nvrm::kUserdBytes, ChannelPrivilege::Admin);
  }
  static nvrm::DeviceParameters device_parameters(const GspCalls& calls) {
    nvrm::DeviceParameters d{};
    d.client_share = calls.root();
    return d;
  }
  std::unique_ptr<Object> channel() {
    std::vector<std::byte> bytes(gsp_branch().channel_bytes);
    std::memcpy(bytes.data(), &p, sizeof p);
    return std::make_unique<Object>(gsp.calls(), object.handle(), 0xc56f, "channel",
                                    std::span(bytes));
  }
  void compute(const Object& channel) { Object(gsp.calls(), channel.handle(), 0xc7c0, "engine"); }

  std::unique_ptr<PciDevice> device = take();
  Gsp gsp{*device, files, 1000};
  nvrm::DeviceParameters device_ = device_parameters(*gsp.calls());
  Object object{gsp.calls(), gsp.calls()->root(), nvrm::object::Device, "device", device_};
  nvrm::SubdeviceParameters none{};
  Object part{gsp.calls(), object.handle(), nvrm::object::Subdevice, "subdevice", none};
  std::vector<MemoryRegion> regions = {{0, 4ull << 30}};
  VideoMemory video{*device, *gsp.chip().family, regions, 1000};
  GspVaSpace space{gsp.calls(), object.handle(), MmuVersion::V2, video, VaSpaceKind::Shared};
  VideoPiece ring{video, kPage, kPage, true};
  ChannelMemory memory{*device, video, *gsp.calls(), part.handle()};
  GraphicsParts parts{gsp.calls(), part.handle(), video};
  nvrm::ChannelParameters p{};
};

TEST(NvGspChannel, ComputesOnceItsContextIsThere) {
  ChannelScene s;
  std::optional<GraphicsContext> context;
  const auto channel = s.channel();
  EXPECT_THROW(s.compute(*channel), Error);
  s.expected = {"0x40: a golden context without buffer 0, initialized"};
  context.emplace(s.parts, s.space, channel->handle(), nullptr);
  s.compute(*channel);
  EXPECT_EQ(context->shared().pieces.size(), 7u) << "all but the main and the patch buffer";
  context.reset();  // before its channel
  EXPECT_GT(s.mistakes.size(), 1u);
  for (size_t i = 1; i < s.mistakes.size(); ++i)
    EXPECT_TRUE(s.mistakes[i].ends_with("is unmapped while its channel is there"));
  s.expected = s.mistakes;
}

TEST(NvGspChannel, MemoryByAddressesIsLookedAt) {
  using Change = void (*)(nvrm::ChannelParameters&);
  const std::pair<Change, const char*> rows[] = {
      {[](auto& p) { p.instance = {}; },
       "0x1f: the instance block of a channel: 0 bytes at 0x0, address space 0"},
      {[](auto& p) { p.ramfc.base += 512; }, "0x1f: RAMFC does not begin the instance block"},
      {[](auto& p) { p.userd.base = 16ull << 30; }, "0x1f: USERD of a channel: 512 bytes at "
                                                    "0x400000000, address space 2"},
      {[](auto& p) { p.method_buffer.size_bytes = 4096; }, "0x1f: the method buffer of a channel"},
      {[](auto& p) { p.internal_flags = 0; }, "0x1f: internal flags 0x0"},
      {[](auto& p) { p.error = p.va_space; }, "0x31: memory of a channel by handles"},
      {[](auto& p) { p.gpfifo_address += 1ull << 30; }, "0x1e: the GPFIFO at"},
  };
  for (const auto& [change, mistake] : rows) {
    ChannelScene s;
    change(s.p);
    EXPECT_THROW(s.channel(), Error) << mistake;
    ASSERT_EQ(s.mistakes.size(), 1u) << mistake;
    EXPECT_TRUE(s.mistakes[0].starts_with(mistake)) << s.mistakes[0];
    s.expected = s.mistakes;
  }
}

}  // namespace
}  // namespace tuff::devices::nv::test
