// execute(): bound calls onto queues. Runs of calls on one device become one command list and one
// submit; copies between devices are done by the one that reaches the other, or by the host.
#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "base/os.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "engine/realize/bounds.h"
#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"
#include "hcq/hazard_guard.h"
#include "hcq/order.h"

namespace tuff::engine {
namespace {

// Keeps one list's argument blocks well inside the ring.
constexpr size_t kMaxCallsPerList = 1024;

void mark_used(std::span<const BoundCall> calls, uint64_t value) {
  for (const BoundCall& c : calls)
    each_buffer(c, [&](const Ref<Buffer>& b, bool, bool written) {
      b->uses().until(value);
      if (written) b->uses().written_until(value);
    });
}

// What is read from memory that another device's loss has spoilt is not computed; what depends on
// work that may still fail goes on depending on it.
void pass_origins_on(std::span<const BoundCall> calls) {
  for (const BoundCall& c : calls) {
    Origin origin;
    each_buffer(c, [&](const Ref<Buffer>& b, bool read, bool) {
      if (read) b->uses().add_origin(origin);
    });
    origin.require();
    each_buffer(c, [&](const Ref<Buffer>& b, bool, bool written) {
      if (written) b->written_from(origin);
    });
  }
}

void count(std::span<const BoundCall> calls) {
  GlobalCounters& g = counters();
  for (const BoundCall& c : calls) {
    if (auto* k = std::get_if<BoundKernel>(&c)) {
      g.kernels++;
      g.flops += k->kernel->estimate.flops;
      g.bytes += k->kernel->estimate.bytes;
    } else {
      g.copies++;
    }
  }
}

uint64_t submit_list(hcq::Queue& queue, const hcq::CommandList& list) {
  const ProfiledScope scope("submit");
  return profiling() ? profile_submit(queue, list)
                     : queue.submit_once(queue.encode(list, hcq::EncodeUse::Once));
}

uint64_t submit(Device& device, std::span<const BoundCall> calls) {
  device.hcq().liveness().require_open();
  std::lock_guard lock(device.submit_mutex());
  pass_origins_on(calls);
  const hcq::CommandList list = record(device, calls);
  if (hcq::checking_hazards()) hcq::guard_list(list, "an eager list on " + device.name());
  hcq::Queue& queue = device.queue();
  const uint64_t value = submit_list(queue, list);
  device.args().retire(value);
  mark_used(calls, value);
  counters().submits++;
  count(calls);
  return value;
}

// Whether the call's kernel has never been dispatched; it counts as dispatched from now on.
bool dispatches_first_time(const BoundCall& c) {
  auto* k = std::get_if<BoundKernel>(&c);
  return k && !std::atomic_ref<bool>(k->kernel->dispatched).exchange(true);
}

uint64_t expected_ns(const BoundCall& c) {
  auto* k = std::get_if<BoundKernel>(&c);
  return k ? k->kernel->expected_ns : 0;
}

// By a queue of `by`, without the host. The other device's queues are waited for before and this
// one after, so that neither can be left waiting for a device that is lost.
void copy_by_device(Device& by, const BoundCopy& c) {
  const Ref<Buffer>& foreign = &c.dst->on() == &by ? c.src : c.dst;
  const Ref<Buffer>& own = &c.dst->on() == &by ? c.dst : c.src;
  hcq::share(foreign->on().hcq(), *foreign->span().block, by.hcq());
  foreign->on().queue().wait(foreign->uses().last());
  const bool apart = by.hcq().copy_queue() && c.dst->size_bytes() >= kCopyQueueBytes;
  if (apart) by.queue().wait(own->uses().last());
  hcq::Queue& queue = apart ? *by.hcq().copy_queue() : by.queue();
  const BoundCall call = c;
  std::unique_lock lock(by.submit_mutex());
  pass_origins_on({&call, 1});
  hcq::CommandList list;
  list.commands.push_back(hcq::copy_command(transfer_of(c)));
  if (hcq::checking_hazards()) hcq::guard_list(list, "an eager copy by " + by.name());
  const uint64_t value = submit_list(queue, list);
  if (!apart) own->uses().until(value);
  counters().submits++;
  lock.unlock();
  queue.wait(value);
  counters().peer_copied_bytes += c.dst->size_bytes();
}

// A copy between a file and memory that the host reaches.
struct FileCopy {
  Device* files = nullptr;  // null: it is none
  bool reads = false;
  bool operator==(const FileCopy&) const = default;
};
FileCopy file_copy(const BoundCall& call) {
  if (!crosses_devices(call)) return {};
  const auto& c = std::get<BoundCopy>(call);
  const hcq::Span dst = c.dst->span(), src = c.src->span();
  if (c.dst->count != c.src->count) return {};
  if (src.block->file && dst.host()) return {&c.src->on(), true};
  if (dst.block->file && src.host()) return {&c.dst->on(), false};
  return {};
}

// All reads, or all writes, of files of one device: their requests are in flight together.
size_t file_copies(std::span<const BoundCall> calls) {
  const FileCopy first = file_copy(calls[0]);
  size_t n = 0;
  while (first.files && n < calls.size() && file_copy(calls[n]) == first) n++;
  return n;
}

// Blocks until they are done, and throws what of them fails.
void copy_files(std::span<const BoundCall> calls) {
  hcq::CommandList list;
  for (const BoundCall& call : calls) {
    const auto& c = std::get<BoundCopy>(call);
    for (const Ref<Buffer>& b : {c.dst, c.src}) b->on().queue().wait(b->uses().last());
    c.src->verify();
    list.commands.push_back(hcq::copy_command(transfer_of(c)));
  }
  hcq::insert_barriers(list);
  hcq::Queue& queue = file_copy(calls[0]).files->queue();
  queue.wait(submit_list(queue, list));
  for (const BoundCall& call : calls) std::get<BoundCopy>(call).dst->written_from({});
  counters().submits++;
  counters().copies += calls.size();
}

// Straight between the two memories where the host sees one of them; else in bounded pieces, from
// device to device through staging memory. Waits for both sides.
void copy_by_host(const Ref<Buffer>& dst, const Ref<Buffer>& src) {
  for (const Ref<Buffer>& side : {src, dst}) side->on().hcq().liveness().require_open();
  if (const std::byte* from = src->span().host()) {
    src->on().queue().wait(src->uses().last());
    src->verify();
    dst->copyin(from);
    src->verify();  // where it is mapped the copy itself may have failed
  } else if (std::byte* to = dst->span().host()) {
    dst->on().queue().wait(dst->uses().last());
    src->copyout(to);
    dst->written_from({});
  } else if (dst->size_bytes() > 0) {
    dst->on().queue().wait(dst->uses().last());
    Contents{.source = src}.fill(dst->on().hcq(), dst->span().sub(0, dst->size_bytes()));
    src->verify();
    dst->written_from({});
  }
  counters().host_copied_bytes += dst->size_bytes();
}

// Blocks until it is done. In captured graphs such copies block no caller: engine/jit/segments.h.
void copy_between_devices(const BoundCopy& c) {
  // Where extents vary an input may be smaller than the memory captured for it.
  const int64_t count = std::min(c.dst->count, c.src->count);
  const auto part = [&](const Ref<Buffer>& b) {
    return b->count == count ? b : Buffer::view(b, b->dtype, count);
  };
  const BoundCopy copy{part(c.dst), part(c.src)};
  if (Device* by = copier_between(copy))
    copy_by_device(*by, copy);
  else
    copy_by_host(copy.dst, copy.src);
  counters().copies++;
}

// TUFF_DEBUG=2: one call at a time, waited for, with its time and rates.
void submit_and_show(Device& device, const BoundCall& call) {
  const uint64_t start = os::monotonic_ns();
  const uint64_t value = submit(device, std::span<const BoundCall>(&call, 1));
  device.queue().wait(value);
  const double us = double(os::monotonic_ns() - start) / 1e3;
  auto* k = std::get_if<BoundKernel>(&call);
  const std::string name = k ? k->kernel->name : "copy";
  const double flops = k ? double(k->kernel->estimate.flops) : 0;
  const double bytes = k ? double(k->kernel->estimate.bytes) : 0;
  debug_line(
      fmt::format("*** {:<9} {:4d} {:<40} args {:2d}  {:10.2f} us  {:8.2f} GFLOP/s {:8.2f} GB/s",
                  device.name(), counters().kernels.load(), name, k ? k->buffers.size() : 2, us,
                  flops / us / 1e3, bytes / us / 1e3));
}

// TUFF_VALIDATE: one call at a time, each checked before the next one reads its results.
void execute_validated(std::span<const BoundCall> calls) {
  const RunCall run = [](Device& device, const BoundCall& call) {
    const std::span<const BoundCall> alone(&call, 1);
    device.queue().wait(submit(device, alone));
    if (checking_bounds()) check_bounds(alone);
  };
  for (const BoundCall& c : calls) {
    if (crosses_devices(c)) {
      copy_between_devices(std::get<BoundCopy>(c));
    } else {
      run_validated(c, run);
    }
  }
}

bool is_by_user(const BoundCall& c) {
  auto* k = std::get_if<BoundKernel>(&c);
  return k && k->kernel->by_user();
}

using Contents = std::vector<std::vector<std::byte>>;
Contents contents_of_inputs(const BoundKernel& k) {
  Contents out(k.buffers.size());
  for (size_t i = 0; i < k.buffers.size(); i++) {
    if (k.kernel->buffers[i].written) continue;
    out[i].resize(k.buffers[i]->size_bytes());
    k.buffers[i]->copyout(out[i].data());
  }
  return out;
}

// TUFF_CHECK_HAZARDS: what a user's kernel does to memory is known by its declaration alone. What
// it is declared to read is compared with what it was.
void run_watched(const BoundCall& call) {
  const auto& k = std::get<BoundKernel>(call);
  const Contents before = contents_of_inputs(k);
  Device& device = device_of(call);
  device.queue().wait(submit(device, {&call, 1}));
  const Contents after = contents_of_inputs(k);
  const size_t outputs = size_t(std::ranges::count_if(
      k.kernel->buffers, [](const kernel::LinearKernel::Argument& a) { return a.written; }));
  for (size_t i = outputs; i < before.size(); i++)
    if (before[i] != after[i])
      throw hcq::HazardFound(fmt::format(
          "kernel {} on {} wrote to input {} (argument {}), which it is declared to read: what runs "
          "before and after it does not wait for that. Declare it as an output, or write elsewhere",
          k.kernel->name, device.name(), i - outputs, i));
}

void execute_around(std::span<const BoundCall> calls, size_t user) {
  execute(calls.first(user));
  run_watched(calls[user]);
  execute(calls.subspan(user + 1));
}

}  // namespace

Device& device_of(const BoundCall& call) {
  if (auto* k = std::get_if<BoundKernel>(&call)) return k->buffers.at(0)->on();
  return std::get<BoundCopy>(call).dst->on();
}

bool crosses_devices(const BoundCall& call) {
  auto* copy = std::get_if<BoundCopy>(&call);
  return copy && &copy->dst->on() != &copy->src->on();
}

Device* copier_between(const BoundCopy& copy) {
  Device &src = copy.src->on(), &dst = copy.dst->on();
  if (hcq::reaches(src.hcq(), dst.hcq())) return &src;
  return hcq::reaches(dst.hcq(), src.hcq()) ? &dst : nullptr;
}

hcq::CommandList record(Device& device, std::span<const BoundCall> calls) {
  hcq::CommandList list;
  std::vector<hcq::Command> commands;
  const bool names_buffers = hcq::names_buffers(device.hcq());
  for (const BoundCall& c : calls) {
    auto* k = std::get_if<BoundKernel>(&c);
    if (!k) {
      commands.push_back(hcq::copy_command(transfer_of(std::get<BoundCopy>(c))));
      continue;
    }
    const hcq::Launch launch = launch_of(*k);
    const hcq::Span block = device.args().allocate(launch.program->args().size_bytes());
    hcq::write_block(launch, device.args().host(block), [](size_t, const auto&) {});
    commands.push_back(hcq::dispatch_command(launch, block, names_buffers));
  }
  device.args().flush(list);  // before what reads the blocks
  std::ranges::move(commands, std::back_inserter(list.commands));
  hcq::insert_barriers(list);
  return list;
}

void execute(std::span<const BoundCall> calls) {
  if (validating()) return execute_validated(calls);
  if (hcq::checking_hazards()) {
    const auto user = std::ranges::find_if(calls, is_by_user);
    if (user != calls.end()) return execute_around(calls, size_t(user - calls.begin()));
  }
  size_t begin = 0;
  while (begin < calls.size()) {
    if (const size_t files = file_copies(calls.subspan(begin))) {
      copy_files(calls.subspan(begin, files));
      begin += files;
      continue;
    }
    if (crosses_devices(calls[begin])) {
      copy_between_devices(std::get<BoundCopy>(calls[begin++]));
      continue;
    }
    Device& device = device_of(calls[begin]);
    const uint64_t limit_ns = device.target().max_submission_ns;
    size_t end = begin;
    uint64_t ns = 0;
    bool is_new = false;
    // Software drivers compile a kernel when it is first dispatched, on a busy machine for seconds:
    // a list of several new ones would look like a device that makes no progress.
    do {
      ns += expected_ns(calls[end]);
      is_new = dispatches_first_time(calls[end++]);
    } while (!is_new && end < calls.size() && end - begin < kMaxCallsPerList &&
             (limit_ns == 0 || ns < limit_ns) && !crosses_devices(calls[end]) &&
             &device_of(calls[end]) == &device);
    if (debug_level() >= 2) {
      for (size_t i = begin; i < end; i++) submit_and_show(device, calls[i]);
    } else {
      submit(device, calls.subspan(begin, end - begin));
    }
    if (checking_bounds()) check_bounds(calls.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace tuff::engine
