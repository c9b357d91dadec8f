#include "render/user_kernel.h"

#include <stdexcept>

#include <xxhash.h>

#include "base/check.h"
#include "base/glsl_compiler.h"
#include "ir/custom_kernel.h"
#include "render/spirv_arguments.h"
#include "render/user_function.h"
#include "render/user_nvptx.h"

namespace tuff::render {
namespace {

using ir::CustomKernel;
using ir::CustomKernelArg;

constexpr size_t kGroupAxes = 3;

const CustomKernelArg& arg_of(const ir::UOp& ast) { return ast->get<CustomKernelArg>(); }

std::vector<UserArgument> arguments_of(const kernel::LinearKernel& k) {
  std::vector<UserArgument> out;
  size_t outputs = 0;
  for (const auto& a : k.buffers) outputs += a.written;
  for (size_t i = 0; i < k.buffers.size(); i++) {
    const auto& a = k.buffers[i];
    out.push_back({a.written ? fmt::format("output {}", i) : fmt::format("input {}", i - outputs),
                   a.written, uint64_t(a.count) * size_bytes(a.dtype)});
  }
  return out;
}

kernel::LinearKernel launch_of(const ir::UOp& ast) {
  const CustomKernelArg& arg = arg_of(ast);
  kernel::LinearKernel k;
  k.name = arg.kernel->name;
  for (size_t i = 0; i < ast->src_count; i++) {
    const bool written = i < arg.outputs.size();
    const ir::UOp& p = ast->src(i);
    const int64_t count = p->get<ir::ParamArg>().count;
    k.buffers.push_back({int32_t(i), p->dtype, count, !written, written});
    k.estimate.bytes += uint64_t(count) * size_bytes(p->dtype);
  }
  for (size_t d = 0; d < kGroupAxes; d++) k.groups[d] = int64_t(arg.groups[d]);
  return k;
}

[[noreturn]] void refuse_language(const CustomKernel& k, const Target& t, const char* wanted) {
  fail<Unsupported>("kernel {}: {} takes {}; what was given is {}", k.name, t.describe(), wanted,
                    languages_of(k));
}

std::string symbol_of(const void* bytes, size_t size) {
  return fmt::format("k{:016x}", XXH64(bytes, size, 0));
}

std::string macros(const CustomKernel& k) {
  std::string out;
  for (const auto& [name, value] : k.constants) out += fmt::format("#define {} {}\n", name, value);
  return out + fmt::format("#line 1 \"{}\"\n", k.name);
}

// The function has to take what is declared, and to say that it does not write what it reads.
void check_function(const CustomKernel& k, const std::string& text, const char* language,
                    std::span<const UserArgument> arguments, size_t most_coordinates) {
  const auto parameters = parameters_of(text, k.name);
  if (!parameters)
    fail<CompileError>("kernel {}: its {} defines no function {}", k.name, language, k.name);
  const size_t n = parameters->size(), least = arguments.size();
  if (n < least || n > least + most_coordinates)
    fail<CompileError>(
        "kernel {}: its {} takes {} parameters; {} pointers are declared, outputs first{}", k.name,
        language, n, least,
        most_coordinates ? ", which the group's x, y and z may follow" : "");
  for (size_t i = 0; i < least; i++) {
    const UserArgument& a = arguments[i];
    const std::string& text_of = (*parameters)[i];
    const PointerParameter p = pointer_of(text_of);
    if (!p.is_pointer)
      fail<CompileError>("kernel {}: parameter {} (\"{}\") is {}, and no pointer", k.name, i + 1,
                         text_of, a.name);
    if (!a.written && !p.to_const)
      fail<CompileError>(
          "kernel {}: parameter {} (\"{}\") may be written, and is declared as {}: what runs "
          "before and after it would not wait for that. Make it const, or declare it as an output",
          k.name, i + 1, text_of, a.name);
    if (a.written && p.to_const)
      fail<CompileError>("kernel {}: parameter {} (\"{}\") is const, and is declared as {}: "
                         "outputs come first, then the inputs",
                         k.name, i + 1, text_of, a.name);
  }
}

Source with_text(const UserKernel& u, BinaryFormat format, std::string text, std::string symbol) {
  Source s = source_of(u.linear, format, std::move(symbol));
  s.text = std::move(text);
  s.by_user = true;
  return s;
}

// As CpuKernelFn.
void write_c(UserKernel& u, const CustomKernel& k, std::span<const UserArgument> arguments) {
  check_function(k, k.c, "C", arguments, kGroupAxes);
  const size_t coordinates = parameters_of(k.c, k.name)->size() - arguments.size();
  std::string call;
  for (size_t i = 0; i < arguments.size(); i++)
    call += fmt::format("{}({}void*)((void* const*)args)[{}]", i ? ", " : "",
                        arguments[i].written ? "" : "const ", i);
  for (size_t d = 0; d < coordinates; d++) call += fmt::format(", g{}", "xyz"[d]);
  const std::string text = macros(k) + k.c;
  const std::string symbol = symbol_of(text.data(), text.size());
  u.source = with_text(
      u, BinaryFormat::Object,
      text + fmt::format("\n#line 1 \"what calls {0}\"\n"
                         "void {1}(const void* args, unsigned gx, unsigned gy, unsigned gz, "
                         "void* scratch) {{\n  (void)gx, (void)gy, (void)gz, (void)scratch;\n"
                         "  {0}({2});\n}}\n",
                         k.name, symbol, call),
      symbol);
}

// As the kernels of c_opencl.cpp: an object and an offset into it for each buffer.
void write_opencl(UserKernel& u, const CustomKernel& k, std::span<const UserArgument> arguments) {
  check_function(k, k.opencl, "OpenCL C", arguments, 0);
  u.linear.local = k.local;
  std::string header, call;
  for (size_t i = 0; i < arguments.size(); i++) {
    header += fmt::format("{0}__global uchar* b{1}, ulong o{1}", i ? ", " : "", i);
    call += fmt::format("{}(__global {}void*)(b{} + o{})", i ? ", " : "",
                        arguments[i].written ? "" : "const ", i, i);
  }
  const std::string text = macros(k) + k.opencl;
  const std::string symbol = symbol_of(text.data(), text.size());
  u.source = with_text(
      u, BinaryFormat::OpenclC,
      text + fmt::format("\n#line 1 \"what calls {}\"\n"
                         "__kernel __attribute__((reqd_work_group_size({}, {}, {})))\n"
                         "void {}({}) {{\n  {}({});\n}}\n",
                         k.name, k.local[0], k.local[1], k.local[2], symbol, header, k.name, call),
      symbol);
}

// Compiled alone, and loaded alone: its name in the PTX is its own.
void write_nvptx(UserKernel& u, const CustomKernel& k, std::span<const UserArgument> arguments) {
  check_function(k, k.opencl, "OpenCL C", arguments, 0);
  u.linear.local = k.local;
  u.source =
      with_text(u, BinaryFormat::Ptx, nvptx_user_text(macros(k) + k.opencl), k.name);
}

void write_module(UserKernel& u, const CustomKernel& k, std::span<const UserArgument> arguments,
                  const Target& t) {
  const bool from_text = !k.glsl.empty();
  const std::vector<uint32_t> words =
      from_text ? compile_glsl(k.name, k.glsl, k.constants) : k.spirv;
  const UserModule m =
      read_user_module(k.name, words, from_text ? "main" : k.entry, arguments, t);
  u.linear.local = m.local;
  const bool is_object = t.renderer == "aco";
  const BinaryFormat format = is_object ? BinaryFormat::AmdgpuObject : BinaryFormat::SpirV;
  u.source = with_text(u, format, {}, m.entry);
  u.source.words = words;
  if (t.features.device_address) {
    WithAddresses rewritten = with_addresses(m, arguments);
    u.source.words = std::move(rewritten.words);
    u.alignment = rewritten.alignment;
  }
  if (is_object)
    u.source.symbol = symbol_of(u.source.words.data(), u.source.words.size() * sizeof(uint32_t));
}

void write_spirv(UserKernel& u, const CustomKernel& k, std::span<const UserArgument> arguments,
                 const Target& t) {
  try {
    write_module(u, k, arguments, t);
  } catch (const std::out_of_range&) {
    fail<CompileError>("kernel {}: its SPIR-V names what it has not: spirv-val says where", k.name);
  }
}

}  // namespace

UserKernel user_kernel(const ir::UOp& ast, const Target& t) {
  const CustomKernel& k = *arg_of(ast).kernel;
  UserKernel u;
  u.linear = launch_of(ast);
  const std::vector<UserArgument> arguments = arguments_of(u.linear);
  if (t.renderer == "c") {
    if (k.c.empty()) refuse_language(k, t, "C");
    write_c(u, k, arguments);
  } else if (t.renderer == "opencl") {
    if (k.opencl.empty()) refuse_language(k, t, "OpenCL C");
    write_opencl(u, k, arguments);
  } else if (t.renderer == "spirv" || t.renderer == "aco") {
    if (k.glsl.empty() && k.spirv.empty()) refuse_language(k, t, "GLSL or SPIR-V");
    write_spirv(u, k, arguments, t);
  } else if (t.renderer == "null") {
    u.source = with_text(u, BinaryFormat::None, {}, k.name);
  } else if (t.renderer == "nvptx") {
    if (k.opencl.empty()) refuse_language(k, t, "OpenCL C");
    write_nvptx(u, k, arguments);
  } else {
    refuse_language(k, t, "GLSL or SPIR-V, with AMD_COMPILER=aco");
  }
  return u;
}

}  // namespace tuff::render
