#include "devices/vulkan/self_test/matrix_self_test.h"

#include "devices/vulkan/self_test/self_test.h"
#include "ir/uop.h"
#include "kernel/pipeline.h"

namespace tuff::devices::vulkan {

using namespace ir;
using kernel::Opt;
using kernel::OptKind;

std::string matrix_test_name(const MatrixShape& s) {
  return fmt::format("matrix:{}x{}x{}:{}:{}:{}", s.m, s.n, s.k, name(s.a), name(s.b), name(s.sum));
}

namespace {

UOp matrix_element(int32_t slot, DType t, int64_t count, const UOp& at) {
  return make(Op::Index, t, {param(slot, t, count), at});
}
UOp loaded(int32_t slot, DType t, int64_t count, const UOp& at) {
  return make(Op::Load, t, {matrix_element(slot, t, count, at)});
}

}  // namespace

std::vector<MatrixTest> matrix_tests(const MatrixShape& s) {
  if (s.a == DType::F16) return {MatrixTest::Stored, MatrixTest::Rounded, MatrixTest::Continued};
  return {MatrixTest::Stored, MatrixTest::Continued};
}

// Two matrices along each axis: strides, sums over steps, fragments beside each other; one factor's
// are loaded from memory, the other's from workgroup memory where that holds them.
kernel::LinearKernel matrix_test_kernel(const MatrixShape& s, MatrixTest test,
                                        const Target& target) {
  const int64_t m = 2 * int64_t(s.m), n = 2 * int64_t(s.n), k = 2 * int64_t(s.k);
  const UOp i = range(index_const(m), 0, AxisKind::Loop),
            j = range(index_const(n), 1, AxisKind::Loop),
            r = range(index_const(k), 2, AxisKind::Reduce);
  const UOp a = cast(loaded(1, s.a, m * k, i * k + r), s.sum);
  const UOp b = cast(loaded(2, s.b, k * n, r * n + j), s.sum);
  const UOp sum = make(Op::Reduce, s.sum, {a * b, r}, ReduceArg{Op::Add, {}});
  const UOp value = test == MatrixTest::Rounded     ? cast(sum, DType::F16)
                    : test == MatrixTest::Continued ? sum + constant(s.sum, 1)
                                                    : sum;
  const UOp place = matrix_element(0, value->dtype, m * n, i * n + j);
  const UOp store = make(Op::Store, DType::Void, {place, value});
  const std::vector<UOp> roots{make(Op::End, DType::Void, {store, i, j})};
  Target t = target;
  t.matrix_shapes = {s};
  std::vector<Opt> opts{{OptKind::Matrix, 0, 0}, {OptKind::Upcast, 1, 2}};
  const bool two_subgroups = 2 * t.subgroup_size <= std::min(t.max_invocations, t.max_local[0]);
  opts.push_back(two_subgroups ? Opt{OptKind::Local, 0, 2} : Opt{OptKind::Group, 0, 0});
  if (t.held_bytes(s.b) == int64_t(size_bytes(s.b))) opts.push_back({OptKind::Stage, 1, 1});
  return kernel::lower_with(sink(roots), t, opts);
}

std::vector<std::vector<std::byte>> matrix_test_contents(const kernel::LinearKernel& k) {
  std::vector<std::vector<std::byte>> out;
  for (const auto& b : k.buffers) {
    const size_t size = size_bytes(b.dtype);
    auto& bytes = out.emplace_back(static_cast<size_t>(b.count) * size);
    for (int64_t e = 0; e < b.count; ++e) {
      const int64_t least = is_unsigned(b.dtype) ? 0 : -4;
      const int64_t v = b.slot == 0 ? 99 : (e * 7 + e / 5 * 3 + b.slot) % 9 + least;
      // With eighths, so that sums are no float16.
      const Scalar number = is_float(b.dtype)
                                ? Scalar::of_double(b.dtype, static_cast<double>(v) + 0.125)
                                : Scalar::of_int(b.dtype, v);
      store_scalar(number, &bytes[static_cast<size_t>(e) * size]);
    }
  }
  return out;
}

namespace {

std::string run_matrix_test(const kernel::LinearKernel& k, hcq::Device& device,
                            const Target& target) {
  auto got = matrix_test_contents(k), want = got;
  run_on_host(k, want);
  run_on_device(k, target, device, got);
  const DType t = k.buffers[0].dtype;
  for (size_t e = 0; e < static_cast<size_t>(k.buffers[0].count); ++e) {
    const auto value = [&](const auto& buffers) {
      return load_scalar(t, &buffers[0][e * size_bytes(t)]).as_double();
    };
    if (value(got) != value(want))
      return fmt::format("sum {} is {}, not {}", e, value(got), value(want));
  }
  return {};
}

}  // namespace

std::string run_matrix_self_test(const MatrixShape& shape, hcq::Device& device,
                                 const Target& target) {
  for (const MatrixTest test : matrix_tests(shape)) {
    std::string wrong = run_matrix_test(matrix_test_kernel(shape, test, target), device, target);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace tuff::devices::vulkan
