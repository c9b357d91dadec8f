// Tensor: the door. A lazy n-dimensional array on one device, with autograd. Names and argument
// order follow PyTorch, broadcasting follows NumPy. Nothing runs until realize(), item() or a
// copy-out. Errors name the values and the rule and are thrown before anything is scheduled.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tuff/arguments.h>
#include <tuff/dtype.h>
#include <tuff/error.h>
#include <tuff/tensor_linalg.h>
#include <tuff/tensor_math.h>
#include <tuff/tensor_products.h>
#include <tuff/tensor_random.h>
#include <tuff/tensor_scatter.h>
#include <tuff/tensor_shards.h>
#include <tuff/tensor_sorting.h>
#include <tuff/tensor_statistics.h>
#include <tuff/tensor_views.h>
#include <tuff/tensor_windows.h>
#include <tuff/tensor_writes.h>

namespace tuff {

struct TensorImpl;
class Index;

/// A lazy n-dimensional array. Copies share: an assign() through one is seen by all.
///
/// What movement makes of a tensor (x[0], slices, reshape(), permute(), chunk(), diagonal(),
/// detach(), and what is made of these) is a view of it, as long as it lives: what is written to
/// the view is written to x, and to the views that this one was taken of. Unlike PyTorch's, other
/// tensors keep the values that they were asked for: a view that was taken before x or another view
/// was written reads as x was then. Where it is written itself, it first is what x holds by now. A
/// view keeps no memory of x. An expand() shows elements several times and cannot be written
/// (InvalidArgument); flip(), repeat(), roll(), clone(), to() another device and what integer
/// tensors and masks pick are copies.
///
/// Element-wise functions broadcast like NumPy's and promote like JAX's lattice (see promote()); a
/// bare number adopts the tensor's dtype. Functions of real numbers turn integers into float32;
/// those composed of several operations compute floats of 8 and 16 bits in float32 and round once.
/// Every function throws InvalidArgument for an undefined tensor and for tensors on different
/// devices.
///
/// Any number of threads may compute with, realize and read the same tensors: what several of them
/// want is computed once. What changes a tensor (assign(), copy_from(), set_requires_grad(),
/// set_grad(); backward() for the tensors that it gives a gradient) is for one thread, while no
/// other uses this tensor or one that shares its memory.
///
/// Many of its functions stand in bases by subject: tensor_math.h (elementary functions,
/// activations), tensor_views.h (movement), tensor_products.h, tensor_linalg.h (linear algebra; more
/// of it is in linalg.h), tensor_statistics.h, tensor_random.h (draws), tensor_scatter.h (stores by
/// index), tensor_sorting.h (order, selection, running values), tensor_shards.h (several devices), tensor_windows.h (pools, resizing),
/// tensor_writes.h (in place).
class Tensor : public TensorMath,
               public TensorViews,
               public TensorProducts,
               public TensorLinalg,
               public TensorStatistics,
               public TensorRandom,
               public TensorSorting,
               public TensorScatter,
               public TensorShards,
               public TensorWindows,
               public TensorWrites {
 public:
  /// Undefined: only assignment and defined() are allowed.
  Tensor();
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();
  /// For the rooms right of tensor; shares.
  explicit Tensor(TensorImpl* impl);
  bool defined() const { return impl_ != nullptr; }

  // ---- creation. Shapes are lists of extents >= 0 (ShapeError names the shape otherwise).

  /// Memory with whatever it holds.
  static Tensor empty(const Sizes& sizes, const TensorOptions& options = {});
  static Tensor full(const Sizes& sizes, Number value, const TensorOptions& options = {});
  static Tensor zeros(const Sizes& sizes, const TensorOptions& options = {});
  static Tensor ones(const Sizes& sizes, const TensorOptions& options = {});
  /// With this tensor's shape, dtype and device; requires_grad is off.
  Tensor empty_like() const;
  Tensor full_like(Number value) const;
  Tensor zeros_like() const { return full_like(0); }
  Tensor ones_like() const { return full_like(1); }
  /// start, start+step, ... before end; unless a dtype is given I32 for whole numbers, I64 where
  /// one of them needs it, else F32.
  /// InvalidArgument: step 0, or an end that is no finite number.
  static Tensor arange(Number start, Number end, Number step = 1,
                       const TensorOptions& options = {.dtype = DType::Void});
  static Tensor arange(Number end);
  /// `steps` values from start to end, both included, evenly spaced.
  static Tensor linspace(Number start, Number end, int64_t steps,
                         const TensorOptions& options = {});
  /// base to the power of each of linspace(start, end, steps). InvalidArgument for negative steps.
  static Tensor logspace(double start, double end, int64_t steps, double base = 10,
                         const TensorOptions& options = {});
  /// Ones on the diagonal of (n, n), or of (n, m).
  static Tensor eye(const Size& n, const TensorOptions& options = {});
  static Tensor eye(const Size& n, const Size& m, const TensorOptions& options = {});
  /// Copies row-major host data of options.dtype.
  static Tensor from_bytes(const void* data, const Sizes& sizes, const TensorOptions& options);
  /// A tensor over memory of the caller, which holds elements of options.dtype.
  ///
  /// On the CPU nothing is copied: what is written there later is seen by what is computed later,
  /// and assign() writes there. On another device the tensor is a copy that is made when it is
  /// realized, unless blob.in_place asks for the memory itself. A tensor with strides is a view:
  /// realize() and assign() move it to memory of its own.
  ///
  /// The memory has to stay as long as it is used: by tensors and graphs made of this one, Jits
  /// that were captured with it, work in flight. When the last of them has gone, the deleter is
  /// called, exactly once: at once if the device has finished with the memory, else with the next
  /// tensor that is read, allocated or let go on the device. A process that ends, and a from_blob()
  /// that throws, call none. While work is in flight nothing else may write the memory (realize()
  /// what reads it and copy a result out first); tensors over overlapping memory are not ordered.
  ///
  /// Memory is aligned as its elements are (InvalidArgument; from_bytes() copies from anywhere),
  /// and may be null without elements. Lines of 64 bytes are the fastest.
  static Tensor from_blob(void* data, const Sizes& sizes, BlobOptions blob = {},
                          const TensorOptions& options = {});
  /// The same, read_only.
  static Tensor from_blob(const void* data, const Sizes& sizes, BlobOptions blob = {},
                          const TensorOptions& options = {});
  /// A tensor on "DISK:PATH" over what is in a file: row-major elements from byte `offset` on, as
  /// the machine has them in memory. Nothing is read; to() another device reads it when that is
  /// realized, copy_from() writes. Nothing is computed there: a slice is taken
  /// after to(), or named by offset and sizes. IoError where the file does not have the
  /// range.
  ///
  /// With options.mmap the tensor is on the CPU, and its memory is the file's pages, mapped:
  /// nothing is copied, pages come when they are touched and go when memory is short. The file is
  /// never written: assign() and copy_from() give the tensor memory of its own first, data_ptr()
  /// and what is shared are read-only. What others write to the file meanwhile may be seen
  /// or not. Where the file becomes shorter than the tensor, or a page cannot be read, nothing
  /// crashes: what was touched reads as zeros, and the next read, copy or wait for the tensor or
  /// for what was computed from it throws an IoError, unless it already did. (Not so where a thread
  /// that touches the memory blocks SIGBUS, or where the program sets a handler for SIGBUS later
  /// and does not call the one before it.) Elements that are not aligned to their size, and file
  /// systems that map no files, are read when the tensor is realized.
  static Tensor from_file(const std::string& path, const Sizes& sizes, DType dtype = DType::F32,
                          uint64_t offset = 0, FileOptions options = {});
  /// Copies host data; ShapeError unless there is a value for every element.
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

  // ---- random: Threefry-2x32-20 (Salmon et al., SC 2011), counter-based; the same bits on every
  // device for the same seed.

  static void manual_seed(uint64_t seed);
  /// Where a device's generator is, four words of U32 there: what is drawn after set_rng_state() of
  /// it is what would have been drawn here. "" is the default device.
  static Tensor get_rng_state(const std::string& device = {});
  /// Functions that were captured go on from there as well. "" is the device that `state` is on.
  /// InvalidArgument for what is no state.
  static void set_rng_state(const Tensor& state, const std::string& device = {});
  /// Uniform in [0, 1): 24 random bits, as many as the significand holds in F16 and BF16, 53 in
  /// F64.
  static Tensor rand(const Sizes& sizes, const TensorOptions& options = {});
  /// Standard normal (Box and Muller, 1958).
  static Tensor randn(const Sizes& sizes, const TensorOptions& options = {});
  Tensor rand_like() const;
  Tensor randn_like() const;
  /// low + (high - low) * rand(); InvalidArgument unless low <= high.
  static Tensor uniform(const Sizes& sizes, double low, double high,
                        const TensorOptions& options = {});
  /// randn() of this mean and standard deviation.
  static Tensor normal(double mean, double std, const Sizes& sizes,
                       const TensorOptions& options = {});
  /// Whole numbers in [low, high), a range of at most 2^24 values.
  static Tensor randint(int64_t low, int64_t high, const Sizes& sizes,
                        const TensorOptions& options = {.dtype = DType::I32});
  /// Initial weights (out, in, ...) of layers before a leaky ReLU of slope `a` (He et al., 2015).
  /// ShapeError below two axes.
  static Tensor kaiming_uniform(const Sizes& sizes, double a = 0, FanMode mode = FanMode::In,
                                const TensorOptions& options = {});
  /// The same from a normal distribution.
  static Tensor kaiming_normal(const Sizes& sizes, double a = 0, FanMode mode = FanMode::In,
                               const TensorOptions& options = {});
  /// The same for layers before tanh and the like (Glorot and Bengio, 2010); PyTorch's xavier.
  static Tensor glorot_uniform(const Sizes& sizes, double gain = 1,
                               const TensorOptions& options = {});
  static Tensor glorot_normal(const Sizes& sizes, double gain = 1,
                              const TensorOptions& options = {});

  // ---- facts

  Sizes sizes() const;
  Size size(int64_t dim) const;
  int64_t dim() const;
  Size numel() const;
  DType dtype() const;
  std::string device() const;
  bool requires_grad() const;
  /// InvalidArgument for integers and bools.
  Tensor& set_requires_grad(bool on = true);
  /// What backward() has added up; undefined before.
  Tensor grad() const;
  /// An undefined tensor clears it; ShapeError for another shape than this tensor's.
  void set_grad(const Tensor& g);
  bool is_realized() const;

  // ---- movement: index transforms, no copies; views, which may be written. IndexError for an axis
  // or a position that is not there, ShapeError for extents that do not fit; both name axis and
  // shape.

  /// One extent may be -1: what is left.
  Tensor reshape(const Sizes& sizes) const;
  Tensor view(const Sizes& sizes) const { return reshape(sizes); }
  Tensor permute(const Axes& dims) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor T() const { return transpose(-2, -1); }
  /// Axes of extent 1 to another one; -1 keeps an extent; new axes in front.
  Tensor expand(const Sizes& sizes) const;
  /// PyTorch's flat order: (last before, last after, ...); negative values crop.
  Tensor pad(const std::vector<int64_t>& padding, Number value = 0) const;
  using TensorViews::pad;
  /// The part [begin, end) of every axis.
  Tensor shrink(const std::vector<std::pair<Size, Size>>& ranges) const;
  /// The given axes turned round, or all of them (NumPy's rule) if none is given.
  Tensor flip(const Axes& dims = {}) const;
  /// start:stop:step of one axis as in NumPy; negative values count from the end, step may be
  /// negative (InvalidArgument: 0).
  Tensor slice(int64_t dim, std::optional<Size> start = {}, std::optional<Size> stop = {},
               int64_t step = 1) const;
  /// `length` elements of an axis from `start`, which may count from the end. ShapeError beyond it.
  Tensor narrow(int64_t dim, const Size& start, const Size& length) const;
  Tensor select(int64_t dim, const Size& index) const;
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor squeeze(std::optional<int64_t> dim = {}) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor repeat(const Sizes& repeats) const;
  static Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
  static Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> split_with_sizes(const Sizes& sizes, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  /// Elements on and below (above) the given diagonal of the last two axes, else 0.
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;

  // ---- indexing with integer tensors, and classes. One rule for all functions that take positions,
  // here and in tensor_scatter.h: on an axis of n elements they are -n..n-1, negative ones counting
  // from its end; classes, which are rows of a weight too, are 0..n-1. One outside is an
  // IndexError that names function, value, place and range, thrown by the call, or by the call of a
  // Jit whose argument it is in: wherever the host knows the values, without waiting for a device.
  // It knows what came from host memory (from(), copy_from(), numbers, ranges), whole or in parts,
  // also on another device, until other code writes that memory or gets its address. With
  // TUFF_CHECK_OOB=1 all are computed at once and checked. Otherwise one that a device has computed
  // is not: what it picks is 0, and it puts nothing. Gradients add up where an element is picked
  // twice.

  /// out[i][j] = this[index[i][j]][j] for dim 0, and so on; index is no larger off `dim`.
  /// IndexError outside -n..n-1.
  Tensor gather(int64_t dim, const Tensor& index) const;
  /// Integers -> (..., classes) of I32. IndexError outside 0..classes-1.
  Tensor one_hot(int64_t classes) const;
  /// Rows of one axis; index of one axis (or none). IndexError outside -n..n-1.
  Tensor index_select(int64_t dim, const Tensor& index) const;
  /// Elements of the flattened tensor, in the shape of the index; negative ones count from the end.
  /// IndexError outside -n..n-1.
  Tensor take(const Tensor& index) const;
  /// x.index({1, Slice(0, 3), None, Ellipsis, rows}): NumPy's indexing. Integer tensors broadcast
  /// against each other; their axes stand where the first of them was if they are neighbours in the
  /// list, else in front. A number beside tensors counts as one of them, as in NumPy (to PyTorch it
  /// does not). A bool tensor is a mask of as many axes as it has and stands for its nonzero(),
  /// which waits for it. Positions may count from the end: IndexError outside -n..n-1.
  Tensor index(const std::vector<Index>& indices) const;
  /// Where elements are not 0: (count, axes) of I32, in row-major order. How many there are depends
  /// on data, so it is computed at once and waited for; InvalidArgument inside a Jit, which would
  /// replay the count of its capture: use where() or masked_fill() there.
  Tensor nonzero() const;
  /// This tensor with `value`, broadcast and cast, in the place of what index(indices) picks. Of
  /// equal positions the last one counts; with `accumulate` values are added to what is there, those
  /// of equal positions too. IndexError as index(). Gradients go to what is left and to what was
  /// put. A mask waits only where the value has an extent for what it picks. ShapeError for a value
  /// that does not broadcast.
  Tensor index_put(const std::vector<Index>& indices, const Tensor& value,
                   bool accumulate = false) const;
  /// The same number everywhere.
  Tensor index_put(const std::vector<Index>& indices, Number value, bool accumulate = false) const;
  /// The same in place. Memory is written as assign() does, but no more than the range of each axis
  /// that numbers and slices pick (all of an axis that a mask or an integer tensor indexes): a row
  /// costs the same in a tensor of 1 GB as in one of 1 MB, also where a slice's ends vary inside a
  /// Jit. Other tensors that still want the old contents are computed first, and those that are
  /// nothing but this memory, such as x.reshape(...), get a copy of it. What is still to be
  /// computed becomes the result, so that gradients flow as with index_put(). A view writes what it
  /// is a view of: x[0].index_put_({1}, v) is x.index_put_({0, 1}, v).
  /// InvalidArgument for a tensor with requires_grad and for its views, except under a NoGradGuard.
  Tensor& index_put_(const std::vector<Index>& indices, const Tensor& value,
                     bool accumulate = false);
  /// The same number everywhere.
  Tensor& index_put_(const std::vector<Index>& indices, Number value, bool accumulate = false);

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
  /// As sin(): 2 ULP in F32, 2.5 in F64 of every finite x on every device (Payne and Hanek, 1983).
  /// docs/OPS.md lists the errors of all functions.
  Tensor cos() const;
  /// sin/cos.
  Tensor tan() const;
  Tensor tanh() const;
  /// 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, by polynomials: 2.5 ULP in F32 and 4
  /// in F64 where exp2 and division are exact to 1.
  Tensor erf() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor leaky_relu(double negative_slope = 0.01) const;
  /// x * Phi(x), Phi by erf ("none") or as 0.5 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) ("tanh";
  /// Hendrycks and Gimpel, 2016). Far below 0 the rounded argument of an exponential costs some
  /// hundred ULP (docs/OPS.md), and "tanh" is 0 below 2^-121 (F32) on devices that flush
  /// subnormals. InvalidArgument for another name.
  Tensor gelu(std::string_view approximate = "none") const;
  Tensor silu() const;
  /// log(1 + exp(beta x)) / beta; x itself where beta x > threshold.
  Tensor softplus(double beta = 1, double threshold = 20) const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  /// Half to even; the sign of x stays, also of 0.
  Tensor round() const;
  Tensor square() const;
  /// Within 2 ULP, and exact where the power is a number of the type; whole bare numbers up to 4 by
  /// multiplication, within 4 ULP. C's rules for 0, infinities, NaN and negative bases; PyTorch's
  /// gradients. InvalidArgument for integers to a negative power; cast() one to a float.
  Tensor pow(Number exponent) const;
  Tensor pow(const Tensor& exponent) const;
  static Tensor pow(Number base, const Tensor& exponent);
  /// Rounded toward -inf, with NumPy's signs of 0. Integers by zero give 0 (InvalidArgument if the
  /// zero is a bare number).
  Tensor floor_divide(const Tensor& other) const;
  Tensor floor_divide(Number other) const;
  /// x - y * floor(x / y), with the sign of y, also where it is 0; also the operator %. Exact while
  /// |x / y| < 2^24 (F32) or 2^53 (F64), 0 where x / y is infinite; integers by zero give x.
  Tensor remainder(const Tensor& other) const;
  Tensor remainder(Number other) const;
  /// x - y * trunc(x / y), with the sign of x; as exact as remainder().
  Tensor fmod(const Tensor& other) const;
  Tensor fmod(Number other) const;
  Tensor bitwise_not() const;
  /// Shifts by a negative count or by the width and more leave 0, or the sign to the right.
  Tensor bitwise_left_shift(const Tensor& count) const;
  Tensor bitwise_right_shift(const Tensor& count) const;
  Tensor clamp(std::optional<Number> min, std::optional<Number> max = {}) const;
  /// Between tensors, which broadcast; an undefined one is no bound. NaN of any of them stays.
  Tensor clamp(const Tensor& min, const Tensor& max = {}) const;
  /// NaN if either is NaN.
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor logical_not() const;
  Tensor isnan() const;
  Tensor isinf() const;
  /// x where the (bool) condition holds, else y.
  static Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
  /// A number takes the other choice's dtype where that holds it.
  static Tensor where(const Tensor& condition, const Tensor& x, Number y);
  /// The same with the number first.
  static Tensor where(const Tensor& condition, Number x, const Tensor& y);
  /// Two numbers give I32, or F32 if one is not whole.
  static Tensor where(const Tensor& condition, Number x, Number y);
  /// The value where the (bool) mask holds, in this tensor's dtype.
  Tensor masked_fill(const Tensor& mask, Number value) const;
  Tensor cast(DType dtype) const;
  Tensor to(DType dtype) const { return cast(dtype); }
  /// The same bits as another dtype of the same size; InvalidArgument otherwise.
  Tensor bitcast(DType dtype) const;

  // ---- reductions: over all axes, or those given (of a scalar 0 or -1, as if it had one); keepdim
  // keeps them as 1. Floats of 8 and 16 bits add up in F32. Sums, products and running sums of bools
  // and signed integers are I64, of unsigned ones U64, as in NumPy; they are computed in 32 bits
  // where extents and dtype show that these hold every result.

  Tensor sum(const Axes& dims = {}, bool keepdim = false) const;
  /// F32 for integers and bools; those of up to 32 bits are added up exactly.
  Tensor mean(const Axes& dims = {}, bool keepdim = false) const;
  /// NaN if there is one; ShapeError where there is nothing to choose from.
  Tensor max(const Axes& dims = {}, bool keepdim = false) const;
  Tensor min(const Axes& dims = {}, bool keepdim = false) const;
  Tensor prod(const Axes& dims = {}, bool keepdim = false) const;
  /// Bool: is one (is every one) of the elements other than 0? Of none: false (true).
  Tensor any(const Axes& dims = {}, bool keepdim = false) const;
  Tensor all(const Axes& dims = {}, bool keepdim = false) const;
  /// Divided by max(0, count - correction).
  Tensor var(const Axes& dims = {}, bool keepdim = false, int64_t correction = 1) const;
  /// The root of var().
  Tensor std(const Axes& dims = {}, bool keepdim = false, int64_t correction = 1) const;
  /// First of equals, NaN above all, as I32, or I64 where the axis has more than 2^31 - 1 elements;
  /// of the flattened tensor if no axis is given.
  Tensor argmax(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor logsumexp(const Axes& dims, bool keepdim = false) const;
  Tensor softmax(int64_t dim = -1) const;
  Tensor log_softmax(int64_t dim = -1) const;
  /// Running sums along an axis; long axes in blocks, so that n elements take O(n) additions.
  Tensor cumsum(int64_t dim) const;

  // ---- linear algebra and networks

  /// (..., n, k) x (..., k, m) with batch axes broadcast; vectors as in torch.matmul.
  Tensor matmul(const Tensor& other) const;
  /// Einstein's summation: einsum("bij,bjk->bik", {a, b}); implicit output, "...", repeated letters
  /// and extents of 1 as in NumPy. Contracts from left to right.
  static Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
  /// x @ weight.T + bias; weight (out, in).
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  /// (N, C, L) by weight (O, C/groups, K): sums of products of windows, which are not turned round.
  /// Padding "same" wants a stride of 1 (InvalidArgument).
  Tensor conv1d(const Tensor& weight, const Tensor& bias = {}, const PerAxis& stride = 1,
                const Padding& padding = 0, const PerAxis& dilation = 1, int64_t groups = 1) const;
  /// (N, C, H, W) by weight (O, C/groups, KH, KW), as conv1d().
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const PerAxis& stride = 1,
                const Padding& padding = 0, const PerAxis& dilation = 1, int64_t groups = 1) const;
  /// (N, C, D, H, W) by weight (O, C/groups, KD, KH, KW), as conv1d().
  Tensor conv3d(const Tensor& weight, const Tensor& bias = {}, const PerAxis& stride = 1,
                const Padding& padding = 0, const PerAxis& dilation = 1, int64_t groups = 1) const;
  /// (N, C, L) by weight (C, O/groups, K): what the gradient of a conv1d() of that weight is, of
  /// (N, O, (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1). InvalidArgument
  /// for an output_padding that is neither below the stride nor below the dilation, and for
  /// integers.
  Tensor conv_transpose1d(const Tensor& weight, const Tensor& bias = {},
                          const PerAxis& stride = 1, const PerAxis& padding = 0,
                          const PerAxis& output_padding = 0, int64_t groups = 1,
                          const PerAxis& dilation = 1) const;
  /// (N, C, H, W) by weight (C, O/groups, KH, KW), as conv_transpose1d().
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias = {},
                          const PerAxis& stride = 1, const PerAxis& padding = 0,
                          const PerAxis& output_padding = 0, int64_t groups = 1,
                          const PerAxis& dilation = 1) const;
  /// (N, C, D, H, W) by weight (C, O/groups, KD, KH, KW), as conv_transpose1d().
  Tensor conv_transpose3d(const Tensor& weight, const Tensor& bias = {},
                          const PerAxis& stride = 1, const PerAxis& padding = 0,
                          const PerAxis& output_padding = 0, int64_t groups = 1,
                          const PerAxis& dilation = 1) const;
  /// Over the last axes, which have the shape `normalized`; weight and bias of that shape.
  Tensor layernorm(const Sizes& normalized, const Tensor& weight = {}, const Tensor& bias = {},
                   double eps = 1e-5) const;
  /// x / sqrt(mean(x^2) + eps) over the last axes (Zhang and Sennrich, 2019); eps is the dtype's
  /// epsilon if not given.
  Tensor rms_norm(const Sizes& normalized, const Tensor& weight = {},
                  std::optional<double> eps = {}) const;
  /// (N, C, ...) normalized per channel: while training with the batch's mean and variance, which
  /// are also assigned into the running ones (variance unbiased there), else with the running ones.
  Tensor batchnorm(const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                   const Tensor& bias = {}, bool training = false, double momentum = 0.1,
                   double eps = 1e-5) const;
  /// Zeroes with probability p and scales the rest; only in training mode, see training().
  Tensor dropout(double p = 0.5) const;
  /// q, k, v of (..., T, D); attn_mask: bool (true attends) or added to the scores. scale is
  /// 1/sqrt(D) if not given; dropout_p only in training mode.
  static Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const Tensor& attn_mask = {}, double dropout_p = 0,
                                             bool is_causal = false,
                                             std::optional<double> scale = {});
  /// weight (V, C), integers (...) -> (..., C). IndexError outside 0..V-1.
  static Tensor embedding(const Tensor& weight, const Tensor& index);
  /// -log softmax(logits)[target]; logits (N, C, ...) or (C), target integers (N, ...) or (), or
  /// probabilities in the shape of the logits. Classes may be weighted; targets of ignore_index
  /// count for nothing; the mean is over the weights of what counts. IndexError for a class that is
  /// neither 0..C-1 nor ignore_index.
  Tensor cross_entropy(const Tensor& target, const Tensor& weight = {}, int64_t ignore_index = -100,
                       Reduction reduction = Reduction::Mean, double label_smoothing = 0) const;
  Tensor mse_loss(const Tensor& target, Reduction reduction = Reduction::Mean) const;
  /// For logits and targets in 0..1, element by element; weight and pos_weight broadcast.
  Tensor binary_cross_entropy_with_logits(const Tensor& target, const Tensor& weight = {},
                                          Reduction reduction = Reduction::Mean,
                                          const Tensor& pos_weight = {}) const;
  /// The same for probabilities in 0..1; logarithms are at least -100, so that no loss is infinite.
  Tensor binary_cross_entropy(const Tensor& target, const Tensor& weight = {},
                              Reduction reduction = Reduction::Mean) const;
  /// cross_entropy() of logarithms of probabilities, such as log_softmax() gives.
  Tensor nll_loss(const Tensor& target, const Tensor& weight = {}, int64_t ignore_index = -100,
                  Reduction reduction = Reduction::Mean) const;
  Tensor l1_loss(const Tensor& target, Reduction reduction = Reduction::Mean) const;
  /// (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta/2 (Girshick, 2015).
  /// InvalidArgument: a negative beta.
  Tensor smooth_l1_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                        double beta = 1) const;
  /// smooth_l1_loss() times delta (Huber, 1964). InvalidArgument unless delta is positive.
  Tensor huber_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                    double delta = 1) const;
  /// target (log target - x) for logarithms x of probabilities; log_target: targets are logarithms
  /// too. The divergence itself is Reduction::BatchMean (Kullback and Leibler, 1951).
  Tensor kl_div(const Tensor& target, Reduction reduction = Reduction::Mean,
                bool log_target = false) const;
  /// exp(x) - target x, or x - target log(x + eps) unless log_input; full adds Stirling's
  /// approximation of log target! above 1.
  Tensor poisson_nll_loss(const Tensor& target, bool log_input = true, bool full = false,
                          double eps = 1e-8, Reduction reduction = Reduction::Mean) const;
  /// (log v + (x - target)^2 / v) / 2, v the variance but at least eps; full adds log(2 pi) / 2.
  /// The variance has the shape of x, or that with a last axis of 1, or without it.
  Tensor gaussian_nll_loss(const Tensor& target, const Tensor& variance, bool full = false,
                           double eps = 1e-6, Reduction reduction = Reduction::Mean) const;
  /// Targets 1 and -1: x, or max(0, margin - x).
  Tensor hinge_embedding_loss(const Tensor& target, double margin = 1,
                              Reduction reduction = Reduction::Mean) const;
  /// log(1 + exp(-target x)) for targets 1 and -1.
  Tensor soft_margin_loss(const Tensor& target, Reduction reduction = Reduction::Mean) const;
  /// max(0, target (other - x) + margin): target 1 asks that x is larger, -1 that other is.
  Tensor margin_ranking_loss(const Tensor& other, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean) const;
  /// 1 - cos of rows for target 1, max(0, cos - margin) for -1.
  Tensor cosine_embedding_loss(const Tensor& other, const Tensor& target, double margin = 0,
                               Reduction reduction = Reduction::Mean) const;
  /// max(0, d(x, positive) - d(x, negative) + margin), d the p-norm of differences along the last
  /// axis, to each of which eps is added; swap: the negative's distance is the smaller one of those
  /// to x and to the positive (Balntas et al., 2016).
  Tensor triplet_margin_loss(const Tensor& positive, const Tensor& negative, double margin = 1,
                             double p = 2, double eps = 1e-6, bool swap = false,
                             Reduction reduction = Reduction::Mean) const;
  /// Minus the logarithm of the probability that these log-probabilities (T, N, C) or (T, C) of
  /// classes over time give the targets (N, S) or (S), summed over all alignments: a class may be
  /// repeated, and blanks stand between (Graves et al., 2006). input_lengths and target_lengths are
  /// integers (N), or without axes. Mean divides each loss by the target's length, and then by N.
  /// Infinite without an alignment, where it has no gradient; zero_infinity makes it 0. The work is
  /// a kernel for each point of time. Targets may also be a vector, one behind the other, which
  /// waits for their lengths. ShapeError unless shapes fit, IndexError unless blank is a class.
  static Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                         const Tensor& input_lengths, const Tensor& target_lengths,
                         int64_t blank = 0, Reduction reduction = Reduction::Mean,
                         bool zero_infinity = false);

  // ---- state

  /// Asks for memory of its own in row-major order.
  Tensor contiguous() const;
  /// A copy in memory of its own, also of what is realized; gradients flow through it.
  Tensor clone() const;
  /// The value, without gradient; of the same memory where there is one. A view: what is written
  /// to it is written to this tensor, without gradient, also where this one has requires_grad.
  Tensor detach() const;
  /// A copy on another device, or on each of a group of them (tensor_shards.h); the tensor itself if
  /// it is there.
  Tensor to(const std::string& device) const;
  /// A new version of this tensor's buffer: reads asked for before see the old contents. Of a view,
  /// x[0], that is the part of x: no more than it is written.
  /// InvalidArgument for a tensor that has requires_grad and for its views, while gradients are on.
  Tensor& assign(const Tensor& value);
  /// Gradients of this scalar (or weighted by `gradient`) are added to .grad of every live tensor
  /// with requires_grad that it depends on; graphs stay usable, so that it may be called again.
  /// What realize(), item() or a copy-out has computed is memory and has no history: go backward
  /// first.
  void backward(const Tensor& gradient = {}) const;
  /// d(sum of this, or of this * gradient)/d(target) without touching .grad; undefined where there
  /// is no dependence. Results can be differentiated again.
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               const Tensor& gradient = {}) const;
  Tensor& realize();
  /// All in one schedule.
  static void realize(const std::vector<Tensor>& tensors);
  /// The value of a tensor of one element.
  double item() const;
  /// Where the elements of a tensor on the CPU are in host memory, row-major, of a part of another
  /// one in a copy; realizes and waits.
  /// Good until the tensor has gone or a tensor over the same memory is assigned to; memory that
  /// was given as read_only must not be written. InvalidArgument on other devices.
  void* data_ptr() const;
  /// Row-major; waits.
  void copy_to(void* dst, size_t size_bytes) const;
  /// Writes host data into the memory of a realized tensor, after pending reads; no allocation but
  /// where it is a part of another one, which is written from there.
  void copy_from(const void* src, size_t size_bytes);
  template <class T>
  std::vector<T> to_vector() const {
    check_dtype(dtype_of<T>::value);
    if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no bytes to copy to
      std::vector<unsigned char> bytes(static_cast<size_t>(int64_t(numel())));
      copy_to(bytes.data(), bytes.size());
      return {bytes.begin(), bytes.end()};
    } else {
      std::vector<T> out(static_cast<size_t>(int64_t(numel())));
      copy_to(out.data(), out.size() * sizeof(T));
      return out;
    }
  }
  /// Values, shape, dtype and device, like NumPy's.
  std::string str() const;

  TensorImpl* impl() const { return impl_; }

 private:
  static void check_count(size_t given, const Sizes& sizes);
  void check_dtype(DType wanted) const;
  TensorImpl* impl_ = nullptr;
};

