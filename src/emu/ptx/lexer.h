// PTX text as tokens. Called by the parser alone.
// Source: NVIDIA, "PTX ISA" 7.8, 4 (Syntax): comments, identifiers, constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::emu::ptx {

struct Token {
  enum class Kind : uint8_t {
    Word,       // an identifier, with what follows its dots: "ld.global.f32", "%tid.x"
    Directive,  // a dot and one name: ".reg"
    Integer,    // `bits`
    Single,     // a float constant: `bits` of an f32
    Double,     // of an f64
    String,
    Mark,  // punctuation, one character
    End,
  };
  Kind kind = Kind::End;
  std::string_view text;
  uint64_t bits = 0;
  uint32_t line = 1;

  bool is(std::string_view wanted) const {
    return kind != Kind::String && kind != Kind::End && text == wanted;
  }
};

// Ends with an End token. The tokens refer to the text. CompileError naming the line.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace tuff::emu::ptx
