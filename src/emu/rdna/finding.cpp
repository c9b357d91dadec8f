#include "emu/rdna/finding.h"

#include <fmt/format.h>

namespace tuff::emu::rdna {
namespace {

constexpr const char* kKinds[] = {"unmapped access",
                                  "stale data",
                                  "stale code",
                                  "race between workgroups",
                                  "concurrent use",
                                  "LDS access out of bounds",
                                  "buffer bounds",
                                  "scratch out of bounds",
                                  "misaligned access",
                                  "uninitialized register",
                                  "missing s_waitcnt",
                                  "LDS race",
                                  "hang",
                                  "unknown instruction",
                                  "mode not emulated"};

}  // namespace

FindingKind kind_of(DefectKind kind) {
  switch (kind) {
    case DefectKind::StaleData: return FindingKind::StaleData;
    case DefectKind::StaleCode: return FindingKind::StaleCode;
    default: return FindingKind::ConcurrentUse;
  }
}

const char* name(FindingKind kind) { return kKinds[size_t(kind)]; }

std::string to_text(const Finding& f) {
  std::string text =
      fmt::format("{}: {} at {:#x} `{}`, workgroup {} wave {} lane {}", f.kernel, name(f.kind),
                  f.code_address, f.instruction, f.workgroup, f.wave, f.lane);
  if (f.data_address) text += fmt::format(", address {:#x}", f.data_address);
  if (!f.detail.empty()) text += ": " + f.detail;
  if (f.times > 1) text += fmt::format(" ({} times)", f.times);
  return text;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_text(finding) + "\n";
  return text;
}

}  // namespace tuff::emu::rdna
