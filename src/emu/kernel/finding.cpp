#include "emu/kernel/finding.h"

#include <fmt/format.h>

namespace tuff::emu {
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

void Reports::add(const Finding& finding) {
  {
    std::lock_guard lock(mutex_);
    if (finding.kind != FindingKind::BadCall && !told_.insert(to_text(finding)).second) return;
    ++count_;
  }
  if (sink_) sink_(finding);
}

uint64_t Reports::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace tuff::emu
