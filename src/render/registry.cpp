#include "base/check.h"
#include "render/c.h"
#include "render/c_nvptx.h"
#include "render/renderer.h"
#include "render/spirv.h"

namespace tuff::render {
namespace {

// The null renderer: argument layout and sizes of a kernel, nothing to run.
Source render_null(const kernel::LinearKernel& k, const Target&) {
  return source_of(k, BinaryFormat::None, k.name);
}

// A row of the C renderer: its functions for one dialect.
template <const CDialect& (*dialect)()>
constexpr Renderer c_row(const char* name) {
  return {name,
          [](const kernel::LinearKernel& k, const Target& t) { return render_c(dialect(), k, t); },
          [](std::span<const Source> sources, const Target& t) {
            return compile_c_sources(dialect(), sources, t);
          },
          true, [](const Target& t) { return c_identity(dialect(), t); }};
}

constexpr Renderer kRenderers[] = {
    c_row<c_cpu>("c"),
    c_row<c_amdgpu>("amdgpu"),
    {"nvptx",
     [](const kernel::LinearKernel& k, const Target& t) { return render_c(c_nvptx(), k, t); },
     compile_nvptx_sources, true, [](const Target& t) { return c_identity(c_nvptx(), t); }},
    {"opencl",
     [](const kernel::LinearKernel& k, const Target& t) { return render_c(c_opencl(t), k, t); },
     pack_sources, true, [](const Target& t) { return c_identity(c_opencl(), t); }},
    {"spirv", render_spirv, pack_sources, false, spirv_identity},
    {"aco", render_aco, compile_aco_sources, true, aco_identity},
    {"null", render_null, pack_sources, false, [](const Target&) -> std::string { return "null"; }},
};

}  // namespace

const Renderer& renderer_of(const Target& t) {
  for (const Renderer& r : kRenderers)
    if (t.renderer == r.name) return r;
  std::string known;
  for (const Renderer& r : kRenderers)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", r.name);
  fail<InvalidArgument>("target {}: no renderer '{}'; there are {}", t.device, t.renderer, known);
}

Source source_of(const kernel::LinearKernel& k, BinaryFormat format, std::string symbol) {
  Source s;
  s.name = k.name;
  s.symbol = std::move(symbol);
  s.format = format;
  s.args = {static_cast<uint32_t>(k.buffers.size()), static_cast<uint32_t>(k.variables.size())};
  s.local = k.local;
  s.shared_bytes = k.shared_bytes;
  s.subgroup_size = k.subgroup_size;
  return s;
}

Binary binary_of(const Source& s, std::shared_ptr<const std::vector<uint8_t>> bytes) {
  return {s.name, s.symbol, s.format, std::move(bytes), s.args, s.local,
          s.shared_bytes, s.subgroup_size, s.by_user};
}

std::vector<Binary> pack_sources(std::span<const Source> sources, const Target&) {
  std::vector<Binary> out;
  for (const Source& s : sources) {
    std::vector<uint8_t> bytes(s.text.begin(), s.text.end());
    const auto* words = reinterpret_cast<const uint8_t*>(s.words.data());
    bytes.insert(bytes.end(), words, words + s.words.size() * sizeof(uint32_t));
    out.push_back(binary_of(s, std::make_shared<const std::vector<uint8_t>>(std::move(bytes))));
  }
  return out;
}

std::string to_text(const Source& s) { return s.words.empty() ? s.text : disassembly(s.words); }

}  // namespace tuff::render
