// libFuzzer's entry point (llvm.org/docs/LibFuzzer.html), compiled once for all readers: the linker
// gives fuzz_reader the address of one. Whatever the bytes, a reader gives an index or an IoError.
#include <tuff/error.h>

#include "io/formats/gguf.h"
#include "io/formats/idx_array.h"
#include "io/formats/npy.h"
#include "io/formats/npz.h"
#include "io/formats/onnx.h"
#include "io/formats/onnx_text.h"
#include "io/formats/pickle.h"
#include "io/formats/pytorch.h"
#include "io/formats/read_all.h"
#include "io/formats/safetensors.h"
#include "io/formats/sample_files.h"

using namespace tuff::io;

extern "C" {

void fuzz_reader(const MemoryBytes& s);

void read_safetensors_file(const MemoryBytes& s) { touch(s, read_safetensors(s)); }
void read_shards(const MemoryBytes& s) { read_shard_index(s); }
void read_npy_file(const MemoryBytes& s) { touch(s, read_npy(s, "x")); }
void read_gguf_file(const MemoryBytes& s) { touch(s, read_gguf(s)); }
void read_idx_file(const MemoryBytes& s) { touch(s, read_idx_array(s, "x")); }
void read_onnx_file(const MemoryBytes& s) {
  is_onnx(s);
  (void)text_of(s, read_onnx(s));
}
void read_npz_file(const MemoryBytes& s) {
  touch(s, read_npz(s, read_zip_directory(s)));
}

// An archive's checksums keep a fuzzer out of what they protect: here the input is the pickle
// itself as well, with storages beside it.
void read_pytorch_file(const MemoryBytes& s) {
  if (is_zip(s)) {
    std::vector<ZipMember> members = read_zip_directory(s);
    if (is_pytorch(members)) touch(s, read_pytorch(s, std::move(members), "x"));
    return;
  }
  const std::vector<uint8_t> pickle = s.bytes(0, s.size_bytes());
  const Bytes file =
      zip_file({{"a/data.pkl", pickle}, {"a/data/0", Bytes(32)}, {"a/data/1", Bytes(7)}});
  const MemoryBytes archive("damaged", file);
  touch(archive, read_pytorch(archive, read_zip_directory(archive), "x"));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryBytes source("damaged", {data, size});
  try {
    fuzz_reader(source);
  } catch (const tuff::IoError&) {  // what damaged files are answered with; all else is a finding
  }
  return 0;
}

}  // extern "C"
