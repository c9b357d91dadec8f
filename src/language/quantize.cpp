// quantize(): a model with its weights in another type, tensor after tensor.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ranges>

#include <fmt/ranges.h>
#include <tuff/io.h>
#include <tuff/language.h>

#include "base/check.h"
#include "base/os.h"
#include "base/os_stream.h"
#include "base/parallel.h"
#include "io/formats/gguf.h"
#include "io/formats/gguf_write.h"
#include "io/quantize.h"
#include "io/tensor_bytes.h"
#include "io/tensor_pieces.h"

namespace tuff::language {
namespace {

// What --type names: the type of most weights, and the number that general.file_type has for it
// (docs/gguf.md, and enum llama_ftype for those that mix types).
struct Mix {
  std::string_view name, type;
  uint32_t file_type;
};
constexpr Mix kMixes[] = {
    {"f32", "F32", 0},     {"f16", "F16", 1},     {"bf16", "BF16", 32},  {"q8_0", "Q8_0", 7},
    {"q4_0", "Q4_0", 2},   {"q4_1", "Q4_1", 3},   {"q5_0", "Q5_0", 8},   {"q5_1", "Q5_1", 9},
    {"q2_k", "Q2_K", 10},  {"q3_k", "Q3_K", 12},  {"q4_k", "Q4_K", 15},  {"q4_k_s", "Q4_K", 14},
    {"q5_k", "Q5_K", 17},  {"q5_k_s", "Q5_K", 16}, {"q6_k", "Q6_K", 18},
};

const Mix& mix_of(const std::string& name) {
  const auto* found = std::ranges::find(kMixes, name, &Mix::name);
  if (found == std::end(kMixes))
    fail<InvalidArgument>("'{}' is none of the types that weights are written in: {}", name,
                          fmt::join(kMixes | std::views::transform(&Mix::name), ", "));
  return *found;
}

// Weights that matter more have more bits, in the layers that matter most: as llama.cpp mixes
// types.
enum class Layers : uint8_t { All, FirstTwo, FirstFour, FirstEighth, FirstSixteenth, Ends };
struct MixRule {
  std::string_view mix, part;  // of a tensor's name
  Layers layers;
  std::string_view type;
};
constexpr MixRule kRules[] = {
    {"q2_k", "attn_v.", Layers::All, "Q3_K"},
    {"q2_k", "attn_qkv.", Layers::All, "Q3_K"},
    {"q2_k", "ffn_down", Layers::All, "Q3_K"},
    {"q2_k", "attn_output.", Layers::All, "Q3_K"},
    {"q3_k", "attn_v.", Layers::FirstTwo, "Q5_K"},
    {"q3_k", "attn_v.", Layers::All, "Q4_K"},
    {"q3_k", "attn_qkv.", Layers::FirstTwo, "Q5_K"},
    {"q3_k", "attn_qkv.", Layers::All, "Q4_K"},
    {"q3_k", "ffn_down", Layers::FirstSixteenth, "Q5_K"},
    {"q3_k", "ffn_down", Layers::All, "Q4_K"},
    {"q3_k", "attn_output.", Layers::All, "Q4_K"},
    {"q4_k", "attn_v.", Layers::Ends, "Q6_K"},
    {"q4_k", "attn_qkv.", Layers::Ends, "Q6_K"},
    {"q4_k", "ffn_down", Layers::Ends, "Q6_K"},
    {"q4_k_s", "attn_v.", Layers::FirstFour, "Q5_K"},
    {"q4_k_s", "attn_qkv.", Layers::FirstFour, "Q5_K"},
    {"q4_k_s", "ffn_down", Layers::FirstEighth, "Q5_K"},
    {"q5_k", "attn_v.", Layers::Ends, "Q6_K"},
    {"q5_k", "attn_qkv.", Layers::Ends, "Q6_K"},
    {"q5_k", "ffn_down", Layers::Ends, "Q6_K"},
};
// What stays as it is although it has two axes: small, and much depends on it.
constexpr std::string_view kKept[] = {"_norm.weight", "ffn_gate_inp.weight", "position_embd.weight",
                                      "token_types.weight"};

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_among(Layers which, int64_t layer, int64_t count) {
  switch (which) {
    case Layers::All: return true;
    case Layers::FirstTwo: return layer < 2;
    case Layers::FirstFour: return layer < 4;
    case Layers::FirstEighth: return layer < count / 8;
    case Layers::FirstSixteenth: return layer < count / 16;
    case Layers::Ends:  // and every third between them
      return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
  }
  return false;
}

// -1: of none.
int64_t layer_of(std::string_view name) {
  int64_t layer = 0;
  if (!name.starts_with("blk.")) return -1;
  for (const char c : name.substr(4)) {
    if (c == '.') return layer;
    if (c < '0' || c > '9' || layer > 1 << 20) return -1;
    layer = layer * 10 + (c - '0');
  }
  return -1;
}

// Rows that are no whole blocks of 256 are in blocks of 32, or not in blocks.
std::string_view type_that_fits(std::string_view type, int64_t row) {
  constexpr std::pair<std::string_view, std::string_view> kSmaller[] = {
      {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
  const auto fits = [&] { return row % io::gguf_block(type)->elements == 0; };
  for (const auto& [large, small] : kSmaller)
    if (type == large && !fits()) type = small;
  return fits() ? type : "F16";
}

class Plan {
 public:
  Plan(const Mix& mix, const std::vector<TensorInfo>& tensors) : mix_(mix) {
    for (const TensorInfo& t : tensors) {
      layers_ = std::max(layers_, layer_of(t.name) + 1);
      tied_ = tied_ && t.name != "output.weight";
    }
  }
  std::string_view type(const TensorInfo& t) const {
    const std::string_view name = t.name;
    const bool kept =
        t.shape.size() < 2 || !name.ends_with("weight") || is_int(t.dtype) ||
        std::ranges::any_of(kKept, [&](std::string_view part) { return has(name, part); });
    if (kept) return t.type;
    if (io::gguf_block(mix_.type)->elements == 1) return mix_.type;
    return type_that_fits(wanted(name), t.shape.back());
  }

 private:
  std::string_view wanted(std::string_view name) const {
    const bool last = name == "output.weight" || (tied_ && name == "token_embd.weight");
    if (last) return mix_.type == "Q8_0" ? "Q8_0" : "Q6_K";
    for (const MixRule& r : kRules)
      if (r.mix == mix_.name && has(name, r.part) &&
          is_among(r.layers, layer_of(name), layers_))
        return r.type;
    return mix_.type;
  }
  const Mix& mix_;
  int64_t layers_ = 0;
  bool tied_ = true;
};

// One file of `io`'s, by which tensors that keep their type are copied.
class Sources {
 public:
  void copy(const TensorInfo& t, const io::ByteSink& sink) {
    auto& file = files_[t.file];
    if (!file) file = std::make_unique<io::FileBytes>(t.file);
    std::vector<uint8_t> piece;
    for (uint64_t at = 0; at < t.size_bytes; at += piece.size()) {
      piece.resize(std::min(io::kTensorPieceBytes, t.size_bytes - at));
      file->read(t.offset + at, piece);
      sink(piece);
    }
  }

 private:
  std::map<std::string, std::unique_ptr<io::FileBytes>> files_;
};

// Floats of any width, as a tensor's bytes have them.
std::vector<float> widened(std::span<const uint8_t> bytes, DType dtype) {
  const size_t width = size_bytes(dtype);
  std::vector<float> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); i++) {
    uint16_t bits = 0;
    if (dtype == DType::F32) {
      std::memcpy(&out[i], &bytes[i * width], width);
      continue;
    }
    std::memcpy(&bits, &bytes[i * width], width);
    out[i] = dtype == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
  return out;
}

void require_range(std::span<const float> values, std::string_view type, const std::string& name) {
  const bool wide = type == "F32" || type == "BF16";
  const auto bad = std::ranges::find_if(values, [&](float v) {
    return !std::isfinite(v) || (!wide && std::abs(v) > io::kLargestQuantized);
  });
  if (bad != values.end())
    fail<InvalidArgument>("the tensor {} has an element of {}, which {} does not hold", name, *bad,
                          type);
}

constexpr size_t kTaskElements = 1 << 16;

std::vector<uint8_t> encoded(std::span<const float> values, std::string_view type) {
  const io::BlockType block = *io::gguf_block(type);
  std::vector<uint8_t> out(values.size() / block.elements * block.size_bytes);
  const size_t tasks = (values.size() + kTaskElements - 1) / kTaskElements;
  parallel_for(tasks, os::core_count(), [&](size_t i) {
    const size_t begin = i * kTaskElements, count = std::min(kTaskElements, values.size() - begin);
    const auto bytes = [&](size_t elements) {
      return elements / block.elements * block.size_bytes;
    };
    io::quantize(type, values.subspan(begin, count),
                 std::span(out).subspan(bytes(begin), bytes(count)));
  });
  return out;
}

// Metadata byte for byte, but what says how weights are stored, and that a file is one of several.
std::vector<io::GgufField> fields_of(const io::ByteSource& source, const Mix& mix) {
  constexpr std::string_view kFileType = "general.file_type",
                             kVersion = "general.quantization_version";
  constexpr uint32_t kCurrentVersion = 2;
  std::vector<io::GgufField> out;
  for (const io::GgufItem& item : io::gguf_items(source))
    if (item.key != kFileType && item.key != kVersion && !item.key.starts_with("split."))
      out.push_back({item.key, source.bytes(item.offset, item.size_bytes)});
  out.push_back(io::gguf_field(std::string(kVersion), kCurrentVersion));
  out.push_back(io::gguf_field(std::string(kFileType), mix.file_type));
  return out;
}

uint64_t alignment_of(const TensorDict& file) {
  const MetadataValue* v = file.metadata("general.alignment");
  const auto* n = v ? std::get_if<uint64_t>(&v->value) : nullptr;
  return n ? *n : io::kGgufAlignment;
}

class Writer {
 public:
  Writer(const std::string& to, const TensorDict& file, const QuantizeOptions& options)
      : file_(file), options_(options), out_(to), alignment_(alignment_of(file)) {}

  void header(std::span<const io::GgufField> fields, std::span<const io::TensorEntry> tensors) {
    for (const io::TensorEntry& t : tensors) total_ += t.size_bytes;
    out_.write(io::encode_gguf_header(fields, tensors, alignment_));
  }
  void tensor(const TensorInfo& from, std::string_view type) {
    if (from.type == type) {
      sources_.copy(from, [&](std::span<const uint8_t> piece) { put(piece); });
    } else {
      const Tensor t = file_.at(from.name);
      const bool stored = t.dtype() == DType::F32 || t.dtype() == DType::F16 ||
                          t.dtype() == DType::BF16;
      io::for_each_piece(stored ? t : t.to(DType::F32), [&](std::span<const uint8_t> piece) {
        const std::vector<float> values = widened(piece, stored ? t.dtype() : DType::F32);
        require_range(values, type, from.name);
        put(encoded(values, type));
      });
    }
    const uint64_t at = out_.offset();
    out_.write(std::vector<uint8_t>(io::aligned(at, alignment_) - at));
  }
  void commit() { out_.commit(); }

 private:
  void put(std::span<const uint8_t> bytes) {
    out_.write(bytes);
    done_ += bytes.size();
    if (options_.progress) options_.progress(done_, total_);
  }
  const TensorDict& file_;
  const QuantizeOptions& options_;
  os::OutputFile out_;
  Sources sources_;
  const uint64_t alignment_;
  uint64_t done_ = 0, total_ = 0;
};

// As they will stand in the file.
std::vector<io::TensorEntry> planned(const std::vector<TensorInfo>& tensors, const Plan& plan) {
  std::vector<io::TensorEntry> out;
  for (const TensorInfo& t : tensors) {
    io::TensorEntry e{.name = t.name, .type = std::string(plan.type(t)), .shape = t.shape};
    if (e.type != t.type && t.dtype == DType::Void)
      fail<Unsupported>("the tensor {} is of {}, which tuff does not decode", t.name, t.type);
    uint64_t elements = 1;
    for (const int64_t n : t.shape) elements *= uint64_t(n);
    const io::BlockType& block = *io::gguf_block(e.type);
    e.size_bytes = elements / block.elements * block.size_bytes;
    out.push_back(std::move(e));
  }
  return out;
}

void require_files(const std::string& from, const std::string& to, bool overwrite) {
  if (std::filesystem::is_directory(from))
    fail<Unsupported>("{} is a folder: GGUF files are quantized", from);
  if (!overwrite && os::exists(to))
    fail<InvalidArgument>("{} is there already; --force (overwrite) writes over it", to);
}

}  // namespace

Quantized quantize(const std::string& from, const std::string& to, const std::string& type,
                   const QuantizeOptions& options) {
  const Mix& mix = mix_of(type);
  require_files(from, to, options.overwrite);
  const TensorDict file = tuff::load(from, {.device = options.device});
  if (file.format() != "gguf")
    fail<Unsupported>("{} is of the format {}: GGUF files are quantized", from, file.format());
  const std::vector<TensorInfo> tensors = file.info();
  const std::vector<io::TensorEntry> wanted = planned(tensors, Plan(mix, tensors));
  Writer writer(to, file, options);
  writer.header(fields_of(io::FileBytes(from), mix), wanted);
  Quantized out;
  for (size_t i = 0; i < tensors.size(); i++) {
    writer.tensor(tensors[i], wanted[i].type);
    out.bytes_before += tensors[i].size_bytes, out.bytes += wanted[i].size_bytes;
    out.tensors[wanted[i].type]++;
  }
  writer.commit();
  return out;
}

}  // namespace tuff::language
