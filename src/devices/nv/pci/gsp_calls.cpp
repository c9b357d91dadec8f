#include "devices/nv/pci/gsp_calls.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "devices/nv/rm/calls.h"

namespace tuff::devices::nv {
namespace {

using nvrm::Status;

// As nouveau's first client (Linux, drivers/gpu/drm/nouveau/nvkm/subdev/gsp/rm/handles.h @1b9d7b9),
// and handles that are none of the firmware's own (as tinygrad's).
constexpr nvrm::Handle kRoot = 0xc1d00000, kFirstHandle = 0xcf000000;
constexpr size_t kRootBytes = 120;         // NV0000_ALLOC_PARAMETERS
constexpr size_t kStaticInfoBytes = 1656;  // at least; a newer one has more behind

struct AllocHeader {
  nvrm::Handle client, parent, object;
  uint32_t object_class, status, parameter_bytes, flags, reserved;
};
struct ControlHeader {
  nvrm::Handle client, object;
  uint32_t command, status, parameter_bytes, flags;
};
struct FreeHeader {
  nvrm::Handle client, parent, object;
  uint32_t status;
};
struct UnloadHeader {
  uint8_t in_power_transition, entering_gc6, pad[2];
  uint32_t level;
};
struct SetDirectoryHeader {
  nvrm::Handle client, device;
  uint32_t process, pad;
  uint64_t root;
  uint32_t entries, flags;
  nvrm::Handle space;
  uint32_t channel, subdevices, process2;
};
struct UnsetDirectoryHeader {
  nvrm::Handle client, device;
  uint32_t process;
  nvrm::Handle space;
  uint32_t subdevices;
};
constexpr uint32_t kNoProcess = ~0u, kOnlySubdevice = 1;  // the latter as a mask
static_assert(sizeof(SetDirectoryHeader) == 48 && sizeof(UnsetDirectoryHeader) == 20);
static_assert(sizeof(AllocHeader) == 32 && sizeof(ControlHeader) == 24 &&
              sizeof(FreeHeader) == 16 && sizeof(UnloadHeader) == 8);

uint32_t word_of(const GspMessage& m, size_t offset) {
  uint32_t value = 0;
  if (offset + sizeof value <= m.payload.size())
    std::memcpy(&value, m.payload.data() + offset, sizeof value);
  return value;
}

// rpc_os_error_log_v17_00: number, list, channel, text.
std::string text_of(const GspMessage& m) {
  constexpr size_t at = 12, most = 256;
  if (m.payload.size() <= at) return {};
  const auto* const text = reinterpret_cast<const char*>(m.payload.data() + at);
  return {text, strnlen(text, std::min(most, m.payload.size() - at))};
}

// rpc_rc_triggered_v17_02.
GspChannelError error_of(const GspMessage& m) {
  GspChannelError e;
  e.channel = word_of(m, 4);
  e.code = word_of(m, 16);
  if (e.code == nvrm::channel_error::MmuFault)
    e.address = uint64_t{word_of(m, 32)} << 32 | word_of(m, 28);
  return e;
}

}  // namespace

const nvrm::Branch& gsp_branch() {
  constexpr uint32_t known = 570;
  return *std::ranges::find(nvrm::kBranches, known, &nvrm::Branch::number);
}

GspCalls::GspCalls(GspQueues& queues, std::string gpu,
                   std::function<void(std::span<const uint8_t>)> run_sequence,
                   std::function<void()> on_lost)
    : queues_(queues),
      gpu_(std::move(gpu)),
      run_sequence_(std::move(run_sequence)),
      on_lost_(std::move(on_lost)),
      next_(kFirstHandle) {}

// ---- the queues

// One at a time, and none any more once the queues cannot be trusted.
template <class Talk>
auto GspCalls::talk(Talk talk) const {
  std::lock_guard lock(mutex_);
  if (!lost_.empty()) fail<DeviceLost>("{}", lost_);
  try {
    return talk();
  } catch (const DeviceLost& e) {
    set_lost(e.what());
    throw;
  }
}

bool GspCalls::is_lost() const {
  std::lock_guard lock(mutex_);
  return !lost_.empty();
}

void GspCalls::set_lost(const std::string& why) const {
  lost_ = why;
  if (on_lost_) on_lost_();
}

void GspCalls::lose(const std::string& why) noexcept {
  std::lock_guard lock(mutex_);
  if (lost_.empty()) set_lost(why);
}

// ---- what it tells

void GspCalls::take(const GspMessage& event) const {
  switch (event.function) {
    case gsp_call::RunCpuSequencer: return run_sequence_(event.payload);
    case gsp_call::RcTriggered: errors_.push_back(error_of(event)); return;
    case gsp_call::OsErrorLog:
      log_warn("NV: {}: Xid {}: {}", gpu_, word_of(event, 0), text_of(event));
      return;
    default: return;  // of screens, power, clocks and counters
  }
}

std::vector<GspChannelError> GspCalls::take_errors() {
  return talk([&] {
    while (const std::optional<GspMessage> event = queues_.receive()) take(*event);
    return std::exchange(errors_, {});
  });
}

// ---- calls

GspMessage GspCalls::ask(uint32_t function, std::span<const uint8_t> payload) const {
  return talk([&] {
    queues_.send(function, payload);
    return queues_.wait_for(function, payload.size(), [&](const GspMessage& m) { take(m); });
  });
}

template <class Header>
void GspCalls::call(uint32_t function, const std::string& name, Header& header,
                    std::span<std::byte> parameters) const {
  std::vector<uint8_t> payload(sizeof header + parameters.size());
  std::memcpy(payload.data(), &header, sizeof header);
  if (!parameters.empty())
    std::memcpy(payload.data() + sizeof header, parameters.data(), parameters.size());
  const GspMessage answer = ask(function, payload);
  if (Status(answer.result) != Status::Ok) fail_call(name, Status(answer.result));
  if (answer.payload.size() < payload.size())
    fail<DeviceLost>("NV: {}: the GSP answered {} with {} bytes of {}", gpu_, name,
                     answer.payload.size(), payload.size());
  std::memcpy(&header, answer.payload.data(), sizeof header);
  if constexpr (requires { header.status; })
    if (Status(header.status) != Status::Ok) fail_call(name, Status(header.status));
  if (!parameters.empty())
    std::memcpy(parameters.data(), answer.payload.data() + sizeof header, parameters.size());
}

nvrm::Handle GspCalls::alloc(nvrm::Handle parent, uint32_t object_class, const char* name,
                             std::span<std::byte> parameters) {
  nvrm::Handle handle = kRoot;
  if (object_class != nvrm::object::Root) {
    std::lock_guard lock(mutex_);
    handle = next_++;
  }
  AllocHeader h{kRoot, parent, handle, object_class, 0, uint32_t(parameters.size()), 0, 0};
  call(gsp_call::RmAlloc, fmt::format("RM_ALLOC({}, class {:#x})", name, object_class), h,
       parameters);
  return handle;
}

// With a GPU that is lost its objects are gone.
void GspCalls::free(nvrm::Handle, nvrm::Handle object) noexcept {
  if (is_lost()) return;
  try {
    FreeHeader h{kRoot, 0, object, 0};
    call(gsp_call::Free, fmt::format("RM_FREE({:#x})", object), h, {});
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

void GspCalls::control(nvrm::Handle object, uint32_t command, const char* name,
                       std::span<std::byte> parameters) const {
  ControlHeader h{kRoot, object, command, 0, uint32_t(parameters.size()), 0};
  call(gsp_call::RmControl, name, h, parameters);
}

void GspCalls::set_page_directory(nvrm::Handle device, nvrm::Handle space, uint64_t root,
                                  uint32_t entries) const {
  constexpr uint32_t all_channels = 1u << 3;
  SetDirectoryHeader h{kRoot, device, kNoProcess, 0, root, entries, all_channels, space, 0,
                       kOnlySubdevice, kNoProcess};
  call(gsp_call::SetPageDirectory, "SET_PAGE_DIRECTORY", h, {});
}

void GspCalls::unset_page_directory(nvrm::Handle device, nvrm::Handle space) const {
  UnsetDirectoryHeader h{kRoot, device, kNoProcess, space, kOnlySubdevice};
  call(gsp_call::UnsetPageDirectory, "UNSET_PAGE_DIRECTORY", h, {});
}

std::vector<uint8_t> GspCalls::static_info() const {
  const GspMessage answer =
      ask(gsp_call::GetStaticInfo, std::vector<uint8_t>(kStaticInfoBytes));
  if (Status(answer.result) != Status::Ok)
    fail_call("GET_GSP_STATIC_INFO", Status(answer.result));
  if (answer.payload.size() < kStaticInfoBytes)
    fail<DeviceLost>("NV: {}: the GSP answered GET_GSP_STATIC_INFO with {} bytes of {}", gpu_,
                     answer.payload.size(), kStaticInfoBytes);
  return answer.payload;
}

// ---- begin and end

void GspCalls::start() {
  talk([&] {
    const GspMessage ready =
        queues_.wait_for(gsp_call::InitDone, 0, [&](const GspMessage& m) { take(m); });
    if (Status(ready.result) != Status::Ok)
      fail<DeviceLost>("NV: {}: the GSP's firmware did not start: {}", gpu_,
                       to_text(Status(ready.result)));
  });
  std::array<std::byte, kRootBytes> parameters{};
  std::memcpy(parameters.data(), &kRoot, sizeof kRoot);
  root_ = alloc(0, nvrm::object::Root, "root client", parameters);
}

void GspCalls::stop() {
  if (root_) free(0, std::exchange(root_, 0));
  UnloadHeader h{};
  call(gsp_call::UnloadingGuestDriver, "UNLOADING_GUEST_DRIVER", h, {});
}

}  // namespace tuff::devices::nv
