#include "devices/nv/encode/qmd.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr uint32_t kSharedStep = 128, kGroup = 0x3f, kGridCta = 2, kSysMembar = 1, kNoCallLimit = 1,
                   kSamplerByHeader = 1;


// As SM_CONFIG fields count shared memory.
constexpr uint32_t config_code(uint32_t kib) { return kib / 4 + 1; }

}  // namespace

QmdPlace place_of(const Generation& generation, QmdField field) {
  static constexpr QmdPlace kPlaces[][3] = {
#define NV_QMD_FIELD(name, low3, width3, low4, width4, low5, width5) \
  {{low3, width3}, {low4, width4}, {low5, width5}},
#include "devices/nv/encode/qmd_fields.def"
  };
  return kPlaces[size_t(field)][generation.qmd_major - 3];
}

void chain(const Generation& g, PacketStream& launches, uint32_t first, const Operand& next) {
  constexpr uint32_t kScheduleAction = 1;
  const auto set = [&](QmdField field, uint32_t value) {
    const uint32_t low = place_of(g, field).low;
    launches.dwords[first + low / 32] |= value << low % 32;
  };
  set(QmdField::DEPENDENT_QMD0_ENABLE, 1);
  set(QmdField::DEPENDENT_QMD0_ACTION, kScheduleAction);
  set(QmdField::DEPENDENT_QMD0_PREFETCH, 1);
  Patch p;
  p.dword = first + place_of(g, QmdField::DEPENDENT_QMD0_POINTER).low / 32;
  p.slot = uint32_t(next.slot);
  p.base = next.fixed;
  p.shift = 8;
  const auto behind = std::ranges::upper_bound(launches.patches, p.dword, {}, &Patch::dword);
  launches.patches.insert(behind, p);
}

// A field lies within one dword, whatever the version.
void Qmd::set_at(QmdField field, uint32_t bits_behind, uint64_t value) {
  QmdPlace p = place_of(gen_, field);
  p.low = uint16_t(p.low + bits_behind);
  if (p.width < 64 && value >> p.width) {
    fail<InvalidArgument>("{}: {} in {} bits of QMD field {}", gen_.name, value, p.width,
                          size_t(field));
  }
  dwords_[p.low / 32] |= uint32_t(value) << p.low % 32;
}

void Qmd::set_shared(uint32_t bytes) {
  const auto end = std::find(gen_.shared_configs.begin() + 1, gen_.shared_configs.end(), 0);
  const auto fits = std::find_if(gen_.shared_configs.begin(), end,
                                 [&](uint32_t kib) { return kib * 1024 >= bytes; });
  if (fits == end) {
    fail<InvalidArgument>("{}: {} bytes of shared memory; an SM has {} KiB", gen_.name, bytes,
                          *(end - 1));
  }
  set(QmdField::SHARED_MEMORY_SIZE, align_up(bytes, kSharedStep) >> gen_.shifts.shared);
  set(QmdField::MIN_SM_CONFIG_SHARED_MEM_SIZE, config_code(*fits));
  set(QmdField::TARGET_SM_CONFIG_SHARED_MEM_SIZE, config_code(*fits));
  set(QmdField::MAX_SM_CONFIG_SHARED_MEM_SIZE, config_code(*(end - 1)));
}

