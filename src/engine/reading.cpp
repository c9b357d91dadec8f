#include "engine/reading.h"

#include <mutex>

#include "engine/buffer.h"
#include "hcq/launch.h"

namespace tuff::engine {
namespace {

constexpr uint64_t kSliceNs = 1'000'000'000;

class ReadOutcome final : public Outcome {
 public:
  void succeed() { right_.store(true, std::memory_order_release); }
  bool is_settled(const hcq::Queue&, uint64_t) const override {
    return right_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> right_{false};
};

// What the list holds on to. The device DISK is not among it: the list is part of that.
struct Work {
  std::shared_ptr<ReadOutcome> outcome = std::make_shared<ReadOutcome>();
  std::vector<Reading::Part> calls;  // of contents that a function gives
};

void run_call(void* context) {
  auto& call = *static_cast<Reading::Part*>(context);
  call.contents->begin()({call.to.host(), call.to.size_bytes});
  call.contents.reset();
}

hcq::CommandList list_of(const std::vector<Reading::Part>& parts, Work& work, hcq::Signal* signal) {
  hcq::CommandList list;
  for (const Reading::Part& p : parts) {
    if (!p.contents->source) {
      work.calls.push_back(p);
      continue;
    }
    const hcq::Span from = p.contents->source->span().sub(0, p.to.size_bytes);
    list.commands.push_back(hcq::copy_command(p.to, from, "read"));
  }
  for (Reading::Part& c : work.calls)
    list.commands.push_back({hcq::HostCallCmd{&run_call, &c}, {{c.to, true}}, "decode"});
  const auto succeed = [](void* outcome) { static_cast<ReadOutcome*>(outcome)->succeed(); };
  list.commands.push_back({hcq::HostCallCmd{succeed, work.outcome.get()}, {}, "done"});
  list.commands.push_back({hcq::SignalCmd{signal, list.slot_count++}, {}, ""});
  return list;
}

}  // namespace

Reading::Reading(Device& to, std::vector<Part> parts)
    : to_(to), disk_(Device::get("DISK")) {
  const auto work = std::make_shared<Work>();
  outcome_ = work->outcome;
  hcq::CommandList list = list_of(parts, *work, to.read_signal());
  list.failed = [work](const std::string& reason) {
    work->outcome->fail(1, reason, Outcome::Cause::File);
    for (Reading::Part& c : work->calls) c.contents.reset();
  };
  hcq::Queue& queue = disk_->queue();
  std::unique_ptr<hcq::EncodedList> encoded = queue.encode(list, hcq::EncodeUse::Once);
  // Signals only rise: lists have values in the order in which they run.
  static std::mutex order;
  std::lock_guard lock(order);
  signal_value_ = to.next_read();
  const uint64_t slots[] = {signal_value_};
  value_ = queue.submit_once(std::move(encoded), slots);
}

bool Reading::is_over() const { return disk_->queue().timeline().value() >= value_; }

void Reading::wait() const {
  while (!disk_->queue().timeline().wait(value_, kSliceNs)) {}
}

uint64_t Reading::order() {
  hcq::Queue& queue = to_.queue();
  hcq::CommandList list;
  list.slot_count = 1;
  list.commands.push_back({hcq::WaitCmd{to_.read_signal(), 0}, {}, ""});
  const uint64_t slots[] = {signal_value_};
  to_.hcq().liveness().await_disk(to_.read_signal(), signal_value_);
  return queue.submit_once(queue.encode(list, hcq::EncodeUse::Once), slots);
}

}  // namespace tuff::engine
