#include "base/check.h"
#include "render/c.h"
#include "render/renderer.h"
#include "render/spirv.h"

namespace tuff::render {
namespace {

// The null renderer: argument layout and sizes of a kernel, nothing to run.
Source render_null(const kernel::LinearKernel& k, const Target&) {
  Source s;
  s.name = s.symbol = k.name;
  s.args = {static_cast<uint32_t>(k.buffers.size()), static_cast<uint32_t>(k.variables.size())};
  s.local = k.local;
  s.shared_bytes = k.shared_bytes;
  return s;
}

std::vector<Binary> compile_null(std::span<const Source> sources, const Target&) {
  std::vector<Binary> out;
  for (const Source& s : sources)
    out.push_back({s.name, s.symbol, BinaryFormat::None,
                   std::make_shared<const std::vector<uint8_t>>(), s.args, s.local,
                   s.shared_bytes});
  return out;
}

std::string null_identity(const Target&) { return "null"; }

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
    {"opencl",
     [](const kernel::LinearKernel& k, const Target& t) { return render_c(c_opencl(t), k, t); },
     pack_c_sources, true, [](const Target& t) { return c_identity(c_opencl(), t); }},
    {"spirv", render_spirv, pack_spirv, false, spirv_identity},
    {"null", render_null, compile_null, false, null_identity},
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

std::string to_text(const Source& s) { return s.words.empty() ? s.text : disassembly(s.words); }

}  // namespace tuff::render
