#include "devices/vulkan/facts/limits.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "devices/vulkan/vulkan.h"

namespace tuff::devices {
namespace vulkan {
namespace {

struct Row {
  const char* name;
  uint64_t lowest;
  uint64_t (*get)(const Facts&);
  void (*cap)(Facts&, uint64_t);
};

template <class Field>
void lower(Field& field, uint64_t value) {
  if (value < uint64_t(field)) field = static_cast<Field>(value);
}

constexpr Row kRows[] = {
#define TUFF_VK_LIMIT(name, lowest, prose, field)                   \
  {#name, lowest, [](const Facts& f) { return uint64_t(f.field); }, \
   [](Facts& f, uint64_t value) { lower(f.field, value); }},
#include "devices/vulkan/facts/limits.def"
#undef TUFF_VK_LIMIT
};

std::string known_names() {
  std::string names;
  for (const Row& r : kRows) names += std::string(names.empty() ? "" : ", ") + r.name;
  return names;
}

void apply_one(Facts& facts, const std::string& item) {
  const size_t colon = item.find(':');
  const std::string name = item.substr(0, colon);
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return name == r.name; });
  if (row == std::end(kRows))
    fail<InvalidArgument>("TUFF_VK_LIMIT: \"{}\" is not one of {}", name, known_names());
  uint64_t value = 0;
  const char* begin = item.data() + std::min(colon, item.size() - 1) + 1;
  const char* end = item.data() + item.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end) {
    fail<InvalidArgument>(
        "TUFF_VK_LIMIT: \"{}\" is not {}:<number>; a list is written ssbo:4,shared:16384 with "
        "names of {}",
        item, name, known_names());
  }
  if (value < row->lowest) {
    fail<InvalidArgument>("TUFF_VK_LIMIT: {} is below {}, the least that tuff works with", item,
                          row->lowest);
  }
  row->cap(facts, value);
}

}  // namespace

void apply_limits(Facts& facts, const std::string& list) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) apply_one(facts, list.substr(at, end - at));
    at = end + 1;
  }
}

std::vector<std::pair<std::string, std::string>> limit_values(const Facts& facts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Row& r : kRows) {
    const uint64_t value = r.get(facts);
    out.emplace_back(r.name, value == UINT64_MAX ? "unlimited" : std::to_string(value));
  }
  return out;
}

}  // namespace vulkan

std::vector<VulkanLimit> vulkan_limits() {
  return {
#define TUFF_VK_LIMIT(name, lowest, prose, field) {#name, lowest, prose},
#include "devices/vulkan/facts/limits.def"
#undef TUFF_VK_LIMIT
  };
}

}  // namespace tuff::devices
