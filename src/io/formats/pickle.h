// The part of Python's pickle that PyTorch's checkpoints of tensors, containers and plain values
// need (docs.python.org/3/library/pickletools.html). Nothing is ever called: a global is a name on
// a short list, or an error. Called by pytorch; a pure function of the bytes.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

inline constexpr uint64_t kMaxPickleBytes = 64 << 20;
inline constexpr size_t kMaxPickleValues = 2'000'000;
inline constexpr size_t kMaxPickleStack = 1'000'000;

enum class PickleKind : uint8_t {
  None,
  Bool,
  Int,
  Float,
  Text,
  Tuple,
  List,
  Dict,
  Global,
  Storage,
  Tensor
};

struct PickleValue {
  PickleKind kind = PickleKind::None;
  int64_t number = 0;  // Bool, Int; Global: its row; Tensor: index into Pickle::tensors
  double real = 0;
  std::string text;
  std::vector<uint32_t> items;  // of a Dict key, value, key, value ...
};

// One storage's window as _rebuild_tensor_v2 describes it.
struct PickleTensor {
  uint32_t key = 0;  // a text among Pickle::values; the storage is the member data/KEY
  DType dtype = DType::Void;
  const char* type = "";  // of the storage, as PyTorch names it
  int64_t storage_elements = 0;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> shape, strides;
};

// Values refer to each other by index; lists and dictionaries may contain themselves.
struct Pickle {
  std::vector<PickleValue> values;
  std::vector<PickleTensor> tensors;
  uint32_t root = 0;
};
Pickle read_pickle(const ByteSource& source);

}  // namespace tuff::io
