#include "devices/vulkan/self_test/self_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "hcq/launch.h"
#include "ir/interpret.h"
#include "kernel/lowered.h"
#include "kernel/opt/neighbours.h"
#include "kernel/pipeline.h"
#include "render/renderer.h"

namespace tuff::devices::vulkan {
namespace {

using ir::alu;
using ir::bitcast;
using ir::cast;
using ir::lt;
using ir::Op;
using ir::UOp;
using ir::where;

// ---- kernels --------------------------------------------------------------------------------

UOp element(int32_t slot, DType t, int64_t count, const UOp& at, const UOp& gate = {}) {
  const UOp p = ir::param(slot, t, count);
  return gate ? ir::make(Op::Index, t, {p, at, gate}) : ir::make(Op::Index, t, {p, at});
}

// A kernel in the making: one loop over the pairs, whose values it stores.
struct Pairs {
  Pairs(int64_t n, DType t)
      : count(n), i(ir::range(ir::index_const(n), 0, ir::AxisKind::Loop)), input(t) {
    a = load(0);
    b = load(1);
  }
  UOp load(int64_t which, const UOp& gate = {}) const {
    return ir::make(Op::Load, input, {element(1, input, count * 2, i * 2 + which, gate)});
  }
  // values[j] becomes element i * (skipped + values.size()) + skipped + j.
  void store(int32_t slot, const std::vector<UOp>& values, int64_t skipped = 0) {
    const int64_t step = skipped + static_cast<int64_t>(values.size());
    for (size_t j = 0; j < values.size(); ++j) {
      const UOp at = i * step + (skipped + static_cast<int64_t>(j));
      const DType t = values[j]->dtype;
      const UOp to = element(slot, t, count * step, at);
      ends.push_back(ir::make(Op::End, DType::Void,
                                 {ir::make(Op::Store, DType::Void, {to, values[j]}), i}));
    }
  }
  UOp kernel() const { return ir::sink(ends); }

