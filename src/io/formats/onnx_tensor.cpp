#include "io/formats/onnx_tensor.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include <fmt/ranges.h>

#include "base/parse_number.h"
#include "io/formats/index.h"

namespace tuff::io {
namespace {

using onnx::ElementType;

// The fields that may hold elements; one of them does.
enum class Holder : uint8_t { None, Raw, Floats, Int32s, Strings, Int64s, Doubles, Uint64s };
constexpr const char* kHolderNames[] = {"no field",    "raw_data",   "float_data",  "int32_data",
                                        "string_data", "int64_data", "double_data", "uint64_data"};

Holder holder_of(ElementType t) {
  switch (t) {
    case ElementType::Float:
    case ElementType::Complex64: return Holder::Floats;
    case ElementType::String: return Holder::Strings;
    case ElementType::Int64: return Holder::Int64s;
    case ElementType::Double:
    case ElementType::Complex128: return Holder::Doubles;
    case ElementType::Uint32:
    case ElementType::Uint64: return Holder::Uint64s;
    default: return Holder::Int32s;
  }
}

template <class T>
void append_number(std::vector<uint8_t>& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); i++) bytes.push_back(uint8_t(uint64_t(value) >> (8 * i)));
}

class TensorMessage {
 public:
  explicit TensorMessage(ProtobufReader& r) : r_(r), at_(r.field_begin()) {}

