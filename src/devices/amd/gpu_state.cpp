#include "devices/amd/gpu_state.h"

#include <algorithm>

#include "base/os.h"

namespace tuff::devices::amd {
namespace {

// The same for all generations in the table; measured once there was time to measure. Source: Linux
// amdgpu (amdgpu_asic_get_xclk: 100 MHz).
constexpr double kNominalNsPerTick = 10;
constexpr uint64_t kMeasurableNs = 50'000'000;

const Generation& generation_of(const GpuNode& node) {
  const Generation* g = node.generation();
  if (g == nullptr) fail<Unsupported>("AMD: {} is not supported", node.arch());
  return *g;
}

}  // namespace

GpuClock::GpuClock(Process& process, const Gpu& gpu)
    : process_(process), gpu_(gpu), opened_(read()) {}

GpuClock::Point GpuClock::read() const {
  uapi::GetClockCounters c{};
  c.gpu_id = gpu_.node.gpu_id;
  const uint64_t before = os::monotonic_ns();
  checked(process_.kernel().ioctl(process_.fd(), uapi::kGetClockCounters, &c),
          "GET_CLOCK_COUNTERS({})", gpu_.node.arch());
  return {c.gpu_clock_counter, before + (os::monotonic_ns() - before) / 2};
}

std::vector<uint64_t> GpuClock::to_ns(std::span<const uint64_t> ticks) {
  const Point now = read();
  const uint64_t elapsed = now.host_ns - opened_.host_ns;
  const double ns_per_tick =
      elapsed < kMeasurableNs || now.ticks <= opened_.ticks
          ? kNominalNsPerTick
          : static_cast<double>(elapsed) / static_cast<double>(now.ticks - opened_.ticks);
  std::vector<uint64_t> out;
  for (uint64_t t : ticks) {
    const auto behind = static_cast<double>(static_cast<int64_t>(now.ticks - t));
    out.push_back(now.host_ns - static_cast<uint64_t>(static_cast<int64_t>(behind * ns_per_tick)));
  }
  return out;
}

GpuState::GpuState(std::shared_ptr<Process> process, const GpuNode& node, Lost lost)
    : process(std::move(process)),
      gpu(this->process->attach(node)),
      generation(generation_of(node)),
      events(*this->process, gpu),
      clock(*this->process, gpu),
      lost_(std::move(lost)) {}

void GpuState::block(const Event* event, uint32_t timeout_ms) {
  Exceptions e;
  try {
    e = events.wait(event, timeout_ms);
  } catch (const DeviceLost& error) {
    lost_(error.what(), {});
  }
  if (e.memory) lost_(to_text(*e.memory), e.memory->address);
  if (e.hardware) lost_(to_text(*e.hardware), {});
}

std::shared_ptr<const Scratch> GpuState::scratch(uint32_t bytes_per_lane) {
  if (bytes_per_lane == 0) return nullptr;
  std::lock_guard lock(scratch_mutex_);
  if (scratch_ && scratch_->area.size.bytes_per_lane >= bytes_per_lane) return scratch_;
  auto grown = std::make_shared<Scratch>();
  grown->area.size = scratch_size(generation, gpu.node.shape, bytes_per_lane);
  grown->memory =
      process->allocate(gpu, {grown->area.size.size_bytes, MemoryDomain::Vram});
  grown->area.address = grown->memory->address();
  return scratch_ = std::move(grown);
}

std::string to_text(const uapi::MemoryException& e) {
  const char* kinds[] = {"memory access fault", "memory error (ECC)", "poisoned memory was read",
                         "the GPU hangs"};
  const char* access = e.no_execute    ? "instructions are fetched from memory without that right"
                       : e.read_only   ? "a write to memory that is read-only"
                       : e.not_present ? "a page that is not mapped for this GPU"
                                       : "access unknown";
  return fmt::format("{} at {:#x}: {}{}", kinds[std::min<uint32_t>(e.error_type, 3)], e.address,
                     access, e.imprecise ? " (the address is imprecise)" : "");
}

std::string to_text(const uapi::HwException& e) {
  return fmt::format(
      "hardware exception: {} of {}{}",
      e.reset_cause == 1 ? "an uncorrectable memory error (ECC), reset" : "a hang, reset",
      e.reset_type == 1 ? "one engine" : "the whole GPU",
      e.memory_lost ? "; its memory is lost" : "");
}

}  // namespace tuff::devices::amd
