// What functions of Tensor take besides tensors: numbers, options, pairs, slices, reductions.
// Called by users through tensor.h. Must never know of graphs, devices or kernels.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tuff/dtype.h>
#include <tuff/size.h>

namespace tuff {

/// A bare C++ number in an expression: weak, it adopts the dtype of the tensor it meets. An extent
/// is one too, also where it varies.
class Number {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  Number(T v)
      : value_(double(v)),
        int_(whole(v)),
        weak_(std::is_floating_point_v<T> ? DType::WeakFloat
              : std::is_same_v<T, bool>   ? DType::Bool
                                          : DType::WeakInt) {}
  Number(const Size& extent) : weak_(DType::WeakInt), extent_(extent) {
    if (!extent_.is_number()) return;
    int_ = extent_;
    value_ = double(int_);
  }
  DType dtype() const { return weak_; }
  /// InvalidArgument for an extent that varies.
  double value() const { return varies() ? double(int64_t(extent_)) : value_; }
  int64_t int_value() const { return varies() ? int64_t(extent_) : int_; }
  /// Whether it is a symbolic extent, which is then extent().
  bool varies() const { return !extent_.is_number(); }
  const Size& extent() const { return extent_; }

 private:
  // Infinities, NaN and what is out of range have no integer; converting them would be undefined.
  template <class T>
  static int64_t whole(T v) {
    if constexpr (std::is_floating_point_v<T>) {
      return v >= T(-0x1p63) && v < T(0x1p63) ? int64_t(v) : 0;
    } else {
      return int64_t(v);
    }
  }
  double value_ = 0;
  int64_t int_ = 0;
  DType weak_;
  Size extent_;  // meant if it is symbolic
};

/// Options of a new tensor: element type, device ("" is the default device), and whether
/// backward() gives it a gradient.
struct TensorOptions {
  DType dtype = DType::F32;
  std::string device;
  bool requires_grad = false;
};

/// The caller's memory, as Tensor::from_blob() takes it: where its elements lie, and who is
/// told that it is no longer needed.
struct BlobOptions {
  /// How many elements apart neighbours along each axis are; row-major if empty. Negative and 0 are
  /// allowed, elements that overlap otherwise are not (ShapeError).
  std::vector<int64_t> strides = {};
  /// Called once with the pointer that was given, by any thread that lets go last or finds that the
  /// device has finished. It must not call tuff, throw, or wait for a thread that does.
  std::function<void(void*)> deleter = {};
  /// assign() and copy_from() are refused with InvalidArgument.
  bool read_only = false;
  /// On a device other than the CPU: its kernels work on the memory itself, not on a copy. Vulkan
  /// does so by VK_EXT_external_memory_host, for memory that begins at a multiple of the driver's
  /// minImportedHostPointerAlignment (4,096 bytes at most machines; InvalidArgument names it) and
  /// whose last page is all the caller's. Unsupported where the device cannot.
  bool in_place = false;
};

/// How Tensor::from_file() makes a tensor.
struct FileOptions {
  bool mmap = false;  ///< on the CPU, as a view of the file's pages, instead of on "DISK:PATH"
};

/// The element type that a C++ type is stored as.
template <class T>
struct dtype_of;
#define TUFF_DTYPE_OF(type, dtype)               \
  template <>                                      \
  struct dtype_of<type> {                         \
    static constexpr DType value = DType::dtype; \
  }
TUFF_DTYPE_OF(float, F32);
TUFF_DTYPE_OF(double, F64);
TUFF_DTYPE_OF(int8_t, I8);
TUFF_DTYPE_OF(uint8_t, U8);
TUFF_DTYPE_OF(int16_t, I16);
TUFF_DTYPE_OF(uint16_t, U16);
TUFF_DTYPE_OF(int32_t, I32);
TUFF_DTYPE_OF(uint32_t, U32);
TUFF_DTYPE_OF(int64_t, I64);
TUFF_DTYPE_OF(uint64_t, U64);
TUFF_DTYPE_OF(bool, Bool);
#undef TUFF_DTYPE_OF

/// Something along the axes of a window, the last axes of a tensor: one number for each of them, or
/// one that holds for all. 3 and {3, 3} are the same to a window of two axes; {} means "not given".
class PerAxis {
 public:
  PerAxis() = default;
  PerAxis(int64_t all) : values_{all} {}
  PerAxis(std::initializer_list<int64_t> each) : values_(each) {}
  PerAxis(std::vector<int64_t> each) : values_(std::move(each)) {}
  bool given() const { return !values_.empty(); }
  const std::vector<int64_t>& values() const { return values_; }

 private:
  std::vector<int64_t> values_;
};

/// What stands around the axes of a window: as many elements on both sides of each, a pair {before,
/// after} for each, or a word: "valid" is nothing; "same" keeps the extents at a stride of 1, and
/// the odd one stands behind.
class Padding {
 public:
  Padding() = default;
  template <std::integral T>
  Padding(T all) : sides_{{int64_t(all), int64_t(all)}} {}
  Padding(std::initializer_list<int64_t> each) : Padding(PerAxis(each)) {}
  Padding(std::initializer_list<std::pair<int64_t, int64_t>> sides) : sides_(sides) {}
  Padding(std::vector<std::pair<int64_t, int64_t>> sides) : sides_(std::move(sides)) {}
  Padding(const PerAxis& each) : sides_() {
    for (const int64_t n : each.values()) sides_.emplace_back(n, n);
  }
  /// InvalidArgument for another word.
  Padding(const char* word) : Padding(std::string(word)) {}
  Padding(const std::string& word);
  bool same() const { return same_; }
  /// (before, after) of each axis, or of all.
  const std::vector<std::pair<int64_t, int64_t>>& sides() const { return sides_; }

 private:
  std::vector<std::pair<int64_t, int64_t>> sides_{{0, 0}};
  bool same_ = false;
};

/// What a loss does with the losses of its elements. BatchMean is their sum over the extent of the
/// first axis.
enum class Reduction { None, Mean, Sum, BatchMean };

/// What Tensor::pad() puts around a tensor: zeros or a value, its mirror image without the edge,
/// its edge, or itself again.
enum class PadMode { Constant, Reflect, Replicate, Circular };

/// What a quantile between two elements is: on the line between them, one of them, the nearer one
/// (of equally near ones that at an even position), or their mean.
enum class Interpolation { Linear, Lower, Higher, Nearest, Midpoint };

/// Which axis of a grid the first coordinate belongs to: 0 (rows, NumPy's "ij"), or 1 (columns,
/// "xy").
enum class GridOrder { Rows, Columns };

/// Which side of a weight (out, in, ...) its initialization keeps the variance of.
enum class FanMode { In, Out };

/// Pieces of Tensor::index, under the names that libtorch gives them.
namespace indexing {

/// start:stop:step of NumPy; negative values count from the end. Ends may vary inside a Jit, with
/// a step of 1 or -1.
struct Slice {
  std::optional<Size> start = {}, stop = {};
  int64_t step = 1;
};
/// A new axis of extent 1.
struct NoneType {};
inline constexpr NoneType None{};
/// All axes that the other indices leave.
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};

}  // namespace indexing

}  // namespace tuff
