#include "emu/profile/counts.h"

namespace tuff::emu::profile {
namespace {

struct Row {
  const char* name;
  bool amd, nvidia;
};

constexpr Row kRows[kStepClasses] = {
    {"valu", true, false},      {"valu_trans", true, false}, {"valu_f64", true, false},
    {"dual", true, false},      {"wmma", true, false},       {"salu", true, false},
    {"smem", true, false},      {"vmem_load", true, true},   {"vmem_store", true, true},
    {"atomic", true, true},     {"lds", true, true},         {"branch", true, true},
    {"wait", true, true},       {"barrier", true, true},     {"other", true, true},
    {"fma", false, true},       {"alu", false, true},        {"fp16", false, true},
    {"fp64", false, true},      {"xu", false, true},         {"tensor", false, true},
    {"constant", false, true},  {"shuffle", false, true},
};

}  // namespace

const char* name(StepClass kind) { return kRows[size_t(kind)].name; }

bool has_class(Vendor vendor, StepClass kind) {
  const Row& row = kRows[size_t(kind)];
  return vendor == Vendor::Amd ? row.amd : row.nvidia;
}

void MemoryCounts::add(const MemoryCounts& other) {
  bytes += other.bytes;
  lines += other.lines;
  least_lines += other.least_lines;
  lines64 += other.lines64;
  least_lines64 += other.least_lines64;
  sectors += other.sectors;
  least_sectors += other.least_sectors;
}

}  // namespace tuff::emu::profile
