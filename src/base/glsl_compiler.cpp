#include "base/glsl_compiler.h"

#include <cstring>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_cache.h"

namespace tuff {
namespace {

constexpr size_t kMessageBytes = 2000;  // that an error shows
constexpr const char* kNone =
    "no compiler for GLSL: install glslangValidator (Debian: glslang-tools), or name it with "
    "TUFF_GLSLANG, or give the kernel as SPIR-V";

// As "KERNEL.comp:LINE", without the scratch folder.
std::string message_of(std::string said, const std::string& folder) {
  for (size_t at = said.find(folder); at != std::string::npos; at = said.find(folder))
    said.erase(at, folder.size() + 1);
  return said.size() > kMessageBytes ? said.substr(0, kMessageBytes) + " ..." : said;
}

}  // namespace

std::optional<std::string> find_glsl_compiler() {
  if (const std::string named = env_text(Env::TUFF_GLSLANG); !named.empty()) {
    if (named.find('/') == std::string::npos) return os::find_program(named);
    return os::exists(named) ? std::optional(named) : std::nullopt;
  }
  for (const char* name : {"glslangValidator", "glslang"})
    if (auto path = os::find_program(name)) return path;
  return std::nullopt;
}

std::vector<uint32_t> compile_glsl(const std::string& kernel, const std::string& text,
                                   std::span<const std::pair<std::string, std::string>> macros) {
  const std::optional<std::string> compiler = find_glsl_compiler();
  if (!compiler) fail<Unsupported>("kernel {}: {}", kernel, kNone);
  const os::ScratchFolder folder;
  const std::string in = folder.path() + "/" + kernel + ".comp", out = folder.path() + "/out.spv";
  os::write_text(in, text);
  std::vector<std::string> argv{*compiler, "-V", "--target-env", "vulkan1.1", "-S", "comp"};
  for (const auto& [name, value] : macros) argv.push_back("-D" + name + "=" + value);
  argv.insert(argv.end(), {"-o", out, in});
  os::Process process(argv);
  const os::ProcessResult& r = process.wait();
  if (r.exit_code != 0 || !os::exists(out))
    fail<CompileError>("kernel {}: the compiler {} ended with status {}:\n{}", kernel, *compiler,
                       r.exit_code, message_of(r.out + r.err, folder.path()));
  const std::vector<uint8_t> bytes = os::read_file(out);
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint32_t));
  return words;
}

}  // namespace tuff
