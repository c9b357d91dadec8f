// libFuzzer's entry point for the discovery table of AMD's GPUs: whatever the bytes, it is read or
// an IoError. Sums are made right first, or nearly all would end there.
#include <tuff/error.h>

#include <cstring>

#include "devices/amd/pci/discovery.h"

namespace {

using Bytes = std::vector<uint8_t>;

uint16_t number(const Bytes& t, size_t at) {
  return at + 2 <= t.size() ? uint16_t(t[at] | t[at + 1] << 8) : uint16_t{0};
}
void put_sum(Bytes& t, size_t to, size_t at, size_t size_bytes) {
  if (at > t.size() || size_bytes > t.size() - at || to + 2 > t.size()) return;
  uint16_t sum = 0;
  for (size_t i = at; i < at + size_bytes; ++i) sum = uint16_t(sum + t[i]);
  std::memcpy(t.data() + to, &sum, sizeof sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace amd = tuff::devices::amd;
  Bytes t(data, data + size);
  const size_t blocks = number(t, 12), gc = number(t, 20), harvest = number(t, 28);
  put_sum(t, 14, blocks, number(t, blocks + 6));
  put_sum(t, 22, gc, number(t, gc + 8));
  put_sum(t, 30, harvest, 136);
  if (number(t, 10) >= 10) put_sum(t, 8, 10, number(t, 10) - 10u);
  try {
    const amd::Discovery d = amd::read_discovery(t);
    for (const amd::Hwid id : {amd::Hwid::Gc, amd::Hwid::Mp0, amd::Hwid::Sdma0}) {
      try {
        d.block(id);
      } catch (const tuff::Unsupported&) {  // the GPU has none
      }
    }
  } catch (const tuff::IoError&) {  // what damaged ones are answered with; all else is a finding
  }
  return 0;
}
