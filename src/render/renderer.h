// Renderers: from a linear UOp list to source or words. One registry row each.
// Called by engine (compile_linear). A renderer prints what it is given; it decides nothing about
// loops or types. Must never know buffers or queues.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"
#include "kernel/lowered.h"
#include "render/binary.h"

namespace tuff::render {

// A kernel in its renderer's language, before a compiler made a Binary of it.
struct Source {
  std::string name, symbol;
  BinaryFormat format = BinaryFormat::None;  // of the Binary
  std::string text;                          // a dialect of C; for SPIR-V empty
  std::vector<uint32_t> words;               // SPIR-V
  ArgLayout args;
  std::array<uint32_t, 3> local{1, 1, 1};
  uint32_t shared_bytes = 0, subgroup_size = 0;
  bool by_user = false;  // as Binary's
};

struct Renderer {
  const char* name;  // Target::renderer
  Source (*render)(const kernel::LinearKernel&, const Target&);
  // Compiles all sources together or in parallel; same order. Throws CompileError with the kernel's
  // name and the compiler's message. Nothing is read from or written to disk caches here.
  std::vector<Binary> (*compile)(std::span<const Source>, const Target&);
  // Each call of compile(), or each load of what it gave, starts a compiler, which costs more than
  // a kernel: few calls pay.
  bool starts_compiler;
  // What the disk cache must key on besides the source: compiler version and flags.
  std::string (*compiler_identity)(const Target&);
};

const Renderer& renderer_of(const Target& t);  // InvalidArgument naming the unknown renderer

// What a Source says of any kernel, without its text or words.
Source source_of(const kernel::LinearKernel& k, BinaryFormat format, std::string symbol);
Binary binary_of(const Source& s, std::shared_ptr<const std::vector<uint8_t>> bytes);
// As Renderer::compile where the driver compiles, or nothing does: a Binary is its source.
std::vector<Binary> pack_sources(std::span<const Source> sources, const Target& t);

// Source for people: C as it is, SPIR-V disassembled if SPIRV-Tools is built in, else a word dump.
std::string to_text(const Source& s);

}  // namespace tuff::render
