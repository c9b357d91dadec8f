#include "devices/amd/queue.h"

#include <algorithm>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "devices/amd/program.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kSpinNs = 20'000;

}  // namespace

KernelCode HandleBinding::kernel(const hcq::Program& program) const {
  const auto* own = dynamic_cast<const AmdProgram*>(&program);
  if (!own) fail<InvalidArgument>("{}: no program of an AMD GPU", program.name());
  return own->kernel();
}

uint64_t HandleBinding::signal_address(const hcq::Signal& signal) const {
  const auto* own = dynamic_cast<const AmdSignal*>(&signal);
  if (!own) fail<Unsupported>("AMD: a queue can wait for and raise signals of AMD GPUs alone");
  return own->address();
}

uint32_t private_bytes(const hcq::CommandList& list, const Binding& binding) {
  uint32_t most = 0;
  for (const hcq::Command& c : list.commands) {
    const auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
    if (d && d->program) most = std::max(most, binding.kernel(*d->program).private_bytes);
  }
  return most;
}

AmdList::~AmdList() {
  static_cast<AmdQueue&>(queue).flights().forget(kernels);
  for (const hcq::Span& span : {ib, times})
    if (span) queue.device().allocator().free(span, {&queue, last_value});
}

AmdQueue::AmdQueue(hcq::Device& device, GpuState& gpu, const HardwareQueueSetup& setup,
                   const char* name)
    : Queue(device),
      gpu_(gpu),
      type_(setup.type),
      name_(name),
      interrupt_(gpu.space->make_interrupt()),
      timeline_(std::in_place, gpu, 0, interrupt_.get()),
      hardware_(gpu.space->make_queue(setup)),
      ring_(hardware_->ring()) {
  submission_.number = gpu.space->queues().add(*this);
}

AmdQueue::~AmdQueue() {
  stop();
  gpu_.space->queues().remove(submission_.number);
  collect(true);
}

std::unique_ptr<hcq::EncodedList> AmdQueue::encode(const hcq::CommandList& list,
                                                   hcq::EncodeUse use) {
  const HandleBinding binding;
  auto out = std::make_unique<AmdList>(*this, use, list);
  prepare_scratch(*out, list);
  EncodeInput input{gpu_.generation, binding, list, {}, {}, 0, gpu_.facts.shape.xccs};
  input.completion = {&*timeline_, interrupt_->mailbox(), interrupt_->id()};
  if (out->scratch) input.scratch = out->scratch->area;
  if (list.timestamp_count > 0) {
    out->times = device().allocator().allocate(uint64_t(list.timestamp_count) * kTimestampStride,
                                               hcq::MemoryKind::Readback);
    input.timestamps = out->times.address();
  }
  out->kernels = kernel_names(list);
  out->encoded = type_ == QueueType::Pm4   ? encode_pm4(input)
                 : type_ == QueueType::Aql ? encode_aql(input)
                                           : encode_sdma(input);
  place(*out);
  return out;
}

// Lists that were encoded before keep the scratch that they name. An AQL queue names its own, for
// all lists: it changes while nothing is in flight.
void AmdQueue::prepare_scratch(AmdList& list, const hcq::CommandList& commands) {
  list.scratch = gpu_.scratch(private_bytes(commands, HandleBinding()));
  if (type_ != QueueType::Aql || !list.scratch) return;
  std::lock_guard lock(submission_.mutex);
  const auto bytes = [](const Scratch& s) { return s.area.size.bytes_per_lane; };
  if (aql_scratch_ && bytes(*aql_scratch_) >= bytes(*list.scratch)) return;
  wait(last_submitted());
  hardware_->set_scratch(list.scratch->area);
  aql_scratch_ = list.scratch;
}

// Everything that a submission needs, so that it allocates nothing.
void AmdQueue::place(AmdList& list) {
  const Encoded& e = list.encoded;
  if (type_ != QueueType::Sdma && !e.ib.dwords.empty()) {
    list.ib = device().allocator().allocate(e.ib.dwords.size() * sizeof(uint32_t),
                                            hcq::MemoryKind::Upload);
    std::copy(e.ib.dwords.begin(), e.ib.dwords.end(), list.ib_host());
  }
  if (type_ == QueueType::Pm4) {
    const auto jump = indirect_buffer(list.ib.address(), uint32_t(e.ib.dwords.size()));
    list.jump.dwords.assign(jump.begin(), jump.end());
    list.jump.units = {0};
  } else {
    list.staged = type_ == QueueType::Sdma ? e.ib.dwords : e.packets.dwords;
  }
  list.values.resize(e.value_count());
  for (const SignalWord& w : e.words) {
    auto* signal = const_cast<AmdSignal*>(dynamic_cast<const AmdSignal*>(w.signal));
    list.signals.push_back(signal);
    list.epochs.push_back(&signal->epoch());
  }
}

