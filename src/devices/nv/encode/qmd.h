// Qmd: a queue meta data block, what NVIDIA's hardware launches a grid from. Used by
// encode_compute. Knows fields and their places, not commands.
#pragma once

#include <vector>

#include "devices/nv/encode/encode.h"

namespace tuff::devices::nv {

enum class QmdField : uint8_t {
#define NV_QMD_FIELD(name, ...) name,
#include "devices/nv/encode/qmd_fields.def"
};

struct QmdPlace {
  uint16_t low, width;  // bits
};
QmdPlace place_of(const Generation& generation, QmdField field);

// Has the launch whose QMD begins at dword `first` start another one when it has ended: that whose
// QMD lies at `next`, so many bytes behind a slot's value.
void chain(const Generation& generation, PacketStream& launches, uint32_t first,
           const Operand& next);

class Qmd {
 public:
  // All of a launch but the grid and the constant bank's address.
  Qmd(const Generation& generation, const KernelCode& kernel);
  // Throws InvalidArgument for a value that does not fit.
  void set(QmdField field, uint64_t value) { set_at(field, 0, value); }
  // Appends it, with bank 0 at the address `bank`. Throws as set() for a fixed grid.
  void write(PacketWriter& writer, const std::array<Operand, 3>& grid, const Operand& bank);
  // Bytes of bank 0: up to and with the parameter.
  uint32_t bank_bytes() const { return bank_bytes_; }

 private:
  void set_at(QmdField field, uint32_t bits_behind, uint64_t value);
  void set_shared(uint32_t bytes);
  void set_bank(const KernelCode::Bank& bank);
  const Generation& gen_;
  std::vector<uint32_t> dwords_;
  uint32_t bank_bytes_;
};

}  // namespace tuff::devices::nv
