#include "io/formats/format.h"

#include "io/formats/gguf.h"
#include "io/formats/idx_array.h"
#include "io/formats/npy.h"
#include "io/formats/npz.h"
#include "io/formats/onnx.h"
#include "io/formats/pytorch.h"
#include "io/formats/safetensors.h"

namespace tuff::io {
namespace {

FileIndex read_archive(const ByteSource& source, const std::string& name) {
  std::vector<ZipMember> members = read_zip_directory(source);
  return is_pytorch(members) ? read_pytorch(source, std::move(members), name)
                             : read_npz(source, std::move(members));
}

}  // namespace

FileIndex read_index(const ByteSource& source, const std::string& name) {
  if (source.size_bytes() == 0) fail_at(source, 0, "the file is empty");
  if (is_gguf(source)) return read_gguf(source);
  if (is_npy(source)) return read_npy(source, name);
  if (is_zip(source)) return read_archive(source, name);
  if (is_safetensors(source)) return read_safetensors(source);
  if (is_idx(source)) return read_idx_array(source, name);
  if (is_onnx(source))
    fail_at(source, 0,
            "an ONNX model, which is no dictionary of tensors; tuff::onnx::load() reads it");
  const std::vector<uint8_t> head = source.bytes(0, std::min<uint64_t>(2, source.size_bytes()));
  if (head.size() == 2 && head[0] == 0x80 && head[1] <= 5)
    fail_at(source, 0,
            "a pickle, as PyTorch wrote checkpoints before 1.6; save it again with a newer one");
  fail_at(source, 0,
          "neither safetensors, .npy, .npz, a PyTorch checkpoint, GGUF nor IDX: {} bytes that "
          "begin with none of their marks",
          source.size_bytes());
}

}  // namespace tuff::io
