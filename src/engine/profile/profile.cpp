#include "engine/profile/profile.h"

#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::engine {
namespace {

using nlohmann::ordered_json;

constexpr int kHostProcess = 1;  // devices are numbered on from it
constexpr int kQueueThread = 1;

struct Event {
  std::string name;
  int process;
  int thread;
  uint64_t begin_ns, end_ns;
  uint64_t bytes = 0;    // of a copy
  bool on_main = false;  // of the host's threads
};

// A list that was submitted with timestamps, until it has run.
struct Pending {
  hcq::Queue* queue;
  uint64_t value;
  hcq::CommandList list;
  std::unique_ptr<hcq::EncodedList> encoded;
};

struct Profile {
  std::mutex mutex;
  std::vector<Event> events;
  std::vector<Pending> pending;
  std::vector<std::weak_ptr<hcq::CommandGraph>> graphs;
  std::map<std::string, int> devices;  // process numbers
  std::map<std::string, kernel::Estimate> kernels;
  size_t written = 0;
};

// Leaked on purpose: threads may still report while static objects are destroyed.
Profile& profile() {
  static Profile& p = *std::make_unique<Profile>().release();
  return p;
}

thread_local hcq::TimesSink observer;

// Under the mutex, as the next one.
void add_commands(Profile& p, const std::string& device, const hcq::CommandList& list,
                  std::span<const uint64_t> times) {
  const int process =
      p.devices.emplace(device, kHostProcess + 1 + int(p.devices.size())).first->second;
  for (const hcq::TimedCommand& c : hcq::timed_commands(list, times)) {
    Event e{c.command->label, process, kQueueThread, c.begin_ns, c.end_ns};
    if (const auto* copy = std::get_if<hcq::CopyCmd>(&c.command->body))
      e.bytes = copy->dst.size_bytes;
    p.events.push_back(std::move(e));
  }
}

void collect(Profile& profile) {
  std::erase_if(profile.pending, [&](const Pending& p) {
    try {
      if (!p.queue->passed(p.value)) return false;
      add_commands(profile, p.queue->device().name(), p.list, p.queue->timestamps(*p.encoded));
    } catch (const DeviceLost& e) {
      log_warn("TUFF_PROFILE: {}", e.what());
    }
    return true;
  });
}

// Times are in microseconds.
ordered_json json_of(const Profile& p, const Event& e) {
  const double duration = double(e.end_ns - e.begin_ns) / 1e3;
  ordered_json j = {{"name", e.name},
                    {"cat", e.process == kHostProcess ? "host" : e.bytes ? "copy" : "kernel"},
                    {"ph", "X"},
                    {"ts", double(e.begin_ns) / 1e3},
                    {"dur", duration},
                    {"pid", e.process},
                    {"tid", e.thread}};
  ordered_json args = ordered_json::object();
  if (e.bytes) args["bytes"] = e.bytes;
  if (const auto k = p.kernels.find(e.name); k != p.kernels.end() && e.process != kHostProcess) {
    args["flops"] = k->second.flops;
    args["bytes"] = k->second.bytes;
    if (duration > 0) args["GFLOP/s"] = double(k->second.flops) / duration / 1e3;
    if (duration > 0) args["GB/s"] = double(k->second.bytes) / duration / 1e3;
  }
  if (!args.empty()) j["args"] = std::move(args);
  return j;
}

ordered_json trace(const Profile& p) {
  ordered_json events = ordered_json::array();
  const auto name = [&](const char* what, int process, int thread, const std::string& text) {
    events.push_back({{"name", what},
                      {"ph", "M"},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", text}}}});
  };
  name("process_name", kHostProcess, 0, "host");
  std::set<int> threads;
  for (const Event& e : p.events) {
    if (e.process != kHostProcess || !threads.insert(e.thread).second) continue;
    name("thread_name", kHostProcess, e.thread,
         e.on_main ? "main thread" : fmt::format("thread {}", e.thread));
  }
  for (const auto& [device, process] : p.devices) {
    name("process_name", process, 0, device);
    name("thread_name", process, kQueueThread, "compute queue");
  }
  for (const Event& e : p.events) events.push_back(json_of(p, e));
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

void write(Profile& p) {
  std::vector<std::shared_ptr<hcq::CommandGraph>> live;
  {
    std::lock_guard lock(p.mutex);
    for (const auto& g : p.graphs)
      if (auto graph = g.lock()) live.push_back(std::move(graph));
  }
  for (const auto& graph : live) graph->report_times();
  std::lock_guard lock(p.mutex);
  collect(p);
  if (p.events.size() == p.written) return;
  os::write_text(env_text(Env::TUFF_PROFILE),
                 trace(p).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  p.written = p.events.size();
}

}  // namespace

bool profiling() {
  static const bool on = !env_text(Env::TUFF_PROFILE).empty();
  return on;
}

void profile_host(const char* name, uint64_t begin_ns, uint64_t end_ns) {
  if (!profiling()) return;
  std::lock_guard lock(profile().mutex);
  profile().events.push_back(
      {name, kHostProcess, int(os::thread_id()), begin_ns, end_ns, 0, os::is_main_thread()});
}

void profile_kernel(const std::string& name, const kernel::Estimate& estimate) {
  if (!profiling()) return;
  std::lock_guard lock(profile().mutex);
  profile().kernels[name] = estimate;
}

uint64_t profile_submit(hcq::Queue& queue, const hcq::CommandList& list) {
  hcq::CommandList timed = list;
  hcq::add_timestamps(timed);
  std::unique_ptr<hcq::EncodedList> encoded;
  try {
    encoded = queue.encode(timed, hcq::EncodeUse::Once);
  } catch (const Unsupported& e) {
    log_warn("TUFF_PROFILE: {}", e.what());
    return queue.submit_once(queue.encode(list, hcq::EncodeUse::Once));
  }
  const uint64_t value = queue.submit(*encoded, {});
  Profile& p = profile();
  std::lock_guard lock(p.mutex);
  p.pending.push_back({&queue, value, std::move(timed), std::move(encoded)});
  collect(p);
  return value;
}

ObservedReplays::ObservedReplays(hcq::TimesSink sink) {
  TUFF_CHECK(!observer, "replays are observed already");
  observer = std::move(sink);
}
ObservedReplays::~ObservedReplays() { observer = {}; }

hcq::TimesSink profile_sink(const std::string& device) {
  if (observer) return observer;
  if (!profiling()) return {};
  return [device](const hcq::CommandList& list, std::span<const uint64_t> times) {
    std::lock_guard lock(profile().mutex);
    add_commands(profile(), device, list, times);
  };
}

void profile_graph(const std::shared_ptr<hcq::CommandGraph>& graph) {
  if (!profiling()) return;
  Profile& p = profile();
  std::lock_guard lock(p.mutex);
  std::erase_if(p.graphs, [](const auto& g) { return g.expired(); });
  p.graphs.push_back(graph);
}

void profile_write() noexcept {
  if (!profiling()) return;
  try {
    write(profile());
  } catch (const std::exception& e) {
    static std::atomic<bool> told{false};  // it is tried as often as devices come to rest
    if (!told.exchange(true)) log_warn("TUFF_PROFILE: {}", e.what());
  }
}

}  // namespace tuff::engine
