#include "render/spirv.h"

#include <charconv>
#include <cstring>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "base/os.h"
#include "render/spirv_kernel.h"
#include "render/spirv_matrices.h"

namespace tuff::render {
namespace {

constexpr uint32_t kEmitterVersion = 5;  // raise when the same list gives other words
constexpr uint32_t kDefaultMinor = 5;

// "spirv1.5" -> 5.
uint32_t version_minor(const Target& t) {
  constexpr std::string_view prefix = "spirv1.";
  if (!t.arch.starts_with(prefix)) return kDefaultMinor;
  uint32_t minor = kDefaultMinor;
  std::from_chars(t.arch.data() + prefix.size(), t.arch.data() + t.arch.size(), minor);
  return minor;
}

// The part of SPIRV-Tools' C interface (libspirv.h) that disassembling takes; opened at run time.
struct ToolsText {
  char* text;
  size_t length;
};
struct Tools {
  void* (*create)(int environment);
  int (*to_text)(void* context, const uint32_t* words, size_t count, uint32_t options,
                 ToolsText** text, void** diagnostic);
  void (*destroy_text)(ToolsText*);
  void (*destroy)(void* context);
};

std::optional<Tools> open_tools() {
  const std::string names[] = {"libSPIRV-Tools-shared.so"};
  const auto library = os::Library::open(names);
  if (!library) return std::nullopt;
  Tools t{};
  t.create = reinterpret_cast<decltype(t.create)>(library->symbol("spvContextCreate"));
  t.to_text = reinterpret_cast<decltype(t.to_text)>(library->symbol("spvBinaryToText"));
  t.destroy_text = reinterpret_cast<decltype(t.destroy_text)>(library->symbol("spvTextDestroy"));
  t.destroy = reinterpret_cast<decltype(t.destroy)>(library->symbol("spvContextDestroy"));
  if (!t.create || !t.to_text || !t.destroy_text || !t.destroy) return std::nullopt;
  return t;
}

std::optional<std::string> by_library(std::span<const uint32_t> words) {
  static const std::optional<Tools> tools = open_tools();
  if (!tools) return std::nullopt;
  constexpr int kUniversal15 = 22;  // SPV_ENV_UNIVERSAL_1_5
  constexpr uint32_t kIndent = 1u << 3, kFriendly = 1u << 6, kNoHeader = 1u << 5;
  void* context = tools->create(kUniversal15);
  ToolsText* text = nullptr;
  const int status = tools->to_text(context, words.data(), words.size(),
                                    kIndent | kFriendly | kNoHeader, &text, nullptr);
  std::optional<std::string> out;
  if (status == 0 && text) out = std::string(text->text, text->length);
  if (text) tools->destroy_text(text);
  tools->destroy(context);
  return out;
}

std::optional<std::string> by_program(std::span<const uint32_t> words) {
  const auto program = os::find_program("spirv-dis");
  if (!program) return std::nullopt;
  const std::string bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  const os::ProcessResult r =
      os::Process({*program, "--no-color", "--no-header", "-"}, bytes).wait();
  return r.exit_code == 0 ? std::optional(r.out) : std::nullopt;
}

}  // namespace

Source render_spirv(const kernel::LinearKernel& k, const Target& t) {
  SpirvModule m(version_minor(t));
  m.capability(spv::CapabilityShader);
  if (t.features.device_address) {
    m.capability(spv::CapabilityPhysicalStorageBufferAddresses);
    if (m.version_minor() < 5) m.extension("SPV_KHR_physical_storage_buffer");
  }
  const bool matrices = uses_matrices(k);
  if (matrices) declare_matrices(m);
  m.memory_model(t.features.device_address ? spv::AddressingModelPhysicalStorageBuffer64
                                           : spv::AddressingModelLogical,
                 matrices ? spv::MemoryModelVulkan : spv::MemoryModelGLSL450);
  // Always: of a GPT step's 100 kernels the text is 1 of 31 ms of rendering and 7 % of the words,
  // and a driver's time to make the pipelines is the same without it.
  m.source(k.name, kernel::to_text(k));
  SpirvKernel function(k, t, m);
  function.write();
  m.name(m.entry(), k.name);
  Source s = source_of(k, BinaryFormat::SpirV, "main");
  s.words = m.words();
  return s;
}

std::string spirv_identity(const Target&) {
  return fmt::format("tuff spirv emitter {}", kEmitterVersion);
}

std::string disassembly(std::span<const uint32_t> words) {
  if (auto text = by_library(words)) return *text;
  if (auto text = by_program(words)) return *text;
  std::string out;
  for (size_t i = 0; i < words.size(); ++i)
    out += fmt::format("{:08x}{}", words[i], i % 8 == 7 ? '\n' : ' ');
  return out + "\n";
}

}  // namespace tuff::render
