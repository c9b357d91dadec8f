#include "emu/nv/issuer.h"

namespace tuff::emu::nv {

Accessor Issuer::accessor(uint32_t slot, const std::string& name, const Order& after) const {
  Accessor who;
  who.op = world.begin(slot, name);
  who.queue = channel;
  who.name = name;
  who.ended = after;
  who.vector = data;
  who.scalar = constants;
  who.code = code;
  return who;
}

uint8_t* Issuer::reach(const Accessor& who, const Request& request) const {
  Conflict conflict;
  uint8_t* bytes = world.caches.reach(who, request, conflict);
  if (!bytes) throw EngineFault{who.name};
  if (conflict.kind != Conflict::Kind::None) world.report(who, request, conflict);
  world.use_beside_peers(who, request);
  return bytes;
}

const uint8_t* Issuer::peek(uint64_t address, uint32_t bytes, const char* what) const {
  const uint8_t* found = world.caches.peek(address, bytes);
  if (!found) throw EngineFault{what};
  return found;
}

void Issuer::forget_order() {
  order.restart();
  for (Invalidation* i : {&data, &constants, &code}) {
    i->seen.restart();
    i->time = 0;
  }
}

}  // namespace tuff::emu::nv
