// PipelineCache: VkPipelineCache kept on disk, so that a driver compiles a kernel once per machine.
// Used by the program loader. A file is ours only if its header names this very driver and device
// and its checksum fits; anything else is ignored and rebuilt. Knows nothing of kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "devices/vulkan/facts/context.h"

namespace tuff::devices::vulkan {

// The file: this header, then Vulkan's own data (which opens with a header of its own).
struct CacheFileHeader {
  char magic[8];        // "TUFFVKPC"
  uint32_t format = 0;  // raised when this layout changes
  uint32_t vendor_id = 0, device_id = 0, driver_version = 0;
  uint8_t uuid[VK_UUID_SIZE] = {};
  uint64_t data_bytes = 0;
  uint64_t checksum = 0;  // FNV-1a of the data
};

std::vector<uint8_t> wrap_cache(const VkPhysicalDeviceProperties& p, std::span<const uint8_t> data);
// The data within, or empty with the reason in `why`.
std::span<const uint8_t> unwrap_cache(const VkPhysicalDeviceProperties& p,
                                      std::span<const uint8_t> file, std::string* why);

class PipelineCache {
 public:
  explicit PipelineCache(std::shared_ptr<Context> context);
  ~PipelineCache();  // saves
  VkPipelineCache handle() const { return handle_; }
  const std::string& path() const { return path_; }  // empty: no file is kept
  void added(size_t pipelines);                      // notes new pipelines; now and then saves
  void save() noexcept;                              // if there are new ones
  bool loaded_from_file() const { return loaded_; }

 private:
  std::vector<uint8_t> read_file();

  std::shared_ptr<Context> context_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::string path_;
  bool loaded_ = false;
  std::mutex mutex_;
  size_t unsaved_ = 0;
  uint64_t last_save_ns_ = 0;
};

}  // namespace tuff::devices::vulkan