Qmd::Qmd(const Generation& generation, const KernelCode& k)
    : gen_(generation),
      dwords_(generation.qmd_dwords),
      bank_bytes_(align_up(k.parameter_offset + 8, 16)) {
  using F = QmdField;
  set(F::QMD_MAJOR_VERSION, gen_.qmd_major);
  set(F::QMD_MINOR_VERSION, 0);
  set(F::QMD_GROUP_ID, kGroup);
  if (gen_.qmd_major == 3) set(F::SM_GLOBAL_CACHING_ENABLE, 1);
  if (gen_.qmd_major > 3) set(F::QMD_TYPE, kGridCta);
  // What other launches and the host wrote is seen; what this one writes is, once it has ended.
  set(F::INVALIDATE_SHADER_DATA_CACHE, 1);
  set(F::INVALIDATE_SHADER_CONSTANT_CACHE, 1);
  set(F::CWD_MEMBAR_TYPE, kSysMembar);
  set(F::API_VISIBLE_CALL_LIMIT, kNoCallLimit);
  set(F::SAMPLER_INDEX, kSamplerByHeader);
  set_shared(k.shared_bytes);
  set(F::CTA_THREAD_DIMENSION0, k.local[0]);
  set(F::CTA_THREAD_DIMENSION1, k.local[1]);
  set(F::CTA_THREAD_DIMENSION2, k.local[2]);
  set(F::REGISTER_COUNT, k.registers);
  set(F::BARRIER_COUNT, k.barriers);
  const uint64_t program = k.entry >> gen_.shifts.program;
  set(F::PROGRAM_ADDRESS_LOWER, program & 0xffffffffu);
  set(F::PROGRAM_ADDRESS_UPPER, program >> 32);
  set(F::SHADER_LOCAL_MEMORY_HIGH_SIZE, align_up(k.local_bytes, 16) >> gen_.shifts.local);
  set(F::SASS_VERSION, gen_.sass_version);
  set(F::CONSTANT_BUFFER_VALID_0, 1);
  set(F::CONSTANT_BUFFER_SIZE_SHIFTED4_0, bank_bytes_ / 16);
  for (const KernelCode::Bank& b : k.banks) set_bank(b);
}

// The fields of a bank lie 64 bits behind those of the one before it, its bit of validity one bit,
// or since V04 four.
void Qmd::set_bank(const KernelCode::Bank& bank) {
  using F = QmdField;
  const uint32_t n = bank.number;
  const uint64_t address = bank.address >> gen_.shifts.bank;
  TUFF_CHECK(n > 0 && n < 8 && bank.address % 256 == 0, "constant bank {} at {:#x}", n,
             bank.address);
  set_at(F::CONSTANT_BUFFER_VALID_0, (gen_.qmd_major == 3 ? 1 : 4) * n, 1);
  set_at(F::CONSTANT_BUFFER_ADDR_LOWER_0, 64 * n, address & 0xffffffffu);
  set_at(F::CONSTANT_BUFFER_ADDR_UPPER_0, 64 * n, address >> 32);
  set_at(F::CONSTANT_BUFFER_SIZE_SHIFTED4_0, 64 * n, align_up(bank.bytes, 16) / 16);
}

void Qmd::write(PacketWriter& w, const std::array<Operand, 3>& grid, const Operand& bank) {
  constexpr QmdField kGrid[] = {QmdField::GRID_WIDTH, QmdField::GRID_HEIGHT, QmdField::GRID_DEPTH};
  for (size_t axis = 0; axis < 3; ++axis) {
    if (!grid[axis].patched()) set(kGrid[axis], grid[axis].fixed);
  }
  const uint32_t lower = place_of(gen_, QmdField::CONSTANT_BUFFER_ADDR_LOWER_0).low / 32;
  const QmdPlace upper = place_of(gen_, QmdField::CONSTANT_BUFFER_ADDR_UPPER_0);
  Operand low = bank, high = bank;
  low.shift = gen_.shifts.bank;
  high.shift = uint8_t(gen_.shifts.bank + 32);
  for (uint32_t i = 0; i < dwords_.size(); ++i) {
    const auto axis = std::find_if(std::begin(kGrid), std::end(kGrid),
                                   [&](QmdField f) { return place_of(gen_, f).low == i * 32; });
    const auto at = size_t(axis - std::begin(kGrid));
    if (at < 3 && grid[at].patched()) {
      w.masked(grid[at], uint32_t((1ull << place_of(gen_, kGrid[at]).width) - 1), dwords_[i]);
    } else if (i == lower) {
      w.lo(low);
    } else if (i == upper.low / 32) {
      w.masked(high, (1u << upper.width) - 1, dwords_[i]);
    } else {
      w.dword(dwords_[i]);
    }
  }
}

}  // namespace tuff::devices::nv
