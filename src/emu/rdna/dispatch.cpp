#include "emu/rdna/dispatch.h"

#include <algorithm>
#include <iterator>

#include "base/arith.h"
#include "base/check.h"
#include "base/split_mix.h"
#include "emu/rdna/code_cache.h"
#include "emu/rdna/execute.h"
#include "emu/rdna/initial_state.h"
#include "emu/rdna/lds_races.h"

namespace tuff::emu::rdna {

constexpr size_t kResidentGroups = 4;  // at once, at most

struct Dispatch::State {
  struct Resident {
    Workgroup group;
    std::vector<std::unique_ptr<Wave>> waves;
  };

  State(Launch launch_in, Memory& memory, CodeCache& code_in, Counters* counters)
      : launch(std::move(launch_in)),
        machine(memory, launch.kernel, outcome.findings),
        code(code_in),
        random(launch.seed),
        rows(opcode_rows().size()) {
    const auto [x, y, z] = launch.groups;
    group_count = uint64_t(x) * y * z;
    if (group_count > 1) machine.watch_races();
    machine.counters = counters;
    code.compare_afresh();
  }

  bool step();
  void start_group(uint64_t number);
  void collect_ready();
  void release_barriers();
  void run_wave(Wave& w, uint32_t steps);
  const Step* next_step(Wave& w);
  void count(const Step& step);
  void execute_counted(Wave& w, const Step& step);
  std::string places() const;
  std::string place_text(uint64_t address, const Wave& first, size_t count) const;
  void finish();

