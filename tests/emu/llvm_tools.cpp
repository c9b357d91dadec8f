#include "emu/llvm_tools.h"

#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

#include <filesystem>
#include <unordered_map>

#include "base/os.h"

namespace tuff::emu::testing {
namespace {

constexpr const char* kMc = "llvm-mc-19";
constexpr const char* kClang = "clang-19";
constexpr const char* kLld = "ld.lld";

bool starts(const char* program) {
  try {
    return os::Process({program, "--version"}).wait().exit_code == 0;
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<uint8_t> output_of(const std::vector<std::string>& argv,
                               const std::string& input = {}) {
  const os::ProcessResult result = os::Process(argv, input).wait();
  if (result.exit_code != 0) {
    throw std::runtime_error(fmt::format("{}: {}", fmt::join(argv, " "), result.err));
  }
  return {result.out.begin(), result.out.end()};
}

std::string bytes_text(const std::vector<uint32_t>& words) {
  std::string text;
  for (const uint32_t word : words) {
    for (int at = 0; at < 32; at += 8) {
      text += fmt::format("{}0x{:02x}", text.empty() ? "" : ",", word >> at & 255);
    }
  }
  return text;
}

// "  v_nop     ; encoding: [0x..]" into the bytes and the text.
void add_line(std::unordered_map<std::string, std::string>& texts, std::string_view line) {
  constexpr std::string_view kMark = "; encoding: [";
  const size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return;
  const size_t first = line.find_first_not_of(" \t");
  const size_t last = line.find_last_not_of(" \t", mark - 1);
  const size_t begin = mark + kMark.size();
  texts.emplace(line.substr(begin, line.find(']', begin) - begin),
                line.substr(first, last - first + 1));
}

}  // namespace

std::string why_no_llvm() {
  static const std::string why = [] {
    std::string missing;
    for (const char* program : {kMc, kClang, kLld}) {
      if (!starts(program)) missing += fmt::format(" {}", program);
    }
    if (missing.empty()) return missing;
    return fmt::format("not found:{}; install the packages clang-19, llvm-19 and lld", missing);
  }();
  return why;
}

std::vector<uint8_t> compile_device(const std::string& source, const std::string& level,
                                    const std::vector<std::string>& options) {
  std::vector<std::string> argv = {kClang,
                                   "-target",
                                   "amdgcn-amd-amdhsa",
                                   "-mcpu=gfx1100",
                                   "-nogpulib",
                                   level,
                                   "-ffp-contract=off",
                                   "-munsafe-fp-atomics",
                                   "-c",
                                   "-o",
                                   "-",
                                   source};
  argv.insert(argv.end(), options.begin(), options.end());
  return output_of(argv);
}

std::string compile_ptx(const std::string& source, const std::string& level) {
  const os::ProcessResult result =
      os::Process({"clang-19", "--target=nvptx64-nvidia-cuda", "-march=sm_86", "-Xclang",
                   "-target-feature", "-Xclang", "+ptx78", level, "-ffp-contract=off", "-S", "-o",
                   "-", source})
          .wait();
  if (result.exit_code != 0) throw std::runtime_error(result.err);
  return {result.out.begin(), result.out.end()};
}

std::string compile_host(const std::string& source, const std::string& folder) {
  const std::string path = folder + "/host.so";
  output_of({kClang, "-O1", "-ffp-contract=off", "-Xclang", "-ffloat16-excess-precision=none",
             "-shared", "-fPIC", "-o", path, source, "-lm"});
  return path;
}

std::vector<uint8_t> assemble(const std::string& text) {
  return output_of({kMc, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-filetype=obj", "-o", "-"},
                   text);
}

std::string kernel_assembly(const std::string& code, uint32_t lds_bytes, uint32_t vgprs) {
  return fmt::format(R"(
.text
.globl kernel
.p2align 8
.type kernel,@function
kernel:
{}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_group_segment_fixed_size {}
  .amdhsa_next_free_vgpr {}
  .amdhsa_next_free_sgpr 20
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
)",
                     code, lds_bytes, vgprs);
}

std::vector<uint8_t> link(const std::vector<uint8_t>& object) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            fmt::format("tuff_emu_{}_{}.o", getpid(), os::monotonic_ns()))
                               .string();
  os::write_file(path, object);
  const os::ProcessResult result = os::Process({kLld, "-shared", path, "-o", path + ".so"}).wait();
  std::vector<uint8_t> out;
  if (result.exit_code == 0) out = os::read_file(path + ".so");
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".so");
  if (out.empty()) throw std::runtime_error(fmt::format("{}: {}", kLld, result.err));
  return out;
}

std::vector<std::optional<std::string>> disassemble(
    const std::vector<std::vector<uint32_t>>& cases) {
  std::string input;
  for (const auto& words : cases) input += "[" + bytes_text(words) + "]\n";
  const os::ProcessResult result = os::Process({kMc, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100",
                                                "-disassemble", "-show-encoding"},
                                               input)
                                       .wait();
  std::unordered_map<std::string, std::string> texts;
  for (size_t at = 0; at < result.out.size();) {
    const size_t end = std::min(result.out.find('\n', at), result.out.size());
    add_line(texts, std::string_view(result.out).substr(at, end - at));
    at = end + 1;
  }
  std::vector<std::optional<std::string>> out;
  for (const auto& words : cases) {
    const auto found = texts.find(bytes_text(words));
    out.push_back(found == texts.end() ? std::nullopt : std::optional(found->second));
  }
  return out;
}

}  // namespace tuff::emu::testing
