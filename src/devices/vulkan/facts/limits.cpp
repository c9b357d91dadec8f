#include "devices/vulkan/facts/limits.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "devices/selector.h"
#include "devices/vulkan/vulkan.h"

namespace tuff::devices {
namespace vulkan {
namespace {

struct LimitRow : VulkanLimit {
  uint64_t (*get)(const Facts&);
  void (*cap)(Facts&, uint64_t);
};

template <class Field>
void lower(Field& field, uint64_t value) {
  if (value < uint64_t(field)) field = static_cast<Field>(value);
}

constexpr LimitRow kRows[] = {
#define TUFF_VK_LIMIT(name, lowest, prose, field)                            \
  {{#name, lowest, prose}, [](const Facts& f) { return uint64_t(f.field); }, \
   [](Facts& f, uint64_t value) { lower(f.field, value); }},
#include "devices/vulkan/facts/limits.def"
};

std::string known_names() {
  std::vector<const char*> names;
  for (const LimitRow& r : kRows) names.push_back(r.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void apply_one(Facts& facts, const std::string& item) {
  const size_t colon = item.find(':');
  const std::string name = item.substr(0, colon);
  const auto row = std::ranges::find_if(kRows, [&](const LimitRow& r) { return name == r.name; });
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
  for (const std::string& item : split(list, ',')) apply_one(facts, item);
}

std::vector<std::pair<std::string, std::string>> limit_values(const Facts& facts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const LimitRow& r : kRows) {
    const uint64_t value = r.get(facts);
    out.emplace_back(r.name, value == UINT64_MAX ? "unlimited" : std::to_string(value));
  }
  return out;
}

}  // namespace vulkan

std::vector<VulkanLimit> vulkan_limits() {
  return {std::begin(vulkan::kRows), std::end(vulkan::kRows)};
}

}  // namespace tuff::devices
