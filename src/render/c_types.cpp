#include "render/c_types.h"

#include <cmath>

#include "base/check.h"

namespace tuff::render {
namespace {

std::string suffix(const CDialect& d, DType t) {
  switch (t) {
    case DType::I64: return d.wide_suffix;
    case DType::U64: return std::string("u") + d.wide_suffix;
    case DType::U32: return "u";
    default: return "";
  }
}

std::string float_literal(const CDialect& d, DType t, double v) {
  const bool wide = t == DType::F64;
  std::string text;
  if (std::isnan(v)) {
    if (d.library) return wide ? "as_double(0x7ff8000000000000ul)" : "as_float(0x7fc00000u)";
    return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  } else if (std::isinf(v) && d.library) {
    text = wide ? "as_double(0x7ff0000000000000ul)" : "as_float(0x7f800000u)";
  } else if (std::isinf(v)) {
    text = wide ? "__builtin_inf()" : "__builtin_inff()";
  } else {
    text = wide ? fmt::format("{}", std::abs(v))
                : fmt::format("{}", std::abs(static_cast<float>(v)));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!wide) text += "f";
  }
  return std::signbit(v) ? fmt::format("(-{})", text) : text;
}

}  // namespace

bool is_held_as_bits(const CDialect& d, DType t) {
  return t == DType::BF16 || is_float8(t) || (t == DType::F16 && !d.f16);
}

bool c_has_width(int width) { return width >= 2 && width <= 64 && (width & (width - 1)) == 0; }

std::string c_type(const CDialect& d, DType t, int width) {
  const char* base = short_name(t);
  if (t == DType::Bool) base = "i32";
  if (is_held_as_bits(d, t)) base = is_float8(t) ? "u8" : "u16";
  return width == 1 ? base : fmt::format("{}x{}", base, width);
}

std::string c_memory(const CDialect& d, DType t, int width) {
  const std::string base = t == DType::Bool ? "u8" : c_type(d, t);
  return width == 1 ? base : fmt::format("{}x{}u", base, width);
}

std::string c_bits(DType t, int width) {
  const std::string base = fmt::format("u{}", size_bytes(t) * 8);
  return width == 1 ? base : fmt::format("{}x{}", base, width);
}

std::string c_int(const CDialect& d, DType t, int64_t v) {
  const Scalar s = Scalar::of_int(t, v);
  if (is_unsigned(t)) return fmt::format("{}{}", s.bits, suffix(d, t));
  const int64_t wrapped = s.as_int();
  if (wrapped == INT64_MIN) return fmt::format("(-9223372036854775807{} - 1)", d.wide_suffix);
  if (wrapped == INT32_MIN && t == DType::I32) return "(-2147483647 - 1)";  // else it is a long
  if (wrapped < 0) return fmt::format("({}{})", wrapped, suffix(d, t));
  return fmt::format("{}{}", wrapped, suffix(d, t));
}

std::string c_literal(const CDialect& d, const Scalar& v) {
  switch (v.dtype) {
    case DType::Bool: return v.as_bool() ? "1" : "0";
    case DType::F16:
      if (d.f16) return fmt::format("(f16){}", float_literal(d, DType::F32, v.as_double()));
      return fmt::format("{:#x}", f16_from_f64(v.as_double()));
    case DType::BF16: return fmt::format("{:#x}", bf16_from_f64(v.as_double()));
    case DType::F8E4M3FN: return fmt::format("{:#x}", f8e4m3fn_from_f64(v.as_double()));
    case DType::F8E5M2: return fmt::format("{:#x}", f8e5m2_from_f64(v.as_double()));
    case DType::F32:
    case DType::F64: return float_literal(d, v.dtype, v.as_double());
    default: return c_int(d, v.dtype, v.as_int());
  }
}

}  // namespace tuff::render
