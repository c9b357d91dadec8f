#include "emu/run/launch_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/check.h"
#include "base/os.h"

namespace tuff::emu {
namespace {

constexpr uint64_t kFirstBuffer = 0x7000'0000'0000, kBetweenBuffers = 1 << 20;
constexpr uint64_t kMostBytes = 1ull << 32;

class Reader {
 public:
  Reader(const std::string& path, const Json& metadata, uint32_t block_bytes,
         const LaunchLimits& limits)
      : path_(path), metadata_(metadata), limits_(limits) {
    out_.block.resize(block_bytes);
    out_.group_size = limits.group_size;
  }

  EmuLaunch read() {
    const Json file = parse();
    refuse_unknown(file, {"groups", "group_size", "dynamic_lds", "seed", "budget", "args"}, "");
    out_.groups = size_of(file, "groups", out_.groups);
    out_.group_size = size_of(file, "group_size", out_.group_size);
    out_.dynamic_lds_bytes = uint32_t(number(file, "dynamic_lds", 0, limits_.most_lds_bytes));
    out_.seed = number(file, "seed", 0, UINT64_MAX);
    out_.instruction_budget = number(file, "budget", 1'000'000'000, UINT64_MAX);
    const Json none = Json::array();
    const Json& args = file.contains("args") ? file["args"] : none;
    if (!args.is_array()) wrong("args: a list is wanted");
    for (size_t k = 0; k < args.size(); ++k) add_argument(k, args[k]);
    const size_t wanted = explicit_rows().size();
    if (!metadata_.is_null() && args.size() != wanted)
      wrong(fmt::format("args: {} of them, the kernel takes {}", args.size(), wanted));
    add_hidden();
    return std::move(out_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail<BadLaunchFile>("{}: {}", path_, what);
  }

  Json parse() const {
    const std::string text = os::read_text(path_);
    try {
      Json file = Json::parse(text);
      if (!file.is_object()) wrong("an object is wanted");
      return file;
    } catch (const Json::parse_error& e) {
      wrong(e.what());
    }
  }

  void refuse_unknown(const Json& row, std::initializer_list<const char*> known,
                      const std::string& where) const {
    for (const auto& [key, value] : row.items()) {
      if (std::ranges::none_of(known, [&](const char* k) { return key == k; }))
        wrong(
            fmt::format("{}'{}' is not known; there are: {}", where, key, fmt::join(known, ", ")));
    }
  }

  uint64_t number(const Json& row, const char* key, uint64_t missing, uint64_t most) const {
    if (!row.contains(key)) return missing;
    if (!row[key].is_number_unsigned() || row[key].get<uint64_t>() > most)
      wrong(fmt::format("{}: a whole number from 0 to {} is wanted", key, most));
    return row[key].get<uint64_t>();
  }

  std::array<uint32_t, 3> size_of(const Json& file, const char* key,
                                  std::array<uint32_t, 3> out) const {
    if (!file.contains(key)) return out;
    const Json& row = file[key];
    const bool fits = row.is_array() && !row.empty() && row.size() <= 3;
    for (size_t k = 0; k < 3; ++k) {
      const bool given = fits && k < row.size();
      if (!fits || (given && (!row[k].is_number_unsigned() || row[k] == 0u || row[k] > 1u << 30)))
        wrong(fmt::format("{}: one to three numbers above 0 are wanted", key));
      out[k] = given ? row[k].get<uint32_t>() : 1;
    }
    return out;
  }

  // The arguments in the metadata that the caller gives.
  std::vector<const Json*> explicit_rows() const {
    std::vector<const Json*> out;
    if (metadata_.is_null() || !metadata_.contains(".args")) return out;
    for (const Json& row : metadata_[".args"]) {
      if (!row.value(".value_kind", "").starts_with("hidden_")) out.push_back(&row);
    }
    return out;
  }

  void put(uint64_t offset, const void* bytes, size_t count) {
    if (offset > 1 << 20) wrong(fmt::format("an argument at {}", offset));
    out_.block.resize(std::max<size_t>(out_.block.size(), offset + count));
    std::memcpy(out_.block.data() + offset, bytes, count);
    next_ = offset + count;
  }

  uint64_t offset_of(size_t index, const Json& row, size_t size) const {
    if (row.contains("offset")) return number(row, "offset", 0, 1 << 20);
    const auto rows = explicit_rows();
    if (index < rows.size()) {
      const uint64_t declared = rows[index]->value(".size", uint64_t(0));
      if (declared != size)
        wrong(fmt::format("args[{}]: {} bytes, the kernel takes {}", index, size, declared));
      return rows[index]->value(".offset", uint64_t(0));
    }
    return (next_ + size - 1) / size * size;
  }

  void add_argument(size_t index, const Json& row) {
    const std::string where = fmt::format("args[{}]", index);
    if (!row.is_object()) wrong(where + ": an object is wanted");
    for (const auto& [key, value] : row.items()) {
      if (key == "offset") continue;
      if (key == "buffer") return add_buffer(index, row, value, where);
      const Scalar scalar = scalar_of(dtype_of(key, where), value, where);
      uint64_t bytes = 0;
      store_scalar(scalar, &bytes);
      const size_t size = size_bytes(scalar.dtype);
      return put(offset_of(index, row, size), &bytes, size);
    }
    wrong(where + ": \"buffer\" or a dtype is wanted, as in {\"f32\": 1.5}");
  }

  DType dtype_of(const std::string& name, const std::string& where) const {
    try {
      const DType t = parse_dtype(name);
      if (row(t).storage_bits % 8 == 0 && row(t).storage_bits) return t;
    } catch (const InvalidArgument&) {}
    wrong(fmt::format("{}: '{}' is no dtype", where, name));
  }

  Scalar scalar_of(DType t, const Json& value, const std::string& where) const {
    if (value.is_boolean()) return Scalar::of_int(t, value.get<bool>());
    if (value.is_number_unsigned()) {
      const auto bits = value.get<uint64_t>();
      return bits > uint64_t(INT64_MAX) && is_float(t) ? Scalar::of_double(t, double(bits))
                                                       : Scalar::of_int(t, int64_t(bits));
    }
    if (value.is_number_integer()) return Scalar::of_int(t, value.get<int64_t>());
    if (value.is_number()) return Scalar::of_double(t, value.get<double>());
    if (value == "inf" || value == "-inf" || value == "nan")
      return Scalar::of_double(t, std::strtod(value.get<std::string>().c_str(), nullptr));
    wrong(where + ": a number is wanted, or \"inf\", \"-inf\", \"nan\"");
  }

  void add_buffer(size_t index, const Json& argument, const Json& row, const std::string& where) {
    if (!row.is_object()) wrong(where + ".buffer: an object is wanted");
    refuse_unknown(row, {"dtype", "size", "count", "fill", "file", "values"}, where + ".buffer: ");
    EmuBuffer buffer;
    buffer.argument = index;
    buffer.dtype = dtype_of(row.value("dtype", "u8"), where);
    const size_t item = size_bytes(buffer.dtype);
    uint64_t size = number(row, "size", 0, kMostBytes);
    if (row.contains("count")) size = number(row, "count", 0, kMostBytes / item) * item;
    if (row.contains("file")) buffer.bytes = file_bytes(row["file"], where);
    if (row.contains("values")) {
      for (const Json& value : row["values"]) append(buffer, scalar_of(buffer.dtype, value, where));
    }
    if (row.contains("size") || row.contains("count")) {
      if (buffer.bytes.size() > size)
        wrong(fmt::format("{}: {} bytes of contents in {}", where, buffer.bytes.size(), size));
      fill(buffer, size, row.contains("fill") ? row["fill"] : Json(0), where);
    }
    if (buffer.bytes.empty())
      wrong(where + ": \"size\", \"count\", \"values\" or \"file\" is wanted");
    buffer.before = buffer.bytes;
    buffer.address = next_address_;
    next_address_ += (buffer.bytes.size() / kBetweenBuffers + 2) * kBetweenBuffers;
    put(offset_of(index, argument, 8), &buffer.address, 8);
    out_.buffers.push_back(std::move(buffer));
  }

  std::vector<uint8_t> file_bytes(const Json& name, const std::string& where) const {
    if (!name.is_string()) wrong(where + ": file: a name is wanted");
    const auto folder = std::filesystem::path(path_).parent_path();
    return os::read_file((folder / name.get<std::string>()).string());
  }

  static void append(EmuBuffer& buffer, const Scalar& value) {
    const size_t at = buffer.bytes.size();
    buffer.bytes.resize(at + size_bytes(buffer.dtype));
    store_scalar(value, buffer.bytes.data() + at);
  }

  void fill(EmuBuffer& buffer, uint64_t size, const Json& value, const std::string& where) const {
    const Scalar scalar = scalar_of(buffer.dtype, value, where);
    while (buffer.bytes.size() + size_bytes(buffer.dtype) <= size) append(buffer, scalar);
    buffer.bytes.resize(size);
  }

  // LLVM, "User Guide for AMDGPU Backend", Code Object V5 Metadata: kinds of hidden arguments.
  void add_hidden() {
    if (metadata_.is_null() || !metadata_.contains(".args")) return;
    std::map<std::string, uint64_t> values{{"hidden_dynamic_lds_size", out_.dynamic_lds_bytes},
                                           {"hidden_grid_dims", 3}};
    for (size_t k = 0; k < 3; ++k) {
      const std::string axis(1, char('x' + k));
      values["hidden_block_count_" + axis] = out_.groups[k];
      values["hidden_group_size_" + axis] = out_.group_size[k];
    }
    for (const Json& row : metadata_[".args"]) {
      const auto known = values.find(row.value(".value_kind", ""));
      const uint64_t value = known == values.end() ? 0 : known->second;
      const uint64_t size = row.value(".size", uint64_t(0));
      if (row.value(".value_kind", "").starts_with("hidden_") && size <= sizeof value)
        put(row.value(".offset", uint64_t(0)), &value, size);
    }
  }

  std::string path_;
  const Json& metadata_;
  LaunchLimits limits_;
  EmuLaunch out_;
  uint64_t next_ = 0, next_address_ = kFirstBuffer;
};

}  // namespace

EmuLaunch read_emu_launch(const std::string& path, const Json& metadata, uint32_t block_bytes,
                          const LaunchLimits& limits) {
  return Reader(path, metadata, block_bytes, limits).read();
}

}  // namespace tuff::emu
