#include "emu/ptx/types.h"

#include <array>

namespace tuff::emu::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t bits;
  bool is_signed, is_float;
};

constexpr TypeRow kTypes[] = {
    {"", 0, false, false},       {"pred", 1, false, false},  {"u8", 8, false, false},
    {"u16", 16, false, false},   {"u32", 32, false, false},  {"u64", 64, false, false},
    {"s8", 8, true, false},      {"s16", 16, true, false},   {"s32", 32, true, false},
    {"s64", 64, true, false},    {"b8", 8, false, false},    {"b16", 16, false, false},
    {"b32", 32, false, false},   {"b64", 64, false, false},  {"f16", 16, false, true},
    {"f16x2", 32, false, true},  {"bf16", 16, false, true},  {"bf16x2", 32, false, true},
    {"tf32", 32, false, true},   {"f32", 32, false, true},   {"f64", 64, false, true},
    {"u16x2", 32, false, false}, {"s16x2", 32, true, false},
};

const TypeRow& row_of(Type type) { return kTypes[size_t(type)]; }

}  // namespace

std::optional<Type> type_of(std::string_view text) {
  for (size_t k = 1; k < std::size(kTypes); ++k) {
    if (kTypes[k].name == text) return Type(k);
  }
  return std::nullopt;
}

std::string_view name(Type type) { return row_of(type).name; }
uint32_t bits_of(Type type) { return row_of(type).bits; }
bool is_signed(Type type) { return row_of(type).is_signed; }
bool is_float(Type type) { return row_of(type).is_float; }

}  // namespace tuff::emu::ptx
