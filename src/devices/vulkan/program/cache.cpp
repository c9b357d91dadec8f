#include "devices/vulkan/program/cache.h"

#include <cstring>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "devices/selector.h"

namespace tuff::devices::vulkan {
namespace {

constexpr char kMagic[8] = {'T', 'U', 'F', 'F', 'V', 'K', 'P', 'C'};
constexpr uint32_t kFormat = 1;
constexpr uint64_t kSaveIntervalNs = 10'000'000'000;  // a killed process loses ten seconds of work

// Vulkan's own header (VkPipelineCacheHeaderVersionOne), which drivers are known not to verify.
bool native_header_fits(const VkPhysicalDeviceProperties& p, std::span<const uint8_t> data) {
  VkPipelineCacheHeaderVersionOne h{};
  if (data.size() < sizeof h) return false;
  std::memcpy(&h, data.data(), sizeof h);
  return h.headerSize >= sizeof h && h.headerSize <= data.size() &&
         h.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && h.vendorID == p.vendorID &&
         h.deviceID == p.deviceID &&
         !std::memcmp(h.pipelineCacheUUID, p.pipelineCacheUUID, VK_UUID_SIZE);
}

}  // namespace

std::vector<uint8_t> wrap_cache(const VkPhysicalDeviceProperties& p,
                                std::span<const uint8_t> data) {
  CacheFileHeader h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.format = kFormat;
  h.vendor_id = p.vendorID;
  h.device_id = p.deviceID;
  h.driver_version = p.driverVersion;
  std::memcpy(h.uuid, p.pipelineCacheUUID, VK_UUID_SIZE);
  h.data_bytes = data.size();
  h.checksum = fnv1a(data);
  std::vector<uint8_t> file(sizeof h + data.size());
  std::memcpy(file.data(), &h, sizeof h);
  if (!data.empty()) std::memcpy(file.data() + sizeof h, data.data(), data.size());
  return file;
}

std::span<const uint8_t> unwrap_cache(const VkPhysicalDeviceProperties& p,
                                      std::span<const uint8_t> file, std::string* why) {
  auto refuse = [&](const char* reason) -> std::span<const uint8_t> {
    *why = reason;
    return {};
  };
  CacheFileHeader h{};
  if (file.size() < sizeof h) return refuse("too short");
  std::memcpy(&h, file.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) || h.format != kFormat)
    return refuse("not of this format");
  if (h.vendor_id != p.vendorID || h.device_id != p.deviceID ||
      h.driver_version != p.driverVersion ||
      std::memcmp(h.uuid, p.pipelineCacheUUID, VK_UUID_SIZE)) {
    return refuse("of another device or driver");
  }
  auto data = file.subspan(sizeof h);
  if (data.size() != h.data_bytes) return refuse("truncated");
  if (fnv1a(data) != h.checksum) return refuse("damaged");
  if (!native_header_fits(p, data)) return refuse("without a valid driver header");
  return data;
}

PipelineCache::PipelineCache(std::shared_ptr<Context> context) : context_(std::move(context)) {
  Context& c = *context_;
  path_ = os::cache_path(fmt::format("vulkan/pipelines-{}.bin", c.facts.uuid_text()));
  std::vector<uint8_t> file = read_file();
  std::string why;
  auto data =
      file.empty() ? std::span<const uint8_t>() : unwrap_cache(c.facts.properties, file, &why);
  if (!why.empty()) log_info("{}: {} is {}; it is made anew", c.name, path_, why);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.empty() ? nullptr : data.data();
  VkResult result = c.api.vkCreatePipelineCache(c.device, &info, nullptr, &handle_);
  loaded_ = result == VK_SUCCESS && !data.empty();
  if (result != VK_SUCCESS && !data.empty()) {
    info.initialDataSize = 0;
    info.pInitialData = nullptr;
    result = c.api.vkCreatePipelineCache(c.device, &info, nullptr, &handle_);
  }
  c.check(result, "vkCreatePipelineCache");
  last_save_ns_ = os::monotonic_ns();
}

PipelineCache::~PipelineCache() {
  save();
  context_->api.vkDestroyPipelineCache(context_->device, handle_, nullptr);
}

std::vector<uint8_t> PipelineCache::read_file() {
  if (path_.empty()) return {};
  try {
    return os::read_private_file(path_).value_or(std::vector<uint8_t>());
  } catch (const Error& e) {
    log_warn("{}: the pipeline cache cannot be read: {}", context_->name, e.what());
    return {};
  }
}

void PipelineCache::added(size_t pipelines) {
  bool due = false;
  {
    std::lock_guard lock(mutex_);
    unsaved_ += pipelines;
    due = unsaved_ && os::monotonic_ns() - last_save_ns_ > kSaveIntervalNs;
  }
  if (due) save();
}

void PipelineCache::save() noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (path_.empty() || !unsaved_ || context_->lost() || context_->abandoned()) return;
    Context& c = *context_;
    size_t size = 0;
    c.check(c.api.vkGetPipelineCacheData(c.device, handle_, &size, nullptr),
            "vkGetPipelineCacheData");
    std::vector<uint8_t> data(size);
    c.check(c.api.vkGetPipelineCacheData(c.device, handle_, &size, data.data()),
            "vkGetPipelineCacheData");
    data.resize(size);
    os::write_private_file(path_, wrap_cache(c.facts.properties, data));
    unsaved_ = 0;
    last_save_ns_ = os::monotonic_ns();
  } catch (const std::exception& e) {
    // A cache that cannot be written costs time, never a result.
    log_warn("{}: the pipeline cache was not saved: {}", context_->name, e.what());
  }
}

}  // namespace tuff::devices::vulkan
