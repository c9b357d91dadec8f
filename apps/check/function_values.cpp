// tests/data/tensor_values.json as bytes of the program, through the assembler, so that the program
// needs no source tree. CMake defines TUFF_VALUES_FILE and makes this file depend on it.
#include "check/function_values.h"

__asm__(
    ".section .rodata\n"
    ".global tuff_tensor_values_begin\n"
    ".hidden tuff_tensor_values_begin\n"
    "tuff_tensor_values_begin:\n"
    ".incbin \"" TUFF_VALUES_FILE
    "\"\n"
    ".global tuff_tensor_values_end\n"
    ".hidden tuff_tensor_values_end\n"
    "tuff_tensor_values_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" const char tuff_tensor_values_begin[], tuff_tensor_values_end[];

namespace tuff::check {

std::string_view function_values() {
  return {tuff_tensor_values_begin, size_t(tuff_tensor_values_end - tuff_tensor_values_begin)};
}

}  // namespace tuff::check