  Launch launch;
  Outcome outcome;
  Machine machine;
  CodeCache& code;
  SplitMix64 random;
  uint64_t group_count = 0, next_group = 0;
  std::vector<std::unique_ptr<Resident>> residents;
  std::vector<std::unique_ptr<Wave>> idle;  // kept for the groups to come
  std::vector<Wave*> ready;
  std::vector<uint64_t> rows;  // executed, by row of the opcode table
  Defect defect;
  bool over = false;
};

void Dispatch::State::start_group(uint64_t number) {
  auto resident = std::make_unique<Resident>();
  Workgroup& group = resident->group;
  const auto [x, y, z] = launch.groups;
  group.number = uint32_t(number);
  group.id = {uint32_t(number % x), uint32_t(number / x % y), uint32_t(number / x / y)};
  start_lds(group, launch.lds_bytes);
  const auto [a, b, c] = launch.group_size;
  const uint32_t count = ceil_div(a * b * c, uint32_t(kLanes));
  for (uint32_t k = 0; k < count; ++k) {
    if (idle.empty()) idle.push_back(std::make_unique<Wave>());
    Wave& w = *idle.back();
    w.number = k;
    w.group = &group;
    w.machine = &machine;
    set_initial_state(w, launch, random);
    if (machine.counters) machine.counters->start(w);
    resident->waves.push_back(std::move(idle.back()));
    idle.pop_back();
  }
  residents.push_back(std::move(resident));
}

void Dispatch::State::collect_ready() {
  ready.clear();
  for (const auto& resident : residents) {
    bool all_ended = true;
    for (const auto& w : resident->waves) {
      all_ended &= w->ended;
      if (!w->ended && !w->at_barrier) ready.push_back(w.get());
    }
    if (!all_ended) continue;
    std::ranges::move(resident->waves, std::back_inserter(idle));
    resident->waves.clear();
  }
  std::erase_if(residents, [](const auto& resident) { return resident->waves.empty(); });
}

// Lets groups go on all of whose waves have come to the barrier or ended.
void Dispatch::State::release_barriers() {
  for (const auto& resident : residents) {
    bool all_there = true;
    for (const auto& w : resident->waves) all_there &= w->ended || w->at_barrier;
    if (!all_there) continue;
    pass_barrier(resident->group, resident->waves);
    if (machine.counters) machine.counters->pass_barrier(resident->waves);
  }
}

bool Dispatch::State::step() {
  if (over) return false;
  release_barriers();
  collect_ready();
  const auto can_start = [&] {
    return residents.size() < kResidentGroups && next_group < group_count;
  };
  if (can_start()) {
    while (can_start()) start_group(next_group++);
    collect_ready();
  }
  if (!ready.empty() && !machine.stopped()) {
    run_wave(*ready[random.below(ready.size())], 1 + uint32_t(random.below(64u)));
  }
  if (machine.stopped() || (residents.empty() && next_group == group_count)) finish();
  return !over;
}

const Step* Dispatch::State::next_step(Wave& w) {
  machine.current = nullptr;
  defect.kind.reset();
  const Step* step = code.find(w.pc, machine.memory(), defect);
  if (!step) {
    machine.report(w, FindingKind::UnmappedAccess, 0, w.pc, "no code is mapped there");
    machine.stop();
  } else if (defect.kind) {
    machine.current = step;
    machine.report(w, kind_of(*defect.kind), 0, w.pc, std::move(defect.detail));
  }
  return step;
}

void Dispatch::State::count(const Step& step) {
  ++outcome.instructions;
  if (!step.instruction.row) return;
  ++rows[step.row];
  if (step.instruction.second) ++rows[step.second_row];
}

void Dispatch::State::execute_counted(Wave& w, const Step& step) {
  machine.counters->begin(w, step);
  execute(machine, w, step);
  machine.counters->end(w, step);
}

void Dispatch::State::run_wave(Wave& w, uint32_t steps) {
  for (; steps > 0 && !w.ended && !w.at_barrier && !machine.stopped(); --steps) {
    const Step* step = next_step(w);
    if (!step) return;
    count(*step);
    w.pc += step->instruction.size_bytes;
    if (machine.counters) [[unlikely]]
      execute_counted(w, *step);
    else
      execute(machine, w, *step);
  }
  if (outcome.instructions > launch.instruction_budget) {
    machine.report(w, FindingKind::Hang, 0, 0,
                   fmt::format("the budget of {} instructions is spent: {}",
                               launch.instruction_budget, places()));
    machine.stop();
  }
}

std::string Dispatch::State::place_text(uint64_t address, const Wave& first, size_t count) const {
  const Step* step = code.known(address);
  std::string text = fmt::format("workgroup {} wave {}", first.group->number, first.number);
  if (count > 1) text += fmt::format(" and {} more", count - 1);
  text += first.at_barrier ? " at the barrier" : " at";
  text += fmt::format(" {:#x}", address);
  return step ? fmt::format("{} `{}`", text, text_of(*step)) : text;
}

std::string Dispatch::State::places() const {
  constexpr size_t kPlacesNamed = 8;
  std::map<uint64_t, std::vector<const Wave*>> waves;
  for (const auto& resident : residents) {
    for (const auto& w : resident->waves) {
      // Who waits at a barrier has executed it.
      if (!w->ended) waves[w->at_barrier ? w->pc - 4 : w->pc].push_back(w.get());
    }
  }
  std::vector<std::string> texts;
  for (const auto& [address, here] : waves) {
    if (texts.size() == kPlacesNamed) {
      texts.push_back(fmt::format("{} more places", waves.size() - kPlacesNamed));
      break;
    }
    texts.push_back(place_text(address, *here.front(), here.size()));
  }
  if (next_group < group_count) {
    texts.push_back(fmt::format("{} workgroups have not begun", group_count - next_group));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void Dispatch::State::finish() {
  over = true;
  outcome.finished = !machine.stopped();
  const auto table = opcode_rows();
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k]) outcome.counts[table[k].text] += rows[k];
  }
}

Dispatch::Dispatch(Launch launch, Memory& memory, CodeCache& code, Counters* counters)
    : state_(std::make_unique<State>(std::move(launch), memory, code, counters)) {}

Dispatch::~Dispatch() = default;

bool Dispatch::step() { return state_->step(); }

std::string Dispatch::places() const { return state_->places(); }

const Outcome& Dispatch::outcome() const { return state_->outcome; }

Outcome run(const Launch& launch, Memory& memory, Counters* counters) {
  CodeCache code;
  Dispatch dispatch(launch, memory, code, counters);
  while (dispatch.step()) {}
  return dispatch.outcome();
}

}  // namespace tuff::emu::rdna
