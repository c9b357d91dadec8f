// Selection, masks, hints, memory types, quirks and clock arithmetic: mostly without a device.
#include <fstream>

#include <cmath>

#include "devices/vulkan/facts/facts.h"
#include "devices/vulkan/facts/limits.h"
#include "devices/vulkan/facts/select.h"
#include "devices/vulkan/memory/blocks.h"
#include "devices/vulkan/queue/clock.h"
#include "devices/vulkan/quirks/quirks.h"
#include "fixture.h"
#include "tuff/error.h"

namespace tuff::devices {
namespace {

using namespace vulkan;
using hcq::MemoryKind;

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(e.kind()) + ": " + e.what();
  }
  return "no error";
}

Facts fake(const char* name, VkPhysicalDeviceType type, uint8_t uuid) {
  Facts f;
  std::strncpy(f.properties.deviceName, name, sizeof f.properties.deviceName - 1);
  f.properties.deviceType = type;
  f.device_uuid[0] = uuid;
  return f;
}

std::vector<Facts> two_devices() {
  return {fake("NVIDIA GeForce", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 0xab),
          fake("AMD Radeon", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 0xcd)};
}

TEST(VulkanSelect, FindsByIndexNameAndUuid) {
  auto devices = two_devices();
  EXPECT_EQ(select_device(devices, ""), 0u);
  EXPECT_EQ(select_device(devices, "1"), 1u);
  EXPECT_EQ(select_device(devices, "name=radeon"), 1u);
  EXPECT_EQ(select_device(devices, "uuid=CD00"), 1u);
  EXPECT_EQ(select_device(devices, "uuid=ab000000-0000"), 0u);
}

TEST(VulkanSelect, ErrorsListWhatIsThere) {
  auto devices = two_devices();
  for (const char* wrong : {"2", "-1", "1x", "name=matrox", "name=", "uuid=ff", "uuid=", "disk"}) {
    std::string text = message_of([&] { select_device(devices, wrong); });
    EXPECT_TRUE(text.starts_with("InvalidArgument")) << wrong << ": " << text;
    EXPECT_NE(text.find("AMD Radeon"), std::string::npos) << text;
    EXPECT_NE(text.find("GeForce"), std::string::npos) << text;
  }
}

TEST(VulkanSelect, UnusableDeviceIsRefusedWithItsReason) {
  auto devices = two_devices();
  devices[1].missing = "lacks timelineSemaphore (timeline semaphores)";
  std::string text = message_of([&] { select_device(devices, "1"); });
  EXPECT_TRUE(text.starts_with("Unsupported")) << text;
  EXPECT_NE(text.find("timelineSemaphore"), std::string::npos);
}

TEST(VulkanSelect, RanksByType) {
  EXPECT_EQ(fake("a", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 0).rank(), 400);
  EXPECT_EQ(fake("a", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 0).rank(), 300);
  EXPECT_EQ(fake("a", VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, 0).rank(), 200);
  EXPECT_EQ(fake("a", VK_PHYSICAL_DEVICE_TYPE_CPU, 0).rank(), 50);
}

TEST(VulkanSelect, MaskRefusesUnknownNames) {
  Caps caps;
  caps.synchronization2 = caps.shaderInt64 = true;
  EXPECT_EQ(apply_mask(caps, "synchronization2,"), "synchronization2");
  EXPECT_FALSE(caps.synchronization2);
  EXPECT_TRUE(caps.shaderInt64);
  for (const char* wrong : {"sync3", "storage storage8", "sub ", "all"}) {
    const std::string text = message_of([&] { apply_mask(caps, wrong); });
    EXPECT_TRUE(text.starts_with("InvalidArgument: TUFF_VK_DISABLE")) << text;
    for (const char* known : {" bda,", " sub,", "synchronization2"})
      EXPECT_NE(text.find(known), std::string::npos) << text;
  }
}

TEST(VulkanSelect, AShortNameMaySwitchSeveral) {
  Caps caps;
  caps.subgroupArithmetic = caps.subgroupShuffle = caps.bufferDeviceAddress = true;
  caps.storageBuffer8BitAccess = caps.storageBuffer16BitAccess = true;
  EXPECT_EQ(apply_mask(caps, "sub,storage8,i64"),
            "storageBuffer8BitAccess,subgroupArithmetic,subgroupShuffle");
  EXPECT_FALSE(caps.subgroupArithmetic || caps.subgroupShuffle || caps.storageBuffer8BitAccess);
  EXPECT_TRUE(caps.bufferDeviceAddress && caps.storageBuffer16BitAccess);
}

