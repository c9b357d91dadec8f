// Tensor: the door. A lazy n-dimensional array on one device, with autograd. Names and argument
// order follow PyTorch, broadcasting follows NumPy. Nothing runs until realize(), item() or a
// copy-out. Errors name the values and the rule and are thrown before anything is scheduled.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tuff/dtype.h>
#include <tuff/error.h>

namespace tuff {

struct TensorImpl;
using Sizes = std::vector<int64_t>;

// A bare C++ number in an expression: weak, it adopts the dtype of the tensor it meets.
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
  DType dtype() const { return weak_; }
  double value() const { return value_; }
  int64_t int_value() const { return int_; }

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
  double value_;
  int64_t int_;
  DType weak_;
};

struct TensorOptions {
  DType dtype = DType::F32;
  std::string device;  // "" is the default device
  bool requires_grad = false;
};

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::F32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::F64;
};
template <>
struct dtype_of<int8_t> {
  static constexpr DType value = DType::I8;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::U8;
};
template <>
struct dtype_of<int16_t> {
  static constexpr DType value = DType::I16;
};
template <>
struct dtype_of<uint16_t> {
  static constexpr DType value = DType::U16;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::I32;
};
template <>
struct dtype_of<uint32_t> {
  static constexpr DType value = DType::U32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = DType::I64;
};
template <>
struct dtype_of<uint64_t> {
  static constexpr DType value = DType::U64;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::Bool;
};

class Tensor {
 public:
  Tensor();  // undefined: only assignment and defined() are allowed
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();
  explicit Tensor(TensorImpl* impl);  // for the rooms right of tensor; shares
  bool defined() const { return impl_ != nullptr; }

  // ---- creation. Shapes are lists of extents >= 0.
  static Tensor empty(const Sizes& sizes, const TensorOptions& options = {});
  static Tensor full(const Sizes& sizes, Number value, const TensorOptions& options = {});
  static Tensor zeros(const Sizes& sizes, const TensorOptions& options = {});
  static Tensor ones(const Sizes& sizes, const TensorOptions& options = {});
  // start, start+step, ... below end; dtype I32 for whole numbers unless given, else F32.
  static Tensor arange(Number start, Number end, Number step = 1,
                       const TensorOptions& options = {.dtype = DType::Void});
  static Tensor arange(Number end);
  static Tensor eye(int64_t n, const TensorOptions& options = {});
  // Copies size_bytes of row-major host data of options.dtype.
  static Tensor from_bytes(const void* data, const Sizes& sizes, const TensorOptions& options);
  template <class T>
  static Tensor from(std::span<const T> data, const Sizes& sizes, TensorOptions options = {}) {
    options.dtype = dtype_of<T>::value;
    check_count(data.size(), sizes);
    return from_bytes(data.data(), sizes, options);
  }
  template <class T>
  static Tensor from(const std::vector<T>& data, const Sizes& sizes,
                     const TensorOptions& options = {}) {
    return from(std::span<const T>(data), sizes, options);
  }
  static Tensor from(std::initializer_list<float> data, const Sizes& sizes,
                     const TensorOptions& options = {}) {
    return from(std::span<const float>(data.begin(), data.size()), sizes, options);
  }

  // ---- random: Threefry-2x32-20, counter-based; the same bits on every device for the same seed.
  static void manual_seed(uint64_t seed);
  static Tensor rand(const Sizes& sizes,
                     const TensorOptions& options = {});  // uniform in [0, 1), 24 bits
  static Tensor randn(const Sizes& sizes,
                      const TensorOptions& options = {});  // standard normal (Box-Muller)
  static Tensor uniform(const Sizes& sizes, double low, double high,
                        const TensorOptions& options = {});
  static Tensor randint(int64_t low, int64_t high, const Sizes& sizes,
                        const TensorOptions& options = {.dtype = DType::I32});

  // ---- facts
  Sizes sizes() const;
  int64_t size(int64_t dim) const;
  int64_t dim() const;
  int64_t numel() const;
  DType dtype() const;
  std::string device() const;
  bool requires_grad() const;
  Tensor& set_requires_grad(bool on = true);  // leaves only
  Tensor grad() const;                        // undefined before backward()
  void set_grad(const Tensor& g);             // an undefined tensor clears it
  bool is_realized() const;

  // ---- movement: index transforms, no copies
  Tensor reshape(const Sizes& sizes) const;  // one extent may be -1
  Tensor view(const Sizes& sizes) const { return reshape(sizes); }
  Tensor permute(const Sizes& dims) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor T() const { return transpose(-2, -1); }
  Tensor expand(const Sizes& sizes) const;  // -1 keeps an extent; new axes in front
  // torch's flat order: (last before, last after, ...); negative values crop.
  Tensor pad(const Sizes& padding, Number value = 0) const;
  Tensor shrink(const std::vector<std::pair<int64_t, int64_t>>& ranges) const;
  Tensor flip(const Sizes& dims) const;
  // start:stop:step of one axis as in NumPy; negative values count from the end, step may be
  // negative.
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
               int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor squeeze(std::optional<int64_t> dim = {}) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor repeat(const Sizes& repeats) const;
  static Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
  static Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor one_hot(int64_t classes) const;  // integer tensor -> (..., classes) of I32
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;

