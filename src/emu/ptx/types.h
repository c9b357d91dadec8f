// The types of PTX as instructions and declarations spell them. Called by the parser and by what
// executes. Source: NVIDIA, "PTX ISA" 7.8, 5.2 (Types).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tuff::emu::ptx {

enum class Type : uint8_t {
  None,
  Pred,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  B8,
  B16,
  B32,
  B64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  U16x2,
  S16x2,
};

// Without the dot. None where it is no type.
std::optional<Type> type_of(std::string_view name);
std::string_view name(Type type);
uint32_t bits_of(Type type);  // 1 for predicates
inline uint32_t bytes_of(Type type) { return (bits_of(type) + 7) / 8; }
bool is_signed(Type type);  // integers
bool is_float(Type type);

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

// Generic addresses have global memory where the caller put it, and the other spaces in windows of
// which no process has addresses (x86-64 and AArch64: user space ends below 2^56). Where they are
// on hardware is not specified (PTX ISA, 6.4.1.1 Generic Addressing).
inline constexpr int kWindowShift = 56;
inline constexpr uint64_t kWindowMask = 0xFFull << kWindowShift;
inline constexpr uint64_t window_of(Space space) {
  switch (space) {
    case Space::Shared: return 1ull << kWindowShift;
    case Space::Local: return 2ull << kWindowShift;
    case Space::Param: return 3ull << kWindowShift;
    default: return 0;  // global and constant memory: as they are
  }
}
// Where the variables of modules begin. Constant memory is a part of global memory here that cannot
// be stored to.
inline constexpr uint64_t kModuleWindow = 4ull << kWindowShift;

}  // namespace tuff::emu::ptx
