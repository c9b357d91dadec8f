#include "cli/gpu_shader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <tuff/dtype.h>

#include "base/check.h"
#include "base/os.h"
#include "base/parse_number.h"
#include "base/split_mix.h"

namespace tuff::cli {
namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 32;  // of a buffer: descriptors have 32 bits
constexpr uint64_t kSeed = 1;

// The two sides of the first sign; nothing where there is none.
std::optional<std::pair<std::string, std::string>> halves(const std::string& text, char sign) {
  const size_t at = text.find(sign);
  if (at == text.npos) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

void append_scalar(std::vector<uint8_t>& to, const Scalar& value) {
  to.resize(to.size() + size_bytes(value.dtype));
  store_scalar(value, to.data() + to.size() - size_bytes(value.dtype));
}

// Appends a value of a dtype; false if the text is none.
bool append_value(std::vector<uint8_t>& to, DType dtype, const std::string& text) {
  if (is_float(dtype)) {
    const auto value = parse_number<double>(text);
    if (value) append_scalar(to, Scalar::of_double(dtype, *value));
    return value.has_value();
  }
  std::optional<int64_t> bits = parse_number<int64_t>(text);
  if (text.starts_with("0x"))
    if (const auto hex = parse_number<uint64_t>(text.substr(2), 16)) bits = int64_t(*hex);
  if (bits) append_scalar(to, Scalar::of_int(dtype, *bits));
  return bits.has_value();
}

std::optional<DType> scalar_dtype(const std::string& name) {
  for (const DType t : {DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32,
                        DType::U64, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64})
    if (name == short_name(t)) return t;
  return std::nullopt;
}

constexpr const char* kValues =
    "numbers with commas, u32 or behind their dtype (\"4096,f32:0.5,i32:-1\")";

std::vector<uint8_t> typed_values(const std::string& option, const std::string& text) {
  std::vector<uint8_t> out;
  DType dtype = DType::U32;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    std::string value = part;
    if (const auto both = halves(part, ':')) {
      const auto named = scalar_dtype(both->first);
      if (!named) throw UsageError(fmt::format("{} {}: no dtype '{}'", option, text, both->first));
      dtype = *named;
      value = both->second;
    }
    if (!append_value(out, dtype, value))
      throw UsageError(fmt::format("{} {}: '{}' is no {}; wanted are {}", option, text, value,
                                   short_name(dtype), kValues));
  }
  return out;
}

std::vector<uint8_t> hex_bytes(const std::string& text) {
  std::vector<uint8_t> out;
  for (size_t at = 0; at < text.size(); at += 2) {
    const std::string pair = text.substr(at, 2);
    const auto byte = parse_number<uint8_t>(pair, 16);
    if (!byte || pair.size() < 2)
      throw UsageError(fmt::format("--push hex:{}: these are no pairs of digits", text));
    out.push_back(*byte);
  }
  return out;
}

constexpr const char* kContents = "zero, random, random-f32, random-f16 or file=PATH";

// The same numbers at each run: bytes of any value, or floats from -1 to 1.
void fill_random(std::vector<uint8_t>& bytes, const std::string& kind) {
  SplitMix64 random(kSeed);
  const auto between = [&] { return float(int32_t(random.next() >> 32)) / 2147483648.0f; };
  size_t at = 0;
  for (; kind == "random-f32" && at + 4 <= bytes.size(); at += 4) {
    const float value = between();
    std::memcpy(&bytes[at], &value, 4);
  }
  for (; kind == "random-f16" && at + 2 <= bytes.size(); at += 2) {
    const uint16_t value = f16_from_f32(between());
    std::memcpy(&bytes[at], &value, 2);
  }
  for (; at < bytes.size(); ++at) bytes[at] = uint8_t(random.next());
}

// "BYTES" or "BYTES:CONTENTS".
std::vector<uint8_t> contents(const std::string& option, const std::string& text) {
  const auto both = halves(text, ':').value_or(std::pair(text, std::string("zero")));
  const auto size = parse_number<uint64_t>(both.first);
  if (!size || *size == 0 || *size >= kMostBytes)
    throw UsageError(fmt::format("{}: '{}' is no size from 1 to {} bytes", option, both.first,
                                 kMostBytes - 1));
  std::vector<uint8_t> bytes(*size);
  const std::string& kind = both.second;
  if (kind.starts_with("file=")) {
    const std::vector<uint8_t> file = os::read_file(kind.substr(5));
    if (file.size() > bytes.size())
      throw UsageError(fmt::format("{}: '{}' has {} bytes, more than the buffer's {}", option,
                                   kind.substr(5), file.size(), bytes.size()));
    std::ranges::copy(file, bytes.begin());
  } else if (kind == "random" || kind == "random-f32" || kind == "random-f16") {
    fill_random(bytes, kind);
  } else if (kind != "zero") {
    throw UsageError(fmt::format("{}: contents '{}': wanted are {}", option, kind, kContents));
  }
  return bytes;
}

// "SET:BINDING" of a text; "BINDING" alone is one of set 0.
std::optional<std::pair<uint32_t, uint32_t>> place_of(const std::string& text) {
  const auto both = halves(text, ':').value_or(std::pair(std::string("0"), text));
  const auto set = parse_number<uint32_t>(both.first), binding = parse_number<uint32_t>(both.second);
  constexpr uint32_t kMostSets = 32;  // of RADV
  if (!set || !binding || *set >= kMostSets) return std::nullopt;
  return std::pair(*set, *binding);
}

gpu::ShaderBuffer buffer_of(const std::string& text) {
  const auto both = halves(text, '=');
  const auto place = both ? place_of(both->first) : std::nullopt;
  if (!place)
    throw UsageError(fmt::format("--buffer {}: wanted is SET:BINDING=BYTES[:CONTENTS]", text));
  return {place->first, place->second, contents("--buffer " + text, both->second)};
}

gpu::ShaderArgument argument_of(const std::string& text) {
  if (const auto both = halves(text, '='); both && both->first == "buffer")
    return {contents("--argument " + text, both->second), true};
  gpu::ShaderArgument out{typed_values("--argument", text), false};
  if (const size_t size = out.bytes.size(); size > 8 || (size & (size - 1)))
    throw UsageError(fmt::format("--argument {}: one value each", text));
  return out;
}

// A word: of an integer, or of a float where a point or a dtype says so.
std::pair<uint32_t, uint32_t> constant_of(const std::string& text) {
  const auto both = halves(text, '=');
  const auto id = both ? parse_number<uint32_t>(both->first) : std::nullopt;
  if (!id) throw UsageError(fmt::format("--constant {}: wanted is ID=VALUE", text));
  const std::string& value = both->second;
  const bool is_plain_float = value.find('.') != value.npos && value.find(':') == value.npos;
  const std::vector<uint8_t> bytes =
      typed_values("--constant", is_plain_float ? "f32:" + value : value);
  uint32_t word = 0;
  if (bytes.size() != sizeof word)
    throw UsageError(fmt::format("--constant {}: a value of 32 bits is wanted", text));
  std::memcpy(&word, bytes.data(), sizeof word);
  return {*id, word};
}

gpu::ShaderLaunch launch_of(const ShaderOptions& o) {
  gpu::ShaderLaunch launch;
  for (const std::string& text : o.buffers) {
    const gpu::ShaderBuffer buffer = buffer_of(text);
    for (const gpu::ShaderBuffer& other : launch.buffers)
      if (other.set == buffer.set && other.binding == buffer.binding)
        throw UsageError(fmt::format("--buffer {}: {}:{} is there twice", text, buffer.set,
                                     buffer.binding));
    launch.buffers.push_back(buffer);
  }
  for (const std::string& text : o.arguments) launch.arguments.push_back(argument_of(text));
  for (const std::string& text : o.constants)
    if (const auto constant = constant_of(text); !launch.constants.insert(constant).second)
      throw UsageError(fmt::format("--constant {}: {} is there twice", text, constant.first));
  if (!o.push.empty())
    launch.push =
        o.push.starts_with("hex:") ? hex_bytes(o.push.substr(4)) : typed_values("--push", o.push);
  if (launch.push.size() % 4)
    throw UsageError(fmt::format("--push: {} bytes, no multiple of 4", launch.push.size()));
  std::ranges::copy(o.groups, launch.groups.begin());
  if (std::ranges::find(launch.groups, 0u) != launch.groups.end())
    throw UsageError("--groups: three numbers above 0 are wanted");
  launch.entry = o.entry;
  launch.spirv = os::read_file(o.file);
  return launch;
}

// What --out says to write: "SET:BINDING=PATH", or "NUMBER=PATH" of an argument.
struct Result {
  const std::vector<uint8_t>* bytes;
  std::string path;
};

Result result_of(const gpu::ShaderLaunch& launch, const std::string& text) {
  const auto both = halves(text, '=');
  if (!both) throw UsageError(fmt::format("--out {}: wanted is SET:BINDING=PATH", text));
  if (!launch.arguments.empty()) {
    const auto index = parse_number<uint32_t>(both->first);
    if (!index || *index >= launch.arguments.size() || !launch.arguments[*index].is_buffer)
      throw UsageError(fmt::format("--out {}: there is no buffer at argument '{}', counted from 0",
                                   text, both->first));
    return {&launch.arguments[*index].bytes, both->second};
  }
  const auto place = place_of(both->first);
  for (const gpu::ShaderBuffer& b : launch.buffers)
    if (place == std::pair(b.set, b.binding)) return {&b.bytes, both->second};
  throw UsageError(fmt::format("--out {}: there is no --buffer {}", text, both->first));
}

}  // namespace

