#include "emu/nv/rm/objects.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tuff::emu::nv {
namespace {

using nvrm::Status;
namespace object = nvrm::object;

template <class T>
T taken(std::span<const std::byte> from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}
template <class T>
void give(std::span<std::byte> to, const T& value) {
  std::memcpy(to.data(), &value, sizeof value);
}

constexpr uint32_t kRunlist = 1;  // of the graphics engine; any number
constexpr uint32_t kAlone = 1u << 31;  // in the number of a group: a channel that has none

// Of a channel that is to have one: a page of USERD, and which of its eight (NVOS04_FLAGS_CHANNEL_
// USERD_INDEX_*). 0: any.
uint32_t number_of(uint32_t flags) {
  const bool fixed = flags >> 21 & 1;
  return fixed ? (flags >> 12 & 0x1ff) * 8 + (flags >> 8 & 7) : 0;
}

const nvrm::Branch& branch_of(uint32_t number) {
  for (const nvrm::Branch& b : nvrm::kBranches)
    if (b.number == number) return b;
  fail<InvalidArgument>("no branch {} of NVIDIA's kernel driver is emulated", number);
}

}  // namespace

Objects::Objects(const MockOptions& options, std::shared_ptr<PageFile> file, Engines& engines,
                 Reports& reports)
    : options_(options),
      chip_(*find_chip(options.sm)),
      branch_(branch_of(options.driver)),
      file_(std::move(file)),
      engines_(engines),
      reports_(reports),
      peer_memory_(options.gpus > 1 ? std::make_shared<PeerMemory>(options.gpus) : nullptr),
      seed_(options.seed) {
  for (uint32_t i = 0; i < options.gpus; ++i)
    video_used_.push_back(std::make_shared<std::atomic<uint64_t>>(0));
}

Objects::~Objects() {
  while (!clients_.empty()) free(clients_.begin()->first, clients_.begin()->first);
}

bool Objects::has_gpu(const nvrm::Uuid& uuid) const {
  for (uint32_t gpu = 0; gpu < options_.gpus; ++gpu)
    if (uuid_of(gpu) == uuid) return true;
  return false;
}

nvrm::Uuid Objects::uuid_of(uint32_t gpu) const {
  nvrm::Uuid uuid{};
  for (size_t i = 0; i < uuid.size(); ++i) uuid[i] = uint8_t(0x40 + 17 * i + gpu * 31 + chip_.sm);
  return uuid;
}

Objects::Client& Objects::client(nvrm::Handle handle) {
  const auto found = clients_.find(handle);
  if (found == clients_.end()) refuse_rm(Status::InvalidClient, "there is no client {:#x}", handle);
  return found->second;
}

Object& Objects::find(nvrm::Handle client_handle, nvrm::Handle handle, uint32_t object_class) {
  Client& c = client(client_handle);
  const auto found = c.objects.find(handle);
  if (found == c.objects.end())
    refuse_rm(Status::ObjectNotFound, "client {:#x} has no object {:#x}", client_handle, handle);
  if (object_class != ~0u && found->second.object_class != object_class)
    refuse_rm(Status::InvalidObject, "object {:#x} is of class {:#x}, not {:#x}", handle,
              found->second.object_class, object_class);
  return found->second;
}

size_t Objects::count() const {
  size_t count = 0;
  for (const auto& [handle, c] : clients_) count += c.objects.size();
  return count;
}

// ---- making

uint32_t Objects::parameter_bytes(uint32_t object_class) const {
  switch (object_class) {
    case object::Root: return branch_.root_bytes;
    case object::Device: return sizeof(nvrm::DeviceParameters);
    case object::Subdevice: return sizeof(nvrm::SubdeviceParameters);
    case object::MemoryLocal:
    case object::MemorySystem: return branch_.memory_bytes;
    case object::VaSpace: return branch_.space_bytes;
    case object::ChannelGroup: return sizeof(nvrm::ChannelGroupParameters);
    case object::ContextShare: return sizeof(nvrm::ContextShareParameters);
    default: return object_class == chip_.gpfifo_class ? branch_.channel_bytes : 0;
  }
}

