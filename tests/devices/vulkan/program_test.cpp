// Loading kernels, and the pipeline cache on disk with every kind of damage.
#include <fstream>

#include "base/os.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "devices/vulkan/program/executables.h"
#include "fixture.h"
#include "tuff/error.h"

namespace tuff::devices {
namespace {

class VulkanProgramTest : public VulkanTest {
 protected:
  std::string cache_path() {
    return dynamic_cast<vulkan::VulkanDevice&>(*device_).loader().cache().path();
  }
  bool loaded_from_file() {
    return dynamic_cast<vulkan::VulkanDevice&>(*device_).loader().cache().loaded_from_file();
  }
  void fill_works() {
    hcq::Span dst = allocate(256);
    hcq::CommandList list;
    list.commands.push_back(dispatch(load(Kernel::Fill), arguments({dst}, {64, 42, 0}), 1));
    run(list);
    EXPECT_EQ(words(dst), std::vector<uint32_t>(64, 42));
  }
};

TEST_F(VulkanProgramTest, LoadsManyInOrder) {
  std::vector<render::Binary> binaries;
  for (int i = 0; i < 12; ++i) {
    binaries.push_back(kernel_binary(i % 2 ? Kernel::Copy : Kernel::Fill));
    binaries.back().name += std::to_string(i);
  }
  auto programs = device_->load(binaries);
  ASSERT_EQ(programs.size(), 12u);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(programs[i]->name(), binaries[i].name);
    EXPECT_EQ(programs[i]->args(), binaries[i].args);
  }
}

// A driver's answers, which no software driver gives.
VkResult one_executable(VkDevice, const VkPipelineInfoKHR*, uint32_t* count,
                        VkPipelineExecutablePropertiesKHR* to) {
  *count = 1;
  if (!to) return VK_SUCCESS;
  EXPECT_EQ(to->sType, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR);
  std::strcpy(to->name, "compute");
  to->subgroupSize = 32;
  return VK_SUCCESS;
}
VkResult four_statistics(VkDevice, const VkPipelineExecutableInfoKHR*, uint32_t* count,
                         VkPipelineExecutableStatisticKHR* to) {
  *count = 4;
  if (!to) return VK_SUCCESS;
  using Format = VkPipelineExecutableStatisticFormatKHR;
  const char* const names[] = {"spills", "balance", "registers", "occupancy"};
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(to[i].sType, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR);
    std::strcpy(to[i].name, names[i]);
    to[i].format = Format(i);
  }
  to[0].value.b32 = VK_FALSE;
  to[1].value.i64 = -3;
  to[2].value.u64 = 40;
  to[3].value.f64 = 0.5;
  return VK_SUCCESS;
}
VkResult text_and_binary(VkDevice, const VkPipelineExecutableInfoKHR*, uint32_t* count,
                         VkPipelineExecutableInternalRepresentationKHR* to) {
  *count = 2;
  if (!to) return VK_SUCCESS;
  const char text[] = "s_endpgm\n";
  std::strcpy(to[0].name, "assembly");
  std::strcpy(to[1].name, "binary");
  to[0].isText = VK_TRUE;
  if (to[0].pData) std::memcpy(to[0].pData, text, to[0].dataSize);
  to[0].dataSize = sizeof text;
  to[1].dataSize = 4;
  return VK_SUCCESS;
}

TEST_F(VulkanProgramTest, SaysWhatTheDriverSaysOfAKernel) {
  const hcq::Program* program = load(Kernel::Fill);
  const auto& compiled = dynamic_cast<const vulkan::VulkanProgram&>(*program);
  VkApi& api = vulkan_api(*device_);
  const VkApi real = api;
  api.vkGetPipelineExecutablePropertiesKHR = one_executable;
  api.vkGetPipelineExecutableStatisticsKHR = four_statistics;
  api.vkGetPipelineExecutableInternalRepresentationsKHR = text_and_binary;
  EXPECT_EQ(vulkan::described(*compiled.context(), compiled.pipeline()),
            "compute: subgroup size 32, spills no, balance -3, registers 40, occupancy 0.5\n"
            "assembly:\ns_endpgm\n");
  api = real;
}

