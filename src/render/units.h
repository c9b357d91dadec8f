// Sources that a compiler, started as a program, takes together: few children, each with as much to
// do as the others. Called by the renderers whose compilers are programs; knows no compiler.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "render/renderer.h"

namespace tuff::render {

using Unit = std::vector<size_t>;  // indices of sources
// One object file per unit, in their order. Throws CompileError.
using CompileUnits = std::function<std::vector<std::vector<uint8_t>>(std::span<const Unit>)>;

// Sources of one symbol are equal and are compiled once. No more units than cores, nor than have
// `worthwhile_bytes` of text or words each. A CompileError names the kernel.
std::vector<Binary> compile_in_units(std::span<const Source> sources, size_t worthwhile_bytes,
                                     const CompileUnits& compile);

}  // namespace tuff::render
