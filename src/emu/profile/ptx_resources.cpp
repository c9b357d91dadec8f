#include "emu/profile/ptx_resources.h"

#include <algorithm>
#include <numeric>

#include "base/ptxas.h"

namespace tuff::emu::profile {
namespace {

using ptx::CallSite, ptx::Constant, ptx::Function, ptx::Instruction, ptx::Kind, ptx::Module,
    ptx::kNone;

// The stack pointer, and what addresses and predicates need beside values. ptxas, which orders
// instructions anew, takes up to a third less (docs/design/gpu-model.md has some of both).
constexpr uint32_t kBesideValues = 6, kFewest = 16;

using Bits = std::vector<bool>;

// Backwards over blocks of instructions: which registers are read before they are written.
class Liveness {
 public:
  explicit Liveness(const Function& f) : f_(f), words_(f.register_bits.size()) {
    for (size_t k = 0; k < words_.size(); ++k) words_[k] = (f.register_bits[k] + 31u) / 32;
    for (const Constant& c : f.constants) words_[c.reg] = 0;
    find_blocks();
    while (spread()) {}
  }

  uint32_t most() const {
    uint32_t most = 0;
    for (size_t b = 0; b + 1 < begins_.size(); ++b) {
      Bits live = live_out(b);
      for (size_t k = begins_[b + 1]; k-- > begins_[b];) {
        step(live, f_.code[k]);
        most = std::max(most, words_of(live));
      }
    }
    return most;
  }

 private:
  static bool ends_block(const Instruction& i) {
    return i.kind == Kind::Branch || i.kind == Kind::BranchIndexed || i.kind == Kind::Return ||
           i.kind == Kind::Exit || i.kind == Kind::Trap;
  }

  void find_blocks() {
    Bits first(f_.code.size() + 1);
    first[0] = first[f_.code.size()] = true;
    for (size_t k = 0; k < f_.code.size(); ++k) {
      const Instruction& i = f_.code[k];
      if (!ends_block(i)) continue;
      first[k + 1] = true;
      if (i.kind == Kind::Branch) first[std::min<size_t>(i.target, f_.code.size())] = true;
      if (i.kind != Kind::BranchIndexed) continue;
      for (const uint32_t to : f_.branch_tables[i.target]) first[to] = true;
    }
    block_of_.resize(f_.code.size() + 1);
    for (size_t k = 0; k <= f_.code.size(); ++k) {
      if (first[k]) begins_.push_back(k);
      block_of_[k] = begins_.size() - 1;
    }
    live_in_.assign(begins_.size(), Bits(words_.size()));
  }

  Bits live_out(size_t block) const {
    Bits live(words_.size());
    if (begins_[block + 1] == begins_[block]) return live;
    const Instruction& i = f_.code[begins_[block + 1] - 1];
    const auto add = [&](size_t to) {
      const Bits& in = live_in_[block_of_[to]];
      for (size_t k = 0; k < live.size(); ++k)
        if (in[k]) live[k] = true;
    };
    if (!ends_block(i) || i.guard != kNone) add(begins_[block + 1]);
    if (i.kind == Kind::Branch) add(std::min<size_t>(i.target, f_.code.size()));
    if (i.kind == Kind::BranchIndexed)
      for (const uint32_t to : f_.branch_tables[i.target]) add(to);
    return live;
  }

  // From behind an instruction to before it. One with a guard leaves the old value to other lanes.
  void step(Bits& live, const Instruction& i) const {
    if (i.guard == kNone)
      for (uint32_t k = 0; k < i.destinations; ++k) live[i.d(k)] = false;
    for (uint32_t k = 0; k < i.sources; ++k) live[i.s(k)] = true;
    for (const uint32_t base : {i.memory.base, i.second.base})
      if (base != kNone) live[base] = true;
  }

  bool spread() {
    bool changed = false;
    for (size_t b = begins_.size() - 1; b-- > 0;) {
      Bits live = live_out(b);
      for (size_t k = begins_[b + 1]; k-- > begins_[b];) step(live, f_.code[k]);
      if (live == live_in_[b]) continue;
      live_in_[b] = std::move(live);
      changed = true;
    }
    return changed;
  }

  uint32_t words_of(const Bits& live) const {
    uint32_t sum = 0;
    for (size_t k = 0; k < live.size(); ++k) sum += live[k] ? words_[k] : 0;
    return sum;
  }

  const Function& f_;
  std::vector<uint32_t> words_;
  std::vector<size_t> begins_, block_of_;
  std::vector<Bits> live_in_;
};

uint32_t live_with_calls(const Module& module, const Function& f, uint32_t depth) {
  constexpr uint32_t kDeepest = 8;
  uint32_t called = 0;
  for (const CallSite& site : f.calls) {
    if (site.callee == kNone || depth == kDeepest) continue;
    called = std::max(called, live_with_calls(module, module.functions[site.callee], depth + 1));
  }
  return Liveness(f).most() + called;
}

// "sm_90a" of a module for "sm_90": what it says of its own architecture is kept.
std::string architecture_of(const Module& module, const std::string& target) {
  return module.target_name.starts_with(target) ? module.target_name : target;
}

}  // namespace

uint32_t live_registers(const Module& module, const Function& function) {
  return live_with_calls(module, function, 0);
}

Resources resources_of(const Module& module, const Function& kernel, const std::string& target) {
  auto& known = module.assembled[target];
  if (!known) known = ask_ptxas(module.text, architecture_of(module, target));
  const auto found = std::ranges::find(*known, kernel.name, &PtxasKernel::name);
  if (found != known->end()) return {found->registers, found->spill_store_bytes, false};
  const uint32_t live = live_registers(module, kernel) + kBesideValues;
  return {std::clamp(live, kFewest, 255u), 0, true};
}

}  // namespace tuff::emu::profile
