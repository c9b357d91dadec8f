// tuff_aco: compute shaders of SPIR-V on standard input become a code object for one of AMD's GPUs
// on standard output, by the compiler of Mesa's Vulkan driver. Started by base/aco_compiler.cpp as
// clang is, and by people. A process of its own, since the driver is told by environment variables
// and may crash.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <spirv-tools/libspirv.hpp>
#include <spirv/unified1/spirv.hpp>

#include <tuff/error.h>

#include "aco/code_object.h"
#include "base/check.h"

namespace tuff::aco {
namespace {

constexpr uint32_t kPushBytes = 8;  // the argument block's address

std::vector<uint32_t> read_words() {
  std::vector<uint8_t> bytes;
  uint8_t buffer[1 << 16];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;)
    bytes.insert(bytes.end(), buffer, buffer + got);
  if (bytes.size() % sizeof(uint32_t) != 0)
    fail<CompileError>("SPIR-V: {} bytes, which are no whole words", bytes.size());
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

void refuse(const ShaderInterface& interface) {
  if (interface.descriptor_sets)
    fail<Unsupported>("the shader has {} descriptor sets; only shaders whose one push constant is "
                      "the address of their arguments are compiled",
                      interface.descriptor_sets);
  if (interface.uses_num_workgroups)
    fail<Unsupported>("the shader reads NumWorkgroups, which no code object provides");
}

void write_all(const void* data, size_t size_bytes) {
  if (std::fwrite(data, 1, size_bytes, stdout) != size_bytes || std::fflush(stdout) != 0)
    fail<IoError>("standard output: {}", std::strerror(errno));
}

struct Options {
  std::string processor = "gfx1100";
  std::vector<std::string> symbols = {"main"};
  std::vector<size_t> words;  // of each module
  bool version = false, assembly = false;
  // With --vulkan.
  bool vulkan = false;
  std::string entry;
  uint32_t push_bytes = 0;
  std::vector<std::string> buffers;           // "SET:BINDING"
  std::vector<std::string> constants;         // "ID=WORD"
};

std::vector<std::span<const uint32_t>> modules_of(std::span<const uint32_t> words,
                                                  const Options& o) {
  if (o.words.empty() && o.symbols.size() == 1) return {words};
  if (o.words.size() != o.symbols.size())
    fail<InvalidArgument>("--words has {} sizes for {} names of --symbol", o.words.size(),
                          o.symbols.size());
  std::vector<std::span<const uint32_t>> out;
  for (const size_t count : o.words) {
    if (count > words.size())
      fail<InvalidArgument>("standard input ends {} words before --words does",
                            count - words.size());
    out.push_back(words.first(count));
    words = words.subspan(count);
  }
  if (!words.empty())
    fail<InvalidArgument>("standard input has {} words that --words does not count", words.size());
  return out;
}

// The driver counts on it: it divides by a workgroup's size, and unrolls by it.
void check_local(const ShaderInterface& shader, const std::map<uint32_t, uint32_t>& constants) {
  constexpr uint64_t kMost = 1024;  // RADV's maxComputeWorkGroupInvocations, and of each axis
  uint64_t all = 1;
  std::array<uint32_t, 3> local = shader.local;
  for (size_t c = 0; c < local.size(); ++c) {
    const auto given = shader.local_constants[c] ? constants.find(*shader.local_constants[c])
                                                 : constants.end();
    if (given != constants.end()) local[c] = given->second;
    all = std::min(all * std::min<uint64_t>(local[c], kMost + 1), kMost + 1);
  }
  if (all == 0 || all > kMost)
    fail<InvalidArgument>("a workgroup of {} x {} x {} invocations; it has 1 to {}", local[0],
                          local[1], local[2], kMost);
}

CompiledKernel compile(const RadvCompiler& radv, std::span<const uint32_t> module,
                       const std::string& symbol) {
  CompiledKernel out{symbol, interface_of(module), {}, {}};
  refuse(out.interface);
  check_local(out.interface, {});
  out.shader = radv.compile({module, out.interface.entry, kPushBytes, {}, {}});
  return out;
}

std::string text_of(const Binding& at) { return fmt::format("{}:{}", at.first, at.second); }

template <class Rows, class Text>
std::string listed(const Rows& rows, Text text) {
  std::string out;
  for (const auto& row : rows) out += (out.empty() ? "" : ", ") + text(row);
  return out.empty() ? "none" : out;
}

// Each buffer of the shader is given, and no other.
void check_buffers(const ShaderInterface& shader, const Options& o) {
  if (!shader.other_descriptor.empty())
    fail<Unsupported>("the shader's descriptor {} is no buffer; images, samplers and arrays of "
                      "buffers are not emulated",
                      shader.other_descriptor);
  std::set<Binding> given;
  for (const std::string& text : o.buffers) {
    Binding at;
    if (std::sscanf(text.c_str(), "%u:%u", &at.first, &at.second) != 2)
      fail<InvalidArgument>("--buffer '{}' is no SET:BINDING", text);
    given.insert(at);
    if (!shader.buffers.contains(at))
      fail<InvalidArgument>("the shader has no buffer {}; it has {}", text,
                            listed(shader.buffers, [](auto& row) { return text_of(row.first); }));
  }
  for (const auto& [at, kind] : shader.buffers)
    if (!given.contains(at))
      fail<InvalidArgument>("the shader's buffer {} is not given", text_of(at));
}

std::map<uint32_t, uint32_t> constants_of(const ShaderInterface& shader, const Options& o) {
  std::map<uint32_t, uint32_t> out;
  for (const std::string& text : o.constants) {
    unsigned id = 0, word = 0;
    if (std::sscanf(text.c_str(), "%u=%u", &id, &word) != 2)
      fail<InvalidArgument>("--constant '{}' is no ID=WORD", text);
    if (!shader.constants.contains(id))
      fail<InvalidArgument>("the shader has no specialization constant {}; it has {}", id,
                            listed(shader.constants, [](uint32_t c) { return std::to_string(c); }));
    out[id] = word;
  }
  return out;
}

// The first of a module's capabilities that is newer than this SPIRV-Tools.
std::optional<uint32_t> unknown_capability(const spvtools::SpirvTools& tools,
                                           std::span<const uint32_t> module) {
  constexpr size_t kHeader = 5;
  for (size_t i = kHeader; i + 1 < module.size(); i += 2) {
    if (module[i] != (2u << spv::WordCountShift | spv::OpCapability)) break;
    std::vector<uint32_t> alone(module.begin(), module.begin() + kHeader);
    alone.insert(alone.end(), {module[i], module[i + 1]});
    std::string text;
    if (!tools.Disassemble(alone, &text)) return module[i + 1];
  }
  return {};
}

// The driver takes modules for valid, and crashes where they are not.
void require_valid(std::span<const uint32_t> module) {
  spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_6);
  std::string said;
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t&, const char* m) { said = m; });
  if (const auto capability = unknown_capability(tools, module)) {
    fmt::print(stderr,
               "SPIR-V: not validated, since SPIRV-Tools here does not know capability {}\n",
               *capability);
    return;
  }
  if (!tools.Validate(module.data(), module.size()))
    fail<CompileError>("SPIR-V: the module is not valid: {}", said);
}

