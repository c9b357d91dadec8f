#include "host_device.h"

#include <algorithm>

#include "engine/program/compile_options.h"
#include "ir/walk.h"
#include "kernel/pipeline.h"
#include "sched/schedule.h"

namespace tuff::check {

using namespace ir;
using sched::BufferOrigin;
using sched::BufferSlot;
using sched::Call;
using sched::CallKind;

namespace {

constexpr std::byte kUnwritten{0xcd};

kernel::LinearKernel lowered(const UOp& original, const HostDevice& d) {
  const UOp ast = d.rewrite ? d.rewrite(original) : original;
  if (d.opts == OptChoice::None) return kernel::lower_with(ast, d.target, {});
  kernel::LowerOptions options = engine::lower_options();
  if (d.opts == OptChoice::Random) options.random_seed = d.seed + 1;
  return kernel::lower(ast, d.target, options);
}

class Run {
 public:
  Run(const GraphCase& c, const sched::Scheduled& s, const HostDevice& d)
      : case_(c), schedule_(*s.schedule), device_(d) {
    for (const sched::Arena& a : schedule_.arenas) arenas_.emplace_back(a.size_bytes, kUnwritten);
    own_.resize(schedule_.buffers.size());
    for (size_t i = 0; i < own_.size(); i++) at_.push_back(place(i, s.inputs));
  }

  RunOutput run(const std::vector<Ref<Storage>>& inputs) {
    for (const Call& c : schedule_.calls) {
      if (c.kind == CallKind::Kernel) run_kernel(c);
      if (c.kind == CallKind::Copy) copy(c);
      if (c.kind == CallKind::View) at_[c.args[0]] = at_[c.args[1]].subspan(c.byte_offset);
    }
    RunOutput out;
    for (uint32_t slot : schedule_.sink_slots) out.sinks.push_back(bytes_of(slot));
    for (uint32_t i = 0; i < schedule_.buffers.size(); i++) {
      const BufferSlot& b = schedule_.buffers[i];
      if (b.origin == BufferOrigin::Input) out.storages[inputs[b.index]->id] = bytes_of(i);
    }
    return out;
  }

 private:
  std::span<std::byte> place(size_t i, const std::vector<Ref<Storage>>& inputs) {
    const BufferSlot& b = schedule_.buffers[i];
    if (b.origin == BufferOrigin::Temp) {
      std::vector<std::byte>& arena = arenas_.at(b.arena);
      TUFF_CHECK(b.arena_offset + b.size_bytes() <= arena.size(), "slot {} is outside its arena",
                 i);
      return std::span(arena).subspan(b.arena_offset, b.size_bytes());
    }
    own_[i].assign(b.size_bytes(), kUnwritten);
    if (b.origin == BufferOrigin::Input) {
      const uint64_t id = inputs[b.index]->id;
      const auto in = std::find_if(case_.inputs.begin(), case_.inputs.end(),
                                   [&](const GraphInput& x) { return x.storage->id == id; });
      TUFF_CHECK(in != case_.inputs.end() && in->bytes.size() == b.size_bytes(),
                 "storage {} has no contents", id);
      own_[i] = in->bytes;
    }
    return own_[i];
  }

  std::vector<std::byte> bytes_of(uint32_t slot) const {
    const std::span<std::byte> all = at_[slot].first(schedule_.buffers[slot].size_bytes());
    return {all.begin(), all.end()};
  }

  void copy(const Call& c) {
    const size_t size = schedule_.buffers[c.args[0]].size_bytes();
    TUFF_CHECK(size == schedule_.buffers[c.args[1]].size_bytes(), "a copy of different sizes");
    std::copy_n(at_[c.args[1]].begin(), size, at_[c.args[0]].begin());
  }

  void run_kernel(const Call& c) {
    const kernel::LinearKernel k = lowered(c.ast, device_);
    LinearRun run;
    run.variables = case_.variables;
    for (uint32_t a : c.args)
      run.buffers.push_back(at_[a].first(schedule_.buffers[a].size_bytes()));
    for (size_t i = 0; i < 3; i++) {
      const Dim& g = k.groups[i];
      run.groups[i] = uint32_t(g.is_const() ? g.value() : evaluate_index(g.uop(), case_.variables));
      run.local[i] = k.local[i];
    }
    run.subgroup_size = k.subgroup_size;
    interpret_linear(k.ops, run);
  }

  const GraphCase& case_;
  const sched::Schedule& schedule_;
  const HostDevice& device_;
  std::vector<std::vector<std::byte>> arenas_, own_;
  std::vector<std::span<std::byte>> at_;  // by slot
};

}  // namespace

RunOutput run_on_host(const GraphCase& c, const HostDevice& device) {
  const auto target_of = [&](const std::string&) -> const Target& { return device.target; };
  const sched::Scheduled s = sched::schedule(c.sinks, target_of, {}, engine::schedule_steps());
  return Run(c, s, device).run(s.inputs);
}

std::string check_on_host(const GraphCase& c, const HostDevice& device) {
  try {
    return difference(c, run_on_host(c, device));
  } catch (const std::exception& e) {
    return fmt::format("exception: {}", e.what());
  }
}

}  // namespace tuff::check
