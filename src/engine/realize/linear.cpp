// compile_linear and run_linear: binds a schedule to memory and hands its calls to execute().
#include "engine/realize/linear.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/log.h"
#include "engine/realize/capture.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "engine/realize/bounds.h"
#include "engine/stats.h"
#include "kernel/constants.h"

namespace tuff::engine {
namespace {

using sched::BufferOrigin;
using sched::CallKind;
using sched::Schedule;

struct CompiledCache {
  std::mutex mutex;
  std::map<const Schedule*,
           std::pair<std::weak_ptr<const Schedule>, std::shared_ptr<const CompiledLinear>>>
      rows;
};

bool is_open(const std::weak_ptr<Device>& d) {
  const std::shared_ptr<Device> device = d.lock();
  return device && Device::get(device->name()) == device;
}

// Closing a device leaves the tensors that hold its memory behind.
void require_open(const Ref<Buffer>& b) {
  const Device& device = b->on();
  if (Device::get(device.name()).get() != &device)
    fail<InvalidArgument>("a tensor on {} is used after close_devices() closed its device",
                          device.name());
}

// Memory of every slot of a schedule for one run.
class Binding {
 public:
  Binding(const Schedule& s, std::span<const Ref<Buffer>> inputs)
      : schedule_(s), buffers_(s.buffers.size()) {
    for (const sched::Arena& a : s.arenas) {
      arenas_.push_back(Buffer::make(Device::get(a.device), DType::U8, int64_t(a.size_bytes)));
    }
    for (size_t i = 0; i < s.buffers.size(); i++) bind(i, inputs);
  }
  const Ref<Buffer>& at(uint32_t slot) const { return buffers_[slot]; }
  void view(const sched::Call& c) {
    const sched::BufferSlot& slot = schedule_.buffers[c.args[0]];
    buffers_[c.args[0]] =
        Buffer::view(buffers_[c.args[1]], slot.dtype, slot.count, c.byte_offset);
  }

