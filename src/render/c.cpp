#include "render/c.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <xxhash.h>

#include "base/check.h"
#include "base/os.h"
#include "render/c_kernel.h"

namespace tuff::render {
namespace {

constexpr size_t kUnitTextBytes = 2000;  // what starting a compiler costs, in bytes of kernel text

uint64_t text_hash(const std::string& text) { return XXH64(text.data(), text.size(), 0); }

using Unit = std::vector<size_t>;  // indices of sources

// Longest first onto the shortest unit; no more units than cores or than are worth a process.
std::vector<Unit> balanced_units(std::span<const Source> sources,
                                 const std::vector<size_t>& wanted) {
  size_t total = 0;
  for (size_t i : wanted) total += sources[i].text.size();
  const size_t worth = std::max<size_t>(1, total / kUnitTextBytes);
  const size_t count = std::min({wanted.size(), worth, size_t{os::core_count()}});
  std::vector<size_t> order = wanted;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sources[a].text.size() > sources[b].text.size();
  });
  std::vector<Unit> units(count);
  std::vector<size_t> load(count);
  for (size_t i : order) {
    const size_t u = std::min_element(load.begin(), load.end()) - load.begin();
    units[u].push_back(i);
    load[u] += sources[i].text.size() + 1;
  }
  return units;
}

std::string unit_text(const CDialect& d, std::span<const Source> sources, const Unit& unit) {
  std::string text = d.prelude;
  for (size_t i : unit) text += sources[i].text;
  return text;
}

// A unit failed: which kernel was it? Compiles one at a time; throws with the kernel's name.
[[noreturn]] void blame(const CDialect& d, std::span<const Source> sources,
                        const std::vector<Unit>& units, const Target& target,
                        const CompileError& all) {
  for (const Unit& unit : units)
    for (size_t i : unit) {
      const std::string text = unit_text(d, sources, {i});
      try {
        d.compile({&text, 1}, target);
      } catch (const CompileError& e) {
        fail<CompileError>("kernel {}: {}", sources[i].name, e.what());
      }
    }
  throw all;
}

}  // namespace

Source render_c(const CDialect& d, const kernel::LinearKernel& k, const Target& target) {
  CKernel writer(k, d);
  const std::string body = writer.body(), attributes = d.attributes(k, target);
  Source s = source_of(k, d.format, fmt::format("k{:016x}", text_hash(attributes + body)));
  s.text = fmt::format("{}void {}{}", attributes, s.symbol, body);
  s.shared_bytes = static_cast<uint32_t>(writer.shared_bytes());
  return s;
}

std::vector<Binary> compile_c_sources(const CDialect& d, std::span<const Source> sources,
                                      const Target& target) {
  std::map<std::string, size_t> first_of;  // equal texts have equal symbols and are compiled once
  std::vector<size_t> wanted;
  for (size_t i = 0; i < sources.size(); ++i)
    if (first_of.try_emplace(sources[i].symbol, i).second) wanted.push_back(i);
  if (wanted.empty()) return {};
  const std::vector<Unit> units = balanced_units(sources, wanted);
  std::vector<std::string> texts;
  for (const Unit& unit : units) texts.push_back(unit_text(d, sources, unit));
  std::vector<std::vector<uint8_t>> objects;
  try {
    objects = d.compile(texts, target);
  } catch (const CompileError& e) {
    blame(d, sources, units, target, e);
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

std::string c_identity(const CDialect& d, const Target& t) {
  return fmt::format("{}; prelude {:016x}", d.identity(t), text_hash(d.prelude));
}

}  // namespace tuff::render