  int64_t count;
  UOp i, a, b;
  DType input;
  std::vector<UOp> ends;
};

// Every second element is left alone; signed and unsigned numbers are widened.
template <DType kSigned, DType kUnsigned>
UOp narrow_storage(int64_t n) {
  Pairs p(n, kSigned);
  p.store(0, {p.a}, 1);
  p.store(2, {cast(p.a, DType::I32), cast(cast(bitcast(p.b, kUnsigned), DType::U32), DType::I32)});
  return p.kernel();
}

template <DType kSigned, DType kUnsigned>
std::vector<UOp> integer_arithmetic(const UOp& x, const UOp& y, DType out) {
  const UOp u = bitcast(x, kUnsigned), v = bitcast(y, kUnsigned);
  const UOp three = ir::constant(Scalar::of_int(kSigned, 3));
  const UOp three_unsigned = ir::constant(Scalar::of_int(kUnsigned, 3));
  return {cast(x + y, out),
          cast(x - y, out),
          cast(x * y, out),
          cast(alu(Op::IDiv, {x, y}), out),
          cast(alu(Op::IMod, {u, v}), out),
          cast(alu(Op::Shr, {x, three}), out),
          cast(alu(Op::Shr, {u, three_unsigned}), out),
          cast(where(lt(x, y), x, y), out),
          cast(where(lt(u, v), u, v), out)};
}

template <DType kSigned, DType kUnsigned>
UOp narrow_integers(int64_t n) {
  Pairs p(n, DType::I32);
  p.store(0, integer_arithmetic<kSigned, kUnsigned>(cast(p.a, kSigned), cast(p.b, kSigned),
                                                    DType::I32));
  return p.kernel();
}

UOp wide_integers(int64_t n) {
  Pairs p(n, DType::I64);
  p.store(0, integer_arithmetic<DType::I64, DType::U64>(p.a, p.b, DType::I64));
  p.store(2, {cast(p.a, DType::I32)});
  return p.kernel();
}

UOp added_quotients(int64_t n) {
  Pairs p(n, DType::I64);
  std::vector<UOp> out;
  for (const int64_t by : {3, -4}) {
    for (const Op op : {Op::IDiv, Op::IMod}) {
      const UOp divisor = ir::constant(Scalar::of_int(DType::I64, by));
      out.push_back(alu(op, {p.a, divisor}) + divisor);
      out.push_back(alu(op, {p.b, divisor}) + divisor);
    }
  }
  p.store(0, out);
  return p.kernel();
}

UOp half_floats(int64_t n) {
  Pairs p(n, DType::F32);
  const UOp x = cast(p.a, DType::F16), y = cast(p.b, DType::F16);
  std::vector<UOp> out;
  for (const UOp& v : {x, x + y, x - y, x * y, where(lt(x, y), x, y), (x + y) * y})
    out.push_back(cast(v, DType::F32));
  p.store(0, out);
  // A NaN's bits are the device's own: NVIDIA's are 0x7fff, most others' 0x7e00.
  const UOp bits = cast(bitcast(x, DType::U16), DType::U32);
  p.store(2, {where(alu(Op::CmpNe, {p.a, p.a}), ir::constant(DType::U32, 0x7e00), bits)});
  return p.kernel();
}

UOp double_floats(int64_t n) {
  Pairs p(n, DType::F64);
  p.store(0, {p.a + p.b, p.a - p.b, p.a * p.b, where(lt(p.a, p.b), p.a, p.b)});
  p.store(2, {cast(p.a, DType::F32)});
  return p.kernel();
}

UOp special_values(int64_t n) {
  Pairs p(n, DType::F32);
  const UOp zero = ir::constant(DType::F32, 0);
  p.store(0, {p.a + p.b, p.a - p.b, p.a * p.b, p.a - p.a, p.a + zero, alu(Op::Neg, {p.a}),
              where(alu(Op::CmpNe, {p.a, p.a}), p.b, p.a), where(lt(p.a, p.b), p.a, p.b)});
  return p.kernel();
}

// One invocation has all pairs: what is uniform goes another way through some compilers, which
// scale it for reciprocals. Vulkan promises these from 2^-126 to 2^126.
UOp denormal_values(int64_t n) {
  Pairs p(n, DType::F32);
  const UOp least = ir::constant(DType::F32, 0x1p-126), one = ir::constant(DType::F32, 1);
  const UOp divisor = where(lt(p.a, least), one, p.a);
  p.store(0, {p.a + p.b, p.a - p.b, p.a * p.b, alu(Op::Recip, {divisor}), alu(Op::Neg, {p.a}),
              where(lt(p.a, p.b), p.a, p.b)});
  return p.kernel();
}

UOp converted_words(int64_t n) {
  Pairs p(n, DType::U32);
  p.store(0, {cast(p.a, DType::F32), cast(bitcast(p.b, DType::I32), DType::F32)});
  return p.kernel();
}

// A literal 0, and one that appears where a loop is unrolled: the second gate is false.
UOp products_with_zero(int64_t n) {
  Pairs p(n, DType::F32);
  const UOp k = ir::range(ir::index_const(2), 1, ir::AxisKind::Reduce);
  const UOp padded = p.load(0, lt(k, ir::index_const(1))) * p.b;
  const UOp sum = ir::make(Op::Reduce, DType::F32, {padded, k}, ir::ReduceArg{Op::Add, {}});
  p.store(0, {p.a * ir::constant(DType::F32, 0), sum});
  return p.kernel();
}

// Sums that the lanes of a subgroup share, several subgroups to a workgroup: four rows to a pair.
UOp shared_sums(int64_t n) {
  const int64_t rows = 4 * n;
  const UOp row = ir::range(ir::index_const(rows), 0, ir::AxisKind::Loop);
  const UOp step = ir::range(ir::index_const(2 * n), 1, ir::AxisKind::Reduce);
  const UOp x = ir::make(Op::Load, DType::I32, {element(1, DType::I32, 2 * n, step)});
  const UOp sum = ir::make(Op::Reduce, DType::I32, {x * cast(row + 1, DType::I32), step},
                           ir::ReduceArg{Op::Add, {}});
  const UOp store = ir::make(Op::Store, DType::Void, {element(0, DType::I32, rows, row), sum});
  const UOp end = ir::make(Op::End, DType::Void, {store, row});
  return ir::sink({&end, 1});
}

std::string rows_of_subgroups(const Target& target) {
  const uint32_t most = std::min(target.max_invocations, target.max_local[0]);
  const uint32_t rows = std::min(4u, most / target.subgroup_size);
  return fmt::format("{}group_reduce(1,{})", rows > 1 ? fmt::format("local(0,{}) ", rows) : "",
                     target.subgroup_size);
}

// ---- numbers --------------------------------------------------------------------------------

constexpr uint64_t kIntegers[] = {0,          1,          2,          5,          0x7f,
                                  0x80,       0xff,       0x7fff,     0x8000,     0xffff,
                                  0x7fffffff, 0x80000000, 0xffffffff, 0xdbef1f73, 0x01000001};
constexpr uint64_t kBytes[] = {0, 1, 2, 0x55, 0x7f, 0x80, 0x81, 0xff};
constexpr uint64_t kShorts[] = {0, 1, 0x00ff, 0x0100, 0x7fff, 0x8000, 0x8001, 0xffff};
constexpr uint64_t kLongs[] = {0,
                               1,
                               7,
                               0xffffffff,
                               0x100000000,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xffffffffffffffff,
                               0x123456789abcdef0,
                               0xfffffffe00000001};
// Zeros, ones, the largest, infinities, NaN; no subnormals, which Vulkan lets a device flush.
constexpr uint64_t kFloats[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x40490fdb,
                                0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000};
// Powers of two, whose sums and products are rounded everywhere alike: 2^-149, 2^-128, -2^-127,
// 2^-126, 2^-24, 1, 2^126, -2^127.
constexpr uint64_t kDenormals[] = {0x00000001, 0x00200000, 0x80400000, 0x00800000,
                                   0x33800000, 0x3f800000, 0x7e800000, 0xff000000};
// For fp16: ties between its numbers (2049, 2051), the last below and the first above its range
// (65519, 65520), its subnormals and ties between them (2^-24, 2^-25, 3 * 2^-25, 2^-15).
constexpr uint64_t kHalves[] = {0,          0x80000000, 0x3f800000, 0xbf801000, 0x3f803000,
                                0x45001000, 0x45003000, 0x477fef00, 0x477ff000, 0x33800000,
                                0x33000000, 0x33c00000, 0x38000000, 0x38ffe000, 0x7f800000,
                                0xff800000, 0x7fc00000};
constexpr uint64_t kDoubles[] = {0,
                                 0x8000000000000000,
                                 0x3ff0000000000000,
                                 0xbff0000000000001,
                                 0x400921fb54442d18,
                                 0x47efffffe0000000,
                                 0x7fefffffffffffff,
                                 0x7ff0000000000000,
                                 0xfff0000000000000,
                                 0x7ff8000000000000};

#define TUFF_SELF_TEST(cap, ...) {#cap, &Caps::cap, __VA_ARGS__}
constexpr SelfTest kSelfTests[] = {
    TUFF_SELF_TEST(signedZeroInfNanPreserve, DType::F32, kFloats, special_values),
    TUFF_SELF_TEST(denormPreserve, DType::F32, kDenormals, denormal_values),
    TUFF_SELF_TEST(exactU32ToF32, DType::U32, kIntegers, converted_words),
    TUFF_SELF_TEST(zeroProducts, DType::F32, kFloats, products_with_zero),
    TUFF_SELF_TEST(storageBuffer8BitAccess, DType::I8, kBytes,
                   narrow_storage<DType::I8, DType::U8>),
    TUFF_SELF_TEST(storageBuffer16BitAccess, DType::I16, kShorts,
                   narrow_storage<DType::I16, DType::U16>),
    TUFF_SELF_TEST(shaderInt8, DType::I32, kIntegers, narrow_integers<DType::I8, DType::U8>),
    TUFF_SELF_TEST(shaderInt16, DType::I32, kIntegers, narrow_integers<DType::I16, DType::U16>),
    TUFF_SELF_TEST(shaderInt64, DType::I64, kLongs, wide_integers),
    TUFF_SELF_TEST(wideQuotients, DType::I64, kLongs, added_quotients),
    // Without roundedF16Casts, which is trusted only once it has passed.
    TUFF_SELF_TEST(shaderFloat16, DType::F32, kHalves, half_floats),
    TUFF_SELF_TEST(roundedF16Casts, DType::F32, kHalves, half_floats),
    TUFF_SELF_TEST(shaderFloat64, DType::F64, kDoubles, double_floats),
    TUFF_SELF_TEST(computeFullSubgroups, DType::I32, kIntegers, shared_sums, rows_of_subgroups),
};
#undef TUFF_SELF_TEST

// ---- running --------------------------------------------------------------------------------

constexpr std::byte kUntouched{0xa5};

using Bytes = std::vector<std::byte>;

// Contents of the kernel's buffers before it runs.
std::vector<Bytes> make_contents(const SelfTest& test, const kernel::LinearKernel& k) {
  std::vector<Bytes> out;
  for (const auto& b : k.buffers)
    out.emplace_back(static_cast<size_t>(b.count) * size_bytes(b.dtype), kUntouched);
  const size_t n = test.numbers.size(), size = size_bytes(test.input);
  for (size_t i = 0; i < n * n; ++i) {
    std::memcpy(&out.at(1)[2 * i * size], &test.numbers[i / n], size);
    std::memcpy(&out.at(1)[(2 * i + 1) * size], &test.numbers[i % n], size);
  }
  return out;
}

// What a launch takes on the device, given back when the scope ends; nothing is in flight then.
class Uploads {
 public:
  explicit Uploads(hcq::Device& device) : device_(device) {}
  ~Uploads() {
    for (const hcq::Span& s : spans_) device_.allocator().free(s);
  }
  Uploads(const Uploads&) = delete;
  hcq::Span upload(std::span<const std::byte> bytes, hcq::MemoryKind kind) {
    spans_.push_back(device_.allocator().allocate(bytes.size(), kind));
    const hcq::Span span = spans_.back().sub(0, bytes.size());
    device_.upload(span, bytes.data());
    return span;
  }

