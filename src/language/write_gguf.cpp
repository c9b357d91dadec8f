#include "language/write_gguf.h"

#include <optional>
#include <vector>

#include "base/check.h"
#include "base/os.h"
#include "io/formats/gguf.h"
#include "io/formats/gguf_write.h"
#include "language/tensor_writer.h"

namespace tuff::language {
namespace {

// Metadata byte for byte, but what says how weights are stored, where that is new, and that a file
// is one of several.
std::vector<io::GgufField> fields_of(const io::ByteSource& source,
                                     const std::optional<uint32_t>& file_type) {
  constexpr std::string_view kFileType = "general.file_type",
                             kVersion = "general.quantization_version";
  constexpr uint32_t kCurrentVersion = 2;
  std::vector<io::GgufField> out;
  for (const io::GgufItem& item : io::gguf_items(source)) {
    const bool replaced = file_type && (item.key == kFileType || item.key == kVersion);
    if (!replaced && !item.key.starts_with("split."))
      out.push_back({item.key, source.bytes(item.offset, item.size_bytes)});
  }
  if (!file_type) return out;
  out.push_back(io::gguf_field(std::string(kVersion), kCurrentVersion));
  out.push_back(io::gguf_field(std::string(kFileType), *file_type));
  return out;
}

uint64_t alignment_of(const TensorDict& file) {
  const MetadataValue* v = file.metadata("general.alignment");
  const auto* n = v ? std::get_if<uint64_t>(&v->value) : nullptr;
  return n ? *n : io::kGgufAlignment;
}

// As they will stand in the file.
std::vector<io::TensorEntry> planned(const std::vector<TensorInfo>& tensors,
                                     const WeightChanges& changes) {
  std::vector<io::TensorEntry> out;
  for (const TensorInfo& t : tensors) {
    io::TensorEntry e{.name = t.name, .type = changes.type(t), .shape = t.shape};
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

}  // namespace

void require_new_file(const std::string& to, bool overwrite) {
  if (!overwrite && os::exists(to))
    fail<InvalidArgument>("{} is there already; --force (overwrite) writes over it", to);
}

Quantized write_gguf(const std::string& from, const TensorDict& file, const std::string& to,
                     const WeightChanges& changes,
                     const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::vector<TensorInfo> tensors = file.info();
  const std::vector<io::TensorEntry> wanted = planned(tensors, changes);
  const uint64_t alignment = alignment_of(file);
  WriteProgress written(progress);
  for (const io::TensorEntry& t : wanted) written.expect(t.size_bytes);
  TensorWriter writer(to, written);
  writer.header(io::encode_gguf_header(fields_of(io::FileBytes(from), changes.file_type()), wanted,
                                       alignment));
  Quantized out;
  for (size_t i = 0; i < tensors.size(); i++) {
    const TensorInfo& t = tensors[i];
    if (changes.has_values(t.name))
      writer.encode(t.name, changes.values(t.name, file.at(t.name)), wanted[i].type);
    else if (t.type != wanted[i].type)
      writer.encode(t.name, file.at(t.name), wanted[i].type);
    else
      writer.copy(t);
    writer.align(alignment);
    out.bytes_before += t.size_bytes, out.bytes += wanted[i].size_bytes;
    out.tensors[wanted[i].type]++;
  }
  writer.commit();
  return out;
}

}  // namespace tuff::language