CompiledKernel compile_vulkan(const RadvCompiler& radv, std::span<const uint32_t> module,
                              const Options& o) {
  CompiledKernel out{o.symbols[0], interface_of(module, o.entry), {}, {}};
  require_valid(module);
  check_buffers(out.interface, o);
  const std::map<uint32_t, uint32_t> constants = constants_of(out.interface, o);
  check_local(out.interface, constants);
  out.shader = radv.compile(
      {module, out.interface.entry, o.push_bytes, out.interface.buffers, constants});
  out.registers = input_registers(out.shader, out.interface);
  if (out.registers->push_bytes > o.push_bytes)
    fail<InvalidArgument>("the shader's push constants are {} bytes; {} are given",
                          out.registers->push_bytes, o.push_bytes);
  return out;
}

void run(const Options& o) {
  machine_of(o.processor);
  if (o.version) {
    const RadvCompiler radv(o.processor);
    std::string text = radv.version() + "\n";
    for (const MatrixShape& shape : radv.matrices()) text += to_string(shape) + "\n";
    return write_all(text.data(), text.size());
  }
  const std::vector<uint32_t> words = read_words();
  const auto modules = modules_of(words, o);
  const RadvCompiler radv(o.processor);
  std::vector<CompiledKernel> kernels;
  if (o.vulkan && modules.size() != 1)
    fail<InvalidArgument>("--vulkan compiles one module at a time");
  for (size_t i = 0; i < modules.size(); ++i)
    kernels.push_back(o.vulkan ? compile_vulkan(radv, modules[i], o)
                               : compile(radv, modules[i], o.symbols[i]));
  if (!o.assembly) {
    const std::vector<uint8_t> object = code_object(kernels, o.processor);
    return write_all(object.data(), object.size());
  }
  for (const CompiledKernel& kernel : kernels)
    write_all(kernel.shader.assembly.data(), kernel.shader.assembly.size());
}

}  // namespace
}  // namespace tuff::aco

int main(int argc, char** argv) {
  CLI::App app("Compiles a compute shader for AMD's GPUs by Mesa's Vulkan driver, without a GPU");
  tuff::aco::Options options;
  app.add_option("--processor", options.processor, "As LLVM names it")->capture_default_str();
  app.add_option("--symbol", options.symbols, "The kernels' names in the object, one per module")
      ->capture_default_str();
  app.add_option("--words", options.words,
                 "How many words each module has, where several follow one another");
  auto* vulkan = app.add_flag(
      "--vulkan", options.vulkan,
      "The shader has descriptors and push constants; the object's kernel takes the driver's own "
      "registers, which its metadata names");
  app.add_option("--entry", options.entry, "The entry point, where there are several")
      ->needs(vulkan);
  app.add_option("--push-bytes", options.push_bytes, "How many bytes of push constants there are")
      ->needs(vulkan);
  app.add_option("--buffer", options.buffers, "Each buffer of the shader, as SET:BINDING")
      ->needs(vulkan);
  app.add_option("--constant", options.constants,
                 "Specialization constants of 32 bits, each as ID=WORD")
      ->needs(vulkan);
  app.add_flag("--version", options.version,
               "Prints the driver's version and the cooperative matrices that it compiles, and exits");
  app.add_flag("--assembly", options.assembly, "Prints the driver's listing instead of the object");
  app.footer("Reads SPIR-V from standard input, writes the object to standard output:\n"
             "  tuff_aco --processor gfx1100 < kernel.spv > kernel.o");
  CLI11_PARSE(app, argc, argv);
  try {
    tuff::aco::run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tuff_aco: %s\n", e.what());
    return 1;
  }
  return 0;
}
