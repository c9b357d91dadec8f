#include "emu/nv/rm/uvm.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::emu::nv {
namespace {

using nvrm::Status;

constexpr uint64_t kAddressLimit = 1ull << 47;  // of a channel's VA space, at least

}  // namespace

void Uvm::require_initialized() const {
  if (!initialized_) refuse_rm(Status::IllegalAction, "UVM_INITIALIZE comes first");
}

Uvm::GpuEntry& Uvm::gpu(const nvrm::Uuid& uuid) {
  require_initialized();
  const auto found = gpus_.find(uuid);
  if (found == gpus_.end()) refuse_rm(Status::InvalidDevice, "the GPU is not registered");
  return found->second;
}

void Uvm::initialize(const nvrm::uvm::Initialize& a) {
  if (a.flags > 3) refuse_rm(Status::InvalidArgument, "UVM_INITIALIZE with flags {:#x}", a.flags);
  initialized_ = true;
}

void Uvm::register_gpu(const nvrm::uvm::RegisterGpu& a) {
  require_initialized();
  if (!objects_.has_gpu(a.gpu))
    refuse_rm(Status::InvalidDevice, "there is no such GPU");
  gpus_[a.gpu];
}

void Uvm::unregister_gpu(const nvrm::uvm::UnregisterGpu& a) {
  if (gpu(a.gpu).space) refuse_rm(Status::InvalidState, "the GPU's VA space is registered");
  gpus_.erase(a.gpu);
  std::erase_if(peers_, [&](const auto& p) { return p.first == a.gpu || p.second == a.gpu; });
  unmap_where([&](const RangeEntry& r, const SpaceObject& space) {
    return r.memory->video && r.memory->gpu != space.gpu && objects_.uuid_of(r.memory->gpu) == a.gpu;
  });
}

void Uvm::register_space(const nvrm::uvm::RegisterVaSpace& a) {
  GpuEntry& g = gpu(a.gpu);
  if (g.space) refuse_rm(Status::InvalidDevice, "the GPU has a VA space");
  g.space = objects_.find(a.client, a.va_space, nvrm::object::VaSpace).space;
  g.space->registered = true;
}

void Uvm::unregister_space(const nvrm::uvm::UnregisterGpu& a) {
  GpuEntry& g = gpu(a.gpu);
  if (!g.space) refuse_rm(Status::InvalidDevice, "the GPU has no VA space");
  for (const auto& [handles, c] : channels_)
    if (c.gpu == a.gpu)
      refuse_rm(Status::InvalidState, "channel {:#x} is registered", handles.second);
  unmap_where([&](const RangeEntry&, const SpaceObject& space) { return &space == g.space.get(); });
  g.space->registered = false;
  g.space = nullptr;
}

// Takes mappings away that are wanted so, as UVM does with a VA space and with a GPU.
void Uvm::unmap_where(
    const std::function<bool(const RangeEntry&, const SpaceObject&)>& is_wanted) {
  for (auto& [base, r] : ranges_)
    std::erase_if(r.mapped, [&](const auto& space) {
      const bool wanted = is_wanted(r, *space);
      if (wanted) space->context->unmap(base);
      return wanted;
    });
}

// For GPUs over PCIe alone (uvm_gpu_retain_pcie_peer_access): others are peers or cannot be.
void Uvm::enable_peers(const nvrm::uvm::PeerAccess& a) {
  gpu(a.a), gpu(a.b);
  if (a.a == a.b || peers_.contains({a.a, a.b}))
    refuse_rm(Status::InvalidDevice, "one GPU, or peers already");
  if (objects_.peers() != MockOptions::Peers::Pcie)
    throw RmRefused{objects_.peers() == MockOptions::Peers::None ? Status::NotSupported
                                                                  : Status::InvalidDevice,
                    "the GPUs are not peers over PCIe", false};
  peers_.emplace(a.a, a.b);
  peers_.emplace(a.b, a.a);
}

void Uvm::require_peers(const nvrm::Uuid& owner, const nvrm::Uuid& mapping) const {
  if (!gpus_.contains(owner)) refuse_rm(Status::InvalidDevice, "the owner is not registered");
  if (objects_.peers() == MockOptions::Peers::NvLink || peers_.contains({owner, mapping})) return;
  throw RmRefused{Status::InvalidDevice, "video memory of a GPU that is no peer",
                  objects_.peers() == MockOptions::Peers::Pcie};
}