  void read_field(uint32_t field) {
    switch (field) {
      case 1: r_.varints([&](uint64_t n) { add_extent(int64_t(n)); }); break;
      case 2: t_.type = ElementType(r_.int32()); break;
      case 3: segmented_ = true; break;
      case 4: hold(Holder::Floats), r_.append_fixed32(t_.bytes); break;
      case 5: hold(Holder::Int32s), read_int32s(); break;
      case 6: hold(Holder::Strings), t_.strings.push_back(r_.text()); break;
      case 7:
        hold(Holder::Int64s);
        r_.varints([&](uint64_t n) { append_number(t_.bytes, n); });
        break;
      case 8: t_.name = r_.text(); break;
      case 9: {
        hold(Holder::Raw);
        const ProtobufReader::Span s = r_.span();
        t_.range = onnx::FileRange{"", s.begin, s.size_bytes};
        break;
      }
      case 10: hold(Holder::Doubles), r_.append_fixed64(t_.bytes); break;
      case 11:
        hold(Holder::Uint64s);
        r_.varints([&](uint64_t n) { append_number(t_.bytes, n); });
        break;
      case 13: read_external_entry(); break;
      case 14: external_ = r_.int32() == 1; break;
      default: break;
    }
  }
  onnx::TensorData finish() {
    if (t_.type == ElementType::Undefined) fail("has no data type");
    count_ = uint64_t(element_count(r_.source(), at_, t_.dims));
    if (segmented_) fail("holds a segment of a larger tensor, which is not read");
    if (external_)
      place_outside();
    else
      place_inside();
    return std::move(t_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(r_.source(), at_, "the tensor '{}' {}", shown(t_.name),
            fmt::format(reason, std::forward<Args>(args)...));
  }
  void add_extent(int64_t extent) {
    if (t_.dims.size() == kMaxAxes) fail("has more than {} axes", kMaxAxes);
    t_.dims.push_back(extent);
  }
  void hold(Holder h) {
    if (holder_ != Holder::None && holder_ != h)
      fail("has elements in {} and in {}", kHolderNames[int(holder_)], kHolderNames[int(h)]);
    holder_ = h;
  }
  // Narrowed when the type is known: fields come in any order.
  void read_int32s() {
    r_.varints([&](uint64_t n) { append_number(t_.bytes, uint32_t(n)); });
  }
  void read_external_entry() {
    std::string key, value;
    r_.message([&](uint32_t field) {
      if (field == 1) key = r_.text();
      if (field == 2) value = r_.text();
    });
    if (key == "location") {
      outside_.location = std::move(value);
    } else if (key == "offset" || key == "length") {
      const auto n = parse_number<uint64_t>(value);
      if (!n) fail("has the {} '{}' of external data, which is no number", key, shown(value));
      (key == "offset" ? outside_.offset : outside_.size_bytes) = *n;
      has_length_ |= key == "length";
    }
  }
  // A file beside the model, in its folder or below: not a path that leads out.
  void require_inside(const std::string& location) const {
    bool fits = !location.empty() && location[0] != '/' &&
                location.find_first_of(std::string_view("\\\0", 2)) == std::string::npos;
    for (size_t begin = 0; begin < location.size();) {
      const size_t end = std::min(location.find('/', begin), location.size());
      fits &= std::string_view(location).substr(begin, end - begin) != "..";
      begin = end + 1;
    }
    if (!fits)
      fail("lies in '{}', which is no file in the model's folder or below", shown(location));
  }
  // Of the elements as raw_data holds them; none for a type of unknown width.
  std::optional<uint64_t> wanted_bytes() const {
    const uint64_t bits = size_bits(t_.type);
    if (bits == 0) return std::nullopt;
    if (bits >= 8) return checked_bytes(r_.source(), at_, int64_t(count_), bits / 8);
    return (count_ + 8 / bits - 1) / (8 / bits);
  }
  void place_outside() {
    if (holder_ != Holder::None) fail("has elements in {} and outside", kHolderNames[int(holder_)]);
    if (t_.type == ElementType::String) fail("has strings outside, where none can be");
    require_inside(outside_.location);
    const std::optional<uint64_t> wanted = wanted_bytes();
    if (!wanted && !has_length_) fail("of {} has external data of no length", name(t_.type));
    if (!has_length_) outside_.size_bytes = *wanted;
    require_bytes(wanted, outside_.size_bytes);
    if (outside_.offset > uint64_t(INT64_MAX) - outside_.size_bytes)
      fail("begins at {} of external data", outside_.offset);
    if (count_ > 0) t_.range = std::move(outside_);
  }
  void require_bytes(const std::optional<uint64_t>& wanted, uint64_t found) const {
    if (wanted && *wanted != found)
      fail("of {} ({}) takes {} bytes, but {} are there", name(t_.type), fmt::join(t_.dims, ", "),
           *wanted, found);
  }
  void place_inside() {
    if (holder_ == Holder::None || (holder_ == Holder::Raw && t_.range->size_bytes == 0)) {
      if (count_ > 0) fail("of ({}) has no elements", fmt::join(t_.dims, ", "));
      t_.range.reset();
      return;
    }
    if (holder_ == Holder::Raw) {
      if (t_.type == ElementType::String) fail("has strings in raw_data, where none can be");
      require_bytes(wanted_bytes(), t_.range->size_bytes);
      return;
    }
    if (holder_ != holder_of(t_.type))
      fail("of {} has its elements in {}", name(t_.type), kHolderNames[int(holder_)]);
    if (holder_ == Holder::Strings) {
      if (t_.strings.size() != count_)
        fail("of ({}) has {} strings", fmt::join(t_.dims, ", "), t_.strings.size());
      return;
    }
    narrow();
    require_bytes(wanted_bytes(), t_.bytes.size());
  }

  // Numbers that int32_data and uint64_data hold wider than raw_data would.
  void narrow() {
    if (holder_ == Holder::Uint64s && t_.type == ElementType::Uint32) narrow_to<uint64_t>(4);
    if (holder_ != Holder::Int32s) return;
    const uint64_t bits = size_bits(t_.type);
    if (bits == 0) fail("of {} has elements in int32_data", name(t_.type));
    if (t_.type == ElementType::Bool) normalize_bools();
    if (bits < 32) narrow_to<int32_t>(bits <= 8 ? 1 : 2);
  }
  void normalize_bools() {
    for (size_t i = 0; i < t_.bytes.size(); i += 4) {
      const bool value = load<int32_t>(i) != 0;
      std::fill_n(t_.bytes.begin() + ptrdiff_t(i), 4, uint8_t{0});
      t_.bytes[i] = uint8_t(value);
    }
  }
  template <class Wide>
  Wide load(size_t at) const {
    std::make_unsigned_t<Wide> value = 0;
    for (size_t i = 0; i < sizeof(Wide); i++)
      value |= std::make_unsigned_t<Wide>(t_.bytes[at + i]) << (8 * i);
    return Wide(value);
  }
  // Signed numbers may stand as the unsigned ones of their width: writers differ.
  template <class Wide>
  static bool fits(Wide value, size_t width) {
    const Wide end = Wide(Wide{1} << (8 * width));
    if constexpr (std::is_signed_v<Wide>) return value >= -(end / 2) && value < end;
    return value < end;
  }
  template <class Wide>
  void narrow_to(size_t width) {
    size_t to = 0;
    for (size_t i = 0; i < t_.bytes.size(); i += sizeof(Wide)) {
      const Wide value = load<Wide>(i);
      if (!fits(value, width)) fail("of {} has the element {}", name(t_.type), value);
      for (size_t k = 0; k < width; k++) t_.bytes[to++] = t_.bytes[i + k];
    }
    t_.bytes.resize(to);
    t_.bytes.shrink_to_fit();
  }

  ProtobufReader& r_;
  uint64_t at_;
  onnx::TensorData t_;
  onnx::FileRange outside_;
  uint64_t count_ = 0;
  Holder holder_ = Holder::None;
  bool segmented_ = false, external_ = false, has_length_ = false;
};

}  // namespace

onnx::TensorData read_tensor_field(ProtobufReader& r) {
  TensorMessage t(r);
  r.message([&](uint32_t field) { t.read_field(field); });
  return t.finish();
}

onnx::TensorData read_tensor_file(ProtobufReader& r) {
  TensorMessage t(r);
  r.fields([&](uint32_t field) { t.read_field(field); });
  return t.finish();
}

}  // namespace tuff::io
