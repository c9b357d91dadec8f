#include "emu/rdna/dispatch.h"

#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/split_mix.h"
#include "emu/rdna/machine.h"
#include "emu/rdna/prepare.h"

namespace tuff::emu::rdna {
namespace {

template <class T>
T field(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class Dispatch {
 public:
  Dispatch(const Kernel& kernel, const Launch& launch, Memory& memory)
      : kernel_(kernel),
        launch_(launch),
        machine_(memory, kernel.name, kernel.code_address),
        random_(launch.seed) {
    prepare(machine_, kernel.code);
    entry_ = machine_.step_at(kernel.entry_address);
  }

  Outcome run() {
    const auto [x, y, z] = launch_.groups;
    uint32_t number = 0;
    for (uint32_t c = 0; c < z; ++c) {
      for (uint32_t b = 0; b < y; ++b) {
        for (uint32_t a = 0; a < x && !machine_.stopped(); ++a) run_group(number++, {a, b, c});
      }
    }
    return outcome();
  }

 private:
  void run_group(uint32_t number, std::array<uint32_t, 3> id);
  void start_wave(Wave& w, Workgroup& group, uint32_t number);
  uint32_t set_user_registers(Wave& w);
  void set_group_ids(Wave& w, const Workgroup& group, uint32_t next);
  void set_lane_ids(Wave& w, uint32_t number);
  void run_wave(Wave& w, uint32_t steps);
  void execute(Wave& w, const Step& step);
  void execute_dual(Wave& w, const Step& step);
  void check_ready(Wave& w, const Step& step);
  bool pending(const Wave& w, const RegisterRange& range, uint32_t& which) const;
  uint32_t defined_lanes(const Wave& w, const Step& step) const;
  void follow_definedness(Wave& w, const Step& step, uint32_t defined);
  bool release_barrier(Workgroup& group);
  void hang(const Wave& w, std::string why);
  Outcome outcome();

  const Kernel& kernel_;
  const Launch& launch_;
  Machine machine_;
  SplitMix64 random_;
  uint32_t entry_ = 0;
  uint64_t executed_ = 0;
  std::vector<std::unique_ptr<Wave>> waves_;
};

// User SGPRs in the order of the descriptor's properties; gfx11 pads them to the count in rsrc2.
uint32_t Dispatch::set_user_registers(Wave& w) {
  const uint16_t properties = kernel_.descriptor.properties;
  uint32_t next = 0;
  const auto put = [&](uint64_t value, uint32_t count) {
    for (uint32_t k = 0; k < count; ++k) {
      w.s[next] = k < 2 ? uint32_t(value >> (32 * k)) : 0;
      w.s_written[next++] = true;
    }
  };
  if (properties & 1) put(0, 4);                        // private segment buffer
  if (properties & 2) put(launch_.packet_address, 2);   // dispatch packet
  if (properties & 4) put(0, 2);                        // queue
  if (properties & 8) put(launch_.kernarg_address, 2);  // kernel arguments
  if (properties & 16) put(0, 2);                       // dispatch id
  if (properties & 32) put(0, 2);                       // flat scratch
  if (properties & 64) put(kernel_.descriptor.scratch_bytes, 1);
  return std::max(next, kernel_.descriptor.rsrc2 >> 1 & 31);
}

void Dispatch::set_group_ids(Wave& w, const Workgroup& group, uint32_t next) {
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (!(kernel_.descriptor.rsrc2 >> (7 + axis) & 1)) continue;
    w.s[next] = group.id[axis];
    w.s_written[next++] = true;
  }
}

// The position within the workgroup, ten bits per axis, in v0.
void Dispatch::set_lane_ids(Wave& w, uint32_t number) {
  const auto [x, y, z] = launch_.group_size;
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t flat = number * kLanes + lane;
    if (flat >= x * y * z) break;
    w.v[0][lane] = flat % x | flat / x % y << 10 | flat / (x * y) << 20;
    lanes |= 1u << lane;
  }
  w.v_written[0] = lanes;
  w.s[source::ExecLo] = lanes;
}

void Dispatch::start_wave(Wave& w, Workgroup& group, uint32_t number) {
  // What nobody wrote is neither zero nor the same twice.
  for (auto& words : w.v) words.fill(0xDEAD0000u | uint32_t(random_.below(0x10000)));
  w.s.fill(0xDEAD5555u);
  w.v_written.fill(0);
  w.s_written.fill(false);
  for (const uint16_t index : {source::VccLo, uint16_t(source::VccLo + 1), source::M0,
                               source::ExecLo, uint16_t(source::ExecLo + 1)}) {
    w.s[index] = 0;
    w.s_written[index] = true;
  }
  w.step = entry_;
  w.number = number;
  w.group = &group;
  w.machine = &machine_;
  w.mode = kernel_.descriptor.rsrc1 >> 12 & 0xFF;
  if (w.mode != kDefaultMode) {
    machine_.report(w, FindingKind::UnknownInstruction, 0, 0,
                    fmt::format("the descriptor asks for MODE {:#x}, only {:#x} is known", w.mode,
                                kDefaultMode));
    machine_.stop();
  }
  w.scratch_bytes = kernel_.descriptor.scratch_bytes;
  w.scratch.assign(size_t(w.scratch_bytes) * kLanes, 0xCD);
  set_group_ids(w, group, set_user_registers(w));
  set_lane_ids(w, number);
}

bool Dispatch::pending(const Wave& w, const RegisterRange& range, uint32_t& which) const {
  const auto late = [&](const auto& loads, Counter counter, uint32_t at) {
    return loads[at] > w.completed[size_t(counter)];
  };
  for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
    which = at;
    if (!range.vector) {
      if (at < 128 && late(w.s_load, Counter::Scalar, at)) return true;
    } else if (late(w.v_vector_load, Counter::Vector, at & 255) ||
               late(w.v_lds_load, Counter::Lds, at & 255)) {
      return true;
    }
  }
  return false;
}