TEST_F(VulkanProgramTest, RefusesWhatIsNoKernel) {
  auto refused = [&](auto&& change) {
    render::Binary b = kernel_binary(Kernel::Fill);
    change(b);
    std::vector<render::Binary> binaries{kernel_binary(Kernel::Copy), b};
    EXPECT_THROW(device_->load(binaries), CompileError);
  };
  refused([](auto& b) { b.format = render::BinaryFormat::Object; });
  refused([](auto& b) { b.bytes = nullptr; });
  refused([](auto& b) { b.bytes = std::make_shared<std::vector<uint8_t>>(64); });
  refused([](auto& b) {
    b.bytes = std::make_shared<std::vector<uint8_t>>(b.bytes->begin(), b.bytes->end() - 1);
  });
  refused([](auto& b) { b.local = {1, 0, 1}; });
  refused([&](auto& b) { b.local = {device_->target().max_invocations + 1, 1, 1}; });
  refused([&](auto& b) { b.shared_bytes = device_->target().shared_bytes + 1; });
  fill_works();
}

TEST_F(VulkanProgramTest, DispatchOfAForeignProgramIsRefused) {
  auto other = vulkan_open("");
  render::Binary binary = kernel_binary(Kernel::Fill);
  auto programs = other->load({&binary, 1});
  hcq::CommandList list;
  list.commands.push_back(dispatch(programs[0].get(), arguments({allocate(256)}, {64, 0, 0}), 1));
  EXPECT_THROW(device_->compute_queue().encode(list, hcq::EncodeUse::Once), InvalidArgument);
}

TEST_F(VulkanProgramTest, CacheIsWrittenAtCloseAndReadAtOpen) {
  std::string path = cache_path();
  ASSERT_TRUE(path.starts_with(folder_.path())) << path;
  close();
  std::filesystem::remove(path);  // what the self-tests of the first opening have left
  open(true);
  EXPECT_FALSE(loaded_from_file());
  fill_works();
  open(true);
  EXPECT_TRUE(os::exists(path));
  EXPECT_TRUE(loaded_from_file());
  fill_works();
}

TEST_F(VulkanProgramTest, DamagedCacheFilesAreIgnoredAndReplaced) {
  std::string path = cache_path();
  fill_works();
  close();
  const std::vector<uint8_t> good = os::read_file(path);
  std::vector<std::vector<uint8_t>> damaged;
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{20}, sizeof(vulkan::CacheFileHeader), good.size() - 1}) {
    damaged.emplace_back(good.begin(), good.begin() + size);
  }
  for (size_t at = 0; at < good.size(); at += at < 128 ? 1 : 97) {
    if (at >= 12 + 44 && at < sizeof(vulkan::CacheFileHeader) - 16)
      continue;  // padding of the header
    damaged.push_back(good);
    damaged.back()[at] ^= 0x5a;
  }
  damaged.push_back(good);
  damaged.back().push_back(0);
  size_t refused = 0;
  open(true);
  const auto& properties =
      dynamic_cast<vulkan::VulkanDevice&>(*device_).context()->facts.properties;
  for (const auto& file : damaged) {
    std::string why;
    EXPECT_TRUE(vulkan::unwrap_cache(properties, file, &why).empty());
    refused += !why.empty();
  }
  EXPECT_EQ(refused, damaged.size());
  // The whole way for a few of them: the device opens, works, and writes a good file again.
  for (size_t i : {size_t{0}, size_t{2}, size_t{4}, damaged.size() - 2}) {
    close();
    os::write_file(path, damaged[i]);
    open(true);
    EXPECT_FALSE(loaded_from_file());
    fill_works();
    close();
    open(true);
    EXPECT_TRUE(loaded_from_file());
  }
}

TEST_F(VulkanProgramTest, UnwritableCacheFolderCostsNothingButTime) {
  close();
  std::ofstream(folder_.path() + "/vulkan") << "a file where the folder should be";
  open(true);
  fill_works();
}

TEST_F(VulkanProgramTest, NoFileWithoutCaches) {
  close();
  std::filesystem::remove_all(folder_.path() + "/vulkan");
  EnvOverride off(Env::TUFF_CACHE, "0");
  open(true);
  EXPECT_EQ(cache_path(), "");
  fill_works();
  close();
  EXPECT_FALSE(os::exists(folder_.path() + "/vulkan"));
}

}  // namespace
}  // namespace tuff::devices
