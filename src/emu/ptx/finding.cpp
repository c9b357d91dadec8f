#include "emu/ptx/finding.h"

#include <fmt/format.h>

namespace tuff::emu::ptx {
namespace {

constexpr const char* kPtxKinds[] = {"out of bounds",       "misaligned access", "race", "barrier",
                                     "uninitialized value", "sync mask",         "trap", "hang",
                                     "undefined behavior"};

}  // namespace

const char* name(FindingKind kind) { return kPtxKinds[size_t(kind)]; }

std::string to_text(const Finding& f) {
  std::string text = fmt::format("{}: {} in line {} `{}`, block {} thread {}", f.kernel,
                                 name(f.kind), f.line, f.instruction, f.block, f.thread);
  if (f.address) text += fmt::format(", address {:#x}", f.address);
  if (!f.detail.empty()) text += ": " + f.detail;
  if (f.times > 1) text += fmt::format(" ({} times)", f.times);
  return text;
}

}  // namespace tuff::emu::ptx