/// What Tensor::unique() gives.
struct UniqueElements {
  Tensor values;
  Tensor inverse;  ///< the place among values of each element, in the shape of the tensor
  Tensor counts;   ///< how often each of values stands there
};

/// One piece of Tensor::index: a number, a slice, a new axis, an ellipsis, or a tensor of integers
/// or bools.
class Index {
 public:
  Index(int value) : value_(int64_t(value)) {}
  Index(int64_t value) : value_(value) {}
  Index(indexing::Slice slice) : value_(std::move(slice)) {}
  Index(indexing::NoneType none) : value_(none) {}
  Index(indexing::EllipsisType ellipsis) : value_(ellipsis) {}
  Index(Tensor positions) : value_(std::move(positions)) {}

  using Value =
      std::variant<int64_t, indexing::Slice, indexing::NoneType, indexing::EllipsisType, Tensor>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

#define TUFF_BINARY(op)                                 \
  Tensor operator op(const Tensor& a, const Tensor& b); \
  Tensor operator op(const Tensor& a, Number b);        \
  Tensor operator op(Number a, const Tensor& b)
TUFF_BINARY(+);
TUFF_BINARY(-);
TUFF_BINARY(*);
TUFF_BINARY(/);  // true division
TUFF_BINARY(%);  // remainder()
TUFF_BINARY(<);
TUFF_BINARY(>);
TUFF_BINARY(<=);
TUFF_BINARY(>=);
TUFF_BINARY(==);
TUFF_BINARY(!=);
TUFF_BINARY(&);
TUFF_BINARY(|);
TUFF_BINARY(^);
TUFF_BINARY(<<);
TUFF_BINARY(>>);
#undef TUFF_BINARY
Tensor operator-(const Tensor& a);
Tensor operator~(const Tensor& a);

/// In place, see TensorWrites: a += b changes what all copies of a see, a = a + b makes a tensor of
/// its own. x[0] += b writes x.
#define TUFF_IN_PLACE(op)                                                        \
  Tensor& operator op(Tensor& a, const Tensor& b);                                \
  Tensor& operator op(Tensor& a, Number b);                                       \
  inline Tensor operator op(Tensor&& a, const Tensor& b) { return operator op(a, b); } \
  inline Tensor operator op(Tensor&& a, Number b) { return operator op(a, b); }
TUFF_IN_PLACE(+=)
TUFF_IN_PLACE(-=)
TUFF_IN_PLACE(*=)
TUFF_IN_PLACE(/=)
TUFF_IN_PLACE(%=)
TUFF_IN_PLACE(&=)
TUFF_IN_PLACE(|=)
TUFF_IN_PLACE(^=)
TUFF_IN_PLACE(<<=)
TUFF_IN_PLACE(>>=)
#undef TUFF_IN_PLACE

/// Whether what this thread computes has gradients; true unless a NoGradGuard lives.
bool is_grad_enabled();
/// As long as it lives, results on this thread are detached from what they are computed of.
class NoGradGuard {
 public:
  NoGradGuard();
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;

 private:
  bool before_;
};

/// Training mode of this thread: dropout and batch statistics are active only inside.
bool training();
/// Switches training mode for as long as it lives.
class TrainingMode {
 public:
  explicit TrainingMode(bool on = true);
  ~TrainingMode();
  TrainingMode(const TrainingMode&) = delete;

 private:
  bool before_;
};

}  // namespace tuff