 private:
  hcq::Device& device_;
  std::vector<hcq::Span> spans_;
};

}  // namespace

void run_on_device(const kernel::LinearKernel& k, const Target& target, hcq::Device& device,
                   Contents& contents) {
  const render::Renderer& renderer = render::renderer_of(target);
  const render::Source source = renderer.render(k, target);
  const auto programs = device.load(renderer.compile({&source, 1}, target));
  Uploads uploads(device);
  hcq::Launch launch{.program = programs[0].get()};
  for (size_t i = 0; i < contents.size(); ++i)
    launch.operands.push_back({.span = uploads.upload(contents[i], hcq::MemoryKind::Device),
                               .read = true,
                               .write = k.buffers[i].written});
  for (size_t i = 0; i < 3; ++i) launch.groups[i] = static_cast<uint32_t>(k.groups[i].value());
  Bytes block(programs[0]->args().size_bytes());
  hcq::write_block(launch, block.data(), [](size_t, const auto&) {});
  const hcq::Span args = uploads.upload(block, hcq::MemoryKind::Args);
  hcq::CommandList list;
  list.commands.push_back(hcq::dispatch_command(launch, args, hcq::names_buffers(device)));
  hcq::Queue& queue = device.compute_queue();
  queue.wait(queue.submit_once(queue.encode(list, hcq::EncodeUse::Once)));
  for (size_t i = 0; i < contents.size(); ++i)
    device.download(launch.operands[i].span, contents[i].data());
}

void run_on_host(const kernel::LinearKernel& k, Contents& contents) {
  ir::LinearRun run;
  for (Bytes& b : contents) run.buffers.emplace_back(b);
  for (size_t i = 0; i < 3; ++i) run.groups[i] = static_cast<uint32_t>(k.groups[i].value());
  run.local = k.local;
  run.subgroup_size = k.subgroup_size;
  ir::interpret_linear(k.ops, run);
}

namespace {

std::string bits_text(const std::byte* at, DType t) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_bytes(t));
  return fmt::format("{:#x}", bits);
}