void Objects::check_parent(uint32_t c, const Object& parent) const {
  const uint32_t p = parent.object_class;
  const bool is_engine = c == chip_.compute_class || c == chip_.copy_class;
  const bool fits = c == object::Device                                  ? p == object::Root
                    : c == object::ContextShare                          ? p == object::ChannelGroup
                    : c == chip_.usermode_class                          ? p == object::Subdevice
                    : c == chip_.gpfifo_class ? p == object::Device || p == object::ChannelGroup
                    : is_engine               ? p == chip_.gpfifo_class
                    : c == object::Subdevice || c == object::VaSpace || c == object::ChannelGroup ||
                            c == object::MemoryLocal || c == object::MemorySystem
                        ? p == object::Device
                        : false;
  const bool known = parameter_bytes(c) > 0 || is_engine || c == chip_.usermode_class;
  if (!known) refuse_rm(Status::InvalidClass, "{} has no class {:#x}", chip_.name, c);
  if (!fits)
    refuse_rm(Status::InvalidObjectParent, "an object of class {:#x} beneath one of class {:#x}", c,
              p);
}

nvrm::Handle Objects::alloc(uint64_t file, const nvrm::Alloc& a, std::span<std::byte> parameters) {
  const nvrm::Handle handle = a.object ? a.object : next_handle_++;
  if (a.object_class == object::Root) {
    if (a.parent != 0) refuse_rm(Status::InvalidObjectParent, "a client beneath {:#x}", a.parent);
    if (clients_.contains(handle))
      refuse_rm(Status::InvalidClient, "client {:#x} is there", handle);
    Client& c = clients_[handle];
    c.file = file;
    c.objects[handle].order = next_order_++;
    return handle;
  }
  Client& c = client(a.client);
  if (c.file != file) refuse_rm(Status::InvalidClient, "client {:#x} of another file", a.client);
  if (c.objects.contains(handle))
    refuse_rm(Status::InvalidObject, "handle {:#x} is in use", handle);
  Object& parent = find(a.client, a.parent);
  check_parent(a.object_class, parent);
  Object o;
  o.parent = a.parent;
  o.object_class = a.object_class;
  o.gpu = parent.gpu;
  o.order = next_order_++;
  make(c, o, a, parameters);
  c.objects[handle] = std::move(o);
  return handle;
}

void Objects::make(Client& c, Object& o, const nvrm::Alloc& a, std::span<std::byte> parameters) {
  switch (o.object_class) {
    case object::Device: {
      o.gpu = taken<nvrm::DeviceParameters>(parameters).device;
      if (o.gpu >= options_.gpus) refuse_rm(Status::InvalidArgument, "there is no GPU {}", o.gpu);
      return;
    }
    case object::Subdevice:
      if (taken<nvrm::SubdeviceParameters>(parameters).subdevice != 0)
        refuse_rm(Status::InvalidArgument, "a GPU has one subdevice");
      return;
    case object::MemoryLocal:
    case object::MemorySystem: return make_memory(o, parameters);
    case object::VaSpace: return make_space(o, parameters);
    case object::ChannelGroup: return make_group(c, o, parameters);
    case object::ContextShare: return make_subcontext(c, o, parameters);
    default: break;
  }
  if (o.object_class == chip_.gpfifo_class) return make_channel(c, o, parameters);
  if (o.object_class != chip_.usermode_class) make_engine(c, a, o);
}

void Objects::make_memory(Object& o, std::span<std::byte> parameters) {
  auto p = taken<nvrm::MemoryParameters>(parameters);
  const bool video = o.object_class == object::MemoryLocal;
  const bool huge = (p.attr & nvrm::kAttrHugePages) == nvrm::kAttrHugePages;
  if (video == bool(p.attr & nvrm::kAttrPci))
    refuse_rm(Status::InvalidArgument, "memory of class {:#x} with attributes {:#x}",
              o.object_class, p.attr);
  const uint64_t page = !video ? kPageBytes : huge ? 2u << 20 : 64u << 10;
  if (p.size_bytes == 0 || p.size_bytes % page)
    refuse_rm(Status::InvalidArgument, "{} bytes in pages of {}", p.size_bytes, page);
  auto& used = *video_used_[o.gpu];
  if (video && used + p.size_bytes > options_.vram_bytes)
    throw RmRefused{Status::NoMemory,
                    fmt::format("{} bytes, {} of {} are in use", p.size_bytes, used.load(),
                                options_.vram_bytes),
                    false};
  auto made = std::make_unique<MemoryObject>();
  made->pages = Pages::make(p.size_bytes, file_);
  if (!made->pages.data()) throw RmRefused{Status::NoMemory, "the host has no memory left", false};
  made->memory = made->pages.data();
  made->size_bytes = p.size_bytes;
  made->gpu = o.gpu;
  made->video = video;
  made->page_bytes = page;
  if (video) used += p.size_bytes;
  o.memory = std::shared_ptr<MemoryObject>(
      made.release(), [counter = video_used_[o.gpu]](MemoryObject* m) {
        if (m->video) *counter -= m->size_bytes;
        delete m;
      });
  p.limit = p.size_bytes - 1;
  give(parameters, p);
}

