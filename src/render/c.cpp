#include "render/c.h"

#include <xxhash.h>

#include "base/check.h"
#include "render/c_kernel.h"
#include "render/units.h"

namespace tuff::render {
namespace {

constexpr size_t kUnitTextBytes = 2000;  // what starting a compiler costs, in bytes of kernel text

uint64_t text_hash(const std::string& text) { return XXH64(text.data(), text.size(), 0); }

std::string unit_text(const CDialect& d, std::span<const Source> sources, const Unit& unit) {
  if (sources[unit[0]].by_user) return sources[unit[0]].text;  // those are compiled alone
  std::string text;
  for (size_t i : unit) text += sources[i].text;
  return d.prelude.of(text) + text;
}

}  // namespace

Source render_c(const CDialect& d, const kernel::LinearKernel& k, const Target& target) {
  CKernel writer(k, d, target.vector_bytes >= 64);
  const std::string body = writer.body(), attributes = d.attributes(k, target);
  Source s = source_of(k, d.format, fmt::format("k{:016x}", text_hash(attributes + body)));
  s.text = fmt::format("{}void {}{}", attributes, s.symbol, body);
  s.shared_bytes = static_cast<uint32_t>(writer.shared_bytes());
  return s;
}

std::vector<Binary> compile_c_sources(const CDialect& d, std::span<const Source> sources,
                                      const Target& target) {
  return compile_in_units(sources, kUnitTextBytes, [&](std::span<const Unit> units) {
    std::vector<std::string> texts;
    for (const Unit& unit : units) texts.push_back(unit_text(d, sources, unit));
    return d.compile(texts, target);
  });
}

std::string c_identity(const CDialect& d, const Target& t) {
  return fmt::format("{}; prelude {:016x}", d.identity(t), text_hash(d.prelude.whole()));
}

}  // namespace tuff::render