  // ---- element-wise
  Tensor neg() const;
  Tensor abs() const;
  Tensor sign() const;
  Tensor reciprocal() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor exp() const;
  Tensor exp2() const;
  Tensor log() const;
  Tensor log2() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor gelu() const;  // tanh approximation (Hendrycks and Gimpel, 2016)
  Tensor silu() const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;  // half to even
  Tensor square() const;
  Tensor pow(Number exponent) const;
  Tensor clamp(std::optional<Number> min, std::optional<Number> max = {}) const;
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor logical_not() const;
  Tensor isnan() const;
  Tensor isinf() const;
  static Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
  static Tensor where(const Tensor& condition, const Tensor& x, Number y);
  static Tensor where(const Tensor& condition, Number x, const Tensor& y);
  Tensor masked_fill(const Tensor& mask, Number value) const;
  Tensor cast(DType dtype) const;
  Tensor to(DType dtype) const { return cast(dtype); }
  Tensor bitcast(DType dtype) const;

  // ---- reductions: over all axes, or those given; keepdim keeps them as 1
  Tensor sum(const Sizes& dims = {}, bool keepdim = false) const;
  Tensor mean(const Sizes& dims = {}, bool keepdim = false) const;
  Tensor max(const Sizes& dims = {}, bool keepdim = false) const;
  Tensor min(const Sizes& dims = {}, bool keepdim = false) const;
  Tensor prod(const Sizes& dims = {}, bool keepdim = false) const;
  Tensor var(const Sizes& dims = {}, bool keepdim = false, int64_t correction = 1) const;
  Tensor stdev(const Sizes& dims = {}, bool keepdim = false, int64_t correction = 1) const;
  Tensor argmax(std::optional<int64_t> dim = {},
                bool keepdim = false) const;  // first of equals, I32
  Tensor argmin(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor logsumexp(const Sizes& dims, bool keepdim = false) const;
  Tensor softmax(int64_t dim = -1) const;
  Tensor log_softmax(int64_t dim = -1) const;

  // ---- linear algebra and networks
  // (..., n, k) x (..., k, m) with batch axes broadcast; vectors as in torch.matmul.
  Tensor matmul(const Tensor& other) const;
  // x @ weight.T + bias; weight (out, in).
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  // (N, C, H, W) by weight (O, C/groups, KH, KW).
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, int64_t stride = 1,
                int64_t padding = 0, int64_t dilation = 1, int64_t groups = 1) const;
  Tensor max_pool2d(int64_t kernel, std::optional<int64_t> stride = {}, int64_t padding = 0) const;
  Tensor avg_pool2d(int64_t kernel, std::optional<int64_t> stride = {}) const;
  Tensor layernorm(const Sizes& normalized, const Tensor& weight = {}, const Tensor& bias = {},
                   double eps = 1e-5) const;
  Tensor dropout(double p = 0.5) const;  // only in training mode, see training()
  // q, k, v of (..., T, D); mask: bool (true attends) or added to the scores.
  static Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const Tensor& mask = {}, bool is_causal = false);
  static Tensor embedding(const Tensor& weight,
                          const Tensor& index);  // (V, C), int (...) -> (..., C)
  // Mean over rows of -log softmax(logits)[target]; logits (N, C), target integer (N).
  Tensor cross_entropy(const Tensor& target) const;

  // ---- state
  Tensor contiguous() const;
  Tensor detach() const;
  Tensor to(const std::string& device) const;
  // A new version of this tensor's buffer: reads asked for before see the old contents.
  Tensor& assign(const Tensor& value);
  // Gradients of this scalar (or weighted by `gradient`) are added to .grad of every live tensor
  // with requires_grad that it depends on.
  void backward(const Tensor& gradient = {}) const;
  // d(sum of this)/d(target) without touching .grad; undefined where there is no dependence.
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets) const;
  Tensor& realize();
  static void realize(const std::vector<Tensor>& tensors);  // all in one schedule
  double item() const;                                      // numel() must be 1
  void copy_to(void* dst, size_t size_bytes) const;         // row-major; waits
  // Writes host data into the memory of a realized tensor, after pending reads; no allocation.
  void copy_from(const void* src, size_t size_bytes);
  template <class T>
  std::vector<T> to_vector() const {
    check_dtype(dtype_of<T>::value);
    std::vector<T> out(static_cast<size_t>(numel()));
    copy_to(out.data(), out.size() * sizeof(T));
    return out;
  }
  std::string str() const;  // values, shape, dtype and device, like NumPy's

  TensorImpl* impl() const { return impl_; }

 private:
  static void check_count(size_t given, const Sizes& sizes);
  void check_dtype(DType wanted) const;
  TensorImpl* impl_ = nullptr;
};

#define TUFF_BINARY(op)                                 \
  Tensor operator op(const Tensor& a, const Tensor& b); \
  Tensor operator op(const Tensor& a, Number b);        \
  Tensor operator op(Number a, const Tensor& b);
TUFF_BINARY(+)
TUFF_BINARY(-) TUFF_BINARY(*) TUFF_BINARY(/)  // / is true division
    TUFF_BINARY(<) TUFF_BINARY(>) TUFF_BINARY(<=) TUFF_BINARY(>=) TUFF_BINARY(==) TUFF_BINARY(!=)
        TUFF_BINARY(&) TUFF_BINARY(|) TUFF_BINARY(^)
#undef TUFF_BINARY
            Tensor
            operator-(const Tensor& a);

// Training mode of this thread: dropout is active only inside.
bool training();
class TrainingMode {
 public:
  explicit TrainingMode(bool on = true);
  ~TrainingMode();
  TrainingMode(const TrainingMode&) = delete;

 private:
  bool before_;
};

}  // namespace tuff