[[gnu::hot]]
uint64_t AmdQueue::submit(hcq::EncodedList& encoded, std::span<const uint64_t> slots) {
  device().fail_if_lost();
  auto& list = own_list<AmdList>(*this, encoded);
  require_submittable(list, slots);
  collect();
  std::lock_guard lock(submission_.mutex);
  ring_.prefetch();
  const uint64_t value = submission_.last.load(std::memory_order_relaxed) + 1;
  fill(list, slots.first(list.slot_count), value);
  flights_.add(value, list.kernels);
  list.last_value = value;
  submission_.last.store(value, std::memory_order_release);
  if (type_ == QueueType::Pm4) {
    push(list.jump, list.jump.dwords);
  } else {
    push(type_ == QueueType::Sdma ? list.encoded.ib : list.encoded.packets, list.staged);
  }
  ring_.commit();
  return value;
}

// The words of this submission, in the indirect buffer and in what the ring will be given.
[[gnu::hot]]
void AmdQueue::fill(AmdList& list, std::span<const uint64_t> slots, uint64_t value) {
  const SubmissionValues given{slots, value, list.ib ? list.ib.address() : 0};
  for (;;) {
    std::unique_lock lock(gpu_.space->queues().epochs());
    const SignalEpoch* late = needs_rebase(list.encoded, given, list.epochs);
    if (late == nullptr) {
      fill_values(list.encoded, given, list.epochs, list.values);
      for (AmdSignal* s : list.signals) s->named_by(submission_.number, value);
      break;
    }
    lock.unlock();
    rebase(list, given, late);
  }
  if (list.ib) list.encoded.ib.patch(list.values, list.ib_host());
  if (type_ == QueueType::Sdma) list.encoded.ib.patch(list.values, list.staged.data());
  if (type_ == QueueType::Aql) list.encoded.packets.patch(list.values, list.staged.data());
}

void AmdQueue::rebase(AmdList& list, const SubmissionValues& given, const SignalEpoch* epoch) {
  const size_t i =
      size_t(std::find(list.epochs.begin(), list.epochs.end(), epoch) - list.epochs.begin());
  const uint32_t slot = list.encoded.words[i].value_slot;
  const uint64_t next = slot == list.encoded.slots.timeline() ? given.timeline : given.slots[slot];
  AmdSignal& signal = *list.signals[i];
  signal.drain(&device());
  std::unique_lock lock(gpu_.space->queues().epochs());
  if (!signal.named_in_flight()) signal.epoch().rebase(next);  // else: the caller tries again
}

[[gnu::hot]]
void AmdQueue::push(const PacketStream& stream, std::span<const uint32_t> dwords) {
  uint64_t since_ns = 0;
  for (size_t unit = 0;;) {
    const size_t next = ring_.push(stream, dwords, unit);
    if (next == stream.units.size()) return;
    ring_.commit();
    if (next != unit || since_ns == 0) since_ns = os::monotonic_ns();
    unit = next;
    wait_for_room(since_ns);
  }
}

void AmdQueue::wait_for_room(uint64_t since_ns) {
  const uint64_t now = os::monotonic_ns();
  if (now - since_ns < kSpinNs) return os::cpu_relax();
  device().fail_if_lost();
  gpu_.block(interrupt_.get(), 1);
  const int64_t timeout_ms = device().liveness().timeout_ms();
  if (now - since_ns < uint64_t(timeout_ms) * 1'000'000) return;
  device().declare_lost(fmt::format(
      "{}: no progress for {} ms: the ring of the {} queue stays full (limit: TUFF_TIMEOUT_MS); {}",
      device().name(), timeout_ms, name_, in_flight()));
  device().fail_if_lost();
}

// What ran may have passed and been found wrong all the same.
void AmdQueue::wait(uint64_t value) {
  Queue::wait(value);
  device().fail_if_lost();
}

std::vector<uint64_t> AmdQueue::timestamps(hcq::EncodedList& encoded) {
  auto& list = own_list<AmdList>(*this, encoded);
  require_submitted(list);
  wait(list.last_value);
  std::vector<uint64_t> ticks;
  for (uint32_t i = 0; i < list.timestamp_count; ++i) {
    auto* tick = reinterpret_cast<uint64_t*>(list.times.host() + i * kTimestampStride);
    ticks.push_back(std::atomic_ref(*tick).load(std::memory_order_acquire));
  }
  return ticks.empty() ? ticks : gpu_.clock.to_ns(ticks);
}

std::string AmdQueue::in_flight() const {
  return flights_.text(name_, timeline_->value(), last_submitted());
}

}  // namespace tuff::devices::amd