void Dispatch::check_ready(Wave& w, const Step& step) {
  uint32_t which = 0;
  for (const RegisterRange& range : step.reads) {
    if (pending(w, range, which)) {
      machine_.report(w, FindingKind::MissingWait, 0, 0,
                      fmt::format("{}{} is read while its load is on its way",
                                  range.vector ? "v" : "s", which));
    }
  }
  const Encoding e = step.instruction.encoding();
  const bool loads = e == Encoding::SMEM || e >= Encoding::DS;  // in order among themselves
  for (const RegisterRange& range : step.writes) {
    if (!(loads && e <= Encoding::MUBUF) && pending(w, range, which)) {
      machine_.report(w, FindingKind::MissingWait, 0, 0,
                      fmt::format("{}{} is written while a load to it is on its way",
                                  range.vector ? "v" : "s", which));
    }
  }
}

uint32_t Dispatch::defined_lanes(const Wave& w, const Step& step) const {
  uint32_t lanes = ~0u;
  for (const RegisterRange& range : step.reads) {
    for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
      if (range.vector)
        lanes &= w.v_written[at & 255];
      else if (at < 128 && !w.s_written[at])
        lanes = 0;
    }
  }
  return lanes;
}

void Dispatch::follow_definedness(Wave& w, const Step& step, uint32_t defined) {
  const Encoding e = step.instruction.encoding();
  if (e >= Encoding::DS && e <= Encoding::MUBUF) return;  // loads say so themselves
  if (step.instruction.op() == Op::V_WRITELANE_B32) return;
  const uint32_t lanes = w.exec();
  for (const RegisterRange& range : step.writes) {
    for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
      uint32_t& written = w.v_written[at & 255];
      if (range.vector)
        written = (written & ~lanes) | (defined & lanes);
      else if (at < 106)
        w.s_written[at] = defined != 0;
    }
  }
}

// Both halves read before either writes.
void Dispatch::execute_dual(Wave& w, const Step& step) {
  const uint16_t target = step.first.find('D')->index;
  const Words before = w.v[target];
  step.execute(w, step.first);
  const Words after = w.v[target];
  w.v[target] = before;
  step.execute_second(w, step.second);
  w.v[target] = after;
}

