#include "devices/amd/amd_device.h"

#include <algorithm>

#include "base/check.h"
#include "base/compilers.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "devices/amd/program.h"

namespace tuff::devices::amd {
namespace {

// A submission takes 16 bytes of a PM4 ring; the others hold whole lists.
constexpr uint32_t kPm4RingBytes = 64u << 10, kAqlRingBytes = 1u << 20, kSdmaRingBytes = 1u << 20;

// Several XCCs take AQL alone.
bool uses_aql(const GpuFacts& facts) { return facts.shape.xccs > 1 || env_flag(Env::AMD_AQL); }

Target target_of(const GpuFacts& facts, const Generation& generation) {
  const bool aco = env_text(Env::AMD_COMPILER) == "aco";
  if (aco && generation.family != Family::RDNA3)
    fail<Unsupported>("AMD_COMPILER=aco compiles for RDNA3 alone: {} needs AMD_COMPILER=clang",
                      generation.name);
  Target t = builtin_target(fmt::format("{}-{}", aco ? "aco" : "amdgpu", generation.name));
  if (aco) {
    t.matrix_shapes = aco_matrix_shapes();
    t.features.denormals = aco_keeps_denormals();
    // As Vulkan's, which RADV makes of the same instruction.
    t.features.exp2 = true;
  }
  t.identity = fmt::format("kfd:{}:{}cu", generation.name, facts.shape.cus());
  t.cores = facts.shape.cus();
  t.shared_bytes = std::min(t.shared_bytes, facts.lds_kib << 10);
  if (!facts.integrated) t.max_buffer_bytes = t.max_binding_bytes = facts.vram_bytes;
  return t;
}

MemoryDomain domain_of(hcq::MemoryKind kind, const GpuFacts& facts) {
  switch (kind) {
    case hcq::MemoryKind::Device:
      if (facts.integrated) return MemoryDomain::Shared;
      return facts.has_peers ? MemoryDomain::PeerVram : MemoryDomain::Vram;
    case hcq::MemoryKind::Args:
      return facts.large_bar && !facts.integrated ? MemoryDomain::VisibleVram : MemoryDomain::Host;
    case hcq::MemoryKind::Upload:
    case hcq::MemoryKind::Readback: return MemoryDomain::Host;
  }
  return MemoryDomain::Host;
}

}  // namespace

HardwareQueueSetup compute_setup(const GpuFacts& facts) {
  if (uses_aql(facts)) return {QueueType::Aql, kAqlRingBytes};
  return {QueueType::Pm4, kPm4RingBytes};
}

constexpr int64_t kEmulatedSlowness = 20;

hcq::DeviceInfo describe(const GpuFacts& facts, const std::string& driver, const std::string& name,
                         bool emulated) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description = fmt::format("{}{}{}, {} compute units", facts.arch(),
                                 facts.name.empty() ? "" : " " + facts.name,
                                 emulated ? ", emulated" : "", facts.shape.cus());
  info.driver = emulated ? driver + " (emulated)" : driver;
  info.uuid = facts.unique_id ? fmt::format("{:016x}", facts.unique_id) : "";
  info.hardware = !emulated;
  info.slowness = emulated ? kEmulatedSlowness : 1;
  info.memory_bytes = facts.integrated ? os::physical_memory_bytes() : facts.vram_bytes;
  info.features = {{"arch", facts.arch()},
                   {"emulated", emulated ? "yes" : "no"},
                   {"compiler", env_text(Env::AMD_COMPILER)},
                   {"memory", facts.integrated  ? "shared with the CPU"
                              : facts.large_bar ? "host-visible"
                                                : "staged"},
                   {"queues", uses_aql(facts) ? "AQL, SDMA" : "PM4, SDMA"}};
  return info;
}

