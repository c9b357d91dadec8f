#include "hcq/footprint.h"

#include <cstdint>
#include <cstring>

TUFF_DECLARE_REPLAY_SECTION(hcq);

namespace tuff::hcq {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kTableBytes = 128;  // of virtual functions: those that come first

}  // namespace

void Footprint::add(const void* at, size_t bytes) {
  if (!at || !bytes) return;
  const auto begin = reinterpret_cast<uintptr_t>(at) / kLine * kLine;
  for (uintptr_t line = begin; line < reinterpret_cast<uintptr_t>(at) + bytes; line += kLine) {
    const auto* p = reinterpret_cast<const std::byte*>(line);
    if (known_.insert(p).second) lines_.push_back(p);
  }
}

// An object begins with the address of its table (Itanium C++ ABI, 2.4); before the table stands
// its type.
void Footprint::add_table(const void* object) {
  const std::byte* table = nullptr;
  std::memcpy(&table, object, sizeof table);
  add(table, kTableBytes);
}

TUFF_REPLAY_CODE(hcq) void Footprint::prefetch(std::span<const std::byte* const> lines) {
  for (const std::byte* line : lines) __builtin_prefetch(line);
}

TUFF_REPLAY_CODE(hcq) void Footprint::prefetch_code() {
  constexpr int kRead = 0, kIntoL2 = 2;  // where instructions are fetched from
  const std::span<const std::byte> code = TUFF_REPLAY_SECTION(hcq);
  for (size_t at = 0; at < code.size(); at += kLine) __builtin_prefetch(&code[at], kRead, kIntoL2);
}

}  // namespace tuff::hcq