 private:
  void bind(size_t i, std::span<const Ref<Buffer>> inputs) {
    const sched::BufferSlot& slot = schedule_.buffers[i];
    switch (slot.origin) {
      case BufferOrigin::Input: buffers_[i] = inputs[slot.index]; break;
      case BufferOrigin::Output:
        buffers_[i] = Buffer::make(Device::get(slot.device), slot.dtype, slot.count);
        break;
      case BufferOrigin::Part: break;  // until its View comes
      case BufferOrigin::Temp:
        buffers_[i] =
            Buffer::view(arenas_[slot.arena], slot.dtype, slot.count, slot.arena_offset);
        break;
    }
  }
  const Schedule& schedule_;
  std::vector<Ref<Buffer>> arenas_;
  std::vector<Ref<Buffer>> buffers_;
};

// What users' kernels count on: memory of tuff's own and views of it have it.
void require_alignment(const LoadedKernel& k, Buffer& b) {
  if (k.alignment > 1 && b.span().address() % k.alignment != 0)
    fail<Unsupported>(
        "kernel {} reads vectors, whose memory has to begin at a multiple of {} bytes; a tensor "
        "given to it does not: give it a clone()",
        k.name, k.alignment);
}

BoundKernel bind_kernel(const sched::Call& c, const KernelUse& use, const Binding& b,
                        const VariableValues& values) {
  const LoadedKernel& k = *use.kernel;
  BoundKernel out;
  out.kernel = &k;
  out.constants = use.constants;
  out.runs = c.runs;
  for (const auto& a : k.buffers) {
    const bool report = a.slot == k.bounds.slot;
    out.buffers.push_back(report ? bounds_report(k, Device::get(c.device))
                                 : b.at(c.args[size_t(a.slot)]));
    require_alignment(k, *out.buffers.back());
  }
  bind_variables(out, values);
  return out;
}

}  // namespace

void bind_variables(BoundKernel& bound, const VariableValues& values) {
  const LoadedKernel& k = *bound.kernel;
  bound.scalars.clear();
  for (const ir::UOp& v : k.variables) {
    const int32_t word = kernel::constant_word(*v);
    bound.scalars.push_back(word >= 0 && size_t(word) < bound.constants.size()
                                ? bound.constants[size_t(word)]
                                : int32_t(ir::evaluate_index(v, values)));
  }
  const auto number = [&](const ir::Dim& d) {
    return uint32_t(d.is_const() ? d.value() : ir::evaluate_index(d.uop(), values));
  };
  for (size_t i = 0; i < 3; i++) bound.groups[i] = number(k.groups[i]);
  if (number(bound.runs) == 0) bound.groups[0] = 0;
}

std::shared_ptr<const CompiledLinear> compile_linear(
    const std::shared_ptr<const Schedule>& schedule) {
  static CompiledCache& cache = *std::make_unique<CompiledCache>().release();
  {
    std::lock_guard lock(cache.mutex);
    auto it = cache.rows.find(schedule.get());
    if (it != cache.rows.end() && it->second.first.lock() == schedule &&
        std::all_of(it->second.second->devices.begin(), it->second.second->devices.end(), is_open))
      return it->second.second;
  }
  auto out = std::make_shared<CompiledLinear>();
  out->schedule = schedule;
  out->kernels.resize(schedule->calls.size());
  std::map<std::string, std::vector<size_t>> by_device;
  for (size_t i = 0; i < schedule->calls.size(); i++) {
    const CallKind kind = schedule->calls[i].kind;
    if (kind == CallKind::Kernel || kind == CallKind::Custom)
      by_device[schedule->calls[i].device].push_back(i);
  }
  for (const auto& [device, calls] : by_device) {
    std::vector<ir::UOp> asts;
    for (size_t i : calls) asts.push_back(schedule->calls[i].ast);
    out->devices.push_back(Device::get(device));
    const auto kernels = Device::get(device)->programs().use(asts);
    for (size_t k = 0; k < calls.size(); k++) out->kernels[calls[k]] = kernels[k];
  }
  std::lock_guard lock(cache.mutex);
  std::erase_if(cache.rows, [](const auto& row) { return row.second.first.expired(); });
  cache.rows[schedule.get()] = {schedule, out};
  return out;
}

std::vector<Ref<Buffer>> run_linear(const CompiledLinear& linear,
                                    std::span<const Ref<Buffer>> inputs,
                                    const VariableValues& variables) {
  const Schedule& s = *linear.schedule;
  std::for_each(inputs.begin(), inputs.end(), require_open);
  read_contents(inputs);
  Binding binding(s, inputs);
  std::vector<BoundCall> calls;
  for (size_t i = 0; i < s.calls.size(); i++) {
    const sched::Call& c = s.calls[i];
    if (c.kind == CallKind::View) {
      binding.view(c);
    } else if (c.kind == CallKind::Copy) {
      calls.push_back(BoundCopy{binding.at(c.args[0]), binding.at(c.args[1])});
    } else {
      calls.push_back(bind_kernel(c, linear.kernels[i], binding, variables));
    }
  }
  execute(calls);
  if (Capture* capture = Capture::current()) {
    for (const BoundCall& c : calls) capture->append(c);
  }
  std::vector<Ref<Buffer>> out;
  for (uint32_t slot : s.sink_slots) out.push_back(binding.at(slot));
  return out;
}

std::vector<Ref<Buffer>> realize(std::span<const ir::UOp> sinks,
                                 const VariableValues& variables) {
  std::optional<ProfiledScope> timer(std::in_place, "schedule", &counters().schedule_ns);
  const sched::Scheduled scheduled = sched::schedule(
      sinks, [](const std::string& d) -> const Target& { return Device::get(d)->target(); },
      [](const ir::Storage& s) {
        const Buffer& b = static_cast<const Buffer&>(s);
        return sched::MemoryPart{b.root().id, b.byte_offset(), b.byte_offset() + b.size_bytes()};
      },
      schedule_steps());
  timer.reset();
  if (scheduled.from_cache) counters().schedules_from_cache++;
  TUFF_DEBUG_LINE(1, "schedule: {} sinks, {} calls{}", sinks.size(),
                  scheduled.schedule->calls.size(), scheduled.from_cache ? " (cached)" : "");
  const auto linear = compile_linear(scheduled.schedule);
  std::vector<Ref<Buffer>> inputs;
  for (const Ref<ir::Storage>& s : scheduled.inputs) {
    auto* buffer = dynamic_cast<Buffer*>(s.get());
    TUFF_CHECK(buffer, "storage {} is no engine buffer", s->id);
    inputs.emplace_back(buffer);
  }
  return run_linear(*linear, inputs, variables);
}

}  // namespace tuff::engine
