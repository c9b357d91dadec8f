#include "devices/opencl/program.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "devices/opencl/binary_cache.h"
#include "render/c_dialect.h"

namespace tuff::devices::opencl {
namespace {

constexpr size_t kLogBytes = 4000;  // that an error shows

std::string_view text_of(const render::Binary& b) {
  if (b.format != render::BinaryFormat::OpenclC)
    fail<CompileError>("{}: its code is not OpenCL C", b.name);
  return {reinterpret_cast<const char*>(b.bytes->data()), b.bytes->size()};
}

Built owned(const std::shared_ptr<Context>& context, cl_program program) {
  return {program, [context](cl_program p) { context->api.clReleaseProgram(p); }};
}

std::string log_of(const Context& c, cl_program program) {
  const auto get = [&](cl_program p, cl_uint what, auto... rest) {
    return c.api.clGetProgramBuildInfo(p, c.facts.id, what, rest...);
  };
  const std::string log = info_text(get, program, CL_PROGRAM_BUILD_LOG).value_or("");
  return log.size() > kLogBytes ? log.substr(0, kLogBytes) + " ..." : log;
}

// The line of the source that the first error of the log names ("FILE:LINE:COLUMN" before or behind
// the word), or empty.
std::string blamed_line(const std::string& log, const std::string& source) {
  const size_t error = log.find("error");
  if (error == std::string::npos) return {};
  const size_t begin = log.rfind('\n', error) + 1;  // npos + 1 is 0
  const size_t end = std::min(log.find('\n', error), log.size());
  size_t line = 0;
  for (size_t at = begin; at < end && line == 0; ++at) {
    if (log[at] != ':' && log[at] != '<') continue;
    const size_t digits = log.find_first_not_of("0123456789", at + 1);
    if (digits != std::string::npos && digits > at + 1 && log[digits] == ':')
      line = std::strtoul(log.c_str() + at + 1, nullptr, 10);
  }
  size_t from = 0;
  for (size_t n = 1; n < line && from != std::string::npos; ++n) {
    from = source.find('\n', from);
    if (from != std::string::npos) ++from;
  }
  if (line == 0 || from == std::string::npos) return {};
  return fmt::format("\n  line {}: {}", line, source.substr(from, source.find('\n', from) - from));
}

// What the driver's line numbers count: of a user's program the text behind its macros.
std::string numbered(const std::string& source) {
  const size_t line = source.find("#line 1 ");
  return line == std::string::npos ? source : source.substr(source.find('\n', line) + 1);
}

// Null with the log in `why` if the driver refuses the source.
Built build(const std::shared_ptr<Context>& context, const std::string& source, std::string* why) {
  const Context& c = *context;
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  cl_program handle = c.api.clCreateProgramWithSource(c.handle, 1, &text, nullptr, &code);
  c.check(code, "clCreateProgramWithSource");
  Built built = owned(context, handle);
  code = c.api.clBuildProgram(handle, 1, &c.facts.id, c.facts.build_options().c_str(), nullptr,
                              nullptr);
  if (code == CL_SUCCESS) return built;
  const std::string log = log_of(c, handle);
  *why = fmt::format("{}: clBuildProgram returned {}\n{}{}", c.name, error_name(code), log,
                     blamed_line(log, numbered(source)));
  return nullptr;
}

std::string with_prelude(const std::string& kernels, bool by_user) {
  return by_user ? kernels : render::c_opencl().prelude.of(kernels) + kernels;
}

// One of many was refused: which?
[[noreturn]] void blame(const std::shared_ptr<Context>& context,
                        std::span<const render::Binary> binaries, const std::string& all) {
  for (const render::Binary& b : binaries) {
    std::string why;
    const std::string source = with_prelude(std::string(text_of(b)), b.by_user);
    if (!build(context, source, &why)) fail<CompileError>("kernel {}: {}", b.name, why);
  }
  fail<CompileError>("{}", all);
}

}  // namespace

KernelObject::KernelObject(std::shared_ptr<Context> context, Built program,
                           const std::string& symbol)
    : context_(std::move(context)), program_(std::move(program)) {
  cl_int code = CL_SUCCESS;
  handle_ = context_->api.clCreateKernel(program_.get(), symbol.c_str(), &code);
  if (code != CL_SUCCESS)
    fail<CompileError>("{}: clCreateKernel({}) returned {}", context_->name, symbol,
                       error_name(code));
}

std::vector<std::unique_ptr<hcq::Program>> load_programs(const std::shared_ptr<Context>& context,
                                                         std::span<const render::Binary> binaries) {
  if (binaries.empty()) return {};
  std::map<std::string, std::string_view> texts;  // by symbol, so that the order is none
  for (const render::Binary& b : binaries) texts.emplace(b.symbol, text_of(b));
  std::string kernels;
  for (const auto& [symbol, text] : texts) kernels += text;
  // What a user wrote is loaded alone.
  const std::string source = with_prelude(kernels, binaries[0].by_user);
  const BinaryCache cache(*context, source);
  Built built;
  if (cl_program cached = cache.load()) {
    built = owned(context, cached);
  } else {
    std::string why;
    built = build(context, source, &why);
    if (!built) blame(context, binaries, why);
    cache.store(built.get());
  }
  std::vector<std::unique_ptr<hcq::Program>> out;
  for (const render::Binary& b : binaries)
    out.push_back(std::make_unique<ClProgram>(context, b, built));
  return out;
}

}  // namespace tuff::devices::opencl
