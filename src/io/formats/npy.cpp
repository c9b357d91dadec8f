#include "io/formats/npy.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/arith.h"

namespace tuff::io {
namespace {

constexpr std::array<uint8_t, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr uint64_t kNpyAlignment = 64;

struct NpyType {
  const char* code;  // kind and bytes
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"b1", DType::Bool}, {"i1", DType::I8},  {"u1", DType::U8},  {"i2", DType::I16},
    {"u2", DType::U16},  {"i4", DType::I32}, {"u4", DType::U32}, {"i8", DType::I64},
    {"u8", DType::U64},  {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64},
};

// The header is a Python dictionary of three keys; this takes no more of the language than NumPy
// writes: texts, True, False and tuples of whole numbers.
class HeaderText {
 public:
  HeaderText(const ByteSource& source, uint64_t offset, std::string_view text)
      : source_(source), offset_(offset), text_(text) {}

  void parse() {
    expect('{');
    while (!next_is('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && descr.empty())
        descr = quoted();
      else if (key == "fortran_order" && !order_given_)
        fortran_order = boolean();
      else if (key == "shape" && !shape_given_)
        shape = tuple();
      else
        refuse("the key '{}' is unknown or stands there twice", shown(key));
      if (!next_is(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("something follows the header's dictionary");
    if (descr.empty() || !order_given_ || !shape_given_)
      refuse("the header lacks descr, fortran_order or shape");
  }

  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(source_, offset_ + at_, reason, std::forward<Args>(args)...);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) at_++;
  }
  bool next_is(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void expect(char c) {
    if (!next_is(c)) refuse("'{}' is missing from the header", c);
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote == '[') refuse("structured types are not read; save each field as an array");
    if (quote != '\'' && quote != '"') refuse("a text is missing from the header");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("a text without end in the header");
    const std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip_space();
    order_given_ = true;
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += std::string_view(word).size();
      return value;
    }
    refuse("fortran_order is neither True nor False");
  }
  std::vector<int64_t> tuple() {
    shape_given_ = true;
    expect('(');
    std::vector<int64_t> out;
    while (!next_is(')')) {
      out.push_back(number());
      if (out.size() > kMaxAxes) refuse("more than {} axes", kMaxAxes);
      if (!next_is(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) refuse("an extent above 2^63 - 1");
    if (error != std::errc{}) refuse("an extent is no whole number");
    at_ += size_t(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') at_++;  // as Python 2 wrote them
    return value;
  }

  const ByteSource& source_;
  uint64_t offset_;
  std::string_view text_;
  size_t at_ = 0;
  bool order_given_ = false, shape_given_ = false;
};

void set_type(const ByteSource& source, uint64_t offset, const std::string& descr,
              TensorEntry& entry) {
  const auto* row =
      descr.empty() ? std::end(kNpyTypes)
                    : std::ranges::find(kNpyTypes, descr.substr(1),
                                        [](const NpyType& r) { return std::string_view(r.code); });
  const bool known = row != std::end(kNpyTypes);
  const size_t bytes = known ? size_bytes(row->dtype) : 0;
  const char order = descr.empty() ? ' ' : descr[0];
  if (!known || (order != '<' && order != '>' && !(order == '|' && bytes == 1)))
    fail_at(source, offset,
            "the type '{}' is not read: bools, integers of 1 to 8 bytes and floats of 2, 4 and 8 "
            "are; convert it with astype()",
            shown(descr));
  entry.type = descr;
  entry.dtype = row->dtype;
  entry.big_endian = order == '>' && bytes > 1;
}

std::vector<int64_t> column_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides;
  int64_t stride = 1;
  for (const int64_t extent : shape) {
    strides.push_back(stride);
    stride *= std::max<int64_t>(extent, 1);
  }
  return strides;
}

}  // namespace

bool is_npy(const ByteSource& source) {
  if (source.size_bytes() < kMagic.size()) return false;
  return std::ranges::equal(source.bytes(0, kMagic.size()), kMagic);
}

namespace {

// The array as its header declares it; the reader stands behind the header then.
TensorEntry read_npy_header(ByteReader& reader) {
  const ByteSource& source = reader.source();
  if (!std::ranges::equal(reader.bytes(kMagic.size()), kMagic))
    fail_at(source, 0, "no .npy array: the magic bytes \\x93NUMPY are missing");
  const int major = reader.byte(), minor = reader.byte();
  if (major < 1 || major > 3 || minor != 0)
    fail_at(source, 6, "version {}.{} of the format; 1.0, 2.0 and 3.0 are read", major, minor);
  const uint64_t length = major == 1 ? reader.little<uint16_t>() : reader.little<uint32_t>();
  if (length > kMaxNpyHeader)
    reader.fail("a header of {} bytes, more than {}", length, kMaxNpyHeader);
  const uint64_t offset = reader.offset();
  const std::string text = reader.text(length);
  HeaderText header(source, offset, text);
  header.parse();
  TensorEntry entry;
  set_type(source, offset, header.descr, entry);
  entry.shape = header.shape;
  const int64_t count = element_count(source, offset, entry.shape);
  entry.size_bytes = checked_bytes(source, offset, count, size_bytes(entry.dtype));
  entry.offset = reader.offset();
  if (header.fortran_order && entry.shape.size() > 1)
    entry.strides = column_major_strides(entry.shape);
  return entry;
}

}  // namespace

TensorEntry read_npy_array(const ByteSource& source) {
  ByteReader reader(source);
  TensorEntry entry = read_npy_header(reader);
  if (entry.size_bytes != reader.left())
    reader.fail("{}: {} bytes are left, but '{}' of shape ({}) takes {}",
                reader.left() < entry.size_bytes ? "truncated" : "too long", reader.left(),
                entry.type, fmt::join(entry.shape, ", "), entry.size_bytes);
  return entry;
}

uint64_t npy_file_bytes(const ByteSource& head) {
  ByteReader reader(head);
  const TensorEntry entry = read_npy_header(reader);
  return entry.offset + entry.size_bytes;
}

FileIndex read_npy(const ByteSource& source, const std::string& name) {
  FileIndex index;
  index.format = "npy";
  index.tensors.push_back(read_npy_array(source));
  index.tensors.back().name = name;
  return index;
}

std::vector<uint8_t> encode_npy_header(DType dtype, std::span<const int64_t> shape) {
  const auto* row = std::ranges::find(kNpyTypes, dtype, &NpyType::dtype);
  if (row == std::end(kNpyTypes))
    fail<InvalidArgument>("NumPy has no {}: cast() it, or convert with --dtype float32",
                          tuff::name(dtype));
  std::string extents;
  for (const int64_t extent : shape)
    extents += fmt::format("{}{}", extents.empty() ? "" : " ", extent) + ",";
  if (shape.size() > 1) extents.pop_back();  // only (3,) needs its comma
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_bytes(dtype) == 1 ? '|' : '<', row->code, extents);
  const size_t before = kMagic.size() + 4;
  const size_t whole = align_up(before + text.size() + 1, kNpyAlignment);
  text.resize(whole - before - 1, ' ');
  text += '\n';
  std::vector<uint8_t> out(before + text.size());
  std::ranges::copy(kMagic, out.begin());
  const uint8_t version_and_length[] = {1, 0, uint8_t(text.size()), uint8_t(text.size() >> 8)};
  std::ranges::copy(version_and_length, out.begin() + kMagic.size());
  std::ranges::copy(text, out.begin() + ptrdiff_t(before));
  return out;
}

}  // namespace tuff::io
