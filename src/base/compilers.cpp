#include "base/compilers.h"

#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "base/os_fork_server.h"
#include "base/shipped.h"

namespace tuff {
namespace {

constexpr size_t kMessageLines = 8;
constexpr int kGpuClang = 19;  // the first that knows all generations

std::string first_lines(const std::string& text, size_t lines) {
  size_t at = 0;
  while (lines-- > 0 && at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) return text;
    at = end + 1;
  }
  return text.substr(0, at);
}

std::optional<std::string> named_or_first(Env variable, std::span<const char* const> names) {
  if (std::string named = env_text(variable); !named.empty()) {
    if (named.find('/') != std::string::npos)
      return os::exists(named) ? std::optional(named) : std::nullopt;
    return os::find_program(named);
  }
  for (const char* name : names)
    if (auto path = os::find_program(name)) return path;
  return std::nullopt;
}

// What a variable names and is not there is the reason, before what might be installed.
std::string why_none(Env variable, const std::string& otherwise) {
  const std::string named = env_text(variable);
  if (named.empty()) return otherwise;
  return fmt::format("{}='{}': there is no such program; {}", env_rows()[size_t(variable)].name,
                     named, otherwise);
}

// -ffreestanding keeps the compiler from needing headers; it may still call memcpy and memset,
// which the loader finds in the process. The object goes to "-": never to /dev/stdout, which clang
// replaces by a file of that name when it may write there. Integers wrap and buffers of several
// dtypes may be one memory: -fwrapv, -fno-strict-aliasing. Start-up is nearly all of the 39 ms of a
// small unit, half of it loading and linking the compiler, which a fork server does once; calling
// -cc1 directly saves none of it.
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

// A library of builtins is neither there nor needed. Products and sums are fused where one
// expression has both, as the prelude's pragma says; quotients and roots are those of IEEE 754.
std::vector<std::string> amdgpu_command_line(const std::string& compiler,
                                             const std::string& processor) {
  return {compiler,
          "-x",
          "cl",
          "-cl-std=CL2.0",
          "-cl-no-stdinc",
          "-c",
          "--target=amdgcn-amd-amdhsa",
          "-mcpu=" + processor,
          "-nogpulib",
          "-O3",
          "-ffp-contract=off",
          "-munsafe-fp-atomics",  // one instruction adds floats; it may flush denormals
          "-cl-fp32-correctly-rounded-divide-sqrt",
          "-fwrapv",
          "-fno-strict-aliasing",
          "-fno-ident",
          "-o",
          "-",
          "-"};
}

// PTX that the oldest supported driver takes (525 and later: 8.0, PTX ISA's release history). What
// has features of one architecture alone (sm_90a) begins with PTX 8.0; what clang 19 does not know
// runs code of an earlier architecture, which the driver compiles for it.
struct NvptxTarget {
  const char* processor;
  const char* march;
  const char* ptx;
};
constexpr NvptxTarget kNvptxTargets[] = {
    {"sm_75", "sm_75", "+ptx78"},   {"sm_80", "sm_80", "+ptx78"}, {"sm_86", "sm_86", "+ptx78"},
    {"sm_89", "sm_89", "+ptx78"},   {"sm_90a", "sm_90a", "+ptx80"},
    {"sm_100", "sm_90", "+ptx78"}, {"sm_120", "sm_90", "+ptx78"},
};

std::vector<std::string> nvptx_command_line(const std::string& compiler,
                                            const std::string& processor) {
  for (const NvptxTarget& t : kNvptxTargets) {
    if (processor != t.processor) continue;
    return {compiler,
            "-x",
            "cl",
            "-cl-std=CL2.0",
            "-cl-no-stdinc",
            "-Xclang",
            "-cl-ext=+cl_khr_fp16,+cl_khr_fp64",
            "-S",
            "--target=nvptx64-nvidia-cuda",
            std::string("-march=") + t.march,
            "-Xclang",
            "-target-feature",
            "-Xclang",
            t.ptx,
            "-nogpulib",
            "-O3",
            "-ffp-contract=off",
            "-cl-fp32-correctly-rounded-divide-sqrt",
            "-fwrapv",
            "-fno-strict-aliasing",
            "-fno-ident",
            "-o",
            "-",
            "-"};
  }
  fail<InvalidArgument>("there is no PTX for a processor '{}'", processor);
}

constexpr uint64_t kInterruptPollNs = 50'000'000;

constexpr int kKilled = 128;  // as an exit code, with the signal added

// An interrupt ends the wait; the processes are then killed by their destructors.
const os::ProcessResult& wait(os::Process& process) {
  while (!process.done_within(kInterruptPollNs) && !os::interrupted()) {}
  if (os::interrupted()) fail<CompileError>("compiling was interrupted");
  return process.wait();
}

constexpr std::string_view kElf = "\x7f" "ELF", kPtx = "//";

std::vector<uint8_t> finish(os::Process& process, const std::string& compiler,
                            std::string_view begins) {
  const os::ProcessResult& r = wait(process);
  if (r.exit_code > kKilled)
    fail<CompileError>("the compiler {} crashed (signal {}):\n{}", compiler,
                       r.exit_code - kKilled, first_lines(r.err, kMessageLines));
  if (r.exit_code != 0)
    fail<CompileError>("the compiler {} ended with status {}:\n{}", compiler, r.exit_code,
                       first_lines(r.err, kMessageLines));
  if (!r.out.starts_with(begins))
    fail<CompileError>("the compiler {} wrote no {}: it has to take the options of the one that it "
                       "stands for",
                       compiler, begins == kElf ? "object file" : "PTX");
  return {r.out.begin(), r.out.end()};
}

}  // namespace

