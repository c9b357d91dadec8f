#include "devices/cuda/queue.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/os.h"
#include "base/prefetch.h"

namespace tuff::devices::cuda {
namespace {

constexpr size_t kFewestInGraph = 2;
constexpr int kClockRounds = 3;
constexpr double kNsPerMs = 1e6;

bool fits_in_graph(const hcq::Command& c) {
  return std::holds_alternative<hcq::DispatchCmd>(c.body) ||
         std::holds_alternative<hcq::CopyCmd>(c.body);
}

// An event that has just been, and when that was by the host's clock.
struct TimedEvent {
  TimedEvent(const Context& c, CUstream idle) : context(c) {
    c.check(c.api.EventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    const uint64_t begin = os::monotonic_ns();
    CUresult code = c.api.EventRecord(event, idle);
    if (code == CUDA_SUCCESS) code = c.api.EventSynchronize(event);
    width_ns = os::monotonic_ns() - begin;
    ns = begin + width_ns / 2;
    if (code == CUDA_SUCCESS) return;
    c.release(c.api.EventDestroy(event), "cuEventDestroy");
    c.require(code, "cuEventSynchronize");
  }
  ~TimedEvent() { context.release(context.api.EventDestroy(event), "cuEventDestroy"); }
  TimedEvent(const TimedEvent&) = delete;

  const Context& context;
  CUevent event = nullptr;
  uint64_t ns = 0, width_ns = 0;
};

}  // namespace

CudaQueue::CudaQueue(hcq::Device& device, std::shared_ptr<Context> context,
                     std::shared_ptr<SignalWords> words, const char* name)
    : Queue(device),
      context_(std::move(context)),
      name_(name),
      timeline_(std::move(words), 0, [this] { ask(); }) {
  const Context& c = *context_;
  const Current current(c);
  c.check(c.api.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

CudaQueue::~CudaQueue() {
  collect(true);
  const Context& c = *context_;
  const Current current(c, std::nothrow);
  if (!current) return;
  for (CUstream stream : {stream_, clock_})
    if (stream) c.release(c.api.StreamDestroy(stream), "cuStreamDestroy");
}

// ---- encoding

CudaLaunch CudaQueue::launch_of(const hcq::DispatchCmd& d, const CudaList& list) const {
  const auto* program = dynamic_cast<const CudaProgram*>(d.program);
  TUFF_CHECK(program != nullptr, "dispatch without a program of {}", device().name());
  const uint32_t needed = program->args().size_bytes();
  if (d.indirect)
    fail<Unsupported>("{}: a CUDA stream cannot launch indirectly; launch sizes have to come from "
                      "slots",
                      device().name());
  if (needed > 0 && (!d.args || d.args.size_bytes < needed))
    fail<InvalidArgument>("{}: argument block of {} bytes, needs {}", program->name(),
                          d.args ? d.args.size_bytes : 0, needed);
  for (const int32_t slot : d.group_slots)
    TUFF_CHECK(slot < int64_t(list.slot_count), "launch slot {} of {}", slot, list.slot_count);
  return {program, d.args ? d.args.address() : 0, d.groups, d.group_slots};
}

const CudaSignal& CudaQueue::own_signal(const hcq::Signal* signal) const {
  const auto* own = dynamic_cast<const CudaSignal*>(signal);
  if (!own)
    fail<Unsupported>("{}: a queue can wait for and raise signals of CUDA devices alone",
                      device().name());
  return *own;
}

// A Barrier is nothing: what a stream does it does one after the other, and graphs have their own
// order.
void CudaQueue::encode(const hcq::Command& c, CudaList& list) const {
  if (const auto* d = std::get_if<hcq::DispatchCmd>(&c.body)) {
    const CudaLaunch launch = launch_of(*d, list);
    if (launch.is_symbolic() || !is_empty(launch.groups)) list.steps.push_back(launch);
  } else if (const auto* copy = std::get_if<hcq::CopyCmd>(&c.body)) {
    TUFF_CHECK(copy->dst.size_bytes == copy->src.size_bytes, "copy of {} bytes into {}",
               copy->src.size_bytes, copy->dst.size_bytes);
    if (copy->dst.size_bytes > 0)
      list.steps.push_back(
          CudaCopy{copy->dst.address(), copy->src.address(), copy->dst.size_bytes});
  } else if (const auto* w = std::get_if<hcq::WaitCmd>(&c.body)) {
    list.steps.push_back(StreamWait{&own_signal(w->signal), w->value_slot});
  } else if (const auto* s = std::get_if<hcq::SignalCmd>(&c.body)) {
    list.steps.push_back(StreamSignal{&own_signal(s->signal), s->value_slot});
  } else if (const auto* h = std::get_if<hcq::HostCallCmd>(&c.body)) {
    list.steps.push_back(HostFunction{h->fn, h->context});
  } else if (const auto* t = std::get_if<hcq::TimestampCmd>(&c.body)) {
    TUFF_CHECK(t->index < list.events.size(), "timestamp {} of {}", t->index, list.events.size());
    CUevent& event = list.events[t->index];
    if (!event)
      context_->check(context_->api.EventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    list.steps.push_back(EventMark{event});
  }
}

// Runs of launches and copies become graphs, in which they are ordered by what they access.
void CudaQueue::encode_graphs(const hcq::CommandList& list, CudaList& out) const {
  std::vector<Work> run;
  std::vector<const hcq::Command*> sources;
  const auto end_run = [&] {
    if (run.size() >= kFewestInGraph) {
      out.steps.push_back(
          std::make_unique<ExecGraph>(context_, run, hcq::dependencies_of(sources)));
    } else {
      for (const Work& w : run) std::visit([&](const auto& one) { out.steps.push_back(one); }, w);
    }
    run.clear();
    sources.clear();
  };
  for (const hcq::Command& c : list.commands) {
    if (std::holds_alternative<hcq::BarrierCmd>(c.body)) continue;
    if (!fits_in_graph(c)) end_run();
    const size_t before = out.steps.size();
    encode(c, out);
    if (!fits_in_graph(c) || out.steps.size() == before) continue;
    if (const auto* launch = std::get_if<CudaLaunch>(&out.steps.back())) run.push_back(*launch);
    else run.push_back(std::get<CudaCopy>(out.steps.back()));
    out.steps.pop_back();
    sources.push_back(&c);
  }
  end_run();
}

// With timestamps one command runs after the other: what each takes is told by where it ends.
std::unique_ptr<hcq::EncodedList> CudaQueue::encode(const hcq::CommandList& list,
                                                    hcq::EncodeUse use) {
  device().fail_if_lost();
  const Current current(*context_);
  auto out = std::make_unique<CudaList>(*this, use, list, context_);
  if (use == hcq::EncodeUse::Replay && list.timestamp_count == 0) {
    encode_graphs(list, *out);
  } else {
    for (const hcq::Command& c : list.commands) encode(c, *out);
  }
  return out;
}

// ---- submitting

[[gnu::hot]]
uint64_t CudaQueue::submit(hcq::EncodedList& encoded, std::span<const uint64_t> slots) {
  prefetch(&encoded, sizeof(CudaList));
  device().fail_if_lost();
  auto& list = own_list<CudaList>(*this, encoded);
  prefetch(list.steps.data(), std::min<size_t>(list.steps.size(), 4) * sizeof(Step));
  require_submittable(list, slots);
  collect();
  const Context& c = *context_;
  const Current current(c);
  std::lock_guard lock(mutex_);
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  list.last_value = value;
  flights_.add(value, list.kernels);
  last_.store(value, std::memory_order_release);
  enqueue(list, slots);
  c.require(c.api.StreamWriteValue64(stream_, timeline_.address(), value,
                                     CU_STREAM_WRITE_VALUE_DEFAULT),
            "cuStreamWriteValue64");
  return value;
}

[[gnu::hot]]
void CudaQueue::enqueue(CudaList& list, std::span<const uint64_t> slots) {
  const Context& c = *context_;
  for (Step& step : list.steps) {
    if (auto* graph = std::get_if<std::unique_ptr<ExecGraph>>(&step)) {
      (*graph)->launch(stream_, slots);
    } else if (const auto* launch = std::get_if<CudaLaunch>(&step)) {
      enqueue(*launch, slots);
    } else if (const auto* copy = std::get_if<CudaCopy>(&step)) {
      c.require(c.api.MemcpyAsync(copy->dst, copy->src, copy->size_bytes, stream_),
                "cuMemcpyAsync");
    } else if (const auto* w = std::get_if<StreamWait>(&step)) {
      c.require(c.api.StreamWaitValue64(stream_, w->signal->address(), slots[w->slot],
                                        CU_STREAM_WAIT_VALUE_GEQ),
                "cuStreamWaitValue64");
    } else if (const auto* s = std::get_if<StreamSignal>(&step)) {
      c.require(c.api.StreamWriteValue64(stream_, s->signal->address(), slots[s->slot],
                                         CU_STREAM_WRITE_VALUE_DEFAULT),
                "cuStreamWriteValue64");
    } else if (const auto* h = std::get_if<HostFunction>(&step)) {
      c.require(c.api.LaunchHostFunc(stream_, h->fn, h->context), "cuLaunchHostFunc");
    } else if (const auto* m = std::get_if<EventMark>(&step)) {
      c.require(c.api.EventRecord(m->event, stream_), "cuEventRecord");
    }
  }
}

void CudaQueue::enqueue(const CudaLaunch& launch, std::span<const uint64_t> slots) {
  const Groups groups = launch.sizes(slots);
  if (is_empty(groups)) return;
  const std::array<uint32_t, 3>& local = launch.program->local();
  CUdeviceptr block = launch.block;
  void* parameters[] = {&block};
  context_->require(
      context_->api.LaunchKernel(launch.program->function(), groups[0], groups[1], groups[2],
                                 local[0], local[1], local[2], 0, stream_, parameters, nullptr),
      "cuLaunchKernel");
}

// ---- completion

// A fault on the GPU is told by the next call on its context.
void CudaQueue::ask() const {
  const Context& c = *context_;
  const Current current(c);
  const CUresult code = c.api.StreamQuery(stream_);
  if (code != CUDA_ERROR_NOT_READY) c.require(code, "cuStreamQuery");
}

std::string CudaQueue::in_flight() const {
  return flights_.text(name_, timeline_.value(), last_submitted());
}

// ---- time

uint64_t CudaQueue::marked_ns(CUevent event, CUevent now, uint64_t now_ns) const {
  if (!event)
    fail<InvalidArgument>("{}: not every timestamp of the list was written by a command",
                          device().name());
  float elapsed_ms = 0;
  context_->require(context_->api.EventElapsedTime(&elapsed_ms, event, now), "cuEventElapsedTime");
  return now_ns - static_cast<uint64_t>(std::max(double(elapsed_ms), 0.0) * kNsPerMs);
}

// The driver tells how long ago an event was, as a float of milliseconds: exact to 0.1 us for a
// second. So the clock is read anew each time, by the mark of three that was bracketed most
// closely.
std::vector<uint64_t> CudaQueue::timestamps(hcq::EncodedList& encoded) {
  auto& list = own_list<CudaList>(*this, encoded);
  require_submitted(list);
  wait(list.last_value);
  if (list.events.empty()) return {};
  const Context& c = *context_;
  const Current current(c);
  std::lock_guard lock(mutex_);
  if (!clock_) c.check(c.api.StreamCreate(&clock_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::vector<uint64_t> out;
  uint64_t least_ns = UINT64_MAX;
  for (int round = 0; round < kClockRounds; ++round) {
    const TimedEvent now(c, clock_);
    if (now.width_ns >= least_ns) continue;
    least_ns = now.width_ns;
    out.clear();
    for (CUevent e : list.events) out.push_back(marked_ns(e, now.event, now.ns));
  }
  return out;
}

}  // namespace tuff::devices::cuda
