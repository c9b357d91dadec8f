# Sources of the OpenCL device, relative to src/devices; included by src/devices/CMakeLists.txt.
# Headers alone are needed: the loader is opened at run time.
set(TUFF_OPENCL_SOURCES
  opencl/api.cpp
  opencl/binary_cache.cpp
  opencl/context.cpp
  opencl/facts.cpp
  opencl/images.cpp
  opencl/interop.cpp
  opencl/memory.cpp
  opencl/opencl_device.cpp
  opencl/program.cpp
  opencl/list.cpp
  opencl/queue.cpp
  opencl/signal.cpp)