void Objects::make_space(Object& o, std::span<std::byte> parameters) {
  const auto p = taken<nvrm::VaSpaceParameters>(parameters);
  const bool managed = addresses && p.flags == 0;  // by the firmware, in part
  if (!managed && p.flags != (nvrm::kSpaceExternallyOwned | nvrm::kSpacePageFaulting))
    refuse_rm(Status::NotSupported, "a VA space with flags {:#x}", p.flags);
  o.space = std::make_shared<SpaceObject>();
  o.space->gpu = o.gpu;
  o.space->context = std::make_shared<Context>(o.gpu, chip_, reports_, seed_++, options_.stop,
                                               peer_memory_);
  if (options_.profile.report) o.space->context->profile_launches(options_.profile);
  engines_.add(o.gpu, o.space->context);
}

void Objects::make_group(Client& c, Object& o, std::span<std::byte> parameters) {
  const auto p = taken<nvrm::ChannelGroupParameters>(parameters);
  if (p.engine != nvrm::kEngineGraphics)
    refuse_rm(Status::InvalidArgument, "a channel group of engine {}", p.engine);
  const auto space = c.objects.find(p.va_space);
  if (space == c.objects.end() || !space->second.space)
    refuse_rm(Status::InvalidObject, "a channel group without a VA space ({:#x})", p.va_space);
  o.used_space = p.va_space;
  o.space = space->second.space;
}

void Objects::make_subcontext(Client& c, Object& o, std::span<std::byte> parameters) {
  auto p = taken<nvrm::ContextShareParameters>(parameters);
  const auto space = c.objects.find(p.va_space);
  if (space == c.objects.end() || !space->second.space)
    refuse_rm(Status::InvalidObject, "a subcontext without a VA space ({:#x})", p.va_space);
  o.space = space->second.space;
  p.subcontext = 1;
  give(parameters, p);
}

// By handles: memory objects of the client; by addresses whoever knows those looks there.
void Objects::name_memory(Client& c, ChannelObject& channel, const nvrm::ChannelParameters& p,
                          ChannelSetup& setup) {
  const std::byte* userd = nullptr;
  if (addresses) {
    userd = addresses->userd(p);
  } else {
    const auto memory = [&](nvrm::Handle handle,
                            const char* what) -> std::shared_ptr<MemoryObject> {
      const auto found = c.objects.find(handle);
      if (found == c.objects.end() || !found->second.memory)
        refuse_rm(Status::InvalidObject, "{} {:#x} of a channel is no memory", what, handle);
      return found->second.memory;
    };
    channel.notifier = memory(p.error, "error notifier");
    channel.userd = memory(p.userd_memory[0], "USERD");
    const uint64_t at = p.userd_offset[0];
    if (at % nvrm::kUserdBytes || at + nvrm::kUserdBytes > channel.userd->size_bytes)
      refuse_rm(Status::InvalidArgument, "USERD at {} of {} bytes", at, channel.userd->size_bytes);
    userd = channel.userd->memory + at;
  }
  setup.put = reinterpret_cast<const uint32_t*>(userd + nvrm::kGpPut);
}

