#include "devices/flights.h"

#include <fmt/format.h>

#include <mutex>

#include "hcq/device.h"

namespace tuff::devices {
namespace {

constexpr size_t kShownKernels = 8;

}  // namespace

KernelNames kernel_names(const hcq::CommandList& list) {
  KernelNames names;
  for (const hcq::Command& c : list.commands) {
    const auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
    if (!d || !d->program) continue;
    if (names.empty() || names.back() != d->program->name()) names.push_back(d->program->name());
  }
  return names;
}

[[gnu::hot]]
void Flights::add(uint64_t value, const KernelNames& kernels) {
  std::lock_guard lock(mutex_);
  flights_[value % flights_.size()] = {value, &kernels};
}

void Flights::forget(const KernelNames& kernels) {
  std::lock_guard lock(mutex_);
  for (Flight& f : flights_)
    if (f.kernels == &kernels) f.kernels = nullptr;
}

std::string Flights::text(const char* queue, uint64_t reached, uint64_t last) const {
  if (reached >= last) return "";
  std::string text = fmt::format("{} queue at {} of {}", queue, reached, last);
  std::lock_guard lock(mutex_);
  size_t shown = 0;
  for (uint64_t v = reached + 1; v <= last && shown < kShownKernels; ++v) {
    const Flight& f = flights_[v % flights_.size()];
    if (f.value != v || f.kernels == nullptr) continue;
    for (const std::string& kernel : *f.kernels) {
      text += (shown == 0 ? ": " : ", ") + kernel;
      if (++shown == kShownKernels) return text + " ...";
    }
  }
  return text;
}

}  // namespace tuff::devices