AmdDevice::AmdDevice(AmdIface& iface, std::unique_ptr<Space> space, hcq::DeviceInfo info)
    : take_findings_(iface.take_findings),
      info_(std::move(info)),
      target_(target_of(space->facts(), generation_of(space->facts()))) {
  gpu_ = std::make_unique<GpuState>(
      std::move(space), [this](const std::string& reason, std::optional<uint64_t> address) {
        lose(reason, address);
      });
  compute_ = std::make_unique<AmdQueue>(*this, *gpu_, compute_setup(gpu_->facts), "compute");
  copy_ = std::make_unique<AmdQueue>(*this, *gpu_,
                                     HardwareQueueSetup{QueueType::Sdma, kSdmaRingBytes}, "copy");
  hcq::close_in_children(*this);
}

// In a child of fork() all of it is the parent's, who goes on with it.
AmdDevice::~AmdDevice() {
  for (hcq::Queue* queue : {&compute_queue(), copy_queue()}) {
    if (lost()) break;  // its users have been told
    try {
      queue->wait_idle();
    } catch (const Error& e) {
      log_warn("closing {}: {}", info_.name, e.what());
    }
  }
  on_lost();
  shut_down();
  if (gpu_->is_childs()) {
    leave_to_parent();
    return;
  }
  copy_.reset();
  compute_.reset();
}

hcq::MemoryBlock AmdDevice::map_block(size_t size_bytes, hcq::MemoryKind kind) {
  fail_if_lost();
  const bool staging = kind == hcq::MemoryKind::Upload || kind == hcq::MemoryKind::Readback;
  auto buffer = gpu_->space->allocate({size_bytes, domain_of(kind, gpu_->facts), staging, nullptr});
  return blocks_.add(std::move(buffer), size_bytes, kind);
}

void AmdDevice::unmap_block(const hcq::MemoryBlock& block) noexcept {
  std::unique_ptr<Buffer> buffer = blocks_.take(block.address);
  if (gpu_->is_childs()) {
    (void)buffer.release();
  } else if (buffer) {
    gpu_->space->free(std::move(buffer));
  }
}

std::vector<std::unique_ptr<hcq::Program>> AmdDevice::load(
    std::span<const render::Binary> binaries) {
  fail_if_lost();
  return load_programs(*gpu_, binaries);
}

std::unique_ptr<hcq::Signal> AmdDevice::create_signal(uint64_t value) {
  return std::make_unique<AmdSignal>(*gpu_, value);
}

bool AmdDevice::reaches(const hcq::Device& other) const {
  const auto* peer = dynamic_cast<const AmdDevice*>(&other);
  return peer && gpu_->space->reaches(*peer->gpu_->space);
}

void AmdDevice::share(const hcq::MemoryBlock& block, hcq::Device& to) {
  auto& peer = static_cast<AmdDevice&>(to);
  const bool shared = blocks_.with(block.address, [&](Buffer* buffer) {
    TUFF_CHECK(buffer, "{}: {:#x} begins no block", info_.name, block.address);
    return gpu_->space->share(*buffer, *peer.gpu_->space);
  });
  if (!shared) return;
  peer.blocks_.known().add_shared(block.address, block.size_bytes, info_.name);
}

// Exceptions are noticed by threads that wait (GpuState::block), so nothing is asked here.
[[gnu::hot]]
void AmdDevice::check_status() {
  throw_found(report_findings(take_findings_, info_.name), info_.name);
}

void AmdDevice::leave_to_parent() noexcept {
  (void)copy_.release();
  (void)compute_.release();
  (void)gpu_.release();
}

void AmdDevice::lose(const std::string& reason, std::optional<uint64_t> address) {
  std::string text = fmt::format("{}: {}", info_.name, reason);
  if (address) text += blocks_.known().place_of(*address);
  for (const auto* queue : {&compute_, &copy_}) {
    if (!*queue) continue;
    if (const std::string running = (*queue)->in_flight(); !running.empty()) text += "; " + running;
  }
  text += joined(report_findings(take_findings_, info_.name));
  declare_lost(text);
  fail_if_lost();
  throw DeviceLost(text);
}

void AmdDevice::on_lost() noexcept {
  if (gpu_->is_childs()) return;
  for (auto* queue : {&compute_, &copy_})
    if (*queue) (*queue)->stop();
}

}  // namespace tuff::devices::amd
