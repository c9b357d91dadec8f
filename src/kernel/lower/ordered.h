// A loop whose iterations have an order, out of the way of opts, which share loops out and change
// their order: they see its counter as a number. Called by the pass of opts.
#pragma once

#include "kernel/opt/rules.h"

namespace tuff::kernel {

class OrderedLoop {
 public:
  explicit OrderedLoop(const ir::UOp& ast);
  explicit operator bool() const { return bool(range_); }
  ir::UOp hidden() const { return hidden_; }  // the AST without the loop, or as it is
  // What became of that, with the loop around all others.
  ir::UOp restored(const ir::UOp& ast) const;
  // On a CPU: what the loop walks for each output counts as its work.
  void share_out(Tiling& t) const;

 private:
  ir::UOp range_, counter_, hidden_;
};

}  // namespace tuff::kernel
