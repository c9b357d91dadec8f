#include "engine/device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/os.h"
#include "devices/default_kinds.h"
#include "engine/program/program_cache.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "ir/device_group.h"

namespace tuff::engine {
namespace {

struct OpenDevices {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Device>> by_name;  // canonical names
  std::map<std::string, std::string> canonical;            // what users wrote -> canonical
  std::string default_name;
};

// Leaked on purpose: drivers may have run their own exit handlers before static destructors run.
OpenDevices& open_devices() {
  static OpenDevices& d = *std::make_unique<OpenDevices>().release();
  return d;
}

// At exit devices are brought to rest and the trace is written; destroying them is
// close_devices()'s, called by main.
void bring_to_rest() {
  for (auto& [name, device] : open_devices().by_name) {
    try {
      device->queue().wait_idle();
    } catch (const Error&) {
      // A lost device cannot be waited for, and the process is ending.
    }
  }
  profile_write();
}

// The thread that calls exit() destroys its thread-local objects before anything static. Handlers
// of atexit run the other way round than they were registered, and a driver's compiler registers
// its own when it first compiles, in a thread of the driver: they would take away what it still
// works with.
struct IdleBeforeExit {
  ~IdleBeforeExit() {
    if (os::is_main_thread()) bring_to_rest();
  }
  void arm() const {}  // its use is what makes the thread's object
};
thread_local const IdleBeforeExit idle_before_exit;

std::string upper(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  return s;
}

const devices::DeviceKind& kind_named(const std::string& kind, const std::string& asked) {
  std::vector<std::string> known;
  for (const devices::DeviceKind& k : devices::device_kinds()) {
    if (kind == k.kind) return k;
    known.emplace_back(k.kind);
  }
  fail<InvalidArgument>("unknown device \"{}\": known kinds are {} (see `tuff devices`){}", asked,
                        fmt::join(known, ", "), did_you_mean(kind, known));
}

std::string best_candidate() {
  check_environment();
  std::string best, reasons;
  int best_rank = 0;
  for (const devices::DeviceKind& k : devices::device_kinds()) {
    if (!devices::may_be_default(k)) continue;
    for (const devices::Candidate& c : k.probe()) {
      if (!c.usable) reasons += fmt::format("\n  {}: {}", c.name, c.reason);
      if (!c.usable || c.rank <= best_rank) continue;
      best = c.name;
      best_rank = c.rank;
    }
  }
  if (best.empty()) fail<Unsupported>("no usable device:{}", reasons);
  return best;
}

std::shared_ptr<Device> open(const std::string& asked) {
  const size_t colon = asked.find(':');
  const std::string kind = upper(asked.substr(0, colon));
  const std::string selector = colon == std::string::npos ? "" : asked.substr(colon + 1);
  auto device = std::make_shared<Device>(kind_named(kind, asked).open(selector));
  TUFF_DEBUG_LINE(1, "opened {}: {} ({})", device->name(), device->hcq().info().description,
                  device->hcq().info().driver);
  return device;
}

// As open(), but a name that no caller has passed is said to be the variable's.
std::shared_ptr<Device> open_default(const std::string& asked) {
  try {
    return open(asked);
  } catch (const InvalidArgument& e) {
    if (env_text(Env::TUFF_DEVICE) != asked) throw;
    fail<InvalidArgument>("TUFF_DEVICE='{}': {}", asked, e.what());
  }
}

// Under the registry's lock; false if a device of that name is open.
bool enter(OpenDevices& d, const std::shared_ptr<Device>& device) {
  if (d.by_name.empty()) std::atexit(bring_to_rest);
  return d.by_name.emplace(device->name(), device).second;
}

// Out of the registry, so that it is not found any more.
std::shared_ptr<Device> taken_out(const std::string& name) {
  OpenDevices& d = open_devices();
  std::lock_guard lock(d.mutex);
  const auto it = d.by_name.find(name);
  if (it == d.by_name.end() || it->second->hcq().liveness().closed())
    fail<InvalidArgument>("no device {} is open", name);
  return std::move(d.by_name.extract(it).mapped());
}

void put_back(const std::shared_ptr<Device>& device) {
  std::lock_guard lock(open_devices().mutex);
  open_devices().by_name.emplace(device->name(), device);
}

void wait_unless_lost(Device& device) {
  wait_for_reads();  // into its memory, which is going to be gone
  try {
    device.queue().wait_idle();
  } catch (const DeviceLost& e) {
    log_warn("closing {}: {}", device.name(), e.what());
  }
}

}  // namespace

Device::Device(std::unique_ptr<hcq::Device> device)
    : hcq_(std::move(device)),
      target_(hcq_->target()),
      args_(std::make_unique<hcq::ArgRing>(*hcq_)),
      programs_(std::make_unique<ProgramCache>(*hcq_)) {
  if (checking_bounds()) target_.max_buffers--;
}

Device::~Device() {
  try {
    queue().wait_idle();
  } catch (const Error& e) {
    log_warn("closing {}: {}", name(), e.what());
    hcq_->settle();
  }
  hcq_->liveness().await_disk(nullptr, 0);
}

hcq::Signal* Device::read_signal() {
  std::call_once(read_signal_made_, [&] {
    try {
      read_signal_ = hcq_->create_signal();
    } catch (const Unsupported&) {
      // Then users of what is read wait for it themselves.
    }
  });
  return read_signal_.get();
}

std::shared_ptr<Device> Device::get(const std::string& name) {
  idle_before_exit.arm();
  check_environment();
  const std::string asked = name.empty() ? default_device() : name;
  OpenDevices& d = open_devices();
  std::lock_guard lock(d.mutex);
  if (auto it = d.by_name.find(asked); it != d.by_name.end()) return it->second;
  if (auto it = d.canonical.find(asked); it != d.canonical.end()) return d.by_name.at(it->second);
  std::shared_ptr<Device> device = name.empty() ? open_default(asked) : open(asked);
  enter(d, device);
  d.canonical[asked] = device->name();
  return d.by_name.at(device->name());
}

namespace {

bool names_kind(std::string_view device) {
  const std::string kind = upper(std::string(device.substr(0, device.find(':'))));
  return std::ranges::any_of(devices::device_kinds(),
                             [&](const devices::DeviceKind& k) { return kind == k.kind; });
}

// Selectors may have commas: a group's names are all of kinds of devices.
bool names_group(const std::string& name) {
  const std::vector<std::string> members = ir::group_members(name);
  return members.size() > 1 && std::ranges::all_of(members, names_kind);
}

}  // namespace

std::string canonical_device(const std::string& name) {
  if (!names_group(name)) return Device::get(name)->name();
  std::vector<std::string> members = ir::group_members(name);
  for (std::string& member : members) member = Device::get(member)->name();
  return ir::group_name(members);
}

std::string default_device() {
  const std::string chosen = env_text(Env::TUFF_DEVICE);
  if (!chosen.empty()) return chosen;
  OpenDevices& d = open_devices();
  {
    std::lock_guard lock(d.mutex);
    if (!d.default_name.empty()) return d.default_name;
  }
  std::string best = best_candidate();
  std::lock_guard lock(d.mutex);
  d.default_name = best;
  return best;
}

std::vector<devices::Candidate> list_devices() {
  check_environment();
  std::vector<devices::Candidate> all;
  for (const devices::DeviceKind& k : devices::device_kinds()) {
    for (devices::Candidate& c : k.probe()) all.push_back(std::move(c));
  }
  return all;
}

void Device::add(std::unique_ptr<hcq::Device> opened) {
  idle_before_exit.arm();
  auto device = std::make_shared<Device>(std::move(opened));
  OpenDevices& d = open_devices();
  std::lock_guard lock(d.mutex);
  const bool fresh = enter(d, device);
  TUFF_CHECK(fresh, "{} is open already", device->name());
}

void wait_for_reads() {
  std::shared_ptr<Device> disk;
  {
    OpenDevices& d = open_devices();
    std::lock_guard lock(d.mutex);
    if (const auto it = d.by_name.find("DISK"); it != d.by_name.end()) disk = it->second;
  }
  constexpr uint64_t kSliceNs = 1'000'000'000;
  if (!disk || disk->hcq().liveness().closed()) return;
  while (!disk->queue().timeline().wait(disk->queue().last_submitted(), kSliceNs)) {}
}

Holders close_device(const std::string& name) {
  std::shared_ptr<Device> device = taken_out(name);
  wait_unless_lost(*device);
  device->hcq().allocator().collect();
  const Holders holders{size_t(device.use_count()) - 1,
                        device->hcq().allocator().stats().live_bytes};
  if (holders.count == 0) return {};
  put_back(device);
  return holders;
}

void abandon_device(const std::string& name, const std::string& reason) {
  std::shared_ptr<Device> device = taken_out(name);
  wait_unless_lost(*device);
  if (device.use_count() == 1) return;
  device->hcq().close(reason);
  put_back(device);  // what holds it asks for it by its name
}

void close_devices() {
  OpenDevices& d = open_devices();
  if (profiling()) bring_to_rest();
  std::map<std::string, std::shared_ptr<Device>> closing;
  {
    std::lock_guard lock(d.mutex);
    closing.swap(d.by_name);
    d.canonical.clear();
    d.default_name.clear();
  }
}

}  // namespace tuff::engine
