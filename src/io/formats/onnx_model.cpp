#include "io/formats/onnx_model.h"

#include <algorithm>

#include <fmt/format.h>

namespace tuff::io::onnx {
namespace {

struct ElementRow {
  ElementType type;
  const char* name;
  uint64_t bits;
};
constexpr ElementRow kElements[] = {
    {ElementType::Undefined, "UNDEFINED", 0},
    {ElementType::Float, "FLOAT", 32},
    {ElementType::Uint8, "UINT8", 8},
    {ElementType::Int8, "INT8", 8},
    {ElementType::Uint16, "UINT16", 16},
    {ElementType::Int16, "INT16", 16},
    {ElementType::Int32, "INT32", 32},
    {ElementType::Int64, "INT64", 64},
    {ElementType::String, "STRING", 0},
    {ElementType::Bool, "BOOL", 8},
    {ElementType::Float16, "FLOAT16", 16},
    {ElementType::Double, "DOUBLE", 64},
    {ElementType::Uint32, "UINT32", 32},
    {ElementType::Uint64, "UINT64", 64},
    {ElementType::Complex64, "COMPLEX64", 64},
    {ElementType::Complex128, "COMPLEX128", 128},
    {ElementType::Bfloat16, "BFLOAT16", 16},
    {ElementType::Float8E4M3FN, "FLOAT8E4M3FN", 8},
    {ElementType::Float8E4M3FNUZ, "FLOAT8E4M3FNUZ", 8},
    {ElementType::Float8E5M2, "FLOAT8E5M2", 8},
    {ElementType::Float8E5M2FNUZ, "FLOAT8E5M2FNUZ", 8},
    {ElementType::Uint4, "UINT4", 4},
    {ElementType::Int4, "INT4", 4},
    {ElementType::Float4E2M1, "FLOAT4E2M1", 4},
    {ElementType::Float8E8M0, "FLOAT8E8M0", 8},
    {ElementType::Uint2, "UINT2", 2},
    {ElementType::Int2, "INT2", 2},
};

const ElementRow* row_of(ElementType t) {
  const auto* row = std::ranges::find(kElements, t, &ElementRow::type);
  return row == std::end(kElements) ? nullptr : row;
}

}  // namespace

std::string name(ElementType t) {
  const ElementRow* row = row_of(t);
  return row ? row->name : fmt::format("type {}", int32_t(t));
}

uint64_t size_bits(ElementType t) {
  const ElementRow* row = row_of(t);
  return row ? row->bits : 0;
}

const Attribute* Node::attribute(std::string_view name) const {
  const auto at = std::ranges::find(attributes, name, &Attribute::name);
  return at == attributes.end() ? nullptr : &*at;
}

int64_t Model::opset(std::string_view domain) const {
  const auto at = std::ranges::find(opsets, domain, &Opsets::value_type::first);
  return at == opsets.end() ? 0 : at->second;
}

}  // namespace tuff::io::onnx
