// Tensors in files: safetensors, NumPy's .npy and .npz, PyTorch's checkpoints, GGUF and IDX. Called
// by users, `tuff inspect` and `tuff convert`. Must never know of graphs or devices.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tuff/metadata.h>
#include <tuff/nn.h>
#include <tuff/tensor.h>

namespace tuff {

class TensorDict;
namespace io {
Tensor packed_blocks(const TensorDict& tensors, std::string_view name);
}

/// What a file says of a tensor, without reading its contents.
struct TensorInfo {
  std::string name;
  std::string type;  ///< as the format spells it: "F32", "<f4", "torch.HalfStorage", "Q4_K"
  DType dtype =
      DType::Void;  ///< of the tensor; F32 for blocks; Void where tuff cannot compute with it
  std::vector<int64_t> shape;
  uint64_t size_bytes = 0;  ///< as they are stored
  uint64_t offset = 0;      ///< in the file, in an archive in the member
  std::string file;         ///< path, of an archive with the member; empty: made in this process
};

/// An ordered dictionary of tensors, with metadata. Loading reads the header alone: the
/// contents of a tensor that at() gives are read when it is realized or first used, together with
/// those of the others that are used then, while the caller and its devices go on with other work.
/// (Devices whose memory the host does not reach, or whose queues cannot wait, have the caller
/// wait.) What cannot be read is an IoError when the tensor, or what was computed from it, is
/// waited for; the tensor itself is read again at its next use. The file stays open as long
/// as the dictionary or a tensor of it that was not read; it may be deleted or replaced meanwhile,
/// but not written to. Copies share, as those of a Tensor do.
class TensorDict {
 public:
  TensorDict();
  size_t size() const;
  bool empty() const { return size() == 0; }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// InvalidArgument for a name that is not there; IoError and Unsupported as load().
  Tensor at(std::string_view name) const;
  Tensor operator[](std::string_view name) const { return at(name); }
  /// At the end, or in the place of the tensor of that name.
  void set(const std::string& name, const Tensor& tensor);
  void erase(std::string_view name);
  /// The tensors of a layer, model or optimizer, named "prefix.name": how checkpoints are put
  /// together.
  void set_state(std::string_view prefix, const nn::StateDict& state);
  /// The tensors below "prefix.", without it, for load_state_dict().
  nn::StateDict state(std::string_view prefix) const;
  std::vector<TensorInfo> info() const;
  /// "safetensors", "npy", "npz", "pytorch", "gguf", "idx"; empty if it comes from no file.
  const std::string& format() const;
  const Metadata& metadata() const;
  /// Null if it is not there.
  const MetadataValue* metadata(std::string_view key) const;
  void set_metadata(const std::string& key, MetadataValue value);

 private:
  friend TensorDict load(const std::string& path, const struct LoadOptions& options);
  friend Tensor io::packed_blocks(const TensorDict& tensors, std::string_view name);
  struct State;
  std::shared_ptr<State> state_;
};

/// How load() makes tensors.
struct LoadOptions {
  std::string device;  ///< where tensors are made; "" is the default device
  /// Tensors on the CPU are views of the file's pages instead of copies, with the promises of
  /// Tensor::from_file() and one more: once the file has been written to, they are refused with
  /// an IoError. Nothing is read or checked before it is used, checksums of archive members
  /// neither. Read as ever are tensors on other devices and those whose bytes are not what they
  /// have in memory: compressed members, bools, other byte orders, gaps, elements that are not
  /// aligned to their size.
  bool mmap = false;
};

/// Opens a file of any format that tuff knows, told by its contents; names ending in .index.json
/// are the index of a sharded safetensors model; of a GGUF model in several files (names end in
/// -00001-of-00005.gguf) the first opens all; what gzip has compressed is inflated first.
/// Blocks of GGUF become F32 by expressions that fuse into what consumes them. IoError naming file,
/// byte and reason for what is missing, truncated, contradicts itself or is refused; Unsupported
/// from at() for element types that tuff does not have. IoError from whatever waits for a tensor
/// whose contents cannot be read: the file has changed, a checksum is wrong, the disk fails.
TensorDict load(const std::string& path, const LoadOptions& options = {});

/// How save() writes.
struct SaveOptions {
  bool compress = false;  ///< .npz: deflated instead of stored
  /// Called after each piece with the bytes of contents that were written and those of all tensors.
  /// What it throws ends the saving, and nothing has changed.
  std::function<void(uint64_t written, uint64_t total)> progress = {};
};

/// Writes .safetensors, .npz or .npy (of one tensor), told by the name's ending. The file is whole
/// or as it was before; it may be one that tensors of the dictionary are read from. Links are
/// followed; what is replaced hands on mode and owner (its other hard links stay what it was);
/// pipes and character devices are written through, but no .npz. What killed processes have left
/// beside it is removed. Memory of the host is needed for pieces of a tensor alone: of a loaded one
/// that was not used yet the contents go from file to file, and what is computed from such tensors
/// is computed and forgotten, one after the other. safetensors keeps metadata, as texts, whole
/// lists as JSON; NumPy's files have none. InvalidArgument for another ending and for what the
/// format does not hold; IoError where it cannot be written.
void save(const std::string& path, const TensorDict& tensors, const SaveOptions& options = {});

}  // namespace tuff