std::optional<std::string> find_c_compiler() {
  constexpr const char* kNames[] = {"clang-19", "clang",    "clang-18", "clang-17",
                                    "clang-16", "clang-15", "clang-14"};
  return named_or_first(Env::TUFF_CC, kNames);
}

std::optional<std::string> find_amdgpu_compiler() {
  constexpr const char* kNames[] = {"clang-19", "clang-20", "clang-21", "clang"};
  return named_or_first(Env::TUFF_CLANG, kNames);
}

namespace {

std::string version_of(const std::optional<std::string>& compiler) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;  // by path: TUFF_CC may change between calls
  if (!compiler) return {};
  std::lock_guard lock(mutex);
  auto [it, fresh] = known.try_emplace(*compiler);
  if (fresh) {
    os::ProcessResult r = os::Process({*compiler, "--version"}).wait();
    it->second = r.out.substr(0, r.out.find('\n'));
  }
  return it->second;
}

// Which files of the cache folder name the compilers that compiled last.
constexpr const char* kLastC = "compilers/c.txt";
constexpr const char* kLastAmdgpu = "compilers/amdgpu.txt";
constexpr size_t kLongestIdentity = 300;

// A compiler that was named is meant: nothing stands in for it.
std::string last_identity(Env variable, const char* name) {
  if (!env_text(variable).empty()) return {};
  const std::string path = os::cache_path(name);
  if (path.empty()) return {};
  try {
    const auto file = os::read_private_file(path);
    if (!file || file->size() > kLongestIdentity) return {};
    return {file->begin(), file->end()};
  } catch (const IoError&) {
    return {};
  }
}

std::string identity_of(const std::optional<std::string>& compiler, Env variable,
                        const char* name) {
  return compiler ? version_of(compiler) : last_identity(variable, name);
}

// Once a process, and only if another compiled before. A folder that cannot be written keeps what
// it has.
void keep_identity(const std::string& identity, const char* name) {
  static std::mutex mutex;
  static std::map<std::string, std::string> kept;
  const std::string path = os::cache_path(name);
  std::lock_guard lock(mutex);
  if (path.empty() || identity.empty() || std::exchange(kept[path], identity) == identity) return;
  try {
    const auto before = os::read_private_file(path);
    if (before && std::string(before->begin(), before->end()) == identity) return;
    os::write_private_file(
        path, {reinterpret_cast<const uint8_t*>(identity.data()), identity.size()});
  } catch (const IoError&) {
  }
}