void Uvm::register_channel(const nvrm::uvm::RegisterChannel& a) {
  const GpuEntry& g = gpu(a.gpu);
  if (!g.space) refuse_rm(Status::InvalidDevice, "the GPU has no VA space");
  if (channels_.contains({a.client, a.channel}))
    refuse_rm(Status::InvalidChannel, "channel {:#x} is registered", a.channel);
  const Object& o = objects_.find(a.client, a.channel);
  if (!o.channel || o.channel->space != g.space)
    refuse_rm(Status::InvalidChannel, "{:#x} is no channel of that VA space", a.channel);
  if (a.base == 0 || a.length == 0 || a.base % kPageBytes || a.length % kPageBytes)
    refuse_rm(Status::InvalidAddress, "a window of {:#x} bytes at {:#x}", a.length, a.base);
  if (a.base + a.length >= kAddressLimit)
    refuse_rm(Status::OutOfRange, "a window that ends at {:#x}", a.base + a.length);
  o.channel->registered = true;
  channels_[{a.client, a.channel}] = {a.gpu, o.channel};
}

void Uvm::unregister_channel(const nvrm::uvm::UnregisterChannel& a) {
  require_initialized();
  const auto found = channels_.find({a.client, a.channel});
  if (found == channels_.end())
    refuse_rm(Status::InvalidChannel, "channel {:#x} is not registered", a.channel);
  found->second.channel->registered = false;
  channels_.erase(found);
}

void Uvm::check_range(const nvrm::uvm::Range& a) const {
  require_initialized();
  if (a.base == 0 || a.length == 0 || a.base % kPageBytes || a.length % kPageBytes ||
      a.base + a.length < a.base)
    refuse_rm(Status::InvalidAddress, "a range of {:#x} bytes at {:#x}", a.length, a.base);
}

void Uvm::create_range(const nvrm::uvm::Range& a) {
  check_range(a);
  const auto after = ranges_.lower_bound(a.base);
  const bool before = after != ranges_.begin() &&
                      std::prev(after)->first + std::prev(after)->second.length > a.base;
  if (before || (after != ranges_.end() && after->first < a.base + a.length))
    refuse_rm(Status::UvmAddressInUse, "{:#x} bytes at {:#x} overlap a range", a.length, a.base);
  ranges_[a.base].length = a.length;
}

void Uvm::map(const nvrm::uvm::MapExternalBegin& begin, const nvrm::uvm::MapExternalEnd& end,
              std::span<const nvrm::uvm::GpuAttributes> attributes) {
  check_range({begin.base, begin.length, 0, 0});
  if (attributes.empty()) refuse_rm(Status::InvalidArgument, "a mapping for no GPU");
  const auto range = ranges_.find(begin.base);
  if (range == ranges_.end() || range->second.length < begin.length)
    refuse_rm(Status::InvalidAddress, "no external range holds {:#x} bytes at {:#x}", begin.length,
              begin.base);
  const Object& o = objects_.find(end.client, end.memory);
  if (!o.memory) refuse_rm(Status::InvalidObject, "{:#x} is no memory", end.memory);
  if (begin.offset + begin.length > o.memory->size_bytes)
    refuse_rm(Status::InvalidOffset, "{:#x} bytes at {:#x} of {:#x}", begin.length, begin.offset,
              o.memory->size_bytes);
  if (begin.offset != 0 || begin.length != o.memory->size_bytes ||
      begin.base % o.memory->page_bytes)
    refuse_rm(Status::InvalidAddress, "memory in pages of {:#x} bytes is mapped whole, at {:#x}",
              o.memory->page_bytes, begin.base);
  for (const nvrm::uvm::GpuAttributes& a : attributes) {
    const GpuEntry& g = gpu(a.gpu);
    if (!g.space) refuse_rm(Status::InvalidDevice, "the GPU has no VA space");
    const bool foreign = o.memory->gpu != g.space->gpu;
    if (foreign && o.memory->video) require_peers(objects_.uuid_of(o.memory->gpu), a.gpu);
    if (a.mapping > 3) refuse_rm(Status::InvalidArgument, "a mapping of kind {}", a.mapping);
    constexpr uint32_t kReadOnly = 3;
    g.space->context->addresses.map(
        {begin.base, o.memory, a.mapping != kReadOnly, true, false, 0});
    const bool shared = std::ranges::any_of(
        range->second.mapped, [&](const auto& other) { return other->gpu != g.space->gpu; });
    if (shared) objects_.peer_memory()->share(o.memory);
    range->second.mapped.push_back(g.space);
    range->second.memory = o.memory;
  }
}

void Uvm::free_range(const nvrm::uvm::Range& a) {
  require_initialized();
  const auto found = ranges_.find(a.base);
  if (found == ranges_.end() || found->second.length != a.length)
    refuse_rm(Status::InvalidAddress, "no range of {:#x} bytes begins at {:#x}", a.length, a.base);
  for (const auto& space : found->second.mapped) space->context->unmap(a.base);
  ranges_.erase(found);
}

void Uvm::clear() {
  for (const auto& [handles, c] : channels_) c.channel->registered = false;
  for (const auto& [uuid, g] : gpus_)
    if (g.space) g.space->registered = false;
  for (const auto& [base, r] : ranges_)
    for (const auto& space : r.mapped) space->context->unmap(base);
  channels_.clear();
  peers_.clear();
  ranges_.clear();
  gpus_.clear();
}

}  // namespace tuff::emu::nv
