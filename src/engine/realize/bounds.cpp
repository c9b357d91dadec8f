#include "engine/realize/bounds.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::engine {
namespace {

constexpr size_t kShownPerKernel = 4;

using Words = std::vector<uint32_t>;

int64_t offset_of(const kernel::BoundsSite& site, const uint32_t* record) {
  if (!site.wide) return int32_t(record[1]);
  return int64_t(uint64_t(record[2]) << 32 | record[1]);
}

std::string text(const kernel::BoundsSite& site, int64_t offset) {
  const std::string memory =
      site.slot < 0 ? std::string("its workgroup memory") : fmt::format("buffer {}", site.slot);
  return fmt::format("{} element {} of {}, which has {} elements of {}",
                     site.store ? "stores to" : "reads", offset, memory, site.count,
                     name(site.dtype));
}

std::vector<std::string> findings(const kernel::BoundsReport& report, const Words& words) {
  std::vector<std::string> out;
  for (const kernel::BoundsSite& site : report.sites) {
    for (uint32_t i = 0; i < site.records; i++) {
      const uint32_t* record = &words[size_t(site.first_word + i * kernel::kBoundsRecordWords)];
      if (record[0] != 0) out.push_back(text(site, offset_of(site, record)));
    }
  }
  return out;
}

std::string describe(const BoundKernel& k, const std::vector<std::string>& found) {
  std::string out = fmt::format("kernel {} on {}", k.kernel->name, k.buffers[0]->on().name());
  for (size_t i = 0; i < std::min(found.size(), kShownPerKernel); i++)
    out += (i ? "; " : " ") + found[i];
  if (found.size() > kShownPerKernel)
    out += fmt::format("; and {} more", found.size() - kShownPerKernel);
  return out;
}

Buffer* report_of(const BoundKernel& k) {
  for (size_t i = 0; i < k.buffers.size(); i++)
    if (k.kernel->buffers[i].slot == k.kernel->bounds.slot) return k.buffers[i].get();
  return nullptr;
}

}  // namespace

Ref<Buffer> bounds_report(const LoadedKernel& kernel, const std::shared_ptr<Device>& device) {
  auto report = Buffer::make(device, DType::U32, kernel.bounds.words);
  report->copyin(Words(size_t(kernel.bounds.words)).data());
  return report;
}

void check_bounds(std::span<const BoundCall> calls) {
  std::string text;
  for (const BoundCall& c : calls) {
    auto* k = std::get_if<BoundKernel>(&c);
    Buffer* report = k ? report_of(*k) : nullptr;
    if (!report) continue;
    Words words(size_t(k->kernel->bounds.words));
    report->copyout(words.data());
    const std::vector<std::string> found = findings(k->kernel->bounds, words);
    if (found.empty()) continue;
    if (text.empty()) text = describe(*k, found);
    std::fill(words.begin(), words.end(), 0);
    report->copyin(words.data());
  }
  if (!text.empty()) fail<OutOfBounds>("{}", text);
}

}  // namespace tuff::engine
