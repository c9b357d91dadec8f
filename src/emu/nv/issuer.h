// Issuer: what the engines of one channel know of order: what has ended, what was invalidated when,
// and how they reach memory. Owned by a Channel, used by its engines. Knows no methods.
#pragma once

#include <string>

#include "emu/nv/method.h"
#include "emu/nv/world.h"

namespace tuff::emu::nv {

class Issuer {
 public:
  Issuer(World& w, uint32_t number) : world(w), channel(number) { world.learn_released(order); }
  // Of an operation that begins now, behind all that `after` knows to have ended.
  Accessor accessor(uint32_t slot, const std::string& name, const Order& after) const;
  Accessor accessor(uint32_t slot, const std::string& name) const {
    return accessor(slot, name, order);
  }
  // What is wrong is told, and the access goes on; EngineFault where nothing is mapped.
  uint8_t* reach(const Accessor& who, const Request& request) const;
  const uint8_t* peek(uint64_t address, uint32_t bytes, const char* what) const;
  void forget_order();  // serial numbers start again

  World& world;
  const uint32_t channel;
  Order order;  // what the channel knows to have ended
  Invalidation data, constants, code;
};

}  // namespace tuff::emu::nv