void Dispatch::execute(Wave& w, const Step& step) {
  machine_.current = &step;
  if (!step.execute) {
    machine_.report(w, FindingKind::UnknownInstruction, 0, 0, "not known to the interpreter");
    machine_.stop();
    return;
  }
  if (w.outstanding) check_ready(w, step);
  const uint32_t defined = step.reads.empty() ? ~0u : defined_lanes(w, step);
  if (step.strict && (~defined & w.exec())) {
    machine_.report(w, FindingKind::UninitializedRegister,
                    uint32_t(std::countr_zero(~defined & w.exec())), 0,
                    "a value that nobody wrote is used");
  }
  if (step.execute_second)
    execute_dual(w, step);
  else
    step.execute(w, step.instruction);
  follow_definedness(w, step, defined);
}

void Dispatch::run_wave(Wave& w, uint32_t steps) {
  for (; steps > 0 && !w.ended && !w.at_barrier && !machine_.stopped(); --steps) {
    if (w.step >= machine_.steps.size()) {
      hang(w, "the wave ran past the end of the code");
      return;
    }
    Step& step = machine_.steps[w.step];
    ++step.count;
    ++executed_;
    w.step = step.next;
    execute(w, step);
  }
  if (executed_ > launch_.instruction_budget) hang(w, "the instruction budget is spent");
}

void Dispatch::hang(const Wave& w, std::string why) {
  machine_.report(w, FindingKind::Hang, 0, 0, std::move(why));
  machine_.stop();
}

// True once every wave that still runs has come to the barrier.
bool Dispatch::release_barrier(Workgroup& group) {
  for (const auto& w : waves_) {
    if (!w->ended && !w->at_barrier) return false;
  }
  ++group.epoch;
  for (const auto& w : waves_) w->at_barrier = false;
  return true;
}

void Dispatch::run_group(uint32_t number, std::array<uint32_t, 3> id) {
  Workgroup group;
  group.number = number;
  group.id = id;
  group.lds.assign(kernel_.descriptor.lds_bytes + launch_.dynamic_lds_bytes, 0xCD);
  group.shadow.resize(group.lds.size());
  const auto [x, y, z] = launch_.group_size;
  const size_t count = (x * y * z + kLanes - 1) / kLanes;
  waves_.clear();
  for (size_t k = 0; k < count; ++k) {
    waves_.push_back(std::make_unique<Wave>());
    start_wave(*waves_.back(), group, uint32_t(k));
  }
  std::vector<Wave*> ready;
  while (!machine_.stopped()) {
    ready.clear();
    bool all_ended = true;
    for (const auto& w : waves_) {
      all_ended &= w->ended;
      if (!w->ended && !w->at_barrier) ready.push_back(w.get());
    }
    if (all_ended) return;
    if (ready.empty())
      release_barrier(group);
    else
      run_wave(*ready[random_.below(ready.size())], 1 + uint32_t(random_.below(64u)));
  }
}

Outcome Dispatch::outcome() {
  Outcome out;
  out.findings = std::move(machine_.findings);
  out.finished = !machine_.stopped();
  out.instructions = executed_;
  for (const Step& step : machine_.steps) {
    if (!step.count || !step.instruction.row) continue;
    out.counts[step.instruction.row->text] += step.count;
    if (step.instruction.second) out.counts[step.instruction.second->text] += step.count;
  }
  return out;
}

}  // namespace

Descriptor parse_descriptor(std::span<const uint8_t> bytes) {
  if (bytes.size() < 64) {
    fail<InvalidArgument>("a kernel descriptor has 64 bytes, these are {}", bytes.size());
  }
  Descriptor d;
  d.lds_bytes = field<uint32_t>(bytes, 0);
  d.scratch_bytes = field<uint32_t>(bytes, 4);
  d.kernarg_bytes = field<uint32_t>(bytes, 8);
  d.entry_offset = field<int64_t>(bytes, 16);
  d.rsrc3 = field<uint32_t>(bytes, 44);
  d.rsrc1 = field<uint32_t>(bytes, 48);
  d.rsrc2 = field<uint32_t>(bytes, 52);
  d.properties = field<uint16_t>(bytes, 56);
  return d;
}

Outcome run(const Kernel& kernel, const Launch& launch, Memory& memory) {
  return Dispatch(kernel, launch, memory).run();
}

}  // namespace tuff::emu::rdna
