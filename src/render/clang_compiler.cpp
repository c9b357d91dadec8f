#include "render/clang_compiler.h"

#include <deque>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"

namespace tuff::render {
namespace {

constexpr size_t kMessageLines = 8;

std::string first_lines(const std::string& text, size_t lines) {
  size_t at = 0;
  while (lines-- > 0 && at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) return text;
    at = end + 1;
  }
  return text.substr(0, at);
}

// -ffreestanding keeps the compiler from needing headers; it may still call memcpy and memset,
// which the loader finds in the process. The object goes to "-": never to /dev/stdout, which clang
// replaces by a file of that name when it may write there. Integers wrap and buffers of several
// dtypes may be one memory: -fwrapv, -fno-strict-aliasing. Start-up is nearly all of the 39 ms of a
// small unit; calling -cc1 directly saves none of it.
std::vector<std::string> command_line(const std::string& compiler) {
  return {compiler,
          "-x",
          "c",
          "-c",
          "-O2",
          "-march=native",
          "-fPIC",
          "-ffreestanding",
          "-fno-math-errno",
          "-ffp-contract=off",
          "-fwrapv",
          "-fno-strict-aliasing",
          "-fno-unwind-tables",
          "-fno-asynchronous-unwind-tables",
          "-fno-stack-protector",
          "-fno-ident",
          "-o",
          "-",
          "-"};
}

constexpr uint64_t kInterruptPollNs = 50'000'000;

// An interrupt ends the wait; the processes are then killed by their destructors.
std::vector<uint8_t> finish(os::Process& process) {
  while (!process.done_within(kInterruptPollNs) && !os::interrupted()) {}
  if (os::interrupted()) fail<CompileError>("compiling was interrupted");
  os::ProcessResult r = process.wait();
  if (r.exit_code != 0)
    fail<CompileError>("the C compiler ended with status {}:\n{}", r.exit_code,
                       first_lines(r.err, kMessageLines));
  return {r.out.begin(), r.out.end()};
}

}  // namespace

std::optional<std::string> find_c_compiler() {
  if (std::string named = env_text(Env::TUFF_CC); !named.empty()) {
    if (named.find('/') != std::string::npos)
      return os::exists(named) ? std::optional(named) : std::nullopt;
    return os::find_program(named);
  }
  for (const char* name :
       {"clang-19", "clang", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"})
    if (auto path = os::find_program(name)) return path;
  return std::nullopt;
}

std::string compiler_identity() {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;  // by path: TUFF_CC may change between calls
  auto compiler = find_c_compiler();
  if (!compiler) return {};
  std::lock_guard lock(mutex);
  auto [it, fresh] = known.try_emplace(*compiler);
  if (fresh) {
    os::ProcessResult r = os::Process({*compiler, "--version"}).wait();
    it->second = r.out.substr(0, r.out.find('\n'));
  }
  return it->second;
}

std::vector<std::vector<uint8_t>> compile_c(std::span<const std::string> translation_units) {
  auto compiler = find_c_compiler();
  if (!compiler) fail<Unsupported>("no C compiler: install clang, or name one with TUFF_CC");
  std::vector<std::string> argv = command_line(*compiler);
  std::vector<std::vector<uint8_t>> objects;
  objects.reserve(translation_units.size());
  std::deque<os::Process> running;
  for (const std::string& text : translation_units) {
    if (running.size() >= os::core_count()) {
      objects.push_back(finish(running.front()));
      running.pop_front();
    }
    running.emplace_back(argv, text);
  }
  for (os::Process& process : running) objects.push_back(finish(process));
  return objects;
}

}  // namespace tuff::render
