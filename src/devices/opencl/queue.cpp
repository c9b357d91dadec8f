#include "devices/opencl/queue.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/os.h"
#include "hcq/dependencies.h"

namespace tuff::devices::opencl {
namespace {

constexpr uint64_t kCallbackPatienceNs = 200'000'000, kFinishNs = 5'000'000'000;
constexpr int kClockRounds = 3;

template <class T>
T word_at(const std::byte* block, size_t offset) {
  T value;
  std::memcpy(&value, block + offset, sizeof value);
  return value;
}

}  // namespace

ClQueue::ClQueue(hcq::Device& device, std::shared_ptr<Context> context,
                 std::shared_ptr<WaitingEvents> events, const Memory& memory, cl_command_queue lent)
    : Queue(device),
      context_(std::move(context)),
      events_(std::move(events)),
      memory_(memory),
      timeline_(events_, *this),
      flights_(new Flights) {
  flights_->queue = this;
  const ClApi& api = context_->api;
  cl_command_queue_properties properties = CL_QUEUE_PROFILING_ENABLE;
  const QueueFacts& facts = context_->facts.queues;
  if (lent) {
    handle_ = lent;
    context_->check(api.clRetainCommandQueue(lent), "clRetainCommandQueue");
    context_->check(api.clGetCommandQueueInfo(lent, CL_QUEUE_PROPERTIES, sizeof properties,
                                              &properties, nullptr),
                    "clGetCommandQueueInfo");
  } else {
    if (facts.out_of_order) properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (facts.command_buffers) properties |= facts.recording_needs;
    cl_int code = CL_SUCCESS;
    handle_ = api.clCreateCommandQueue(context_->handle, context_->facts.id, properties, &code);
    context_->check(code, "clCreateCommandQueue");
  }
  in_order_ = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  has_times_ = properties & CL_QUEUE_PROFILING_ENABLE;
  records_ = facts.records(properties);
}

ClQueue::~ClQueue() {
  collect(true);
  context_->api.clReleaseCommandQueue(handle_);
  // The driver may still call back about a lost device: what it was given stays.
  if (flights_->owed.load(std::memory_order_acquire) == 0) delete flights_;
}

// A callback is the driver's until it returns, and touches this queue until then.
void ClQueue::finish() {
  const bool lost = abandoned_.load(std::memory_order_acquire);
  if (!lost) context_->api.clFinish(handle_);
  const uint64_t end_ns = os::monotonic_ns() + (lost ? kCallbackPatienceNs : kFinishNs);
  while (flights_->owed.load(std::memory_order_acquire) > 0 && os::monotonic_ns() < end_ns)
    std::this_thread::yield();
  std::lock_guard lock(flights_->mutex);
  flights_->queue = nullptr;
}

// Half of a list may be enqueued by then, which cannot be taken back.
void ClQueue::check(cl_int code, const char* call) const {
  if (code == CL_SUCCESS) return;
  device().declare_lost(fmt::format("{}: {} returned {}", device().name(), call, error_name(code)));
  device().fail_if_lost();
}

// ---- encoding

ClCommand ClQueue::encoded_launch(const hcq::Command& command, const hcq::DispatchCmd& d,
                                  const ClList& list) const {
  const auto* program = dynamic_cast<const ClProgram*>(d.program);
  TUFF_CHECK(program != nullptr, "dispatch without a program of {}", device().name());
  const render::ArgLayout& layout = program->args();
  if (d.indirect)
    fail<Unsupported>(
        "{}: an OpenCL queue cannot launch indirectly; launch sizes have to come "
        "from slots",
        device().name());
  if (layout.size_bytes() > 0 && (!d.args || d.args.size_bytes < layout.size_bytes()))
    fail<InvalidArgument>("{}: argument block of {} bytes, needs {}", program->name(),
                          d.args ? d.args.size_bytes : 0, layout.size_bytes());
  if (d.args && !d.args.host())
    fail<InvalidArgument>("{}: its arguments have to lie in memory that the host sees",
                          program->name());
  ClLaunch l{.program = program, .groups = d.groups, .group_slots = d.group_slots};
  l.block = d.args ? d.args.host() : nullptr;
  l.set.resize(layout.size_bytes());
  l.keeps_args = command.keeps_args;
  for (const int32_t slot : d.group_slots)
    TUFF_CHECK(slot < int64_t(list.slot_count), "launch slot {} of {}", slot, list.slot_count);
  if (!context_->svm()) {
    if (command.buffers.size() != layout.buffer_count)
      fail<InvalidArgument>("{}: {} buffers named, {} declared", program->name(),
                            command.buffers.size(), layout.buffer_count);
    for (const hcq::Span& s : command.buffers) {
      if (!buffer_of(s))
        fail<InvalidArgument>("{}: a kernel's buffer in staging memory, which only copies reach",
                              program->name());
    }
  }
  if (list.use == hcq::EncodeUse::Replay) l.own = program->new_kernel();
  return {std::move(l)};
}

void ClQueue::encode_timestamp(const hcq::TimestampCmd& t, ClList& list) {
  TUFF_CHECK(t.index < list.times.size(), "timestamp {} of {}", t.index, list.times.size());
  // A command's own end is nearer to the truth than that of a marker behind it.
  const bool own = !list.commands.empty() && list.commands.back().timestamp < 0 &&
                   (std::holds_alternative<ClLaunch>(list.commands.back().body) ||
                    std::holds_alternative<ClCopy>(list.commands.back().body));
  if (!own) list.commands.push_back({TimeMark{}});
  list.commands.back().timestamp = int32_t(t.index);
}

// `sources` has one entry for each command of the list.
void ClQueue::encode(const hcq::Command& c, ClList& list,
                     std::vector<const hcq::Command*>& sources) {
  if (const auto* d = std::get_if<hcq::DispatchCmd>(&c.body)) {
    list.commands.push_back(encoded_launch(c, *d, list));
  } else if (const auto* copy = std::get_if<hcq::CopyCmd>(&c.body)) {
    TUFF_CHECK(copy->dst.size_bytes == copy->src.size_bytes, "copy of {} bytes into {}",
               copy->src.size_bytes, copy->dst.size_bytes);
    if (copy->dst.size_bytes > 0) list.commands.push_back({ClCopy{copy->dst, copy->src}});
  } else if (const auto* w = std::get_if<hcq::WaitCmd>(&c.body)) {
    auto* signal = dynamic_cast<ClSignal*>(w->signal);
    if (!signal) fail<Unsupported>("{}: a wait for a signal of another device", device().name());
    list.commands.push_back({QueueWait{signal, w->value_slot}});
  } else if (const auto* s = std::get_if<hcq::SignalCmd>(&c.body)) {
    if (!dynamic_cast<ClSignal*>(s->signal))
      fail<Unsupported>("{}: a signal of another device", device().name());
    list.commands.push_back({HostAction{.signal = s->signal, .slot = s->value_slot}});
  } else if (const auto* h = std::get_if<hcq::HostCallCmd>(&c.body)) {
    list.commands.push_back({HostAction{.fn = h->fn, .context = h->context}});
  } else if (const auto* t = std::get_if<hcq::TimestampCmd>(&c.body)) {
    encode_timestamp(*t, list);
  }
  // A Barrier: what it is for follows from accesses, or from the queue's order.
  if (list.commands.size() > sources.size()) sources.push_back(&c);
}

// With timestamps one command runs after the other: what each takes is told by the ends alone.
void ClQueue::order(ClList& list, std::span<const hcq::Command* const> sources) const {
  const auto count = static_cast<uint32_t>(list.commands.size());
  list.ends.resize(count);
  if (count == 0) return;
  if (!list.times.empty()) {
    for (uint32_t i = 1; i < count; ++i) list.commands[i].after = {i - 1};
    list.last = {count - 1};
    return;
  }
  hcq::Dependencies found = hcq::dependencies_of(sources);
  for (uint32_t i = 0; i < count; ++i) list.commands[i].after = std::move(found.after[i]);
  list.last = std::move(found.last);
}

void ClQueue::record(ClList& list) {
  for (ClCommand& c : list.commands) {
    auto* l = std::get_if<ClLaunch>(&c.body);
    if (l && l->is_fixed()) set_arguments(*l, l->own->handle());
  }
  if (!list.record(handle_)) records_ = false;
  list.ends.resize(in_order_ ? 0 : list.commands.size());
}

std::unique_ptr<hcq::EncodedList> ClQueue::encode(const hcq::CommandList& list,
                                                  hcq::EncodeUse use) {
  device().fail_if_lost();
  if (list.timestamp_count > 0) {
    if (!has_times_)
      fail<Unsupported>("{}: the queue has no times: create it with CL_QUEUE_PROFILING_ENABLE",
                        device().name());
    std::lock_guard lock(clock_mutex_);
    if (!clock_offset_ns_) measure_clock();
  }
  auto out = std::make_unique<ClList>(*this, use, list, context_);
  std::vector<const hcq::Command*> sources;
  for (const hcq::Command& c : list.commands) encode(c, *out, sources);
  if (!in_order_) order(*out, sources);
  if (use == hcq::EncodeUse::Replay && list.timestamp_count == 0 && records_) record(*out);
  return out;
}

// ---- submitting

uint64_t ClQueue::submit(hcq::EncodedList& encoded, std::span<const uint64_t> slots) {
  device().fail_if_lost();
  auto& list = own_list<ClList>(*this, encoded);
  require_submittable(list, slots);
  collect();
  std::lock_guard lock(mutex_);
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  if (value > kFlights) wait(value - kFlights);
  list.last_value = value;
  enqueue(list, slots, value);
  last_.store(value, std::memory_order_release);
  check(context_->api.clFlush(handle_), "clFlush");
  return value;
}

void ClQueue::enqueue(ClList& list, std::span<const uint64_t> slots, uint64_t value) {
  list.release_times();
  list.release_ends();
  EventRef before;
  if (!in_order_) before = end_of(value - 1);
  for (size_t i = 0; i < list.commands.size(); ++i) {
    ClCommand& c = list.commands[i];
    waits_.clear();
    cl_event* time = c.timestamp < 0 ? nullptr : &list.times[size_t(c.timestamp)];
    if (in_order_) {
      enqueue(c, slots, time);
      continue;
    }
    collect_waits(list, c.after, before.get());
    enqueue(c, slots, &list.ends[i]);
    if (time && list.ends[i]) {
      check(context_->api.clRetainEvent(list.ends[i]), "clRetainEvent");
      *time = list.ends[i];
    }
  }
  const EventRef end = enqueue_end(list, before.get());
  list.release_ends();
  Flight& flight = flights_->all[value % kFlights];
  {
    std::lock_guard lock(flights_->mutex);
    check(context_->api.clRetainEvent(end.get()), "clRetainEvent");
    flight = {flights_, value, end.get()};
  }
  flights_->owed.fetch_add(1, std::memory_order_acq_rel);
  const cl_int code =
      context_->api.clSetEventCallback(end.get(), CL_COMPLETE, on_complete, &flight);
  if (code != CL_SUCCESS) flights_->owed.fetch_sub(1, std::memory_order_acq_rel);
  check(code, "clSetEventCallback");
}

void ClQueue::enqueue(ClCommand& c, std::span<const uint64_t> slots, cl_event* event) {
  if (auto* l = std::get_if<ClLaunch>(&c.body)) {
    launch(*l, slots, event);
  } else if (auto* r = std::get_if<RecordedLaunches>(&c.body)) {
    run(*r, event);
  } else if (auto* t = std::get_if<ClCopy>(&c.body)) {
    transfer(*t, event);
  } else if (auto* w = std::get_if<QueueWait>(&c.body)) {
    wait_for(awaited(*w, slots).get(), event);
  } else if (auto* e = std::get_if<EventWait>(&c.body)) {
    wait_for(e->event, event);
  } else if (auto* a = std::get_if<HostAction>(&c.body)) {
    act(*a, slots, event);
  } else {
    mark(event);
  }
}

// What had nothing to wait for has no event. `before`: the end of the submission before, or null.
void ClQueue::collect_waits(const ClList& list, std::span<const uint32_t> after, cl_event before) {
  waits_.clear();
  for (const uint32_t a : after)
    if (list.ends[a]) waits_.push_back(list.ends[a]);
  if (after.empty() && before) waits_.push_back(before);
}

EventRef ClQueue::enqueue_end(const ClList& list, cl_event before) {
  waits_.clear();
  if (!in_order_) collect_waits(list, list.last, before);
  if (waits_.size() == 1) return retained(waits_[0]);
  cl_event end = nullptr;
  mark(&end);
  return EventRef(end, {&context_->api});
}

EventRef ClQueue::retained(cl_event event) const {
  check(context_->api.clRetainEvent(event), "clRetainEvent");
  return EventRef(event, {&context_->api});
}

EventRef ClQueue::end_of(uint64_t value) const {
  std::lock_guard lock(flights_->mutex);
  const Flight& f = flights_->all[value % kFlights];
  return f.value == value && f.end ? retained(f.end) : EventRef();
}

// `before`: what the arguments are set to.
void ClQueue::set_buffer(cl_kernel kernel, uint32_t index, uint64_t address,
                         std::optional<uint64_t> before) {
  const ClApi& api = context_->api;
  const cl_ulong offset = offset_in_object(address);
  if (!is_object(address)) {
    TUFF_CHECK(context_->svm(), "{}: a kernel's argument at {:#x} is no memory object",
               device().name(), address);
    check(api.clSetKernelArgSVMPointer(kernel, 2 * index, reinterpret_cast<void*>(address)),
          "clSetKernelArgSVMPointer");
  } else if (!before || address - offset != *before - offset_in_object(*before)) {
    cl_mem object = memory_.object_at(address);
    check(api.clSetKernelArg(kernel, 2 * index, sizeof object, &object), "clSetKernelArg");
  }
  if (!before || offset != offset_in_object(*before))
    check(api.clSetKernelArg(kernel, 2 * index + 1, sizeof offset, &offset), "clSetKernelArg");
}

// Arguments 2i and 2i+1 are buffer i and the offset into it, which addresses do without; scalars
// follow.
void ClQueue::set_arguments(ClLaunch& l, cl_kernel kernel) {
  const Context& c = *context_;
  const render::ArgLayout& layout = l.program->args();
  const size_t bytes = layout.size_bytes();
  const bool first = !l.is_set;
  if (!first && std::memcmp(l.set.data(), l.block, bytes) == 0) return;
  const auto same = [&](size_t offset, size_t size) {
    return !first && std::memcmp(&l.set[offset], l.block + offset, size) == 0;
  };
  for (uint32_t i = 0; i < layout.buffer_count; ++i) {
    if (same(i * 8, 8)) continue;
    std::optional<uint64_t> before;
    if (!first) before = word_at<uint64_t>(l.set.data(), i * 8);
    set_buffer(kernel, i, word_at<uint64_t>(l.block, i * 8), before);
  }
  for (uint32_t i = 0; i < layout.scalar_count; ++i) {
    const size_t at = layout.scalar_offset(i);
    if (same(at, 4)) continue;
    const auto scalar = word_at<int32_t>(l.block, at);
    check(c.api.clSetKernelArg(kernel, 2 * layout.buffer_count + i, sizeof scalar, &scalar),
          "clSetKernelArg");
  }
  if (bytes > 0) std::memcpy(l.set.data(), l.block, bytes);
  l.is_set = true;
}

void ClQueue::launch(ClLaunch& l, std::span<const uint64_t> slots, cl_event* event) {
  size_t global[3], local[3];
  if (!l.sizes(slots, global, local)) {
    if (event) mark(event);
    return;
  }
  std::unique_lock<std::mutex> lock;
  if (!l.own) lock = std::unique_lock(l.program->shared_lock());
  cl_kernel kernel = l.own ? l.own->handle() : l.program->shared_kernel();
  set_arguments(l, kernel);
  check(context_->api.clEnqueueNDRangeKernel(handle_, kernel, 3, nullptr, global, local,
                                             wait_count(), wait_list(), event),
        "clEnqueueNDRangeKernel");
}

void ClQueue::run(const RecordedLaunches& r, cl_event* event) {
  cl_event end = nullptr;  // PoCL 3.1 needs one
  check(context_->api.clEnqueueCommandBufferKHR(0, nullptr, r.buffer->handle(), wait_count(),
                                                wait_list(), &end),
        "clEnqueueCommandBufferKHR");
  if (event) {
    *event = end;
  } else {
    context_->api.clReleaseEvent(end);
  }
}

void ClQueue::transfer(const ClCopy& t, cl_event* event) {
  const ClApi& api = context_->api;
  const size_t size = t.dst.size_bytes;
  const cl_mem to = buffer_of(t.dst), from = buffer_of(t.src);
  // Addresses of what is no memory object.
  auto* dst = reinterpret_cast<void*>(t.dst.address());
  const auto* src = reinterpret_cast<const void*>(t.src.address());
  if (to && from) {
    check(api.clEnqueueCopyBuffer(handle_, from, to, t.src.offset, t.dst.offset, size, wait_count(),
                                  wait_list(), event),
          "clEnqueueCopyBuffer");
  } else if (to) {
    check(api.clEnqueueWriteBuffer(handle_, to, CL_FALSE, t.dst.offset, size, src, wait_count(),
                                   wait_list(), event),
          "clEnqueueWriteBuffer");
  } else if (from) {
    check(api.clEnqueueReadBuffer(handle_, from, CL_FALSE, t.src.offset, size, dst, wait_count(),
                                  wait_list(), event),
          "clEnqueueReadBuffer");
  } else if (context_->svm()) {
    check(
        api.clEnqueueSVMMemcpy(handle_, CL_FALSE, dst, src, size, wait_count(), wait_list(), event),
        "clEnqueueSVMMemcpy");
  } else {
    fail<Unsupported>("{}: a copy between two spans of staging memory", device().name());
  }
}

void ClQueue::mark(cl_event* event) {
  check(context_->api.clEnqueueMarkerWithWaitList(handle_, wait_count(), wait_list(), event),
        "clEnqueueMarkerWithWaitList");
}

// What completes when the signal is there; null where it is.
EventRef ClQueue::awaited(const QueueWait& w, std::span<const uint64_t> slots) const {
  const uint64_t value = slots[w.slot];
  if (w.signal->value() >= value) return {};
  if (EventRef end = w.signal->event_at(value)) return end;
  if (w.signal->value() >= value) return {};  // it ended between the two
  cl_int code = CL_SUCCESS;
  const ClApi& api = context_->api;
  EventRef raised(api.clCreateUserEvent(context_->handle, &code), {&api});
  check(code, "clCreateUserEvent");
  events_->add(*w.signal, value, raised.get());
  return raised;
}

// What follows waits for `other` too, which may be null: on a queue without an order by waiting for
// *event, which stays null where there is nothing to wait for.
void ClQueue::wait_for(cl_event other, cl_event* event) {
  if (other) waits_.push_back(other);
  if (waits_.empty()) return;
  if (in_order_) {
    check(context_->api.clEnqueueBarrierWithWaitList(handle_, wait_count(), wait_list(), nullptr),
          "clEnqueueBarrierWithWaitList");
  } else if (waits_.size() == 1) {
    check(context_->api.clRetainEvent(waits_[0]), "clRetainEvent");
    *event = waits_[0];
  } else {
    mark(event);
  }
}

uint64_t ClQueue::submit_wait(cl_event event) {
  auto list = std::make_unique<ClList>(*this, hcq::EncodeUse::Once, hcq::CommandList(), context_);
  list->commands.push_back({EventWait{event}});
  if (!in_order_) {
    list->ends.resize(1);
    list->last = {0};
  }
  return submit_once(std::move(list));
}

cl_event ClQueue::marker() {
  device().fail_if_lost();
  std::lock_guard lock(mutex_);
  EventRef before;
  if (!in_order_) before = end_of(last_.load(std::memory_order_relaxed));
  waits_.clear();
  if (before) waits_.push_back(before.get());
  cl_event event = nullptr;
  mark(&event);
  check(context_->api.clFlush(handle_), "clFlush");
  return event;
}

void ClQueue::act(HostAction& a, std::span<const uint64_t> slots, cl_event* event) {
  const ClApi& api = context_->api;
  cl_int code = CL_SUCCESS;
  a.api = &api;
  a.value = a.signal ? slots[a.slot] : 0;
  a.done = api.clCreateUserEvent(context_->handle, &code);
  check(code, "clCreateUserEvent");
  EventRef done = retained(a.done);  // the callback may be through before anything waits for it
  cl_event before = nullptr;
  mark(&before);
  code = api.clSetEventCallback(before, CL_COMPLETE, on_action, &a);
  api.clReleaseEvent(before);
  check(code, "clSetEventCallback");
  waits_.clear();
  wait_for(done.get(), event);
}

void CL_CALLBACK ClQueue::on_action(cl_event, cl_int status, void* action) {
  const HostAction a = *static_cast<HostAction*>(action);
  if (status == CL_COMPLETE) {
    if (a.signal) a.signal->set(a.value);
    if (a.fn) a.fn(a.context);
    a.api->clSetUserEventStatus(a.done, CL_COMPLETE);
  }
  a.api->clReleaseEvent(a.done);
}

// ---- completion

void CL_CALLBACK ClQueue::on_complete(cl_event, cl_int status, void* flight) {
  auto& f = *static_cast<Flight*>(flight);
  Flights& flights = *f.flights;
  {
    std::lock_guard lock(flights.mutex);
    if (ClQueue* queue = flights.queue) {
      const EventRef end(std::exchange(f.end, nullptr), {&queue->context_->api});
      queue->completed(f.value, status);
    }
  }
  flights.owed.fetch_sub(1, std::memory_order_acq_rel);
}

// Callbacks may come in any order; that the last command has ended says that all before it have.
void ClQueue::completed(uint64_t value, cl_int status) {
  if (status < 0) {
    if (abandoned_.load(std::memory_order_acquire)) return;
    device().declare_lost(fmt::format("{}: a command of submission {} ended with {}; {}",
                                      device().name(), value, error_name(status), in_flight()));
    return;
  }
  if (timeline_.value() < value) timeline_.set(value);
}

std::string ClQueue::in_flight() const {
  const uint64_t reached = timeline_.value(), last = last_submitted();
  return reached >= last ? "" : fmt::format("queue at {} of {}", reached, last);
}

// ---- time

// When a command ended, by the device's clock.
int64_t ClQueue::end_ns_of(cl_event event) const {
  cl_ulong ns = 0;
  context_->check(context_->api.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ns,
                                                        &ns, nullptr),
                  "clGetEventProfilingInfo");
  return int64_t(ns);
}

std::vector<uint64_t> ClQueue::timestamps(hcq::EncodedList& encoded) {
  auto& list = own_list<ClList>(*this, encoded);
  require_submitted(list);
  wait(list.last_value);
  std::vector<uint64_t> out;
  for (cl_event e : list.times) {
    if (!e)
      fail<InvalidArgument>("{}: not every timestamp of the list was written by a command",
                            device().name());
    out.push_back(uint64_t(end_ns_of(e) + *clock_offset_ns_));
  }
  return out;
}

// Takes the one of three markers that was bracketed most closely.
void ClQueue::measure_clock() {
  const ClApi& api = context_->api;
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < kClockRounds; ++i) {
    const uint64_t before = os::monotonic_ns();
    cl_event event = nullptr;
    check(api.clEnqueueMarkerWithWaitList(handle_, 0, nullptr, &event),
          "clEnqueueMarkerWithWaitList");
    api.clFinish(handle_);
    const uint64_t width = os::monotonic_ns() - before;
    const EventRef marker(event, {&api});
    const int64_t ns = end_ns_of(event);
    if (width >= best_ns) continue;
    best_ns = width;
    clock_offset_ns_ = int64_t(before + width / 2) - ns;
  }
}

}  // namespace tuff::devices::opencl
