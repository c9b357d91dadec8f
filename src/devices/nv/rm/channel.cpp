#include "devices/nv/rm/channel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {
namespace {

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

std::string channel_error_text(uint32_t code) {
  return fmt::format("channel error {}: {}", code, meaning(code));
}

// ---- the group

ChannelGroup::ChannelGroup(Space& space, GroupParents parents)
    : space_(space), parents_(std::move(parents)) {
  nvrm::ChannelGroupParameters p{};
  p.va_space = parents_.space;
  p.engine = nvrm::kEngineGraphics;
  group_ = std::make_unique<Object>(parents_.calls, parents_.device, nvrm::object::ChannelGroup,
                                    "channel group", p);
  nvrm::ContextShareParameters share{};
  share.va_space = parents_.space;
  share.flags = nvrm::kSubcontextAsync;
  subcontext_ = std::make_unique<Object>(parents_.calls, group(), nvrm::object::ContextShare,
                                         "context share", share);
}

ChannelGroup::~ChannelGroup() = default;

void ChannelGroup::set_running(bool running) {
  std::array<std::byte, 8> parameters{};  // bEnable first, in all branches
  parameters[0] = std::byte(running);
  parents_.calls->control(group(), nvrm::control::GroupSchedule, "GPFIFO_SCHEDULE",
                          std::span(parameters).first(parents_.branch.schedule_bytes));
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
  on_runaway();
}

// ---- a channel

Channel::Channel(ChannelGroup& group)
    : group_(group),
      memory_(group.space().allocate(kUserdOffset + nvrm::kUserdBytes,
                                     MemoryDomain::VisibleVideo)) {
  std::memset(memory_->host(), 0, memory_->size_bytes());
}

nvrm::ChannelParameters Channel::parameters() const {
  nvrm::ChannelParameters p{};
  p.gpfifo_address = memory_->address();
  p.gpfifo_entries = kEntries;
  p.context_share = group_.subcontext();
  p.userd_offset[0] = kUserdOffset;
  p.engine = nvrm::kEngineGraphics;
  return p;
}

void Channel::create(const nvrm::ChannelParameters& parameters) {
  std::vector<std::byte> bytes(group_.parents().branch.channel_bytes);
  std::memcpy(bytes.data(), &parameters, sizeof parameters);
  channel_ = std::make_unique<Object>(group_.parents().calls, group_.group(),
                                      group_.space().facts().gpfifo_class, "channel",
                                      std::span(bytes));
}

void Channel::add_engines(std::span<const uint32_t> classes) {
  for (const uint32_t engine : classes)
    engines_.push_back(
        std::make_unique<Object>(group_.parents().calls, handle(), engine, "engine"));
}

Channel::~Channel() { destroy(); }

void Channel::destroy() noexcept {
  engines_.clear();
  channel_.reset();
}

void Channel::read_token() {
  nvrm::SubmitToken token{};
  group_.parents().calls->control(handle(), nvrm::control::GetSubmitToken,
                                  "GPFIFO_GET_WORK_SUBMIT_TOKEN", token);
  token_ = token.token | token_bits();
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
