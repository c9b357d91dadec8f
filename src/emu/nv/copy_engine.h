// CopyEngine: the copies of one channel, which run beside the methods behind them. Owned by a
// Channel.
#pragma once

#include <algorithm>
#include <array>
#include <deque>

#include "emu/nv/issuer.h"

namespace tuff::emu::nv {

class CopyEngine {
 public:
  explicit CopyEngine(Issuer& issuer) : issuer_(issuer), slot_(issuer.world.take_slot()) {}
  ~CopyEngine() { issuer_.world.give_slot(slot_); }
  // False: it has to wait. Throws BadMethod.
  bool method(uint32_t number, uint32_t data);
  // True once all have ended, which the channel then knows; but not of what was not flushed.
  bool idle();
  uint32_t choices() const { return uint32_t(std::min<size_t>(jobs_.size(), 2)); }
  void advance(uint32_t index);
  void kill() { jobs_.clear(); }
  // All that has begun, ended or not.
  void add_all(Order& order) const { order.add(op_id(issuer_.world.now(), slot_)); }

 private:
  struct Job {
    Accessor who;
    uint64_t dst, src, bytes;
    bool flush;
  };
  bool start(uint32_t launch);
  Issuer& issuer_;
  const uint32_t slot_;
  std::deque<Job> jobs_;
  bool flushed_ = true;
  std::array<uint32_t, 4> offsets_{};  // in upper, in lower, out upper, out lower
  uint32_t line_bytes_ = 0;
};

}  // namespace tuff::emu::nv
