#include "emu/ptx/dispatch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/arith.h"
#include "emu/ptx/control.h"
#include "emu/ptx/counters.h"

namespace tuff::emu::ptx {
namespace {

constexpr size_t kResidentBlocks = 4;  // at once, at most

class PtxDispatch {
 public:
  PtxDispatch(const Launch& launch, RangeMemory& memory, Counters* counters)
      : launch_(launch),
        machine_(launch, memory, outcome_.findings),
        random_(launch.seed),
        control_(machine_, random_) {
    machine_.counters = counters;
  }

  Outcome run() {
    while (step()) {}
    outcome_.finished = !machine_.stopped();
    outcome_.instructions = machine_.clock;
    for (size_t k = 0; k < control_.executed().size(); ++k) {
      if (const uint64_t n = control_.executed()[k])
        outcome_.counts[launch_.module->spellings[k]] += n;
    }
    return std::move(outcome_);
  }

 private:
  void start_block(uint64_t number) {
    auto block = std::make_unique<Block>();
    const auto [x, y, z] = launch_.grid;
    block->number = uint32_t(number);
    block->id = {uint32_t(number % x), uint32_t(number / x % y), uint32_t(number / x / y)};
    block->threads = launch_.threads();
    block->shared.assign(machine_.shared_bytes(), 0xCD);
    block->shared_written.assign(machine_.shared_bytes(), 0);
    if (machine_.watches_threads() && block->threads > 1) {
      block->shared_races.emplace(block->threads);
      block->global_races.emplace(block->threads);
    }
    const uint32_t local = launch_.module->local_bytes(*launch_.kernel);
    for (uint32_t k = 0; k < ceil_div(block->threads, kWarpLanes); ++k) {
      auto w = std::make_unique<Warp>();
      w->machine = &machine_;
      w->block = block.get();
      w->number = k;
      const uint32_t lanes = std::min(kWarpLanes, block->threads - k * kWarpLanes);
      w->present = lanes == kWarpLanes ? ~0u : (1u << lanes) - 1;
      w->local_bytes = local;
      w->local.assign(size_t(local) * kWarpLanes, 0xCD);
      w->local_written.assign(size_t(local) * kWarpLanes, 0);
      control_.start(*w);
      if (machine_.counters) machine_.counters->start(*w);
      block->warps.push_back(std::move(w));
    }
    residents_.push_back(std::move(block));
  }

  bool step() {
    for (const auto& block : residents_) control_.release_barriers(*block);
    std::erase_if(residents_, [](const auto& block) {
      return std::ranges::all_of(block->warps, [](const auto& w) { return w->groups.empty(); });
    });
    while (residents_.size() < kResidentBlocks && next_ < launch_.blocks()) start_block(next_++);
    if (residents_.empty()) return false;
    ready_.clear();
    for (const auto& block : residents_) {
      for (const auto& w : block->warps) {
        if (Control::can_go_on(*w)) ready_.push_back(w.get());
      }
    }
    if (ready_.empty()) return go_on_without();
    control_.run(*ready_[random_.below(ready_.size())], 1 + uint32_t(random_.below(64u)));
    check_budget();
    return !machine_.stopped();
  }

  // All warps wait: for lanes that do not come, or at barriers that not all come to.
  bool go_on_without() {
    for (const auto& block : residents_) {
      for (const auto& w : block->warps) {
        if (control_.force(*w)) return true;
      }
    }
    const Warp& w = **std::ranges::find_if(residents_.front()->warps,
                                           [](const auto& own) { return !own->groups.empty(); });
    machine_.current = w.groups.front().at;
    machine_.report(w, FindingKind::Barrier, uint32_t(std::countr_zero(w.groups.front().lanes)), 0,
                    fmt::format("not all threads of the block come to it: {}", places()));
    machine_.stop();
    return false;
  }

  void check_budget() {
    if (machine_.clock <= launch_.instruction_budget || machine_.stopped()) return;
    for (const auto& block : residents_) {
      for (const auto& w : block->warps) {
        if (w->groups.empty()) continue;
        machine_.report(*w, FindingKind::Hang, uint32_t(std::countr_zero(w->groups[0].lanes)), 0,
                        fmt::format("the budget of {} instructions is spent: {}",
                                    launch_.instruction_budget, places()));
        machine_.stop();
        return;
      }
    }
  }

  std::string places() const {
    constexpr size_t kNamed = 8;
    std::string text;
    size_t named = 0;
    for (const auto& block : residents_) {
      for (const auto& w : block->warps) {
        if (w->groups.empty() || ++named > kNamed) continue;
        text += (text.empty() ? "" : ", ") + control_.places(*w);
      }
    }
    if (named > kNamed) text += fmt::format(", and {} more warps", named - kNamed);
    return text;
  }

  const Launch& launch_;
  Outcome outcome_;
  Machine machine_;
  SplitMix64 random_;
  Control control_;
  std::vector<std::unique_ptr<Block>> residents_;
  std::vector<Warp*> ready_;
  uint64_t next_ = 0;
};

}  // namespace

Outcome run(const Launch& launch, RangeMemory& memory, Counters* counters) {
  return PtxDispatch(launch, memory, counters).run();
}

}  // namespace tuff::emu::ptx