// A channel without a group may have a VA space of its own where there is no kernel driver, which
// has these for itself.
void Objects::make_channel(Client& c, Object& o, std::span<std::byte> parameters) {
  auto p = taken<nvrm::ChannelParameters>(parameters);
  const bool in_group = c.objects[o.parent].object_class == object::ChannelGroup;
  const bool alone = addresses && !in_group && p.va_space;
  if (p.context_share && p.va_space)
    refuse_rm(Status::InvalidArgument, "a channel with a subcontext and a VA space of its own");
  if (!alone && (!in_group || !p.context_share))
    refuse_rm(Status::NotSupported, "a channel without a group and a subcontext of it");
  const auto owner = c.objects.find(alone ? p.va_space : p.context_share);
  if (owner == c.objects.end() || owner->second.parent != o.parent || !owner->second.space)
    refuse_rm(Status::InvalidArgument, "a channel with a subcontext of another group");
  auto channel = std::make_shared<ChannelObject>();
  channel->id = addresses ? number_of(p.flags) : 0;
  if (channel->id == 0) channel->id = next_channel_++;
  // Bits 22 to 16 are the list of channels; Blackwell's of 12.0 say that there is one.
  channel->token = channel->id | kRunlist << 16 | (chip_.sm == 120 ? nvrm::kRunlistDoorbell : 0);
  channel->space = owner->second.space;
  ChannelSetup setup;
  name_memory(c, *channel, p, setup);
  if (p.gpfifo_entries == 0 || (p.gpfifo_entries & (p.gpfifo_entries - 1)) ||
      p.gpfifo_address % 8 || p.engine != nvrm::kEngineGraphics)
    refuse_rm(Status::InvalidArgument, "a GPFIFO of {} entries at {:#x} for engine {}",
              p.gpfifo_entries, p.gpfifo_address, p.engine);
  const auto mapping = channel->space->context->addresses.find(p.gpfifo_address);
  if (!mapping || mapping->end() < p.gpfifo_address + p.gpfifo_entries * uint64_t{8})
    refuse_rm(Status::InvalidAddress, "the GPFIFO at {:#x} is not mapped", p.gpfifo_address);
  setup.id = channel->id;
  setup.token = channel->token;
  setup.group = alone ? kAlone | channel->id : o.parent;
  setup.gpfifo_address = p.gpfifo_address;
  setup.entries = p.gpfifo_entries;
  channel->space->context->attach(
      setup, [this, kept = channel](const ChannelError& error) { failed(*kept, error); });
  o.channel = std::move(channel);
  p.id = o.channel->id;
  give(parameters, p);
}

void Objects::make_engine(Client& c, const nvrm::Alloc& a, const Object& o) {
  const ChannelObject& channel = *c.objects[o.parent].channel;
  if (addresses && o.object_class == chip_.compute_class)
    addresses->check_context(a.client, o.parent);
  channel.space->context->add_engine(channel.id, o.object_class);
}

// On the engines' thread: the record of the fault before that of the error.
void Objects::failed(ChannelObject& channel, const ChannelError& error) {
  if (!channel.notifier) {
    if (addresses) addresses->failed(channel.id, error);
    return;
  }
  if (error.fault) {
    std::lock_guard lock(channel.mutex);
    nvrm::MmuFaultInfo& f = channel.fault;
    f.address_high = uint32_t(error.fault->address >> 32);
    f.address_low = uint32_t(error.fault->address) & ~0xfffu;
    f.type = error.fault->not_present ? 0 : 6;
    std::snprintf(f.text, sizeof f.text, "%s_VIRT_%s", error.fault->not_present ? "PDE" : "RO",
                  error.fault->write ? "WRITE" : "READ");
  }
  auto& record = *reinterpret_cast<nvrm::ErrorNotifier*>(channel.notifier->memory);
  record.code = error.code;
  std::atomic_ref(record.status).store(nvrm::kNotified, std::memory_order_release);
}

// ---- freeing

void Objects::end(const Object& o) {
  if (o.channel) {
    if (o.channel->registered)
      reports_.add({FindingKind::BadCall, o.gpu, o.channel->id, 0,
                    "RM_FREE: the channel is still registered with unified memory"});
    o.channel->space->context->detach(o.channel->id);
  }
  if (o.object_class == object::VaSpace) {
    if (o.space->registered)
      reports_.add({FindingKind::BadCall, o.gpu, 0, 0,
                    "RM_FREE: the VA space is still registered with unified memory"});
    engines_.remove(o.space->context);
  }
}

// The youngest first, as what is beneath something is younger than it.
void Objects::free_tree(Client& c, nvrm::Handle handle) {
  std::vector<std::pair<uint64_t, nvrm::Handle>> beneath;
  for (const auto& [other, o] : c.objects)
    if (o.parent == handle && other != handle) beneath.emplace_back(o.order, other);
  std::ranges::sort(beneath, std::greater<>());
  for (const auto& [order, other] : beneath) free_tree(c, other);
  end(c.objects[handle]);
  c.objects.erase(handle);
}

void Objects::free(nvrm::Handle client_handle, nvrm::Handle handle) {
  find(client_handle, handle);
  free_tree(client(client_handle), handle);
  if (handle == client_handle) clients_.erase(client_handle);
}

// What a process that was killed leaves: no order is its fault.
void Objects::free_clients(uint64_t file) {
  std::vector<nvrm::Handle> gone;
  for (auto& [handle, c] : clients_) {
    if (c.file != file) continue;
    gone.push_back(handle);
    for (auto& [own, o] : c.objects) {
      if (o.channel) o.channel->registered = false;
      if (o.space) o.space->registered = false;
    }
  }
  for (const nvrm::Handle handle : gone) free(handle, handle);
}

}  // namespace tuff::emu::nv
