#include "emu/nv/world.h"

#include "base/check.h"

namespace tuff::emu::nv {
namespace {

const char* cache_before_l2(Path path) {
  switch (path) {
    case Path::Vector: return "L1 (INVALIDATE_SHADER_DATA_CACHE)";
    case Path::Scalar: return "constant cache (INVALIDATE_SHADER_CONSTANT_CACHE)";
    case Path::Code: return "instruction cache (INVALIDATE_SHADER_CACHES_NO_WFI)";
    case Path::L2: break;
  }
  return "L2";
}

// Beyond these the interpreter has its own: variables of modules.
bool is_of_the_gpu(const Access& a) { return a.address >> ptx::kWindowShift == 0; }

Request request_for(const Access& a) {
  const bool stores = a.kind == AccessKind::Store || a.kind == AccessKind::Atomic;
  const bool front = a.kind == AccessKind::Load && !a.device_scope;
  return {a.address, a.bytes, front ? Path::Vector : Path::L2, a.kind != AccessKind::Store, stores};
}

}  // namespace

void World::restart_serials() {
  caches.clear();
  restart();
  ++restarts_;
}

void World::report(FindingKind kind, uint32_t channel, uint64_t address, std::string what) {
  reports_.add({kind, index, channel, address, std::move(what)});
}

void World::report(const Accessor& who, const Request& request, const Conflict& conflict) {
  report(who, conflict, describe(who, request, conflict, cache_before_l2(request.path)));
}

void World::report(const Accessor& who, const Conflict& conflict, std::string what) {
  if (!told_.insert(what).second) return;
  report(conflict.kind == Conflict::Kind::Concurrent ? FindingKind::ConcurrentUse
                                                     : FindingKind::StaleData,
         who.queue, conflict.address, std::move(what));
}

void World::release(uint64_t address, uint64_t payload, const Order& order) {
  signalled(address, payload, order);
  if (!peers_) return;
  const Mapping& m = *caches.mapping_at(address);
  peers_->signalled(me(), order, m.buffer, address - m.address, payload);
}

void World::acquire(uint64_t address, uint64_t value, Order& order) {
  order.join(learned(address, uint32_t(value)));
  if (!peers_) return;
  const Mapping& m = *caches.mapping_at(address);
  peers_->learn(me(), order, *m.buffer, address - m.address, value);
}

void World::learn_released(Order& order) {
  order.join(released());
  if (peers_) peers_->learn_released(me(), order);
}

void World::stands_still(const Order& order) {
  if (peers_) peers_->released(me(), order);
}

void World::use_beside_peers(const Accessor& who, const Request& request) {
  if (!peers_) return;
  const auto found = peers_->use(me(), who, *caches.mapping_at(request.address), request);
  if (!found) return;
  report(who, found->conflict,
         describe(who, request, found->conflict, cache_before_l2(request.path), found->other));
}

emu_api::PtxModule* World::module_of(const Stub& stub, const char* text) {
  auto& module = modules_[stub.text_hash];
  if (module) return module.get();
  if (hash_of(text, stub.text_bytes) != stub.text_hash) return nullptr;
  module = ptx::load(std::string(text, stub.text_bytes));
  return module.get();
}

uint8_t* LaunchMemory::reach_run(const Access& access) {
  if (!is_of_the_gpu(access)) return RangeMemory::reach_run(access);
  uint8_t* bytes = world_.caches.reach_if_clean(who_, request_for(access));
  if (bytes) world_.use_beside_peers(who_, request_for(access));
  return bytes;
}

// What conflicts is told here, with the kernel's name; the access goes on.
uint8_t* LaunchMemory::reach(const Access& access, Defect& defect) {
  if (!is_of_the_gpu(access)) return RangeMemory::reach(access, defect);
  const Request request = request_for(access);
  Conflict conflict;
  uint8_t* bytes = world_.caches.reach(who_, request, conflict);
  if (!bytes) {
    if (!fault_) fault_ = world_.caches.fault();
    return nullptr;
  }
  if (conflict.kind != Conflict::Kind::None) world_.report(who_, request, conflict);
  world_.use_beside_peers(who_, request);
  return bytes;
}

const uint8_t* LaunchMemory::peek(uint64_t address, uint32_t bytes) {
  if (address >> ptx::kWindowShift) return RangeMemory::peek(address, bytes);
  return world_.caches.peek(address, bytes);
}

}  // namespace tuff::emu::nv
