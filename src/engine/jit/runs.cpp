#include "engine/jit/runs.h"

#include <algorithm>
#include <optional>

#include "engine/jit/make_graph.h"
#include "engine/jit/rebind.h"
#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"
#include "engine/stats.h"

namespace tuff::engine {

// A run of calls on one device, or one copy between devices.
struct Runs::Run {
  Device* device = nullptr;
  std::shared_ptr<hcq::CommandGraph> graph;
  std::unique_ptr<ReboundGraph> rebound;  // instead of `graph`, where addresses cannot be patched
  std::optional<BoundCopy> host_copy;
  int32_t copy_dst_input = -1, copy_src_input = -1;
  std::unique_ptr<GroupUse> touched;  // besides inputs
  // What it reads of what was there before it, and what it writes.
  struct Memory {
    Ref<Buffer> fixed;  // null for an input, which is not kept
    int32_t input;
    Buffer& in(std::span<const Ref<Buffer>> inputs) const {
      return fixed ? *fixed : *inputs[size_t(input)];
    }
  };
  std::vector<Memory> sources, written;

  void note_access(const BoundCall& call, std::span<const Ref<Buffer>> inputs, ByteSet& anew);
  void pass_origins_on(std::span<const Ref<Buffer>> inputs) const;
  void copy_on_host(std::span<const Ref<Buffer>> inputs) const;
  const hcq::CommandGraph& command_graph() const { return rebound ? *rebound->graph() : *graph; }
};

void Runs::Run::note_access(const BoundCall& call, std::span<const Ref<Buffer>> inputs,
                            ByteSet& anew) {
  const auto memory = [&](const Ref<Buffer>& b) {
    const int32_t slot = input_slot(*b, inputs);
    return Memory{slot < 0 ? b : Ref<Buffer>(), slot};
  };
  each_buffer(call, [&](const Ref<Buffer>& b, bool read, bool) {
    if (read && !anew.holds(*b)) sources.push_back(memory(b));
  });
  each_buffer(call, [&](const Ref<Buffer>& b, bool, bool stored) {
    if (!stored) return;
    anew.add(*b);
    written.push_back(memory(b));
  });
}

// Memory that another device's loss or a damaged file has spoilt is not computed with.
[[gnu::noinline]] void Runs::Run::pass_origins_on(std::span<const Ref<Buffer>> inputs) const {
  Origin origins;
  for (const Memory& m : sources) m.in(inputs).uses().add_origin(origins);
  origins.require();
  for (const Memory& m : written) m.in(inputs).written_from(origins);
}

[[gnu::noinline]] void Runs::Run::copy_on_host(std::span<const Ref<Buffer>> inputs) const {
  BoundCopy c = *host_copy;
  if (copy_dst_input >= 0) c.dst = inputs[size_t(copy_dst_input)];
  if (copy_src_input >= 0) c.src = inputs[size_t(copy_src_input)];
  const BoundCall call(std::move(c));
  execute(std::span<const BoundCall>(&call, 1));
}

Runs::Runs(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
           const std::vector<ir::UOp>& variables) {
  for (size_t begin = 0; begin < calls.size();) {
    if (crosses_devices(calls[begin])) {
      add_host_copy(std::get<BoundCopy>(calls[begin++]), inputs);
      continue;
    }
    size_t end = begin + 1;
    while (end < calls.size() && !crosses_devices(calls[end]) &&
           &device_of(calls[end]) == &device_of(calls[begin]))
      end++;
    add_run(calls.subspan(begin, end - begin), inputs, variables);
    begin = end;
  }
}

Runs::~Runs() = default;

void Runs::add_run(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                   const std::vector<ir::UOp>& variables) {
  Run s;
  s.device = &device_of(calls[0]);
  std::vector<Ref<Buffer>> touched;
  ByteSet anew;
  for (const BoundCall& c : calls) {
    s.note_access(c, inputs, anew);
    each_buffer(c, [&](const Ref<Buffer>& b, bool, bool) {
      if (input_slot(*b, inputs) < 0) touched.push_back(b);
    });
    if (auto* k = std::get_if<BoundKernel>(&c)) {
      stats_.flops += k->kernel->estimate.flops;
      stats_.bytes += k->kernel->estimate.bytes;
    }
  }
  s.touched = std::make_unique<GroupUse>(std::move(touched));
  const std::vector<ir::UOp> given = given_values(variables, inputs);
  const bool vary = !variables.empty();
  const auto make = [device = s.device, given, vary](std::span<const BoundCall> bound,
                                                     std::span<const Ref<Buffer>> slots) {
    GraphMaker maker(*device, slots, given, vary);
    for (const BoundCall& c : bound) maker.add(c);
    return maker.make();
  };
  if (s.device->target().features.device_address)
    s.graph = make(calls, inputs);
  else
    s.rebound = std::make_unique<ReboundGraph>(
        calls, inputs, [make](std::span<const BoundCall> bound) { return make(bound, {}); });
  const hcq::GraphStats& g = s.command_graph().stats();
  stats_.kernels += g.kernels;
  stats_.copies += g.copies;
  stats_.barriers += g.barriers;
  runs_.push_back(std::move(s));
}

void Runs::add_host_copy(const BoundCopy& c, std::span<const Ref<Buffer>> inputs) {
  Run s;
  s.host_copy = c;
  s.copy_dst_input = input_slot(*c.dst, inputs);
  s.copy_src_input = input_slot(*c.src, inputs);
  stats_.copies++;
  stats_.host_copies += copier_between(c) == nullptr;
  runs_.push_back(std::move(s));
}

void Runs::replay(const ReplayInputs& in) {
  const std::span<const Ref<Buffer>> inputs = in.buffers;
  for (Run& s : runs_) {
    if (s.host_copy) {
      s.copy_on_host(inputs);
      continue;
    }
    if (Uses::any_has_origin()) s.pass_origins_on(inputs);
    const uint64_t value = s.rebound ? s.rebound->replay(inputs, in.values)
                                     : s.graph->replay(in.addresses, in.values, in.sizes);
    s.touched->until(value);
    for (const Ref<Buffer>& b : inputs)
      if (&b->on() == s.device) b->uses().until(value);
    if (Uses::any_has_origin())
      for (const Run::Memory& m : s.written) m.in(inputs).uses().written_until(value);
    counters().submits += s.command_graph().stats().submits_per_replay;
  }
}

ReplayStats Runs::stats() const {
  ReplayStats out = stats_;
  for (const Run& s : runs_) {
    if (s.host_copy) continue;
    out.submits_per_replay += s.command_graph().stats().submits_per_replay;
    if (s.rebound) s.rebound->count_copies(out);
  }
  return out;
}

std::vector<const hcq::CommandGraph*> Runs::graphs() const {
  std::vector<const hcq::CommandGraph*> out;
  for (const Run& s : runs_)
    if (!s.host_copy) out.push_back(&s.command_graph());
  return out;
}

}  // namespace tuff::engine