bool same(DType t, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, size_bytes(t)) == 0) return true;
  return is_float(t) && std::isnan(load_scalar(t, a).as_double()) &&
         std::isnan(load_scalar(t, b).as_double());
}

std::string difference(const SelfTest& test, const kernel::LinearKernel::Argument& buffer,
                       const Bytes& got, const Bytes& want) {
  const size_t size = size_bytes(buffer.dtype), count = static_cast<size_t>(buffer.count);
  const size_t n = test.numbers.size(), step = count / (n * n);
  for (size_t e = 0; e < count; ++e) {
    if (same(buffer.dtype, &got[e * size], &want[e * size])) continue;
    const size_t pair = e / step;
    return fmt::format("value {} of {:#x} and {:#x} is {} as {}, not {}", e % step,
                       test.numbers[pair / n], test.numbers[pair % n],
                       bits_text(&got[e * size], buffer.dtype), name(buffer.dtype),
                       bits_text(&want[e * size], buffer.dtype));
  }
  return {};
}

}  // namespace

std::span<const SelfTest> self_tests() { return kSelfTests; }

kernel::LinearKernel lowered(const SelfTest& test, const Target& target) {
  const auto n = static_cast<int64_t>(test.numbers.size());
  const UOp ast = test.kernel(n * n);
  return test.opts ? kernel::lower_with(ast, target, kernel::parse_opts(test.opts(target)), {})
                   : kernel::lower(ast, target);
}

std::string run_self_test(const SelfTest& test, hcq::Device& device, const Target& target) {
  const kernel::LinearKernel k = lowered(test, target);
  std::vector<Bytes> got = make_contents(test, k), want = got;
  run_on_host(k, want);
  run_on_device(k, target, device, got);
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string wrong = difference(test, k.buffers[i], got[i], want[i]);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace tuff::devices::vulkan