void add_shader_options(CLI::App& gpu, ShaderOptions& o) {
  auto* file = gpu.add_option("--spirv", o.file, "A compute shader to run instead of a workload")
                   ->type_name("FILE");
  const auto add = [&](const char* name, auto& value, const char* text, const char* type) {
    return gpu.add_option(name, value, text)->needs(file)->type_name(type);
  };
  add("--groups", o.groups, "How many workgroups there are", "X,Y,Z")->delimiter(',')->expected(3);
  add("--buffer", o.buffers,
      "Storage or uniform buffer at a set and binding; contents: zero, random (bytes), random-f32, "
      "random-f16 or file=PATH",
      "SET:BINDING=BYTES[:CONTENTS]");
  auto* push = add("--push", o.push,
                   "Push constants: numbers, u32 or behind their dtype (4096,f32:0.5), or "
                   "hex:DIGITS",
                   "LIST");
  add("--argument", o.arguments,
      "For tuff's own kernels, instead: a value of the argument block (u32:7), or a buffer in it "
      "(buffer=BYTES[:CONTENTS]); in their order",
      "VALUE")
      ->excludes(push);
  add("--constant", o.constants, "A specialization constant; with a point or f32: it is a float",
      "ID=VALUE");
  add("--entry", o.entry, "The entry point, where the module has several", "NAME");
  add("--out", o.results,
      "Writes a buffer afterwards, as raw bytes; an argument's by its number, from 0",
      "SET:BINDING=PATH");
  for (const char* name : {"--buffer", "--argument", "--constant", "--out"})
    gpu.get_option(name)->allow_extra_args(false);
}

gpu::ShaderReport run_shader(const ShaderOptions& o, const gpu::EmulationOptions& emulation) {
  gpu::ShaderLaunch launch = launch_of(o);
  std::vector<Result> results;
  for (const std::string& text : o.results) results.push_back(result_of(launch, text));
  const gpu::ShaderReport report = gpu::run_shader(launch, emulation);
  for (const Result& r : results) os::write_file(r.path, *r.bytes);
  return report;
}

}  // namespace tuff::cli