constexpr const char* kNoC = "no C compiler: install clang, or name one with TUFF_CC";
constexpr const char* kRemedy =
    "install clang-19, or name clang 19 or later, with its AMDGPU target, with TUFF_CLANG";
constexpr const char* kNvptxRemedy =
    "install clang-19, or name clang 19 or later, with its NVPTX target, with TUFF_CLANG";
constexpr const char* kNotInCache = " (this kernel is not in the disk cache)";

// "Debian clang version 19.1.7 (3)" -> 19; 0 if it is no such text.
// The number behind these words of a version's text; 0: they are not there.
int number_after(const std::string& version, std::string_view words) {
  const size_t at = version.find(words);
  return at == std::string::npos ? 0 : std::atoi(version.c_str() + at + words.size());
}
int clang_major(const std::string& version) { return number_after(version, "clang version "); }

// What one child is started with and reads.
struct Unit {
  std::vector<std::string> argv;
  std::string input;
  bool loaded_once = false;  // by a fork server, where there is one
  std::string_view begins = kElf;  // what it writes
};

constexpr const char* kForkServerLibrary = "libtuff_fork_server.so";

std::unique_ptr<os::ForkServer> server_of(const std::string& program) {
  for (const std::string& library : shipped_places(kForkServerLibrary))
    if (os::exists(library)) return os::ForkServer::start(program, library);
  return nullptr;
}

// Nullopt where the program is not to be had so: it is started for each run then.
std::optional<os::Process> run_of_server(const Unit& unit) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<os::ForkServer>> servers;  // by program
  const std::string& program = unit.argv[0];
  std::lock_guard lock(mutex);
  const auto [it, fresh] = servers.try_emplace(program);
  auto& server = it->second;
  if (fresh) server = server_of(program);
  if (!server) return std::nullopt;
  if (auto run = server->run(unit.argv, unit.input)) return run;
  server = server_of(program);  // it has ended, or is that of the process that this was forked from
  return server ? server->run(unit.argv, unit.input) : std::nullopt;
}

// A compiler that was forked is asked again by itself before its end counts as a crash.
std::vector<uint8_t> object_of(os::Process process, const Unit& unit) {
  if (!unit.loaded_once || wait(process).exit_code <= kKilled)
    return finish(process, unit.argv[0], unit.begins);
  os::Process again(unit.argv, unit.input);
  return finish(again, unit.argv[0], unit.begins);
}

std::vector<std::vector<uint8_t>> compile_units(const std::vector<Unit>& units) {
  std::vector<std::vector<uint8_t>> objects;
  objects.reserve(units.size());
  std::deque<os::Process> running;
  const auto finish_first = [&] {
    objects.push_back(object_of(std::move(running.front()), units[objects.size()]));
    running.pop_front();
  };
  for (const Unit& unit : units) {
    if (running.size() >= os::core_count()) finish_first();
    std::optional<os::Process> forked = unit.loaded_once ? run_of_server(unit) : std::nullopt;
    running.push_back(forked ? std::move(*forked) : os::Process(unit.argv, unit.input));
  }
  while (!running.empty()) finish_first();
  return objects;
}

std::vector<Unit> units_of(std::span<const std::string> texts, const std::vector<std::string>& argv,
                           std::string_view begins = kElf) {
  std::vector<Unit> units;
  for (const std::string& text : texts) units.push_back({argv, text, true, begins});
  return units;
}

constexpr const char* kAcoProgram = "tuff_aco";

// What starts tuff_aco. The driver of a root (scripts/mesa) needs that root's C library, so the
// root's own loader starts the program with its libraries.
std::vector<std::string> aco_command(const std::string& program) {
  const std::string root = env_text(Env::TUFF_RADV);
  if (!os::is_directory(root)) return {program};
  const std::string driver = radv_library(root);
  for (const char* folder : {"/lib64/", "/lib/", "/usr/lib64/"}) {
    if (!os::is_directory(root + folder)) continue;
    for (const std::string& name : os::list_directory(root + folder)) {
      if (name.starts_with("ld-linux"))
        return {root + folder + name, "--library-path", driver.substr(0, driver.rfind('/')),
                program};
    }
  }
  fail<Unsupported>("TUFF_RADV='{}' has no dynamic loader: make the folder by scripts/mesa", root);
}

