#include "devices/vulkan/device/vulkan_device.h"

#include "base/check.h"
#include "devices/vulkan/facts/describe.h"
#include "devices/vulkan/facts/select.h"
#include "devices/vulkan/self_test/verdicts.h"
#include "devices/vulkan/vulkan.h"

namespace tuff::devices {
namespace vulkan {

VulkanDevice::VulkanDevice(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      info_(make_info(context_->facts, context_->name)),
      target_(make_target(context_->facts)),
      blocks_(context_),
      loader_(context_, target_),
      queue_(*this, context_) {
  hcq::close_in_children(*this);
}

VulkanDevice::~VulkanDevice() {
  context_->settle();
  shut_down();
}

std::optional<hcq::ForeignMemory> VulkanDevice::over_host(void* data, size_t size_bytes) {
  fail_if_lost();
  const hcq::MemoryBlock block = blocks_.import_host(data, size_bytes);
  return hcq::ForeignMemory{.block = block, .release = [this, block] { unmap_block(block); }};
}

std::optional<hcq::Adoption::NativeMemory> VulkanDevice::over_native(uint64_t handle) {
  const std::optional<hcq::MemoryBlock> known = allocator().block_with(handle);
  if (!known) return std::nullopt;
  return NativeMemory{{.block = *known}};
}

namespace {

std::string device_name(size_t index) { return fmt::format("VULKAN:{}", index); }

Candidate make_candidate(const Facts& f, size_t index) {
  const std::string name = device_name(index);
  return {.name = name,
          .usable = f.usable(),
          .reason = f.usable() ? "" : fmt::format("{} {}", f.properties.deviceName, f.missing),
          .info = make_info(f, name),
          .rank = f.rank()};
}

Candidate absent(std::string reason) {
  return {.name = "VULKAN", .reason = std::move(reason), .rank = 1};
}

}  // namespace

VulkanDevice& native(hcq::Device& device) {
  auto* d = dynamic_cast<VulkanDevice*>(&device);
  if (!d) fail<InvalidArgument>("{} is not a Vulkan device", device.name());
  return *d;
}

}  // namespace vulkan

std::vector<Candidate> vulkan_probe() {
  std::vector<Candidate> candidates;
  std::string hint = vulkan::forbidden_nodes();
  try {
    auto instance = vulkan::Instance::acquire();
    auto devices = vulkan::list_devices(*instance);
    for (size_t i = 0; i < devices.size(); ++i) {
      vulkan::recall_verdicts(devices[i]);
      candidates.push_back(vulkan::make_candidate(devices[i], i));
    }
    if (devices.empty() && hint.empty()) {
      candidates.push_back(
          vulkan::absent("the Vulkan loader found no device: install a Vulkan driver"));
    }
  } catch (const Unsupported& e) {
    candidates.push_back(vulkan::absent(e.what()));
  }
  if (!hint.empty()) candidates.push_back(vulkan::absent(hint));
  return candidates;
}

std::unique_ptr<hcq::Device> vulkan_open(const std::string& selector) {
  auto instance = vulkan::Instance::acquire();
  auto devices = vulkan::list_devices(*instance);
  const size_t index = vulkan::select_device(devices, selector);
  const std::string name = vulkan::device_name(index);
  const auto open = [&](const vulkan::Facts& facts) {
    return std::make_unique<vulkan::VulkanDevice>(
        std::make_shared<vulkan::Context>(instance, facts, name));
  };
  vulkan::settle_verdicts(devices[index], name, open);
  return open(devices[index]);
}

VkApi& vulkan_api(hcq::Device& device) { return vulkan::native(device).context()->api; }

uint64_t vulkan_validation_message_count() { return vulkan::validation_message_count(); }

bool vulkan_validation_active(hcq::Device& device) {
  return vulkan::native(device).context()->instance->validation;
}

}  // namespace tuff::devices
