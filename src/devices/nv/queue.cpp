#include "devices/nv/queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/os.h"
#include "base/prefetch.h"

namespace tuff::devices::nv {
namespace {

constexpr uint32_t kSemaphoreBytes = 16;  // with a timestamp, in its second half
// Local memory of a warp, of a TPC and of a GPU comes in these steps. Source: tinygrad @a9069c1,
// runtime/ops_nv.py.
constexpr uint32_t kWarpThreads = 32, kWarpStep = 0x200, kTpcStep = 0x8000, kGpuStep = 0x20000;
constexpr uint32_t kFewestLocalBytes = 256;

// Copies of the compute queue go by its own channel too, in its order.
std::vector<uint32_t> engine_classes(const Generation& g, ChannelUse use) {
  if (use == ChannelUse::Copy) return {g.copy_class};
  return {g.compute_class, g.copy_class};
}

uint32_t local_bytes_of(const hcq::CommandList& list, const Binding& binding) {
  uint32_t most = 0;
  for (const hcq::Command& c : list.commands) {
    const auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
    if (d && d->program) most = std::max(most, binding.kernel(*d->program).local_bytes);
  }
  return most;
}

// Puts in a slot's value that stays: a submission has nothing to do there any more.
void settle(PacketStream& stream, uint32_t slot, uint64_t value) {
  std::erase_if(stream.patches, [&](const Patch& p) {
    if (p.slot != slot) return false;
    uint32_t& dword = stream.dwords[p.dword];
    const auto bits = uint32_t((value * p.scale + p.base) >> p.shift << p.lsb);
    dword = (dword & ~p.mask) | (bits & p.mask);
    return true;
  });
}

}  // namespace

KernelCode HandleBinding::kernel(const hcq::Program& program) const {
  const auto* own = dynamic_cast<const NvProgram*>(&program);
  if (!own) fail<InvalidArgument>("{}: no program of an NVIDIA GPU", program.name());
  return own->kernel();
}

uint64_t HandleBinding::signal_address(const hcq::Signal& signal) const {
  const auto* own = dynamic_cast<const NvSignal*>(&signal);
  if (own && own->is_of(pages_)) return own->address();
  Space& space = pages_.space();
  if (!own || !space.reaches(own->space()))
    fail<Unsupported>("NV: a queue can wait for and raise signals of its own GPU and of peers");
  own->map_for(space);
  return own->address();
}

[[gnu::hot]]
void NvList::prefetch_patched() const {
  prefetch(values.data(), values.size() * sizeof values[0]);
  for (const Patch& p : encoded.methods.patches) {
    __builtin_prefetch(&encoded.methods.dwords[p.dword]);
    __builtin_prefetch(methods.host() + p.dword * sizeof(uint32_t), 1);
  }
}

NvList::~NvList() {
  static_cast<NvQueue&>(queue).flights().forget(kernels);
  for (const hcq::Span& span : {methods, launches, times})
    if (span) queue.device().allocator().free(span, {&queue, last_value});
}

NvQueue::NvQueue(hcq::Device& device, ChannelGroup& group, SemaphorePages& pages, ChannelUse use,
                 std::function<void()> ask)
    : Queue(device),
      group_(group),
      pages_(pages),
      use_(use),
      timeline_(pages, 0, std::move(ask)),
      channel_(group.make_channel(engine_classes(generation(), use))) {}

// ---- what a channel is told before all else

void NvQueue::start() {
  channel_->read_token();
  if (use_ == ChannelUse::Copy) return set_up(setup_copy(generation()));
  set_up(setup_compute(generation()));
}

// Waits: the methods' memory is the caller's no longer than that.
void NvQueue::set_up(const PacketStream& methods) {
  PacketStream all = methods;
  uint64_t value = 0;
  {
    std::lock_guard lock(mutex_);
    value = reserve_entry();
    append_release(all, timeline_.address(), value);
    const size_t bytes = all.dwords.size() * sizeof(uint32_t);
    kept_.push_back(
        group_.space().allocate(bytes, MemoryDomain::VisibleVideo));
    std::memcpy(kept_.back()->host(), all.dwords.data(), bytes);
    last_.store(value, std::memory_order_release);
    channel_->push(value - 1, gpfifo_entry(kept_.back()->address(), uint32_t(all.dwords.size())));
  }
  wait(value);
  kept_.pop_back();
}

// Grows where a kernel of the list needs more than there is. Launches in flight keep what they
// began with.
void NvQueue::provide_local_memory(const hcq::CommandList& list) {
  const uint32_t needed = local_bytes_of(list, HandleBinding(pages_));
  std::lock_guard lock(local_mutex_);
  if (needed <= local_bytes_) return;
  const GpuFacts& f = facts();
  const uint32_t bytes = std::bit_ceil(std::max(needed, kFewestLocalBytes));
  const uint64_t per_tpc = align_up(align_up(uint64_t(bytes) * kWarpThreads, kWarpStep) *
                                        f.warps_per_sm * f.sms_per_tpc,
                                    kTpcStep);
  auto memory = group_.space().allocate(align_up(per_tpc * f.tpcs_per_gpc * f.gpcs, kGpuStep),
                                        MemoryDomain::Video);
  const uint64_t address = memory->address();
  kept_.push_back(std::move(memory));
  set_up(setup_local_memory(address, per_tpc));
  local_bytes_ = bytes;
}

// ---- encoding

std::unique_ptr<hcq::EncodedList> NvQueue::encode(const hcq::CommandList& list,
                                                  hcq::EncodeUse use) {
  device().fail_if_lost();
  const HandleBinding binding(pages_);
  auto out = std::make_unique<NvList>(*this, use, list);
  if (use_ == ChannelUse::Compute) provide_local_memory(list);
  EncodeInput input{generation(), binding, list, &timeline_, 0};
  if (list.timestamp_count > 0) {
    out->times = device().allocator().allocate(uint64_t(list.timestamp_count) * kSemaphoreBytes,
                                               hcq::MemoryKind::Readback);
    input.timestamps = out->times.address();
  }
  out->kernels = kernel_names(list);
  out->encoded = use_ == ChannelUse::Compute ? encode_compute(input) : encode_copy(input);
  place(*out);
  return out;
}

// Everything that a submission needs, so that it allocates nothing.
void NvQueue::place(NvList& list) {
  PacketStream &methods = list.encoded.methods, &launches = list.encoded.launches;
  const auto allocate = [&](const PacketStream& stream, hcq::Span& span) {
    if (stream.dwords.empty()) return;
    span = device().allocator().allocate(stream.dwords.size() * sizeof(uint32_t),
                                         hcq::MemoryKind::Args);
  };
  allocate(methods, list.methods);
  allocate(launches, list.launches);
  if (list.launches)
    for (PacketStream* stream : {&methods, &launches})
      settle(*stream, list.encoded.launch_address, list.launches.address());
  const auto copy = [](const PacketStream& stream, const hcq::Span& span) {
    if (span)
      std::memcpy(span.host(), stream.dwords.data(), stream.dwords.size() * sizeof(uint32_t));
  };
  copy(methods, list.methods);
  copy(launches, list.launches);
  list.values.resize(list.encoded.value_count());
}

// ---- submitting

// The value of the next submission; its entry may be written.
[[gnu::hot]]
uint64_t NvQueue::reserve_entry() {
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  if (value >= Channel::kEntries) wait(value - (Channel::kEntries - 1));
  return value;
}

[[gnu::hot]]
uint64_t NvQueue::submit(hcq::EncodedList& encoded, std::span<const uint64_t> slots) {
  prefetch(&encoded, sizeof(NvList));
  channel_->prefetch_entry(last_.load(std::memory_order_relaxed));
  device().fail_if_lost();
  auto& list = own_list<NvList>(*this, encoded);
  list.prefetch_patched();
  require_submittable(list, slots);
  collect();
  std::lock_guard lock(mutex_);
  const uint64_t value = reserve_entry();
  fill(list, slots.first(list.slot_count), value);
  flights_.add(value, list.kernels);
  list.last_value = value;
  last_.store(value, std::memory_order_release);
  channel_->push(value - 1, gpfifo_entry(list.methods.address(),
                                        uint32_t(list.encoded.methods.dwords.size())));
  return value;
}

[[gnu::hot]]
void NvQueue::fill(NvList& list, std::span<const uint64_t> slots, uint64_t value) {
  std::copy(slots.begin(), slots.end(), list.values.begin());
  list.values[list.encoded.timeline_slot] = value;
  list.encoded.patch_methods(list.values, reinterpret_cast<uint32_t*>(list.methods.host()));
  if (list.launches)
    list.encoded.launches.patch(list.values, reinterpret_cast<uint32_t*>(list.launches.host()));
}

// ---- completion

std::string NvQueue::in_flight() const {
  return flights_.text(use_ == ChannelUse::Compute ? "compute" : "copy", timeline_.value(),
                       last_submitted());
}

// The GPU's clock counts ns too, from another beginning.
std::vector<uint64_t> NvQueue::timestamps(hcq::EncodedList& encoded) {
  auto& list = own_list<NvList>(*this, encoded);
  require_submitted(list);
  wait(list.last_value);
  if (list.timestamp_count == 0) return {};
  const uint64_t before = os::monotonic_ns(), gpu_now = group_.space().time_ns(),
                 host_now = before + (os::monotonic_ns() - before) / 2;
  std::vector<uint64_t> out;
  for (uint32_t i = 0; i < list.timestamp_count; ++i) {
    auto* time = reinterpret_cast<uint64_t*>(list.times.host() + i * kSemaphoreBytes + 8);
    out.push_back(host_now - gpu_now + std::atomic_ref(*time).load(std::memory_order_acquire));
  }
  return out;
}

}  // namespace tuff::devices::nv