// What tuff_aco says of its driver: a version and matrices, or why there is none.
struct AcoAnswer {
  std::string version, why;
  std::vector<MatrixShape> matrices;
};

std::string first_line_without_name(const std::string& said) {
  const std::string line = said.substr(0, said.find('\n')), name = std::string(kAcoProgram) + ": ";
  return line.starts_with(name) ? line.substr(name.size()) : line;
}

AcoAnswer ask_aco(const std::string& program) {
  AcoAnswer answer;
  std::vector<std::string> argv;
  try {
    argv = aco_command(program);
  } catch (const Unsupported& e) {
    answer.why = e.what();
    return answer;
  }
  argv.push_back("--version");
  const os::ProcessResult r = os::Process(argv).wait();
  if (r.exit_code != 0) {
    answer.why = first_line_without_name(r.err);
    return answer;
  }
  std::istringstream lines(r.out);
  std::getline(lines, answer.version);
  for (std::string line; std::getline(lines, line);)
    answer.matrices.push_back(matrix_shape_from(line));
  return answer;
}

AcoAnswer asked_aco(const std::string& program) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, AcoAnswer> known;
  std::lock_guard lock(mutex);
  const auto [it, fresh] = known.try_emplace({program, env_text(Env::TUFF_RADV)});
  if (fresh) it->second = ask_aco(program);
  return it->second;
}

}  // namespace

std::string compiler_identity() { return identity_of(find_c_compiler(), Env::TUFF_CC, kLastC); }
std::string amdgpu_compiler_identity() {
  return identity_of(find_amdgpu_compiler(), Env::TUFF_CLANG, kLastAmdgpu);
}

std::string why_no_c_compiler() {
  if (find_c_compiler() || !last_identity(Env::TUFF_CC, kLastC).empty()) return {};
  return why_none(Env::TUFF_CC, kNoC);
}

std::vector<std::vector<uint8_t>> compile_c(std::span<const std::string> translation_units) {
  auto compiler = find_c_compiler();
  if (!compiler)
    fail<Unsupported>("{}{}", why_none(Env::TUFF_CC, kNoC),
                      why_no_c_compiler().empty() ? kNotInCache : "");
  auto objects = compile_units(units_of(translation_units, command_line(*compiler)));
  keep_identity(version_of(compiler), kLastC);
  return objects;
}

namespace {

// `gpus`: "AMD", "NVIDIA".
std::string why_no_gpu_compiler(const char* gpus, const char* remedy) {
  const std::optional<std::string> compiler = find_amdgpu_compiler();
  const std::string version = amdgpu_compiler_identity();
  if (clang_major(version) >= kGpuClang) return {};
  if (!compiler)
    return why_none(Env::TUFF_CLANG, fmt::format("no compiler for {} GPUs: {}", gpus, remedy));
  return fmt::format("{} ({}) is no compiler for {} GPUs: {}", *compiler, version, gpus, remedy);
}

}  // namespace

std::string why_no_amdgpu_compiler() { return why_no_gpu_compiler("AMD", kRemedy); }
std::string why_no_nvptx_compiler() { return why_no_gpu_compiler("NVIDIA", kNvptxRemedy); }

