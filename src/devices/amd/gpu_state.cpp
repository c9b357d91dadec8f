#include "devices/amd/gpu_state.h"

#include <algorithm>

#include "base/check.h"
#include "base/os.h"

namespace tuff::devices::amd {
namespace {

// The same for all generations in the table; measured once there was time to measure. Source: Linux
// amdgpu (amdgpu_asic_get_xclk: 100 MHz).
constexpr double kNominalNsPerTick = 10;
constexpr uint64_t kMeasurableNs = 50'000'000;

}  // namespace

const Generation& generation_of(const GpuFacts& facts) {
  const Generation* g = facts.generation();
  if (g == nullptr) fail<Unsupported>("AMD: {} is not supported", facts.arch());
  return *g;
}

std::vector<uint64_t> GpuClock::to_ns(std::span<const uint64_t> ticks) {
  const ClockPoint now = space_.read_clock();
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

GpuState::GpuState(std::unique_ptr<Space> space, Lost lost)
    : space(std::move(space)),
      facts(this->space->facts()),
      generation(generation_of(facts)),
      clock(*this->space),
      lost_(std::move(lost)) {}

void GpuState::block(const Interrupt* interrupt, uint32_t timeout_ms) {
  std::optional<GpuError> error;
  try {
    error = space->wait(interrupt, timeout_ms);
  } catch (const DeviceLost& lost) {
    lost_(lost.what(), {});
  }
  if (error) lost_(error->text, error->address);
}

std::shared_ptr<const Scratch> GpuState::scratch(uint32_t bytes_per_lane) {
  if (bytes_per_lane == 0) return nullptr;
  std::lock_guard lock(scratch_mutex_);
  if (scratch_ && scratch_->area.size.bytes_per_lane >= bytes_per_lane) return scratch_;
  auto grown = std::make_shared<Scratch>();
  grown->area.size = scratch_size(generation, facts.shape, bytes_per_lane);
  grown->memory = space->allocate({grown->area.size.size_bytes, MemoryDomain::Vram});
  grown->area.address = grown->memory->address();
  return scratch_ = std::move(grown);
}

}  // namespace tuff::devices::amd
