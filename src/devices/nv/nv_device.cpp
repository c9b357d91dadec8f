#include "devices/nv/nv_device.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {
namespace {

constexpr int64_t kEmulatedSlowness = 20;

// sm_90's kernels are those for sm_90 alone.
std::string target_name(uint32_t sm) {
  return fmt::format("nvptx-sm_{}{}", sm, sm == 90 ? "a" : "");
}

Target target_of(const GpuFacts& f) {
  Target t = builtin_target(target_name(f.sm));
  t.identity = fmt::format("nv:{}:{}:{}sm", f.sm, f.name, f.sms());
  t.cores = f.sms();
  if (f.l2_bytes > 0) t.l2_bytes = f.l2_bytes;
  t.max_buffer_bytes = t.max_binding_bytes = f.memory_bytes;
  return t;
}

MemoryDomain domain_of(hcq::MemoryKind kind) {
  switch (kind) {
    case hcq::MemoryKind::Device: return MemoryDomain::Video;
    case hcq::MemoryKind::Args: return MemoryDomain::VisibleVideo;
    case hcq::MemoryKind::Upload:
    case hcq::MemoryKind::Readback: return MemoryDomain::System;
  }
  return MemoryDomain::System;
}

// Of channels, doorbells, kernels and copies, as the driver lists them.
std::string listed_classes(const GpuFacts& f) {
  std::string out = fmt::format("{:x},{:x}", f.gpfifo_class, f.usermode_class);
  if (const Generation* g = f.generation)
    out += fmt::format(",{:x},{:x}", g->compute_class, g->copy_class);
  return out;
}

}  // namespace

hcq::DeviceInfo describe(const GpuFacts& f, const std::string& driver,
                         const std::string& driver_version, const std::string& name,
                         bool emulated) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description =
      fmt::format("{}{}, {} multiprocessors", f.name, emulated ? ", emulated" : "", f.sms());
  info.driver = emulated ? driver + " (emulated)" : driver;
  info.api_version = driver_version;
  info.uuid = hex(f.uuid);
  info.hardware = !emulated;
  info.slowness = emulated ? kEmulatedSlowness : 1;
  info.memory_bytes = f.memory_bytes;
  info.features = {{"compute_capability", fmt::format("{}.{}", f.sm / 10, f.sm % 10)},
                   {"classes", listed_classes(f)},
                   {"emulated", emulated ? "yes" : "no"},
                   {"proven_on_hardware", "simulated, never run"},
                   {"memory", "staged"},
                   {"copy_queue", "yes"}};
  return info;
}

NvDevice::NvDevice(NvIface& iface, std::unique_ptr<Space> space, const std::string& name)
    : take_findings_(iface.take_findings),
      assemble_(iface.assemble),
      space_(std::move(space)),
      info_(describe(space_->facts(), space_->driver(), space_->driver_version(), name,
                     iface.emulated)),
      target_(target_of(space_->facts())),
      group_(space_->make_group()),
      semaphores_(*space_) {
  const auto ask = [this] { check_status(); };
  compute_.emplace(*this, *group_, semaphores_, ChannelUse::Compute, ask);
  copy_.emplace(*this, *group_, semaphores_, ChannelUse::Copy, ask);
  group_->schedule();
  compute_->start();
  copy_->start();
}

// What an emulated machine has found last is told, and not left to the next device.
NvDevice::~NvDevice() {
  for (NvQueue* queue : {&*compute_, &*copy_}) {
    if (lost()) break;  // its users have been told
    try {
      queue->wait_idle();
    } catch (const Error& e) {
      log_warn("closing {}: {}", info_.name, e.what());
    }
  }
  on_lost();
  shut_down();
  copy_.reset();
  compute_.reset();
  report_findings(take_findings_, info_.name);
}

hcq::MemoryBlock NvDevice::map_block(size_t size_bytes, hcq::MemoryKind kind) {
  fail_if_lost();
  return blocks_.add(space_->allocate(size_bytes, domain_of(kind)), size_bytes, kind);
}

// In a child a buffer's end would be that of the parent's memory: it is leaked.
void NvDevice::unmap_block(const hcq::MemoryBlock& block) noexcept {
  std::unique_ptr<Buffer> buffer = blocks_.take(block.address);
  if (is_childs()) (void)buffer.release();
}

void NvDevice::on_lost() noexcept {
  if (!is_childs()) group_->stop();
}

std::vector<std::unique_ptr<hcq::Program>> NvDevice::load(
    std::span<const render::Binary> binaries) {
  fail_if_lost();
  return load_programs(*space_, assemble_, binaries);
}

std::unique_ptr<hcq::Signal> NvDevice::create_signal(uint64_t value) {
  return std::make_unique<NvSignal>(semaphores_, value, [this] { check_status(); });
}

bool NvDevice::reaches(const hcq::Device& other) const {
  const auto* peer = dynamic_cast<const NvDevice*>(&other);
  return peer && space_->reaches(*peer->space_);
}

void NvDevice::share(const hcq::MemoryBlock& block, hcq::Device& to) {
  auto& peer = static_cast<NvDevice&>(to);
  const bool shared = blocks_.with(block.address, [&](Buffer* buffer) {
    TUFF_CHECK(buffer, "{}: {:#x} begins no block", info_.name, block.address);
    return buffer->map_for(*peer.space_);
  });
  if (shared) peer.blocks_.known().add_shared(block.address, block.size_bytes, info_.name);
}

// An emulated machine tells what ended a channel after it has left the record: so what was found is
// taken first.
[[gnu::hot]]
void NvDevice::check_status() {
  const std::vector<hcq::MachineFinding> findings = report_findings(take_findings_, info_.name);
  if (compute_ && !lost()) {
    if (const auto error = group_->error(compute_->channel())) lose(*error, joined(findings));
  }
  throw_found(findings, info_.name);
}

void NvDevice::lose(const ChannelError& error, std::string findings) {
  group_->stop();
  std::string text = fmt::format("{}: {}", info_.name, error.text);
  if (error.address) text += blocks_.known().place_of(*error.address);
  for (const auto* queue : {&compute_, &copy_}) {
    if (!*queue) continue;
    if (const std::string running = (*queue)->in_flight(); !running.empty()) text += "; " + running;
  }
  text += findings + joined(report_findings(take_findings_, info_.name));
  declare_lost(text);
  fail_if_lost();
  throw DeviceLost(text);
}

}  // namespace tuff::devices::nv
