#include "devices/cpu/cpu.h"

#include "base/check.h"
#include "base/compilers.h"
#include "base/os.h"
#include "base/os_memory_room.h"
#include "devices/cpu/cpu_queue.h"
#include "devices/cpu_program.h"

namespace tuff::devices {
namespace {

using namespace hcq;

constexpr const char* kName = "CPU";
// Devices of one machine: each has a queue, threads and memory of its own, as those of a group do.
constexpr int kMostDevices = 4;

DeviceInfo describe(const std::string& name = kName) {
  return {.name = name,
          .description = os::cpu_identity(),
          .driver = "tuff",
          .memory_bytes = os::physical_memory_bytes(),
          .features = {{"cores", std::to_string(os::core_count())},
                       {"threads", std::to_string(cpu_thread_count())}}};
}

class CpuDevice final : public Device, private Adoption {
 public:
  explicit CpuDevice(const std::string& name)
      : info_(describe(name)),
        target_(cpu_target(kName)),
        queue_(*this, api_, cpu_thread_count()) {}
  ~CpuDevice() override {
    try {
      queue_.wait_idle();
    } catch (const Error&) {
      // Lost: the threads are ended below, before the memory goes.
    }
    queue_.stop();
    shut_down();
  }
  const DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  MemoryBlock map_block(size_t size_bytes, MemoryKind kind) override;
  void unmap_block(const MemoryBlock& block) noexcept override;
  std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary> binaries) override;
  Adoption* adoption() override { return this; }
  Queue& compute_queue() override { return queue_; }
  std::unique_ptr<Signal> create_signal(uint64_t value) override {
    return std::make_unique<CpuSignal>(value);
  }
  CpuApi& api() { return api_; }

 protected:
  void on_lost() noexcept override { queue_.halt(); }

 private:
  bool reaches_host() const override { return true; }
  std::optional<ForeignMemory> over_host(void* data, size_t size_bytes) override {
    return ForeignMemory{.block = host_block(data, size_bytes)};
  }

  CpuApi api_{[](size_t size_bytes) { return os::map_pages_within_limits(size_bytes, kName); },
              nullptr, nullptr};
  DeviceInfo info_;
  Target target_;
  CpuLoader loader_;
  std::atomic<uint64_t> mapped_bytes_{0};
  CpuQueue queue_;
};

MemoryBlock CpuDevice::map_block(size_t size_bytes, MemoryKind kind) {
  fail_if_lost();
  // The kernel promises more pages than there are; past the physical memory it would kill the
  // process.
  uint64_t after = mapped_bytes_.fetch_add(size_bytes) + size_bytes;
  void* p = nullptr;
  try {
    if (after <= info_.memory_bytes && after >= size_bytes) p = api_.map_pages(size_bytes);
  } catch (const OutOfMemory&) {
    mapped_bytes_.fetch_sub(size_bytes);
    throw;
  }
  if (p == nullptr) {
    mapped_bytes_.fetch_sub(size_bytes);
    fail<OutOfMemory>("CPU: no {} bytes of host memory: {} mapped of {}", size_bytes,
                      after - size_bytes, info_.memory_bytes);
  }
  return host_block(p, size_bytes, kind);
}

void CpuDevice::unmap_block(const MemoryBlock& block) noexcept {
  mapped_bytes_.fetch_sub(block.size_bytes);
  os::unmap_pages_within_limits(block.host, block.size_bytes);
}

std::vector<std::unique_ptr<Program>> CpuDevice::load(std::span<const render::Binary> binaries) {
  fail_if_lost();
  for (const render::Binary& b : binaries) {
    if (api_.loads && !api_.loads(b)) fail<CompileError>("{}: the object was refused", b.name);
  }
  return loader_.load(binaries);
}

}  // namespace

std::vector<Candidate> cpu_probe() {
  const std::string why = why_no_c_compiler();
  if (!why.empty()) return {{.name = kName, .reason = why, .rank = 100}};
  return {{.name = kName, .usable = true, .info = describe(), .rank = 100}};
}

std::unique_ptr<hcq::Device> cpu_open(const std::string& selector) {
  if (selector.empty() || selector == "0") return std::make_unique<CpuDevice>(kName);
  const bool more = selector.size() == 1 && selector[0] > '0' && selector[0] < '0' + kMostDevices;
  if (!more)
    fail<InvalidArgument>(
        "CPU:{}: there is one CPU device, CPU, and for tensors on several devices CPU:1 to CPU:{}",
        selector, kMostDevices - 1);
  return std::make_unique<CpuDevice>(fmt::format("{}:{}", kName, selector));
}

CpuApi& cpu_api(hcq::Device& device) {
  auto* cpu = dynamic_cast<CpuDevice*>(&device);
  TUFF_CHECK(cpu != nullptr, "{} is not the CPU device", device.name());
  return cpu->api();
}

}  // namespace tuff::devices
