// The k-th call of a Vulkan function fails: what the fault walks put into a device's function
// table. Tables take no context, so there is one of everything per process.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "devices/vulkan/api/api.h"

namespace tuff::test {

// What is to fail: the `call`-th of `entry`, from 1; counts calls either way.
struct Injection {
  std::string entry;
  uint64_t call = 0;
  VkResult code = VK_SUCCESS;
  bool happened = false;
  bool lost_stays = false;  // after VK_ERROR_DEVICE_LOST every function that may fail gives it
  std::map<std::string, uint64_t> calls;
  std::mutex mutex;  // pipelines are made, and queues run, by several threads

  bool hits(const char* name) {
    std::lock_guard lock(mutex);
    const uint64_t number = ++calls[name];
    const bool now = name == entry && number == call;
    if (now) happened = true;
    return now || (lost_stays && happened && code == VK_ERROR_DEVICE_LOST);
  }
  void arm(const std::string& name, uint64_t number, VkResult result) {
    std::lock_guard lock(mutex);
    entry = name;
    call = number;
    code = result;
    happened = false;
    calls.clear();
  }
};
inline Injection injection;
inline devices::VkApi real;

}  // namespace tuff::test

// In a function of a VkApi& api, after `real` has been set.
#define TUFF_MAY_FAIL(name)                                                         \
  if (api.name) {                                                                   \
    api.name = [](auto... arguments) -> VkResult {                                  \
      if (::tuff::test::injection.hits(#name)) return ::tuff::test::injection.code; \
      return ::tuff::test::real.name(arguments...);                                 \
    };                                                                              \
  }