std::vector<std::vector<uint8_t>> compile_amdgpu(std::span<const std::string> translation_units,
                                                 const std::string& processor) {
  if (const std::string why = why_no_amdgpu_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  const std::optional<std::string> compiler = find_amdgpu_compiler();
  if (!compiler) fail<Unsupported>("no compiler for AMD GPUs: {}{}", kRemedy, kNotInCache);
  auto objects = compile_units(
      units_of(translation_units, amdgpu_command_line(*compiler, processor)));
  keep_identity(version_of(compiler), kLastAmdgpu);
  return objects;
}

std::vector<std::vector<uint8_t>> compile_nvptx(std::span<const std::string> translation_units,
                                                const std::string& processor) {
  if (const std::string why = why_no_nvptx_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  const std::optional<std::string> compiler = find_amdgpu_compiler();
  if (!compiler) fail<Unsupported>("no compiler for NVIDIA GPUs: {}{}", kNvptxRemedy, kNotInCache);
  auto texts = compile_units(
      units_of(translation_units, nvptx_command_line(*compiler, processor), kPtx));
  keep_identity(version_of(compiler), kLastAmdgpu);
  return texts;
}

std::optional<std::string> find_ptxas() {
  constexpr const char* kNames[] = {"ptxas"};
  return named_or_first(Env::TUFF_PTXAS, kNames);
}

std::optional<std::string> find_aco_compiler() {
  if (const std::string named = env_text(Env::TUFF_ACO); !named.empty())
    return os::exists(named) ? std::optional(named) : std::nullopt;
  for (const std::string& place : shipped_places(kAcoProgram))
    if (os::exists(place)) return place;
  return std::nullopt;
}

// Both the program's being there and the driver's are asked, once for each setting.
std::string why_no_aco_compiler() {
  const std::optional<std::string> program = find_aco_compiler();
  if (!program)
    return why_none(Env::TUFF_ACO,
                    fmt::format("no {} beside the program or where tuff was installed: build the "
                                "target {}, or name the file in TUFF_ACO",
                                kAcoProgram, kAcoProgram));
  return asked_aco(*program).why;
}

std::vector<MatrixShape> aco_matrix_shapes() {
  const std::optional<std::string> program = find_aco_compiler();
  return program ? asked_aco(*program).matrices : std::vector<MatrixShape>();
}

bool aco_keeps_denormals() {
  constexpr int kRight = 25;
  return number_after(aco_compiler_identity(), "Mesa ") >= kRight;
}

std::string radv_library(const std::string& named) {
  constexpr const char* kLibrary = "libvulkan_radeon.so";
  if (!os::is_directory(named)) return named.empty() ? kLibrary : named;
  const std::string libraries = named + "/usr/lib/";
  if (os::is_directory(libraries)) {
    for (const std::string& folder : os::list_directory(libraries)) {
      const std::string path = libraries + folder + "/" + kLibrary;
      if (os::exists(path)) return path;
    }
  }
  fail<Unsupported>("TUFF_RADV='{}' has no usr/lib/*/{}: make the folder by scripts/mesa", named,
                    kLibrary);
}

std::string aco_compiler_identity() {
  const std::optional<std::string> program = find_aco_compiler();
  return program ? asked_aco(*program).version : std::string();
}

std::vector<std::vector<uint8_t>> compile_aco(
    std::span<const std::vector<SpirvKernelModule>> units, const std::string& processor) {
  if (const std::string why = why_no_aco_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  const std::string program = *find_aco_compiler();
  std::vector<Unit> children;
  for (const std::vector<SpirvKernelModule>& unit : units) {
    Unit child{aco_command(program), {}};
    child.argv.insert(child.argv.end(), {"--processor", processor});
    for (const SpirvKernelModule& kernel : unit) {
      child.argv.insert(child.argv.end(), {"--symbol", kernel.symbol, "--words",
                                           std::to_string(kernel.words.size())});
      child.input.append(reinterpret_cast<const char*>(kernel.words.data()),
                         kernel.words.size_bytes());
    }
    children.push_back(std::move(child));
  }
  return compile_units(children);
}

std::vector<uint8_t> compile_aco(const VulkanShader& shader, const std::string& processor) {
  if (const std::string why = why_no_aco_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  std::vector<std::string> argv = aco_command(*find_aco_compiler());
  argv.insert(argv.end(), {"--vulkan", "--processor", processor, "--push-bytes",
                           std::to_string(shader.push_bytes)});
  if (!shader.entry.empty()) argv.insert(argv.end(), {"--entry", shader.entry});
  for (const auto& [set, binding] : shader.buffers)
    argv.insert(argv.end(), {"--buffer", fmt::format("{}:{}", set, binding)});
  for (const auto& [id, word] : shader.constants)
    argv.insert(argv.end(), {"--constant", fmt::format("{}={}", id, word)});
  const auto* text = reinterpret_cast<const char*>(shader.spirv.data());
  return compile_units({{std::move(argv), std::string(text, shader.spirv.size())}})[0];
}

}  // namespace tuff
