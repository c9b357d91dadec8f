#include "emu/nv/pci/gsp_channels.h"

#include <fmt/format.h>

#include <cstring>

namespace tuff::emu::nv {
namespace {

using nvrm::Status;
namespace control = nvrm::control;

constexpr uint32_t kRcTriggered = 0x1004, kMethodBytes = 0x5000;
constexpr uint64_t kGpuPage = 4096, kRamfcBytes = 512;
constexpr uint32_t kPrivileges = 3, kNoNotifiers = 1u << 2 | 1u << 4;  // of internal flags

// Shifts of directories down to the one whose entries cover 512 MiB.
std::span<const uint8_t> reserved_shifts(uint32_t mmu_version) {
  static constexpr uint8_t shifts[] = {56, 47, 38, 29};
  return std::span(shifts).subspan(mmu_version == 3 ? 0 : 1);
}

}  // namespace

GspChannels::GspChannels(Objects& objects, pci::HostMemory& bus, const PhysicalMemory& memory,
                         const uint64_t& host_end, Tell tell)
    : objects_(objects),
      bus_(bus),
      memory_(memory),
      host_end_(host_end),
      tell_(std::move(tell)),
      contexts_(memory) {
  objects_.addresses = this;
}

GspChannels::~GspChannels() { objects_.addresses = nullptr; }

// ---- VA spaces

void GspChannels::add_table(nvrm::Handle client, nvrm::Handle space, uint64_t root,
                            bool reserved) {
  const auto context = objects_.find(client, space, nvrm::object::VaSpace).space->context;
  if (tables_.contains(space))
    refuse_rm(Status::InvalidState, "VA space {:#x} has a page directory", space);
  if (root % kGpuPage || root >= host_end_)
    refuse_rm(Status::InvalidArgument, "a page directory at {:#x}", root);
  Table& t = tables_[space];
  t.mappings = std::make_unique<TableMappings>(context, memory_, root);
  t.reserved = reserved;
  t.mappings->read_tables();
}

void GspChannels::set_table(nvrm::Handle client, nvrm::Handle space, uint64_t root,
                            uint32_t entries) {
  const uint32_t wanted = memory_.mmu_version == 2 ? 4 : 2;
  if (entries != wanted)
    refuse_rm(Status::InvalidArgument, "a page directory of {} entries", entries);
  add_table(client, space, root, false);
}

void GspChannels::unset_table(nvrm::Handle space) {
  const auto found = tables_.find(space);
  if (found == tables_.end() || found->second.reserved)
    refuse_rm(Status::InvalidState, "VA space {:#x} has no page directory", space);
  tables_.erase(found);
  contexts_.check_mapped();
}

const TableMappings* GspChannels::table(nvrm::Handle space) const {
  const auto found = tables_.find(space);
  return found == tables_.end() ? nullptr : found->second.mappings.get();
}

// From the root down, where the firmware has addresses of its own.
void GspChannels::copy_reserved(const nvrm::Control& c,
                                const nvrm::CopyReservedDirectories& r) {
  const auto shifts = reserved_shifts(memory_.mmu_version);
  if (r.page_bytes != nvrm::kReservedBytes || r.first != nvrm::kReservedFirst ||
      r.last != r.first + nvrm::kReservedBytes - 1 || r.count != shifts.size())
    refuse_rm(Status::InvalidArgument, "{} directories for {:#x} to {:#x}", r.count, r.first,
              r.last);
  for (size_t i = 0; i < shifts.size(); ++i) {
    const nvrm::DirectoryLevel& level = r.levels[i];
    const bool root = i == 0;
    const uint64_t bytes = root ? (memory_.mmu_version == 3 ? 16 : 32) : kGpuPage;
    uint64_t below = 0;
    const uint64_t index = r.first >> shifts[i] & (root ? 3 : 511);
    if (level.page_shift != shifts[i] || level.size_bytes != bytes || level.aperture != 1 ||
        level.physical % (root ? 16 : kGpuPage) ||
        !memory_.read(true, level.physical + index * 8, below))
      refuse_rm(Status::InvalidArgument, "directory {} at {:#x}", i, level.physical);
    if ((below == 0) != (i + 1 == shifts.size()))
      refuse_rm(Status::InvalidArgument, "directory {} has {:#x} for what is reserved", i, below);
  }
  add_table(c.client, c.object, r.levels[0].physical, true);
}

// A space that has only what it shares with the firmware ends with its object.
void GspChannels::before_free(nvrm::Handle object) {
  const auto found = tables_.find(object);
  if (found != tables_.end() && !found->second.reserved)
    refuse_rm(Status::InUse, "a VA space that has a page directory");
  contexts_.forget(object);
  if (found != tables_.end()) tables_.erase(found);
}

void GspChannels::read_tables() {
  for (const auto& [space, table] : tables_) table.mappings->read_tables();
  contexts_.check_mapped();
}

void GspChannels::unmapped(uint64_t address, uint64_t size_bytes) {
  for (const auto& [space, table] : tables_) table.mappings->forget_host(address, size_bytes);
}

// ---- channels

void GspChannels::check_memory(const char* what, const nvrm::MemoryDescription& m, uint64_t bytes,
                               uint64_t alignment) const {
  const bool video = m.address_space == nvrm::kVideoMemory;
  if ((!video && m.address_space != nvrm::kSystemMemory) || m.size_bytes < bytes ||
      m.base == 0 || m.base % alignment || (video && m.base + m.size_bytes > host_end_))
    refuse_rm(Status::InvalidArgument, "{} of a channel: {} bytes at {:#x}, address space {}", what,
              m.size_bytes, m.base, m.address_space);
  if (!memory_.at(video, m.base, m.size_bytes))
    refuse_rm(Status::InvalidAddress, "{} of a channel at {:#x}", what, m.base);
}

std::byte* GspChannels::userd(const nvrm::ChannelParameters& p) {
  check_memory("the instance block", p.instance, kGpuPage, kGpuPage);
  check_memory("RAMFC", p.ramfc, kRamfcBytes, kRamfcBytes);
  check_memory("USERD", p.userd, nvrm::kUserdBytes, nvrm::kUserdBytes);
  check_memory("the method buffer", p.method_buffer, kMethodBytes, kGpuPage);
  if (p.ramfc.base != p.instance.base || p.instance.address_space != nvrm::kVideoMemory ||
      p.ramfc.address_space != nvrm::kVideoMemory)
    refuse_rm(Status::InvalidArgument, "RAMFC does not begin the instance block");
  if (p.error || p.userd_memory[0])
    refuse_rm(Status::InvalidObject, "memory of a channel by handles that no driver has");
  if ((p.internal_flags & ~kPrivileges) != kNoNotifiers)
    refuse_rm(Status::InvalidArgument, "internal flags {:#x}", p.internal_flags);
  return memory_.at(p.userd.address_space == nvrm::kVideoMemory, p.userd.base,
                    p.userd.size_bytes);
}

void GspChannels::promote(const nvrm::Control& c, const nvrm::PromoteContext& request) {
  const Object& o = objects_.find(c.client, request.channel);
  if (!o.channel || request.channel_client != c.client)
    refuse_rm(Status::InvalidChannel, "buffers for {:#x}, which is no channel", request.channel);
  const TableMappings* found = nullptr;
  for (const auto& [space, table] : tables_)
    if (objects_.find(c.client, space).space == o.channel->space) found = table.mappings.get();
  contexts_.promote(request, found);
}

void GspChannels::check_context(nvrm::Handle, nvrm::Handle channel) { contexts_.check(channel); }

bool GspChannels::control(const nvrm::Control& c, std::span<std::byte> parameters) {
  const auto of_gpu = [&] { objects_.find(c.client, c.object, nvrm::object::Subdevice); };
  switch (c.command) {
    case control::ContextBufferSizes:
      of_gpu();
      GraphicsContexts::fill_sizes(parameters);
      return true;
    case control::MethodBufferSize: {
      of_gpu();
      auto size = exactly<nvrm::MethodBufferSize>(parameters, "CE_GET_FAULT_METHOD_BUFFER_SIZE");
      size.bytes = kMethodBytes;
      std::memcpy(parameters.data(), &size, sizeof size);
      return true;
    }
    case control::PromoteContext:
      of_gpu();
      promote(c, exactly<nvrm::PromoteContext>(parameters, "GPU_PROMOTE_CTX"));
      return true;
    case control::CopyReservedDirectories:
      copy_reserved(c, exactly<nvrm::CopyReservedDirectories>(
                           parameters, "VASPACE_COPY_SERVER_RESERVED_PDES"));
      return true;
    default: return false;
  }
}

// ---- errors

// The host hears of it by an event, on this thread but when the channels stand still: what is told
// needs the bus, which may wait for them.
void GspChannels::failed(uint32_t channel, const ChannelError& error) {
  std::vector<uint8_t> payload(64);
  const auto put = [&](size_t at, uint32_t value) {
    std::memcpy(payload.data() + at, &value, sizeof value);
  };
  put(0, nvrm::kEngineGraphics);
  put(4, channel);
  put(16, error.code);
  if (error.fault) {
    put(28, uint32_t(error.fault->address) & ~0xfffu);
    put(32, uint32_t(error.fault->address >> 32));
  }
  objects_.engines().post(
      [payload = std::move(payload), this, alive = std::weak_ptr(alive_), &bus = bus_] {
        const auto lock = bus.hold();
        if (!alive.expired()) tell_(kRcTriggered, payload);
      });
}

}  // namespace tuff::emu::nv
