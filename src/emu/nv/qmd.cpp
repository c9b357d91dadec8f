#include "emu/nv/qmd.h"

#include <cstring>

#include "emu/nv/method.h"

namespace tuff::emu::nv {
namespace {

struct FieldPlace {
  const char* name;
  uint32_t low[3], width[3];  // of V03_00, V04_00 and V05_00; width 0: none
};
constexpr FieldPlace kFields[] = {
#define NV_QMD_FIELD(name, low3, width3, low4, width4, low5, width5) \
  {#name, {low3, low4, low5}, {width3, width4, width5}},
#include "devices/nv/encode/qmd_fields.def"
};
constexpr uint32_t kBanks = 8;
constexpr uint64_t kSchedule = 1;  // of dependent QMDs

// Takes fields out of a copy, so that what is left belongs to none.
class Fields {
 public:
  Fields(const ChipKind& chip, std::span<const uint32_t> dwords)
      : version_(chip.qmd_major - 3), left_(dwords.begin(), dwords.end()) {}

  uint64_t take(const char* name, uint32_t bits_behind = 0) {
    for (const FieldPlace& f : kFields)
      if (std::strcmp(f.name, name) == 0)
        return f.width[version_] ? bits(f.low[version_] + bits_behind, f.width[version_]) : 0;
    bad(kClassError, "the QMD has no field {}", name);
  }
  void expect(const char* name, uint64_t value) {
    const uint64_t found = take(name);
    if (found != value) bad(kClassError, "QMD: {} is {:#x}, not {:#x}", name, found, value);
  }
  void finish() const {
    for (size_t i = 0; i < left_.size(); ++i)
      if (left_[i]) bad(kClassError, "QMD: bits {:#x} of dword {} are of no field", left_[i], i);
  }
  bool is_v03() const { return version_ == 0; }

 private:
  uint64_t bits(uint32_t low, uint32_t width) {
    uint32_t& dword = left_[low / 32];
    const uint64_t mask = (uint64_t{1} << width) - 1;
    const uint64_t value = dword >> low % 32 & mask;
    dword &= ~uint32_t(mask << low % 32);
    return value;
  }
  const uint32_t version_;
  std::vector<uint32_t> left_;
};

void read_banks(Fields& f, const ChipKind& chip, Qmd& q) {
  for (uint32_t n = 0; n < kBanks; ++n) {
    const bool valid = f.take("CONSTANT_BUFFER_VALID_0", f.is_v03() ? n : 4 * n) != 0;
    const uint64_t low = f.take("CONSTANT_BUFFER_ADDR_LOWER_0", 64 * n),
                   high = f.take("CONSTANT_BUFFER_ADDR_UPPER_0", 64 * n),
                   size = f.take("CONSTANT_BUFFER_SIZE_SHIFTED4_0", 64 * n);
    if (valid) q.banks.push_back({n, uint32_t(size * 16), (low | high << 32) * chip.units.bank});
  }
}

uint32_t config_kib(uint64_t code) { return code == 0 ? 0 : uint32_t(code - 1) * 4; }

}  // namespace

Qmd decode_qmd(const ChipKind& chip, std::span<const uint32_t> dwords) {
  Fields f(chip, dwords);
  Qmd q;
  f.expect("QMD_MAJOR_VERSION", chip.qmd_major);
  f.expect("QMD_MINOR_VERSION", 0);
  f.expect("QMD_GROUP_ID", 0x3f);
  f.expect("QMD_TYPE", f.is_v03() ? 0 : 2);
  f.expect("SM_GLOBAL_CACHING_ENABLE", f.is_v03() ? 1 : 0);
  f.expect("API_VISIBLE_CALL_LIMIT", 1);
  f.expect("SAMPLER_INDEX", 1);
  q.invalidates_data = f.take("INVALIDATE_SHADER_DATA_CACHE") != 0;
  q.invalidates_constants = f.take("INVALIDATE_SHADER_CONSTANT_CACHE") != 0;
  q.publishes = f.take("CWD_MEMBAR_TYPE") == 1;
  q.grid = {uint32_t(f.take("GRID_WIDTH")), uint32_t(f.take("GRID_HEIGHT")),
            uint32_t(f.take("GRID_DEPTH"))};
  q.block = {uint32_t(f.take("CTA_THREAD_DIMENSION0")), uint32_t(f.take("CTA_THREAD_DIMENSION1")),
             uint32_t(f.take("CTA_THREAD_DIMENSION2"))};
  q.registers = uint32_t(f.take("REGISTER_COUNT"));
  q.barriers = uint32_t(f.take("BARRIER_COUNT"));
  q.shared_bytes = uint32_t(f.take("SHARED_MEMORY_SIZE")) * chip.units.shared;
  q.shared_configs[0] = config_kib(f.take("MIN_SM_CONFIG_SHARED_MEM_SIZE"));
  q.shared_configs[1] = config_kib(f.take("TARGET_SM_CONFIG_SHARED_MEM_SIZE"));
  q.shared_configs[2] = config_kib(f.take("MAX_SM_CONFIG_SHARED_MEM_SIZE"));
  q.local_bytes = uint32_t(f.take("SHADER_LOCAL_MEMORY_HIGH_SIZE")) * chip.units.local;
  q.sass_version = uint32_t(f.take("SASS_VERSION"));
  q.program = f.take("PROGRAM_ADDRESS_LOWER");
  q.program = (q.program | f.take("PROGRAM_ADDRESS_UPPER") << 32) * chip.units.program;
  read_banks(f, chip, q);
  const uint64_t next = f.take("DEPENDENT_QMD0_POINTER") << 8,
                 action = f.take("DEPENDENT_QMD0_ACTION"),
                 prefetch = f.take("DEPENDENT_QMD0_PREFETCH");
  if (f.take("DEPENDENT_QMD0_ENABLE")) {
    if (next == 0 || action != kSchedule || prefetch != 1)
      bad(kClassError, "QMD: action {} for a dependent QMD at {:#x}", action, next);
    q.next = next;
  }
  f.finish();
  return q;
}

}  // namespace tuff::emu::nv
