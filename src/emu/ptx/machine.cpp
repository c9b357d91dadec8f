#include "emu/ptx/machine.h"

#include <bit>

#include <fmt/format.h>

namespace tuff::emu::ptx {

Machine::Machine(const Launch& launch, RangeMemory& memory, std::vector<Finding>& findings)
    : launch_(launch),
      layout_(launch.module->shared_layout(*launch.kernel)),
      memory_(memory),
      findings_(findings) {
  if (launch.races && launch.blocks() > 1) races_ = std::make_unique<GlobalRaces>();
}

void Machine::report(const Warp& w, FindingKind kind, uint32_t lane, uint64_t address,
                     std::string detail) {
  const uint32_t line = current ? current->line : 0;
  for (Finding& known : findings_) {
    if (known.kind == kind && known.line == line) {
      ++known.times;
      return;
    }
  }
  findings_.push_back({kind, launch_.kernel->name,
                       current ? launch_.module->spellings[current->spelling] : "", line,
                       w.block->number, w.thread(lane), address, std::move(detail)});
}

void Machine::require(const Warp& w, uint32_t reg, uint32_t lanes, const char* what) {
  const uint32_t undefined = lanes & ~w.frame->defined[reg];
  if (!undefined || !watches_values()) return;
  report(w, FindingKind::Uninitialized, uint32_t(std::countr_zero(undefined)), 0,
         fmt::format("{} comes from a register or from memory that was not written", what));
}

void Machine::require_predicate(const Warp& w, uint32_t reg, uint32_t lanes, const char* what) {
  const uint32_t undefined = lanes & ~w.frame->predicates_defined[reg];
  if (!undefined || !watches_values()) return;
  report(w, FindingKind::Uninitialized, uint32_t(std::countr_zero(undefined)), 0,
         fmt::format("{} comes from a register or from memory that was not written", what));
}

}  // namespace tuff::emu::ptx
