#include "emu/nv/rm/engines.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/os.h"
#include "base/os_nvrm.h"

namespace tuff::emu::nv {
namespace {

// A thread that has run out of work looks at doorbells this long before it sleeps, and then more
// and more seldom.
constexpr uint64_t kSpinForDoorbellNs = 20'000, kBusyNs = 20'000'000;
constexpr auto kLookOften = std::chrono::microseconds(50);
constexpr auto kLookSeldom = std::chrono::milliseconds(1);
constexpr uint32_t kStepsInARow = 16;
constexpr uint32_t kNotRung = ~0u;  // no channel has that token

uint32_t& doorbell_of(const Pages& pages) {
  return *reinterpret_cast<uint32_t*>(pages.data() + os::nvrm::kDoorbell);
}

}  // namespace

Engines::Engines(uint32_t gpus, const std::shared_ptr<PageFile>& file, Reports& reports,
                 uint64_t seed)
    : reports_(reports), random_(seed) {
  for (uint32_t i = 0; i < gpus; ++i) {
    doorbells_.push_back(Pages::make(os::nvrm::kUsermodeBytes, file));
    if (!doorbells_.back().data()) fail<OutOfMemory>("emulated GPU: no memory for doorbells");
    doorbell_of(doorbells_.back()) = kNotRung;
  }
  thread_ = std::thread([this] { run(); });
}

Engines::~Engines() { stop(); }

void Engines::stop() {
  stopped_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Engines::post(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
}

void Engines::run_posted() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
}

void Engines::add(uint32_t gpu, std::shared_ptr<Context> context) {
  std::lock_guard lock(mutex_);
  entries_.push_back({gpu, std::move(context)});
}

void Engines::remove(const std::shared_ptr<Context>& context) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& e) { return e.context == context; });
}

void Engines::wake() {
  {
    std::lock_guard lock(mutex_);
    wakes_.fetch_add(1);
  }
  woken_.notify_all();
}

std::vector<Engines::Entry> Engines::entries() {
  std::lock_guard lock(mutex_);
  return entries_;
}

// A channel is there before its doorbell is rung: so who is there is asked after that was seen.
bool Engines::look_at_doorbells() {
  bool rung = false;
  for (uint32_t gpu = 0; gpu < doorbells_.size(); ++gpu) {
    const uint32_t token = std::atomic_ref(doorbell_of(doorbells_[gpu])).exchange(kNotRung);
    if (token == kNotRung) continue;
    rung = true;
    bool known = false;
    for (const Entry& e : entries()) {
      if (e.gpu != gpu) continue;
      known = known || e.context->has(token);
      e.context->ring();
    }
    if (!known)
      reports_.add({FindingKind::BadPacket, gpu, token, 0,
                    fmt::format("the doorbell is rung with {}, no channel's token", token)});
  }
  return rung;
}

void Engines::run() {
  uint64_t idle_since = os::monotonic_ns();
  while (!stopped_) {
    const uint64_t seen = wakes_;
    bool went_on = look_at_doorbells();
    went_on = step_one(entries()) || went_on;
    run_posted();
    if (went_on) idle_since = os::monotonic_ns();
    else sleep(idle_since, seen);
  }
}

// Of several one that can go on, for one step or for many, so that others stand still anywhere.
bool Engines::step_one(const std::vector<Entry>& all) {
  const bool alone = all.size() < 2;
  const size_t first = alone ? 0 : random_.below(all.size());
  const uint32_t most = alone || random_.below(2u) ? kStepsInARow : 1;
  bool went_on = false;
  for (size_t i = 0; i < all.size() && !went_on; ++i) {
    Context& context = *all[(first + i) % all.size()].context;
    for (uint32_t k = 0; k < most && context.step(); ++k) went_on = true;
  }
  return went_on;
}

void Engines::sleep(uint64_t idle_since_ns, uint64_t seen) {
  const uint64_t idle_ns = os::monotonic_ns() - idle_since_ns;
  if (idle_ns < kSpinForDoorbellNs) return os::cpu_relax();
  std::unique_lock lock(mutex_);
  const auto changed = [&] { return wakes_ != seen || stopped_; };
  if (entries_.empty()) {
    woken_.wait(lock, changed);
  } else if (idle_ns < kBusyNs) {
    woken_.wait_for(lock, kLookOften, changed);
  } else {
    woken_.wait_for(lock, kLookSeldom, changed);
  }
}

}  // namespace tuff::emu::nv
