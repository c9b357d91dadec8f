# Sources of the Vulkan device, relative to src/devices; included by src/devices/CMakeLists.txt.
# Headers alone are needed: the loader is opened at run time.
set(TUFF_VULKAN_SOURCES
  vulkan/device/api.cpp
  vulkan/device/context.cpp
  vulkan/device/describe.cpp
  vulkan/device/facts.cpp
  vulkan/device/instance.cpp
  vulkan/device/limits.cpp
  vulkan/device/select.cpp
  vulkan/device/vulkan_device.cpp
  vulkan/memory/blocks.cpp
  vulkan/program/cache.cpp
  vulkan/program/loader.cpp
  vulkan/queue/bindings.cpp
  vulkan/queue/clock.cpp
  vulkan/queue/encode.cpp
  vulkan/queue/encoded.cpp
  vulkan/queue/fences.cpp
  vulkan/queue/queue.cpp
  vulkan/queue/raw_replay.cpp
  vulkan/queue/recorder.cpp
  vulkan/queue/signal.cpp
  vulkan/quirks/quirks.cpp
  vulkan/quirks/self_test.cpp
  vulkan/quirks/verdicts.cpp)
set(TUFF_VULKAN_LIBS)
