#include "devices/nv/rm/uvm_channel.h"

#include <cstring>

namespace tuff::devices::nv {
namespace {

constexpr size_t kNotifierBytes = 64 << 10;
constexpr uint64_t kWindowBytes = 64u << 20;  // for what UVM maps of a channel's own

}  // namespace

// ---- the group

UvmChannelGroup::UvmChannelGroup(UvmSpace& space)
    : ChannelGroup(space, {space.gpu().client(), space.client().branch(), space.gpu().device(),
                           space.handle()}),
      space_(space),
      notifiers_(space, kNotifierBytes, MemoryDomain::System) {
  const Gpu& gpu = space.gpu();
  std::memset(notifiers_.host(), 0, notifiers_.size_bytes());
  usermode_object_ = std::make_unique<Object>(gpu.client(), gpu.subdevice(),
                                              gpu.facts().usermode_class, "doorbells");
  usermode_ = map_object(gpu, gpu.subdevice(), usermode_object_->handle(), nvrm::kUsermodeBytes,
                         gpu.open_file());
  doorbell_ = reinterpret_cast<uint32_t*>(usermode_ + nvrm::kDoorbell);
}

UvmChannelGroup::~UvmChannelGroup() {
  stop();
  space_.client().kernel().munmap(usermode_, nvrm::kUsermodeBytes);
}

std::unique_ptr<Channel> UvmChannelGroup::make_channel(std::span<const uint32_t> engine_classes) {
  return std::make_unique<UvmChannel>(*this, engine_classes);
}

// The fault's record belongs to whichever channel had it, and is cleared by being read.
[[gnu::hot]]
std::optional<ChannelError> UvmChannelGroup::error(const Channel& first) {
  auto& record = *reinterpret_cast<nvrm::ErrorNotifier*>(notifiers_.host());
  if (std::atomic_ref(record.status).load(std::memory_order_acquire) != nvrm::kNotified)
    return std::nullopt;
  ChannelError e;
  e.text = channel_error_text(record.code);
  if (record.code != nvrm::channel_error::MmuFault) return e;
  nvrm::MmuFaultInfo fault{};
  try {
    space_.client().control(first.handle(), nvrm::control::GetMmuFaultInfo, "GET_MMU_FAULT_INFO",
                            fault);
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

UvmChannel::UvmChannel(UvmChannelGroup& group, std::span<const uint32_t> engine_classes)
    : Channel(group), group_(group) {
  nvrm::ChannelParameters p = parameters();
  p.error = group.notifier();
  p.buffer = p.userd_memory[0] = memory().handle();
  create(p);
  try {
    add_engines(engine_classes);
    register_with_uvm();
  } catch (...) {
    release();
    throw;
  }
}

void UvmChannel::register_with_uvm() {
  Client& client = group_.uvm_space().client();
  window_ = client.addresses().reserve(kWindowBytes, kWindowBytes);
  nvrm::uvm::RegisterChannel r{};
  r.gpu = group_.space().facts().uuid;
  r.control_fd = client.control_fd();
  r.client = client.root();
  r.channel = handle();
  r.base = window_;
  r.length = kWindowBytes;
  client.uvm(nvrm::uvm::kRegisterChannel, "UVM_REGISTER_CHANNEL", r);
  registered_ = true;
}

UvmChannel::~UvmChannel() { release(); }

// The channel is stopped before UVM lets go of it.
void UvmChannel::release() noexcept {
  Client& client = group_.uvm_space().client();
  group_.stop();
  if (registered_) {
    nvrm::uvm::UnregisterChannel u{group_.space().facts().uuid, client.root(), handle(), 0};
    client.undo_uvm(nvrm::uvm::kUnregisterChannel, u);
  }
  if (window_) client.addresses().give_back(window_);
}

}  // namespace tuff::devices::nv
