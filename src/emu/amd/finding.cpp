#include "emu/amd/finding.h"

#include <fmt/format.h>

namespace tuff::emu::amd {
namespace {

constexpr const char* kNames[] = {"kernel",     "stale data", "stale code", "concurrent use",
                                  "page fault", "bad packet", "bad call",   "hang"};

}  // namespace

const char* name(FindingKind kind) { return kNames[size_t(kind)]; }

std::string to_text(const Finding& finding) {
  std::string text = fmt::format("{}, GPU {}", name(finding.kind), finding.gpu);
  if (finding.queue) text += fmt::format(", queue {}", finding.queue);
  if (finding.address) text += fmt::format(", address {:#x}", finding.address);
  return text + ": " + finding.what;
}

}  // namespace tuff::emu::amd