TEST(VulkanLimits, LowerAndNeverRaise) {
  Facts f;
  f.properties.limits.maxComputeSharedMemorySize = 32768;
  f.properties.limits.maxComputeWorkGroupCount[1] = 65535;
  apply_limits(f, "shared:65536,ssbo:4,,groups_y:7,loop:1000,");
  EXPECT_EQ(f.properties.limits.maxComputeSharedMemorySize, 32768u);
  EXPECT_EQ(f.max_buffers, 4u);
  EXPECT_EQ(f.properties.limits.maxComputeWorkGroupCount[1], 7u);
  EXPECT_EQ(f.max_loop_trips, 1000u);
  EXPECT_EQ(f.max_allocation_bytes, UINT64_MAX);
}

TEST(VulkanLimits, ErrorsListTheNames) {
  for (const char* wrong : {"ssbos:4", ":", "ssbo", "ssbo:", "ssbo:x", "ssbo:4x", "ssbo:-4",
                            "ssbo:4 ", "ssbo:99999999999999999999"}) {
    Facts f;
    const std::string text = message_of([&] { apply_limits(f, wrong); });
    EXPECT_TRUE(text.starts_with("InvalidArgument: TUFF_VK_LIMIT")) << wrong << ": " << text;
    EXPECT_NE(text.find("invocations"), std::string::npos) << text;
  }
  Facts f;
  EXPECT_NE(message_of([&] { apply_limits(f, "ssbo:2"); }).find("below 3"), std::string::npos);
}

TEST(VulkanLimits, EveryRowLowersTheValueThatIsShown) {
  for (const VulkanLimit& row : vulkan_limits()) {
    Facts f;
    VkPhysicalDeviceLimits& l = f.properties.limits;
    l.maxStorageBufferRange = 1 << 27;
    l.maxComputeSharedMemorySize = l.maxComputeWorkGroupInvocations = l.maxPushConstantsSize = 1000;
    for (int i = 0; i < 3; i++) l.maxComputeWorkGroupSize[i] = l.maxComputeWorkGroupCount[i] = 1000;
    const auto before = limit_values(f);
    apply_limits(f, std::string(row.name) + ":" + std::to_string(row.lowest));
    const auto after = limit_values(f);
    for (size_t i = 0; i < after.size(); i++) {
      EXPECT_EQ(after[i].second,
                after[i].first == row.name ? std::to_string(row.lowest) : before[i].second)
          << row.name << " " << after[i].first;
    }
  }
}

TEST(VulkanSelect, ForbiddenNodeNamesTheGroup) {
  TemporaryFolder folder;
  for (const char* name : {"renderD128", "renderD129", "card0"})
    std::ofstream(folder.path() + "/" + name);
  std::string text = forbidden_nodes(folder.path(), [](const char*) { return false; });
  EXPECT_NE(text.find("renderD128"), std::string::npos) << text;
  EXPECT_NE(text.find("renderD129"), std::string::npos);
  EXPECT_EQ(text.find("card0"), std::string::npos);
  EXPECT_NE(text.find("join the group"), std::string::npos);
  EXPECT_EQ(forbidden_nodes(folder.path(), [](const char*) { return true; }), "");
  EXPECT_EQ(forbidden_nodes(folder.path() + "/none", [](const char*) { return false; }), "");
}

TEST(VulkanSelect, MissingLoaderNamesTheRemedy) {
  const std::string names[] = {"libno-such-vulkan.so.1"};
  std::string text = message_of([&] { Instance::open(names, false); });
  EXPECT_TRUE(text.starts_with("Unsupported")) << text;
  EXPECT_NE(text.find("install libvulkan1"), std::string::npos) << text;
}

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kHost =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

