// The neutral commands, and the list of them that a device encodes once and submits many times.
// Built by hcq/graph and engine, read by devices' encoders and by the hazard checker.
// Nothing here knows a native encoding. Values that change per submission are *slots*.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hcq/memory.h"

namespace tuff::hcq {

class Program;
class Signal;

// Byte range that a command touches; what the hazard checker and the dependency tracker read.
struct Access {
  Span span;
  bool write = false;
};

// Wait until *signal >= slots[value_slot] (slots are given at submit). Where a queue cannot wait in
// mid-stream (Vulkan) a list has its Waits first and its Signals last; hcq/graph cuts lists so.
struct WaitCmd {
  Signal* signal = nullptr;
  uint32_t value_slot = 0;
};
struct SignalCmd {
  Signal* signal = nullptr;
  uint32_t value_slot = 0;
};
struct TimestampCmd {
  uint32_t index = 0;
};
// Execution and memory dependency: everything before is finished and visible to everything after.
struct BarrierCmd {};
// groups are workgroups. If indirect is set the three u32 group counts are read from it instead.
// A group slot that is not negative takes the place of groups[axis], on queues that say so
// (Queue::takes_group_slots). A launch of 0 workgroups runs nothing.
struct DispatchCmd {
  const Program* program = nullptr;
  Span args;  // the argument block, laid out by the Binary's ArgLayout
  std::array<uint32_t, 3> groups{1, 1, 1};
  Span indirect;  // 12 bytes, 4-byte aligned, or empty
  std::array<int32_t, 3> group_slots{-1, -1, -1};
};
struct CopyCmd {
  Span dst, src;
};  // equal sizes, not overlapping
struct HostCallCmd {
  void (*fn)(void*) = nullptr;
  void* context = nullptr;
};

using CommandBody =
    std::variant<WaitCmd, SignalCmd, TimestampCmd, BarrierCmd, DispatchCmd, CopyCmd, HostCallCmd>;

struct Command {
  CommandBody body;
  std::vector<Access> accesses;  // of Dispatch, Copy and HostCall
  std::string label;             // kernel name, for debug labels and traces
  // For a Dispatch: what its block's addresses stand for, one per buffer argument. Read where there
  // are no device addresses (see names_buffers), and left empty elsewhere.
  std::vector<Span> buffers = {};
  uint64_t cost_ns = 0;  // what it is expected to take; 0: next to nothing
  // For a Dispatch: its argument block stays as it is from when the list is encoded on, so that a
  // device may keep what it has made of it.
  bool keeps_args = false;
};

struct CommandList {
  std::vector<Command> commands;
  uint32_t slot_count = 0;  // how many values submit() takes
  uint32_t timestamp_count = 0;
  // For lists that can fail without their device, as those that read files: told why, on the
  // queue's thread, before their remaining signals are raised. Then nothing else tells it.
  std::function<void(const std::string& reason)> failed = {};
};

// Puts timestamps around every Dispatch, Copy and HostCall: one before the first, one after each.
void add_timestamps(CommandList& list);
struct TimedCommand {
  const Command* command;
  uint64_t begin_ns, end_ns;
};
// The commands of such a list with what Queue::timestamps() gave for it.
std::vector<TimedCommand> timed_commands(const CommandList& list, std::span<const uint64_t> times);

// One line per command, stable: used by goldens and TUFF_DEBUG.
std::string to_text(const CommandList& list);

}  // namespace tuff::hcq
