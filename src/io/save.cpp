// save(): dictionaries of tensors to files, tensor after tensor, each in pieces.
#include <tuff/io.h>

#include "base/check.h"
#include "base/os_stream.h"
#include "io/formats/npy.h"
#include "io/formats/safetensors.h"
#include "io/formats/zip.h"
#include "io/tensor_pieces.h"

namespace tuff {
namespace {

uint64_t bytes_of(const Tensor& t) { return uint64_t(int64_t(t.numel())) * size_bytes(t.dtype()); }

// Tensors of a symbolic extent have none that a file could hold: Size refuses the conversion.
std::vector<int64_t> shape_of(const Tensor& t) {
  std::vector<int64_t> shape;
  for (const Size& s : t.sizes()) shape.push_back(int64_t(s));
  return shape;
}

// A file that tensors are written to; reports how far it is.
class TensorOutput final : public io::ZipWriter::Output {
 public:
  TensorOutput(const std::string& path, const TensorDict& tensors, const SaveOptions& options)
      : file_(path), options_(options) {
    for (const std::string& name : tensors.names()) total_ += bytes_of(tensors.at(name));
  }
  void put(std::span<const uint8_t> bytes) override { file_.write(bytes); }
  void replace(uint64_t offset, std::span<const uint8_t> bytes) override {
    file_.replace(offset, bytes);
  }
  void require_replace() const { file_.require_replace(); }
  void put_tensor(const Tensor& t, const io::ByteSink& sink) {
    io::for_each_piece(t, [&](std::span<const uint8_t> piece) {
      sink(piece);
      done_ += piece.size();
      if (options_.progress) options_.progress(done_, total_);
    });
  }
  void put_tensor(const Tensor& t) {
    put_tensor(t, [&](std::span<const uint8_t> piece) { file_.write(piece); });
  }
  void commit() { file_.commit(); }

 private:
  os::OutputFile file_;
  const SaveOptions& options_;
  uint64_t done_ = 0, total_ = 0;
};

void save_safetensors(const std::string& path, const TensorDict& tensors,
                      const SaveOptions& options) {
  std::vector<io::TensorEntry> entries;
  for (const std::string& name : tensors.names()) {
    const Tensor t = tensors.at(name);
    io::TensorEntry entry{.name = name, .dtype = t.dtype(), .shape = shape_of(t)};
    entry.size_bytes = bytes_of(t);
    entries.push_back(std::move(entry));
  }
  const std::vector<uint8_t> header = io::encode_safetensors_header(entries, tensors.metadata());
  TensorOutput file(path, tensors, options);
  file.put(header);
  for (const size_t i : io::by_offset(entries)) file.put_tensor(tensors.at(entries[i].name));
  file.commit();
}

void save_npz(const std::string& path, const TensorDict& tensors, const SaveOptions& options) {
  TensorOutput file(path, tensors, options);
  file.require_replace();
  io::ZipWriter zip(file);
  for (const std::string& name : tensors.names()) {
    const Tensor t = tensors.at(name);
    const std::vector<uint8_t> header = io::encode_npy_header(t.dtype(), shape_of(t));
    const auto contents = [&](const io::ByteSink& sink) {
      sink(header);
      file.put_tensor(t, sink);
    };
    zip.add(name + ".npy", header.size() + bytes_of(t), contents, options.compress);
  }
  zip.finish();
  file.commit();
}

void save_npy(const std::string& path, const TensorDict& tensors, const SaveOptions& options) {
  if (tensors.size() != 1)
    fail<InvalidArgument>("{}: an .npy file holds one tensor, not {}; an .npz holds many", path,
                          tensors.size());
  const Tensor t = tensors.at(tensors.names()[0]);
  const std::vector<uint8_t> header = io::encode_npy_header(t.dtype(), shape_of(t));
  TensorOutput file(path, tensors, options);
  file.put(header);
  file.put_tensor(t);
  file.commit();
}

}  // namespace

void save(const std::string& path, const TensorDict& tensors, const SaveOptions& options) {
  if (options.compress && !path.ends_with(".npz"))
    fail<InvalidArgument>(
        "'{}': an .npz alone can be compressed; end its name in .npz, or leave compress out", path);
  if (path.ends_with(".safetensors")) return save_safetensors(path, tensors, options);
  if (path.ends_with(".npz")) return save_npz(path, tensors, options);
  if (path.ends_with(".npy")) return save_npy(path, tensors, options);
  fail<InvalidArgument>("'{}': files are written as .safetensors, .npz or .npy, by its ending",
                        path);
}

}  // namespace tuff