TEST(VulkanMemoryTypes, DiscreteWithSmallWindow) {
  VkPhysicalDeviceMemoryProperties m{};
  m.memoryHeapCount = 3;
  m.memoryHeaps[0] = {8ull << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryHeaps[1] = {16ull << 30, 0};
  m.memoryHeaps[2] = {256ull << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryTypeCount = 4;
  m.memoryTypes[0] = {kLocal, 0};
  m.memoryTypes[1] = {kHost, 1};
  m.memoryTypes[2] = {kLocal | kHost, 2};
  m.memoryTypes[3] = {kHost | kCached, 1};
  EXPECT_EQ(choose_memory_type(m, ~0u, MemoryKind::Device), 0);
  EXPECT_EQ(choose_memory_type(m, ~0u, MemoryKind::Args), 2);
  EXPECT_EQ(choose_memory_type(m, ~0u, MemoryKind::Upload), 1);
  EXPECT_EQ(choose_memory_type(m, ~0u, MemoryKind::Readback), 3);
  EXPECT_EQ(choose_memory_type(m, 0b0011, MemoryKind::Args), 1);
  EXPECT_EQ(choose_memory_type(m, 0b0001, MemoryKind::Upload), -1);
}

TEST(VulkanMemoryTypes, UnifiedMemoryIsMappedAndNonCoherentIsAvoided) {
  VkPhysicalDeviceMemoryProperties m{};
  m.memoryHeapCount = 1;
  m.memoryHeaps[0] = {16ull << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryTypeCount = 3;
  m.memoryTypes[0] = {kLocal, 0};
  m.memoryTypes[1] = {kLocal | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | kCached, 0};
  m.memoryTypes[2] = {kLocal | kHost | kCached, 0};
  for (auto kind :
       {MemoryKind::Device, MemoryKind::Args, MemoryKind::Upload, MemoryKind::Readback}) {
    EXPECT_EQ(choose_memory_type(m, ~0u, kind), 2);
  }
}

TEST(VulkanQuirks, RowsMatchDriverAndVersion) {
  EXPECT_EQ(quirks_of(VK_DRIVER_ID_MESA_LLVMPIPE, 1).max_loop_trips, 65535u);
  EXPECT_EQ(quirks_of(VK_DRIVER_ID_MESA_RADV, 1).max_loop_trips, 0u);
  EXPECT_EQ(quirks_of(VK_DRIVER_ID_MESA_RADV, 1).access_bytes, 0u);
  EXPECT_EQ(quirks_of(VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 1).access_bytes, 4u);
  EXPECT_TRUE(quirks_of(VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 1).u32_to_f32_rounds_twice);
  EXPECT_TRUE(quirks_of(VK_DRIVER_ID_MESA_LLVMPIPE, 1).folds_zero_products);
  EXPECT_FALSE(quirks_of(VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 1).folds_zero_products);
  EXPECT_TRUE(quirks_of(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 1).folds_f16_casts);
  EXPECT_FALSE(quirks_of(VK_DRIVER_ID_MESA_RADV, 1).folds_f16_casts);
  EXPECT_TRUE(quirks_of(VK_DRIVER_ID_NVIDIA_PROPRIETARY, 1).loses_wide_quotients);
  EXPECT_TRUE(quirks_of(VK_DRIVER_ID_MESA_RADV, VK_MAKE_VERSION(22, 3, 6)).misreads_denormals);
  EXPECT_FALSE(quirks_of(VK_DRIVER_ID_MESA_RADV, VK_MAKE_VERSION(25, 0, 7)).misreads_denormals);
}

TEST(VulkanClock, ConvertsAcrossAWrap) {
  TickScale scale{.ns_per_tick = 10,
                  .bits = 36,
                  .reference_ticks = (1ull << 36) - 5,
                  .reference_ns = 1'000'000};
  EXPECT_EQ(scale.to_ns((1ull << 36) - 5), 1'000'000u);
  EXPECT_EQ(scale.to_ns(5), 1'000'100u);
  EXPECT_EQ(scale.to_ns((1ull << 36) - 15), 999'900u);
}

class VulkanOpen : public VulkanTest {};

TEST_F(VulkanOpen, ProbeDescribesWhatOpenOpens) {
  auto candidates = vulkan_probe();
  const Candidate& c = candidates[0];
  EXPECT_EQ(c.name, "VULKAN:0");
  EXPECT_GT(c.rank, 0);
  EXPECT_EQ(c.info.uuid.size(), 32u);
  EXPECT_EQ(device_->name(), c.name);
  EXPECT_EQ(device_->info().description, c.info.description);
  EXPECT_EQ(vulkan_open("uuid=" + c.info.uuid)->info().uuid, c.info.uuid);
  EXPECT_EQ(vulkan_open("name=" + c.info.description)->info().description, c.info.description);
  EXPECT_THROW(vulkan_open("99"), InvalidArgument);
  EXPECT_THROW(vulkan_open("name=no such device"), InvalidArgument);
}

TEST_F(VulkanOpen, TargetSaysWhatTheDriverSays) {
  const Target& t = device_->target();
  EXPECT_EQ(t.device, "VULKAN");
  EXPECT_EQ(t.renderer, "spirv");
  EXPECT_TRUE(t.features.device_address);
  EXPECT_GE(t.max_invocations, 128u);
  EXPECT_GE(t.shared_bytes, 16384u);
  EXPECT_FALSE(t.identity.empty());
}

TEST_F(VulkanOpen, TargetAndListingShowTheLimits) {
  device_.reset();
  EnvOverride limit(Env::TUFF_VK_LIMIT, "ssbo:4,shared:16384,invocations:128,groups_x:99,loop:500");
  const auto opened = vulkan_open("");
  const Target& t = opened->target();
  EXPECT_EQ(t.max_buffers, 4u);
  EXPECT_EQ(t.shared_bytes, 16384u);
  EXPECT_EQ(t.max_invocations, 128u);
  EXPECT_EQ(t.max_groups[0], 99u);
  EXPECT_EQ(t.max_loop_trips, 500u);
  const auto& shown = opened->info().features;
  EXPECT_NE(std::find(shown.begin(), shown.end(), std::pair<std::string, std::string>("ssbo", "4")),
            shown.end());
}

TEST_F(VulkanOpen, TooFewPushConstantsAreNamed) {
  EnvOverride limit(Env::TUFF_VK_LIMIT, "push:4");
  EXPECT_NE(vulkan_probe()[0].reason.find("8 bytes of push constants"), std::string::npos);
  EXPECT_THROW(vulkan_open(""), Unsupported);
}

TEST_F(VulkanOpen, TiersAreShown) {
  device_.reset();
  const auto shown = [](const hcq::Device& d, const std::string& name) -> std::string {
    for (const auto& [feature, value] : d.info().features)
      if (feature == name) return value;
    return "absent";
  };
  const auto whole = vulkan_open("");
  EXPECT_EQ(shown(*whole, "sync"), "timeline");
  EXPECT_EQ(shown(*whole, "buffers"), "addresses");
  EXPECT_EQ(shown(*whole, "disabled"), "none");
  EXPECT_EQ(whole->target().max_binding_bytes, UINT64_MAX);
  EnvOverride disable(Env::TUFF_VK_DISABLE, "core12,bda,timeline");
  EnvOverride limit(Env::TUFF_VK_LIMIT, "ssbo:4,range:65536");
  const auto least = vulkan_open("");
  EXPECT_EQ(shown(*least, "sync"), "fences");
  EXPECT_EQ(shown(*least, "buffers"), "descriptors");
  // A driver that has bufferDeviceAddress from 1.2's core alone does not offer it to 1.1.
  EXPECT_NE(shown(*least, "disabled").find("timelineSemaphore,vulkan12"), std::string::npos)
      << shown(*least, "disabled");
  EXPECT_EQ(least->target().arch, "spirv1.3");
  EXPECT_EQ(least->target().max_buffers, 3u);  // and the argument block
  EXPECT_EQ(least->target().max_binding_bytes, 65536u - 256u);
}

TEST_F(VulkanOpen, TooFewStorageBuffersAreNamed) {
  EnvOverride disable(Env::TUFF_VK_DISABLE, "bda");
  EnvOverride limit(Env::TUFF_VK_LIMIT, "ssbo:3");
  auto candidates = vulkan_probe();
  EXPECT_FALSE(candidates[0].usable);
  EXPECT_NE(candidates[0].reason.find("bufferDeviceAddress"), std::string::npos)
      << candidates[0].reason;
  EXPECT_THROW(vulkan_open(""), Unsupported);
}

// The quirk table against the device itself, and the features that kernels rely on.
TEST_F(VulkanOpen, ProbeKernelAgreesWithTarget) {
  hcq::Span out = allocate(32);
  constexpr int kTrips = 100'000;
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Probe), arguments({out}, {kTrips, 1}), 1));
  run(list);
  auto w = words(out);
  uint64_t limit = device_->target().max_loop_trips;
  EXPECT_EQ(w[0], limit ? std::min<uint64_t>(limit, kTrips) : kTrips);
  EXPECT_EQ(w[3], 0x4b800000u);
}

}  // namespace
}  // namespace tuff::devices
