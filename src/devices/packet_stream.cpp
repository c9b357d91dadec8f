#include "devices/packet_stream.h"

#include <cstring>

namespace tuff::devices {

void PacketStream::write(std::span<const uint64_t> values, uint32_t* out) const {
  if (dwords.empty()) return;
  std::memcpy(out, dwords.data(), dwords.size() * sizeof(uint32_t));
  patch(values, out);
}

// Reads the template and not `out`, which may be memory that is slow to read.
[[gnu::hot]]
void PacketStream::patch(std::span<const uint64_t> values, uint32_t* out) const {
  for (const Patch& p : patches) {
    const uint64_t value = (values[p.slot] * p.scale + p.base) >> p.shift;
    out[p.dword] = (dwords[p.dword] & ~p.mask) | ((uint32_t(value) << p.lsb) & p.mask);
  }
}

void PacketWriter::lo(const Operand& o) { masked(o, ~0u, 0); }

void PacketWriter::masked(const Operand& o, uint32_t mask, uint32_t rest) {
  if (!o.patched()) return dword((uint32_t(o.fixed >> o.shift) & mask) | rest);
  Patch p;
  p.dword = size();
  p.slot = uint32_t(o.slot);
  p.base = o.fixed;
  p.mask = mask;
  p.scale = o.scale;
  p.shift = o.shift;
  s_.patches.push_back(p);
  dword(rest);
}

}  // namespace tuff::devices
