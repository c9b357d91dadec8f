#include "emu/ptx/module.h"

#include <algorithm>

#include "base/arith.h"

namespace tuff::emu::ptx {
namespace {

constexpr uint32_t kCallsDeep = 16;  // that functions which call themselves may be, roughly

}  // namespace

const Function* Module::find(const std::string& kernel) const {
  for (const Function& f : functions) {
    if (f.is_entry && f.name == kernel) return &f;
  }
  return nullptr;
}

// The functions that it calls, and those that they call.
std::vector<uint32_t> Module::reached(const Function& kernel) const {
  std::vector<uint32_t> out;
  const auto add_callees = [&](const Function& f) {
    for (const CallSite& call : f.calls) {
      if (std::ranges::find(out, call.callee) == out.end()) out.push_back(call.callee);
    }
  };
  add_callees(kernel);
  for (size_t k = 0; k < out.size(); ++k) add_callees(functions[out[k]]);
  return out;
}

SharedLayout Module::shared_layout(const Function& kernel) const {
  std::vector<bool> used(shared.size());
  for (const uint32_t k : kernel.shared) used[k] = true;
  for (const uint32_t f : reached(kernel)) {
    for (const uint32_t k : functions[f].shared) used[k] = true;
  }
  SharedLayout out;
  out.offsets.resize(shared.size());
  uint64_t end = 0, dynamic_alignment = 1;
  for (size_t k = 0; k < shared.size(); ++k) {
    if (!used[k]) continue;
    if (shared[k].dynamic) {
      dynamic_alignment = std::max<uint64_t>(dynamic_alignment, shared[k].alignment);
      continue;
    }
    out.offsets[k] = align_up(end, uint64_t(shared[k].alignment));
    end = out.offsets[k] + shared[k].bytes;
  }
  out.static_bytes = uint32_t(end);
  out.dynamic_offset = uint32_t(align_up(end, dynamic_alignment));
  for (size_t k = 0; k < shared.size(); ++k) {
    if (used[k] && shared[k].dynamic) out.offsets[k] = out.dynamic_offset;
  }
  return out;
}

uint32_t Module::local_bytes(const Function& kernel) const {
  uint64_t bytes = align_up(kernel.local_bytes, 16u);
  for (const uint32_t f : reached(kernel)) {
    bytes += uint64_t(kCallsDeep) * align_up(functions[f].local_bytes, 16u);
  }
  return uint32_t(std::min<uint64_t>(bytes, 512 << 10));  // of a thread, at most (CUDA, 16.2)
}

}  // namespace tuff::emu::ptx
