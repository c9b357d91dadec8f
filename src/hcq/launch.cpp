#include "hcq/launch.h"

#include <algorithm>

namespace tuff::hcq {

bool Launch::is_symbolic() const {
  return std::ranges::any_of(group_slots, [](int32_t slot) { return slot >= 0; });
}

bool Launch::is_patched() const {
  return is_symbolic() ||
         std::ranges::any_of(operands, [](const LaunchOperand& o) { return !o.span; }) ||
         std::ranges::any_of(scalars, [](const LaunchScalar& s) { return s.slot >= 0; });
}

Command dispatch_command(const Launch& launch, const Span& args, bool names_buffers,
                         std::span<const MemoryBlock> inputs) {
  Command c{DispatchCmd{launch.program, args, launch.groups, {}}, {{args, false}},
            launch.program->name()};
  c.cost_ns = launch.cost_ns;
  for (const LaunchOperand& o : launch.operands) {
    const Span span = o.in(inputs);
    if (o.read) c.accesses.push_back({span, false});
    if (o.write) c.accesses.push_back({span, true});
    if (names_buffers) c.buffers.push_back(o.span);
  }
  return c;
}

Command copy_command(const Span& dst, const Span& src, const char* label) {
  return {CopyCmd{dst, src}, {{src, false}, {dst, true}}, label};
}

Command copy_command(const Transfer& copy, std::span<const MemoryBlock> inputs) {
  return copy_command(copy.dst.in(inputs), copy.src.in(inputs));
}

}  // namespace tuff::hcq
