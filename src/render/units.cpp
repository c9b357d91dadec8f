#include "render/units.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/os.h"

namespace tuff::render {
namespace {

size_t size_of(const Source& s) { return s.text.size() + s.words.size() * sizeof(uint32_t); }

// Longest first onto the shortest unit.
std::vector<Unit> balanced_units(std::span<const Source> sources, const std::vector<size_t>& wanted,
                                 size_t worthwhile_bytes) {
  size_t total = 0;
  for (size_t i : wanted) total += size_of(sources[i]);
  const size_t worth = std::max<size_t>(1, total / worthwhile_bytes);
  const size_t count = std::min({wanted.size(), worth, size_t{os::core_count()}});
  std::vector<size_t> order = wanted;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(sources[a]) > size_of(sources[b]);
  });
  std::vector<Unit> units(count);
  std::vector<size_t> load(count);
  for (size_t i : order) {
    const size_t u = std::min_element(load.begin(), load.end()) - load.begin();
    units[u].push_back(i);
    load[u] += size_of(sources[i]) + 1;
  }
  return units;
}

// A unit failed: which kernel was it? Compiles one at a time; throws with the kernel's name.
[[noreturn]] void blame(std::span<const Source> sources, const std::vector<Unit>& units,
                        const CompileUnits& compile, const CompileError& all) {
  for (const Unit& unit : units)
    for (size_t i : unit) {
      const Unit alone = {i};
      try {
        compile({&alone, 1});
      } catch (const CompileError& e) {
        fail<CompileError>("kernel {}: {}", sources[i].name, e.what());
      }
    }
  throw all;
}

}  // namespace

std::vector<Binary> compile_in_units(std::span<const Source> sources, size_t worthwhile_bytes,
                                     const CompileUnits& compile) {
  std::map<std::string, size_t> first_of;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < sources.size(); ++i)
    if (first_of.try_emplace(sources[i].symbol, i).second) wanted.push_back(i);
  if (wanted.empty()) return {};
  const std::vector<Unit> units = balanced_units(sources, wanted, worthwhile_bytes);
  std::vector<std::vector<uint8_t>> objects;
  try {
    objects = compile(units);
  } catch (const CompileError& e) {
    blame(sources, units, compile, e);
  }
  std::vector<std::shared_ptr<const std::vector<uint8_t>>> object_of(sources.size());
  for (size_t u = 0; u < units.size(); ++u) {
    const auto bytes = std::make_shared<const std::vector<uint8_t>>(std::move(objects[u]));
    for (size_t i : units[u]) object_of[i] = bytes;
  }
  std::vector<Binary> out;
  for (const Source& s : sources)
    out.push_back(binary_of(s, object_of[first_of.at(s.symbol)]));
  return out;
}

}  // namespace tuff::render
