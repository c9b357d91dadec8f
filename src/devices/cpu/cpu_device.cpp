#include "devices/cpu/cpu.h"

#include <map>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "devices/cpu/cpu_queue.h"
#include "devices/cpu/elf_object.h"
#include "render/clang_compiler.h"

namespace tuff::devices {
namespace {

using namespace hcq;

constexpr const char* kName = "CPU";

// A loaded object file. It holds its bytes, so the bytes' address stays a valid key while it lives.
struct Image {
  explicit Image(std::shared_ptr<const std::vector<uint8_t>> b)
      : bytes(std::move(b)), object(*bytes) {}
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  ElfObject object;
};

// Shared ownership is real here: several programs come from one image.
class ImageProgram final : public CpuProgram {
 public:
  ImageProgram(const render::Binary& b, std::shared_ptr<Image> image)
      : CpuProgram(b, reinterpret_cast<render::CpuKernelFn>(
                          const_cast<void*>(image->object.function(b.symbol)))),
        image_(std::move(image)) {}

 private:
  std::shared_ptr<Image> image_;
};

std::string arch() {
#if defined(__x86_64__)
  return "x86-64";
#else
  return "unknown";
#endif
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

uint32_t thread_count() {
  int64_t asked = env_int(Env::TUFF_THREADS);
  if (asked < 0 || asked > 4096)
    fail<InvalidArgument>("TUFF_THREADS={}: 0 (one per core) to 4096", asked);
  return asked > 0 ? static_cast<uint32_t>(asked) : os::core_count();
}

DeviceInfo describe() {
  DeviceInfo info;
  info.name = kName;
  info.description = os::cpu_identity();
  info.driver = "tuff";
  info.memory_bytes = os::physical_memory_bytes();
  info.features = {{"cores", std::to_string(os::core_count())},
                   {"threads", std::to_string(thread_count())}};
  return info;
}

Target make_target() {
  Target t;
  t.device = kName;
  t.renderer = "c";
  t.arch = arch();
  t.identity = os::cpu_identity();
  t.cores = thread_count();
  t.vector_bytes = has_avx512() ? 64 : 32;
  t.vector_registers = has_avx512() ? 32 : 16;
  t.max_groups = {INT32_MAX, INT32_MAX, INT32_MAX};
  t.launch_cost_ns = 100;  // on the consumer's own thread; sharing among workers costs about 10 us
  t.features = {.i8 = true,
                .i16 = true,
                .i64 = true,
                .f64 = true,
                .f16_casts = true,
                .u32_to_f32 = true,
                .storage8 = true,
                .storage16 = true,
                .device_address = true,
                .signed_zero_inf_nan = true,
                .literal_zero_products = true,
                .sqrt = true};
  return t;
}

class CpuDevice final : public Device {
 public:
  CpuDevice() : info_(describe()), target_(make_target()), queue_(*this, api_, thread_count()) {}
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
  Queue& compute_queue() override { return queue_; }
  CpuApi& api() { return api_; }

 protected:
  void on_lost() noexcept override { queue_.halt(); }

 private:
  std::shared_ptr<Image> image(const render::Binary& b);

  CpuApi api_{os::map_pages, nullptr, nullptr};
  DeviceInfo info_;
  Target target_;
  std::mutex image_mutex_;
  std::map<const void*, std::weak_ptr<Image>> images_;
  std::atomic<uint64_t> mapped_bytes_{0};
  CpuQueue queue_;
};

MemoryBlock CpuDevice::map_block(size_t size_bytes, MemoryKind kind) {
  fail_if_lost();
  // The kernel promises more pages than there are; past the physical memory it would kill the
  // process.
  uint64_t after = mapped_bytes_.fetch_add(size_bytes) + size_bytes;
  void* p =
      after <= info_.memory_bytes && after >= size_bytes ? api_.map_pages(size_bytes) : nullptr;
  if (p == nullptr) {
    mapped_bytes_.fetch_sub(size_bytes);
    fail<OutOfMemory>("CPU: no {} bytes of host memory: {} mapped of {}", size_bytes,
                      after - size_bytes, info_.memory_bytes);
  }
  return {reinterpret_cast<uint64_t>(p), size_bytes, static_cast<std::byte*>(p), kind, 0};
}

void CpuDevice::unmap_block(const MemoryBlock& block) noexcept {
  mapped_bytes_.fetch_sub(block.size_bytes);
  os::unmap_pages(block.host, block.size_bytes);
}

std::shared_ptr<Image> CpuDevice::image(const render::Binary& b) {
  if (b.format != render::BinaryFormat::Object || b.bytes == nullptr)
    fail<CompileError>("{}: the CPU loads object files", b.name);
  std::lock_guard lock(image_mutex_);
  std::weak_ptr<Image>& known = images_[b.bytes.get()];
  std::shared_ptr<Image> result = known.lock();
  if (result == nullptr) {
    std::erase_if(images_, [&](const auto& row) {
      return row.first != b.bytes.get() && row.second.expired();
    });
    result = std::make_shared<Image>(b.bytes);
    known = result;
  }
  return result;
}

std::vector<std::unique_ptr<Program>> CpuDevice::load(std::span<const render::Binary> binaries) {
  fail_if_lost();
  std::vector<std::unique_ptr<Program>> programs;
  programs.reserve(binaries.size());
  for (const render::Binary& b : binaries) {
    if (api_.loads && !api_.loads(b)) fail<CompileError>("{}: the object was refused", b.name);
    programs.push_back(std::make_unique<ImageProgram>(b, image(b)));
  }
  return programs;
}

}  // namespace

std::vector<Candidate> cpu_probe() {
  Candidate c;
  c.name = kName;
  c.rank = 100;
  if (!render::find_c_compiler()) {
    c.reason = "no C compiler: install clang, or name one with TUFF_CC";
    return {c};
  }
  c.usable = true;
  c.info = describe();
  return {c};
}

std::unique_ptr<hcq::Device> cpu_open(const std::string& selector) {
  if (!selector.empty() && selector != "0")
    fail<InvalidArgument>("CPU:{}: there is one CPU device, CPU", selector);
  return std::make_unique<CpuDevice>();
}

CpuApi& cpu_api(hcq::Device& device) {
  auto* cpu = dynamic_cast<CpuDevice*>(&device);
  TUFF_CHECK(cpu != nullptr, "{} is not the CPU device", device.name());
  return cpu->api();
}

std::unique_ptr<hcq::Signal> cpu_signal() { return std::make_unique<CpuSignal>(); }

}  // namespace tuff::devices
