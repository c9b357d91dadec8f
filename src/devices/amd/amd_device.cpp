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
bool uses_aql(const GpuNode& node) { return node.shape.xccs > 1 || env_flag(Env::AMD_AQL); }

Target target_of(const GpuNode& node, const Generation& generation) {
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
  t.identity = fmt::format("kfd:{}:{}cu", generation.name, node.shape.cus());
  t.cores = node.shape.cus();
  t.shared_bytes = std::min(t.shared_bytes, node.lds_kib << 10);
  if (!node.integrated) t.max_buffer_bytes = t.max_binding_bytes = node.vram_bytes;
  return t;
}

MemoryDomain domain_of(hcq::MemoryKind kind, const GpuNode& node) {
  switch (kind) {
    case hcq::MemoryKind::Device:
      if (node.integrated) return MemoryDomain::Shared;
      return node.has_peers ? MemoryDomain::PeerVram : MemoryDomain::Vram;
    case hcq::MemoryKind::Args:
      return node.large_bar && !node.integrated ? MemoryDomain::VisibleVram : MemoryDomain::Host;
    case hcq::MemoryKind::Upload:
    case hcq::MemoryKind::Readback: return MemoryDomain::Host;
  }
  return MemoryDomain::Host;
}

}  // namespace

HardwareQueueSetup compute_setup(const GpuNode& node) {
  if (uses_aql(node)) return {QueueType::Aql, kAqlRingBytes};
  return {QueueType::Pm4, kPm4RingBytes};
}

constexpr int64_t kEmulatedSlowness = 20;

hcq::DeviceInfo describe(const GpuNode& node, const std::string& name, bool emulated) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description =
      fmt::format("{}{}{}, {} compute units", node.arch(), node.name.empty() ? "" : " " + node.name,
                  emulated ? ", emulated" : "", node.shape.cus());
  info.driver = emulated ? "KFD (emulated)" : "KFD";
  info.uuid = node.unique_id ? fmt::format("{:016x}", node.unique_id) : "";
  info.hardware = !emulated;
  info.slowness = emulated ? kEmulatedSlowness : 1;
  info.memory_bytes = node.integrated ? os::physical_memory_bytes() : node.vram_bytes;
  info.features = {{"arch", node.arch()},
                   {"emulated", emulated ? "yes" : "no"},
                   {"compiler", env_text(Env::AMD_COMPILER)},
                   {"memory", node.integrated  ? "shared with the CPU"
                              : node.large_bar ? "host-visible"
                                               : "staged"},
                   {"queues", uses_aql(node) ? "AQL, SDMA" : "PM4, SDMA"}};
  return info;
}

AmdDevice::AmdDevice(AmdIface& iface, std::shared_ptr<Process> process, const GpuNode& node,
                     const std::string& name)
    : take_findings_(iface.take_findings),
      info_(describe(node, name, iface.emulated)),
      target_(target_of(node, *node.generation())) {
  gpu_.emplace(std::move(process), node,
               [this](const std::string& reason, std::optional<uint64_t> address) {
                 lose(reason, address);
               });
  compute_.emplace(*this, *gpu_, compute_setup(node), "compute");
  copy_.emplace(*this, *gpu_, HardwareQueueSetup{QueueType::Sdma, kSdmaRingBytes}, "copy");
}

AmdDevice::~AmdDevice() {
  for (hcq::Queue* queue : {&compute_queue(), copy_queue()}) {
    if (lost()) break;  // its users have been told
    try {
      queue->wait_idle();
    } catch (const Error& e) {
      log_warn("closing {}: {}", info_.name, e.what());
    }
  }
  compute_->stop();
  copy_->stop();
  shut_down();
  copy_.reset();
  compute_.reset();
}

hcq::MemoryBlock AmdDevice::map_block(size_t size_bytes, hcq::MemoryKind kind) {
  fail_if_lost();
  const bool staging = kind == hcq::MemoryKind::Upload || kind == hcq::MemoryKind::Readback;
  auto buffer = gpu_->process->allocate(
      gpu_->gpu, {size_bytes, domain_of(kind, gpu_->gpu.node), staging, nullptr});
  return blocks_.add(std::move(buffer), size_bytes, kind);
}

void AmdDevice::unmap_block(const hcq::MemoryBlock& block) noexcept {
  if (auto buffer = blocks_.take(block.address)) gpu_->process->free(std::move(buffer));
}

std::vector<std::unique_ptr<hcq::Program>> AmdDevice::load(
    std::span<const render::Binary> binaries) {
  fail_if_lost();
  return load_programs(*gpu_, binaries);
}

std::unique_ptr<hcq::Signal> AmdDevice::create_signal(uint64_t value) {
  return std::make_unique<AmdSignal>(*gpu_, value);
}

// The GPUs of one process have one address space; the kernel lists links only where one GPU sees
// all memory of the other.
bool AmdDevice::reaches(const hcq::Device& other) const {
  const auto* peer = dynamic_cast<const AmdDevice*>(&other);
  return peer && peer != this && peer->gpu_->process == gpu_->process &&
         gpu_->gpu.node.reaches(peer->gpu_->gpu.node);
}

void AmdDevice::share(const hcq::MemoryBlock& block, hcq::Device& to) {
  auto& peer = static_cast<AmdDevice&>(to);
  const bool shared = blocks_.with(block.address, [&](Buffer* buffer) {
    TUFF_CHECK(buffer, "{}: {:#x} begins no block", info_.name, block.address);
    return gpu_->process->share(*buffer, peer.gpu_->gpu);
  });
  if (!shared) return;
  peer.blocks_.known().add_shared(block.address, block.size_bytes, info_.name);
}

// Exceptions are noticed by threads that wait (GpuState::block), so nothing is asked here.
[[gnu::hot]]
void AmdDevice::check_status() {
  throw_found(report_findings(take_findings_, info_.name), info_.name);
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
  for (auto* queue : {&compute_, &copy_})
    if (*queue) (*queue)->stop();
}

}  // namespace tuff::devices::amd
