// examples/data/corpus.txt as bytes of the program, through the assembler: a C array of this size
// would cost the compiler seconds. CMake defines TUFF_CORPUS_FILE and makes this file depend on it.
#include "models/corpus.h"

__asm__(
    ".section .rodata\n"
    ".global tuff_corpus_begin\n"
    ".hidden tuff_corpus_begin\n"
    "tuff_corpus_begin:\n"
    ".incbin \"" TUFF_CORPUS_FILE
    "\"\n"
    ".global tuff_corpus_end\n"
    ".hidden tuff_corpus_end\n"
    "tuff_corpus_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" const uint8_t tuff_corpus_begin[], tuff_corpus_end[];

namespace tuff::models {

Corpus embedded_corpus() {
  return Corpus({tuff_corpus_begin, tuff_corpus_end}, "the project's own sources and documents");
}

}  // namespace tuff::models
