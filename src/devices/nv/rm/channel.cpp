#include "devices/nv/rm/channel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/log.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kNotifierBytes = 64 << 10;
constexpr uint64_t kWindowBytes = 64u << 20;  // for what UVM maps of a channel's own

const char* meaning(uint32_t code) {
  using namespace nvrm::channel_error;
  switch (code) {
    case GraphicsException: return "an exception of the compute engine";
    case MmuFault: return "a fault of the MMU";
    case Pbdma: return "an entry or method that the host engine does not take";
    case ClassError: return "a method or launch that the engine does not take";
    default: return "see dmesg (Xid)";
  }
}

}  // namespace

// ---- the group

ChannelGroup::ChannelGroup(Space& space)
    : space_(space), notifiers_(space, kNotifierBytes, MemoryDomain::System) {
  const Gpu& gpu = space.gpu();
  std::memset(notifiers_.host(), 0, notifiers_.size_bytes());
  nvrm::ChannelGroupParameters p{};
  p.va_space = space.handle();
  p.engine = nvrm::kEngineGraphics;
  group_ = std::make_unique<Object>(gpu.client(), gpu.device(), nvrm::object::ChannelGroup,
                                    "channel group", p);
  nvrm::ContextShareParameters share{};
  share.va_space = space.handle();
  share.flags = nvrm::kSubcontextAsync;
  subcontext_ = std::make_unique<Object>(gpu.client(), group(), nvrm::object::ContextShare,
                                         "context share", share);
  usermode_object_ = std::make_unique<Object>(gpu.client(), gpu.subdevice(),
                                              gpu.facts().usermode_class, "doorbells");
  usermode_ = map_object(gpu, gpu.subdevice(), usermode_object_->handle(), nvrm::kUsermodeBytes,
                         gpu.open_file());
}

ChannelGroup::~ChannelGroup() {
  stop();
  space_.gpu().client()->kernel().munmap(usermode_, nvrm::kUsermodeBytes);
}

void ChannelGroup::set_running(bool running) {
  const Client& client = *space_.gpu().client();
  std::array<std::byte, 8> parameters{};  // bEnable first, in all branches
  parameters[0] = std::byte(running);
  client.control(group(), nvrm::control::GroupSchedule, "GPFIFO_SCHEDULE",
                 std::span(parameters).first(client.branch().schedule_bytes));
}

void ChannelGroup::schedule() {
  std::lock_guard lock(mutex_);
  set_running(true);
  running_ = true;
}

void ChannelGroup::stop() noexcept {
  std::lock_guard lock(mutex_);
  if (!std::exchange(running_, false)) return;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return set_running(false);
    } catch (const Error& e) {
      if (attempt > 0) log_warn("NV: stopping channels: {}", e.what());
    }
  }
}

// The fault's record belongs to whichever channel had it, and is cleared by being read.
[[gnu::hot]]
std::optional<ChannelError> ChannelGroup::error(const Channel& first) const {
  auto& record = *reinterpret_cast<nvrm::ErrorNotifier*>(notifiers_.host());
  if (std::atomic_ref(record.status).load(std::memory_order_acquire) != nvrm::kNotified)
    return std::nullopt;
  ChannelError e;
  e.text = fmt::format("channel error {}: {}", record.code, meaning(record.code));
  if (record.code != nvrm::channel_error::MmuFault) return e;
  nvrm::MmuFaultInfo fault{};
  try {
    space_.gpu().client()->control(first.handle(), nvrm::control::GetMmuFaultInfo,
                                   "GET_MMU_FAULT_INFO", fault);
  } catch (const Error& failure) {
    e.text += fmt::format(" (its record cannot be read: {})", failure.what());
    return e;
  }
  e.address = uint64_t(fault.address_high) << 32 | fault.address_low;
  e.text += fmt::format(" at {:#x}: {}", *e.address,
                        std::string(fault.text, strnlen(fault.text, sizeof fault.text)));
  return e;
}

// ---- a channel

Channel::Channel(ChannelGroup& group, std::span<const uint32_t> engine_classes)
    : group_(group),
      memory_(group.space(), kEntries * kEntryBytes + nvrm::kUserdBytes,
              MemoryDomain::VisibleVideo) {
  std::memset(memory_.host(), 0, memory_.size_bytes());
  try {
    create(engine_classes);
    register_with_uvm();
  } catch (...) {
    release();
    throw;
  }
}

void Channel::create(std::span<const uint32_t> engine_classes) {
  const Gpu& gpu = group_.space().gpu();
  nvrm::ChannelParameters p{};
  p.error = group_.notifier();
  p.buffer = memory_.handle();
  p.gpfifo_address = memory_.address();
  p.gpfifo_entries = kEntries;
  p.context_share = group_.subcontext();
  p.userd_memory[0] = memory_.handle();
  p.userd_offset[0] = kEntries * kEntryBytes;
  p.engine = nvrm::kEngineGraphics;
  channel_ = std::make_unique<Object>(gpu.client(), group_.group(), gpu.facts().gpfifo_class,
                                      "channel", p);
  for (const uint32_t engine : engine_classes) {
    std::array<std::byte, 64> none{};
    engines_.push_back(std::make_unique<Object>(gpu.client(), handle(), engine, "engine", none));
  }
}

void Channel::register_with_uvm() {
  const Gpu& gpu = group_.space().gpu();
  window_ = group_.space().reserve(kWindowBytes, kWindowBytes);
  nvrm::uvm::RegisterChannel r{};
  r.gpu = gpu.facts().uuid;
  r.control_fd = gpu.client()->control_fd();
  r.client = gpu.client()->root();
  r.channel = handle();
  r.base = window_;
  r.length = kWindowBytes;
  gpu.client()->uvm(nvrm::uvm::kRegisterChannel, "UVM_REGISTER_CHANNEL", r);
  registered_ = true;
}

Channel::~Channel() { release(); }

// The channel is stopped before UVM lets go of it.
void Channel::release() noexcept {
  const Gpu& gpu = group_.space().gpu();
  group_.stop();
  if (registered_) {
    nvrm::uvm::UnregisterChannel u{gpu.facts().uuid, gpu.client()->root(), handle(), 0};
    gpu.client()->undo_uvm(nvrm::uvm::kUnregisterChannel, u);
  }
  if (window_) group_.space().give_back(window_);
  engines_.clear();
  channel_.reset();
}

void Channel::read_token() {
  nvrm::SubmitToken token{};
  group_.space().gpu().client()->control(handle(), nvrm::control::GetSubmitToken,
                                         "GPFIFO_GET_WORK_SUBMIT_TOKEN", token);
  token_ = token.token;
}

// What the entry names is in memory before the entry is, and that before GPPut. The fence also
// empties the buffers of a processor that combines writes to the aperture. The doorbell is stored
// to, not exchanged: that would read the register across the bus.
[[gnu::hot]]
void Channel::push(uint64_t number, uint64_t entry) {
  uint64_t* entry_at = entries() + number % kEntries;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref(*entry_at).store(entry, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref(*put()).store(uint32_t((number + 1) % kEntries), std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref(*group_.doorbell()).store(token_, std::memory_order_release);
}

}  // namespace tuff::devices::nv
