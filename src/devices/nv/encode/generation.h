// Generation: how NVIDIA's GPUs differ for who drives them, as numbers, in one table: classes of
// engines, the QMD's version, what kernels find in constant bank 0. Read by rm (which classes to
// ask for) and by the encoders. Code decides by a field of this table, never by a GPU's name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tuff::devices::nv {

// Where a kernel finds what its launch says, in constant bank 0; kNowhere: in a special register.
inline constexpr uint16_t kNowhere = 0xffff;
struct BankLayout {
  uint16_t block, grid;  // three words each
  uint16_t shared_window, local_window;  // addresses
  uint16_t stack;                        // the initial stack pointer, a word
};

// By how many bits addresses and sizes in a QMD are shifted right.
struct QmdShifts {
  uint8_t program, shared, local, bank;
};

struct Generation {
  std::string_view name;
  uint16_t sm;  // 86 for sm_86
  uint16_t compute_class, copy_class;
  uint8_t qmd_major;    // 3: QMD V03_00, 4: V04_00, 5: V05_00
  uint16_t qmd_dwords;  //
  uint8_t sass_version;
  QmdShifts shifts;
  std::array<uint16_t, 10> shared_configs;  // KiB of shared memory that an SM can be set to; then 0
  BankLayout bank;
};
const Generation& ampere();
const Generation& hopper();
const Generation& blackwell();

// Null: not supported. `listed`: the classes that the driver has for the GPU.
const Generation* find_generation(uint32_t sm, std::span<const uint32_t> listed);
std::vector<std::string_view> generation_names();
// Newest first.
std::span<const uint32_t> gpfifo_classes();
std::span<const uint32_t> usermode_classes();
// The first of `known` that is listed; 0: none.
uint32_t newest_class(std::span<const uint32_t> known, std::span<const uint32_t> listed);

}  // namespace tuff::devices::nv
