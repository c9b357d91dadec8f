#include "devices/amd/kfd/loaded_code.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace tuff::devices::amd {
namespace {

constexpr int kVersion = 10;  // ROCr's, of r_debug for GPUs' code

// A debugger's breakpoint: it is called whenever the list has changed.
[[gnu::noinline]] void list_changed() { asm volatile("" ::: "memory"); }

}  // namespace

LoadedCode::LoadedCode() {
  debug_.r_version = kVersion;
  debug_.r_brk = reinterpret_cast<uint64_t>(&list_changed);
  debug_.r_state = r_debug::RT_CONSISTENT;
}

void LoadedCode::link(link_map*& place, link_map* entry) noexcept {
  std::atomic_ref(place).store(entry, std::memory_order_release);
}

LoadedCode::Entry* LoadedCode::add(uint64_t address, std::vector<uint8_t> object) {
  auto entry = std::make_unique<Entry>();
  entry->object = std::move(object);
  entry->name = fmt::format("memory://{}#offset={:#x}&size={}", ::getpid(),
                            reinterpret_cast<uint64_t>(entry->object.data()), entry->object.size());
  entry->map.l_addr = address;
  entry->map.l_name = entry->name.data();
  std::lock_guard lock(mutex_);
  entry->map.l_next = debug_.r_map;
  if (debug_.r_map) debug_.r_map->l_prev = &entry->map;
  Entry* const result = entry.get();
  entries_.push_back(std::move(entry));
  debug_.r_state = r_debug::RT_ADD;
  list_changed();
  link(debug_.r_map, &result->map);
  debug_.r_state = r_debug::RT_CONSISTENT;
  list_changed();
  return result;
}

void LoadedCode::remove(Entry* entry) noexcept {
  std::lock_guard lock(mutex_);
  debug_.r_state = r_debug::RT_DELETE;
  list_changed();
  link_map& m = entry->map;
  link(m.l_prev ? m.l_prev->l_next : debug_.r_map, m.l_next);
  if (m.l_next) m.l_next->l_prev = m.l_prev;
  debug_.r_state = r_debug::RT_CONSISTENT;
  list_changed();
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const auto& e) { return e.get() == entry; });
  removed_.push_back(std::move(*at));
  entries_.erase(at);
  if (removed_.size() > kKept) removed_.pop_front();
}

}  // namespace tuff::devices::amd
