// ComputeEngine: the launches of one channel, which run beside the methods behind them: taken from
// QMDs, held against the programs that they name, executed by the interpreter of PTX. A launch may
// name another QMD, which is launched when it has ended. Owned by a Channel.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/nv/issuer.h"
#include "emu/nv/qmd.h"

namespace tuff::emu::nv {

struct ChannelError {
  uint32_t code = 0;
  std::optional<MemoryFault> fault;
  std::string why;
};
// Told of what ends the channel, before anybody is told what was found.
using Announce = std::function<void(const ChannelError&)>;

class ComputeEngine {
 public:
  ComputeEngine(Issuer& issuer, Announce end);
  ~ComputeEngine();
  // False: it has to wait. Throws BadMethod.
  bool method(uint32_t number, uint32_t data);
  // True once all have ended, which the channel then knows; but not of what was not published.
  bool idle();
  uint32_t choices() const { return stuck_ ? 0 : uint32_t(kernels_.size()); }
  void run(uint32_t index);
  void kill() { kernels_.clear(); }
  // All that has begun, ended or not.
  void add_all(Order& order) const {
    for (const uint32_t slot : slots_) order.add(op_id(world_.now(), slot));
    order.add(op_id(world_.now(), engine_slot_));
  }

 private:
  // Kernels end in any order: each chain of them has a slot of its own.
  static constexpr uint32_t kChains = 4;
  struct Kernel {
    uint32_t chain;
    Qmd qmd;
    Stub stub;
    Accessor who;
  };
  bool launch(uint64_t qmd_address);
  void start(uint64_t qmd_address, uint32_t chain, Order after);
  Stub fetch_stub(const Qmd& qmd);
  void check_launch(const Qmd& qmd, const Stub& stub);
  std::vector<uint8_t> read_bank(const Kernel& kernel) const;
  void check_bank(const Kernel& kernel, std::span<const uint8_t> bank) const;
  ptx::Outcome execute(const Kernel& kernel, LaunchMemory& memory);
  void finish(const Kernel& kernel, const ptx::Outcome& outcome, const LaunchMemory& memory);

  Issuer& issuer_;
  World& world_;
  Announce end_;
  std::array<uint32_t, kChains> slots_{};
  std::array<bool, kChains> used_{}, published_{};
  const uint32_t engine_slot_;
  bool stuck_ = false;  // a kernel runs for ever
  std::deque<Kernel> kernels_;
  uint64_t shared_window_ = 0, local_window_ = 0, local_memory_ = 0, local_per_tpc_ = 0;
  uint64_t qmd_address_ = 0;
};

}  // namespace tuff::emu::nv
