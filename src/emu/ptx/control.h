// How a warp goes on: its lanes in groups that stand at one instruction, which part at branches and
// meet again where their places are the same. Called by dispatch.cpp, one slice of a warp at a
// time.
//
// PTX says nothing of the order in which lanes that have parted go on (8.6, CUDA C++ Programming
// Guide: Independent Thread Scheduling). Here it is mostly the group that is in the deepest call
// and farthest back, so that others catch up with it; now and then one that is drawn, so that lanes
// may wait for each other.
#pragma once

#include <vector>

#include "base/split_mix.h"
#include "emu/ptx/machine.h"

namespace tuff::emu::ptx {

class Control {
 public:
  Control(Machine& machine, SplitMix64& random)
      : machine_(machine), random_(random), executed_(machine.launch().module->spellings.size()) {}

  void start(Warp& w);  // all lanes that it has, at the kernel's first instruction
  static bool can_go_on(const Warp& w);
  void run(Warp& w, uint32_t steps);
  // Lets a group go on that waits for lanes which do not come: false if there is none.
  bool force(Warp& w);
  // The barriers of a block that all have come to.
  void release_barriers(Block& block);
  // "line 7 `bar.sync`, 12 lanes" for each group.
  std::string places(const Warp& w) const;

  const std::vector<uint64_t>& executed() const { return executed_; }  // by spelling

 private:
  static constexpr size_t kNoGroup = ~size_t(0);

  Frame* new_frame(Warp& w, const Function& f, Frame* parent, uint32_t lanes);
  void set_constants(Warp& w, Frame& frame);
  uint64_t constant_value(const Warp& w, const Frame& frame, const Constant& c,
                          uint32_t lane) const;
  static void leave(Warp& w, Frame* frame, uint32_t lanes);

  size_t choose(const Warp& w, bool at_random);
  size_t next_group(Warp& w, bool stays);
  void step(Warp& w, const Instruction& i);
  void execute(Warp& w, const Instruction& i, uint32_t lanes);
  void run_rows(Warp& w, const Instruction& i, uint32_t lanes);
  void count_alone(const Warp& w, const Instruction& i, uint32_t lanes);
  void branch(Warp& w, const Instruction& i, uint32_t lanes);
  void branch_indexed(Warp& w, const Instruction& i, uint32_t lanes);
  void call(Warp& w, const Instruction& i, uint32_t lanes);
  void give_back(Warp& w, uint32_t lanes);
  void end(Warp& w, uint32_t lanes);
  void arrive(Warp& w, const Instruction& i, uint32_t lanes);
  void meet(Warp& w, const Instruction& i, uint32_t lanes);
  uint32_t named_lanes(const Warp& w, const Instruction& i, uint32_t lanes) const;
  void check_named(Warp& w, const Instruction& i, uint32_t lanes, uint32_t missing);
  void split_off_rest(Warp& w, uint32_t lanes);
  void remove_if_empty(Warp& w);

  bool is_complete(const Block& block, const BarrierState& barrier) const;
  void release(Block& block, uint32_t number);
  void release_group(Group& group, const BarrierState& barrier);
  void check_arrivals(Block& block, const BarrierState& barrier);

  Machine& machine_;
  SplitMix64& random_;
  size_t current_ = kNoGroup;  // of the warp that runs
  std::vector<uint64_t> executed_;
};

}  // namespace tuff::emu::ptx
