#include "emu/llvm_tools.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/os.h"

namespace tuff::emu::testing {
namespace {

constexpr const char* kMc = "llvm-mc-19";

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

bool has_llvm_mc() {
  static const bool found = [] {
    try {
      return os::Process({kMc, "--version"}).wait().exit_code == 0;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return found;
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
