#include "devices/amd/pci/pci_space.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "devices/amd/pci/pci_queue.h"

namespace tuff::devices::amd {
namespace {

constexpr size_t kSignalBytes = 64, kSignalPageBytes = 64u << 10;
constexpr uint32_t kCusPerWgp = 2, kSimdsPerCu = 2;  // of RDNA3
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr std::chrono::microseconds kFirstPause{5}, kLongestPause{200};

// A word that packets write and wait() takes.
class PciInterrupt final : public Interrupt {
 public:
  explicit PciInterrupt(PciGpu& gpu) : page_(gpu, kSmallPageBytes, MemoryDomain::Uncached) {}
  uint32_t id() const override { return 1; }
  uint64_t mailbox() const override { return page_.address(); }
  bool take() const {
    auto& word = *reinterpret_cast<uint32_t*>(page_.host());
    return std::atomic_ref(word).exchange(0, std::memory_order_acquire) != 0;
  }

 private:
  PciBuffer page_;
};

}  // namespace

GpuFacts facts_of(const Discovery& discovery, uint64_t memory_bytes) {
  const IpVersion gc = discovery.block(Hwid::Gc).version;
  const GcShape& shape = discovery.gc;
  GpuFacts f;
  f.target_version = gc.major * 10000u + gc.minor * 100u + gc.revision;
  f.lds_kib = shape.lds_kib;
  f.vram_bytes = memory_bytes;
  f.name = "navi31";
  f.shape.simd_per_cu = kSimdsPerCu;
  f.shape.array_count = shape.engines * shape.arrays_per_engine;
  f.shape.simd_arrays_per_engine = shape.arrays_per_engine;
  f.shape.simd_count = f.shape.array_count * shape.wgps_per_array * kCusPerWgp * kSimdsPerCu;
  f.shape.max_waves_per_simd = shape.max_waves_per_simd;
  f.shape.max_slots_scratch_cu = shape.scratch_slots_per_cu;
  return f;
}

PciSpace::PciSpace(std::unique_ptr<PciGpu> gpu)
    : gpu_(std::move(gpu)), facts_(facts_of(gpu_->discovery(), gpu_->usable_bytes())) {}

PciSpace::~PciSpace() = default;

std::unique_ptr<Buffer> PciSpace::allocate(const BufferRequest& request) {
  return std::make_unique<PciBuffer>(*gpu_, request.size_bytes, request.domain);
}

bool PciSpace::share(Buffer&, Space& to) {
  if (&to != this) fail<Unsupported>("AMD: a GPU by PCI has no peers");
  return false;
}

uint64_t* PciSpace::allocate_signal() {
  std::lock_guard lock(mutex_);
  if (free_signals_.empty()) {
    auto page = std::make_unique<PciBuffer>(*gpu_, kSignalPageBytes, MemoryDomain::Uncached);
    for (size_t at = kSignalPageBytes; at > 0; at -= kSignalBytes)
      free_signals_.push_back(reinterpret_cast<uint64_t*>(page->host() + at - kSignalBytes));
    signal_pages_.push_back(std::move(page));
  }
  uint64_t* const slot = free_signals_.back();
  free_signals_.pop_back();
  return slot;
}

void PciSpace::free_signal(uint64_t* slot) noexcept {
  std::lock_guard lock(mutex_);
  free_signals_.push_back(slot);
}

std::shared_ptr<const void> PciSpace::show_code(uint64_t, std::vector<uint8_t>) { return nullptr; }

std::unique_ptr<Interrupt> PciSpace::make_interrupt() {
  return std::make_unique<PciInterrupt>(*gpu_);
}

std::unique_ptr<HardwareQueue> PciSpace::make_queue(const HardwareQueueSetup& setup) {
  std::atomic_flag& engine = setup.type == QueueType::Sdma ? copies_taken_ : compute_taken_;
  return std::make_unique<PciQueue>(*gpu_, setup, engine);
}

// Faults are looked at where nothing has arrived: each look is a few calls.
std::optional<GpuError> PciSpace::wait(const Interrupt* interrupt, uint32_t timeout_ms) {
  const auto* own = static_cast<const PciInterrupt*>(interrupt);
  const uint64_t end = os::monotonic_ns() + timeout_ms * kNsPerMs;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (own && own->take()) return std::nullopt;
    if (os::monotonic_ns() >= end) break;
    std::this_thread::sleep_for(pause);
  }
  if (gpu_->was_reset()) throw DeviceLost("AMD: the GPU has been reset");
  std::lock_guard lock(fault_mutex_);
  const std::optional<HubFault> fault = gpu_->take_fault();
  if (!fault) return std::nullopt;
  return GpuError{to_text(*fault), fault->address};
}

ClockPoint PciSpace::read_clock() const {
  const GpuRegisters& r = gpu_->registers();
  const uint64_t before = os::monotonic_ns();
  uint64_t high = r.read(reg::GOLDEN_TSC_COUNT_UPPER);
  for (;;) {
    const uint64_t low = r.read(reg::GOLDEN_TSC_COUNT_LOWER);
    const uint64_t again = r.read(reg::GOLDEN_TSC_COUNT_UPPER);
    if (again == high)
      return {high << 32 | low, before + (os::monotonic_ns() - before) / 2};
    high = again;
  }
}

}  // namespace tuff::devices::amd
