#include "render/kernel_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tuff::render {

std::vector<HostBuffer> inputs(const kernel::LinearKernel& k, uint32_t seed, Values values) {
  std::mt19937 random(seed);
  std::vector<HostBuffer> out;
  for (const auto& b : k.buffers) {
    HostBuffer bytes(b.count * size_bytes(b.dtype));
    for (int64_t i = 0; i < b.count; ++i) {
      double v = std::uniform_real_distribution<double>(-8, 8)(random);
      if (values == Values::Safe) v = std::abs(v) * 10;
      if (values == Values::Whole) v = std::trunc(v);
      Scalar s = Scalar::of_double(b.dtype, v);
      if (is_int(b.dtype) && values == Values::Any && i % 3)
        s = Scalar::of_int(b.dtype, static_cast<int64_t>(random()) << (random() % 33));
      if (b.dtype == DType::Bool) s = Scalar::of_int(b.dtype, random() & 1);
      store_scalar(s, bytes.data() + i * size_bytes(b.dtype));
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

void expect_equal(const kernel::LinearKernel& k, const std::vector<HostBuffer>& got,
                  const std::vector<HostBuffer>& want) {
  for (size_t b = 0; b < got.size(); ++b)
    for (int64_t i = 0; i < k.buffers[b].count; ++i) {
      const DType t = k.buffers[b].dtype;
      const Scalar g = load_scalar(t, got[b].data() + i * size_bytes(t));
      const Scalar w = load_scalar(t, want[b].data() + i * size_bytes(t));
      if (is_float(t) && std::isnan(w.as_double()))
        EXPECT_TRUE(std::isnan(g.as_double()));
      else if (t == DType::F32)
        EXPECT_FLOAT_EQ(g.as_double(), w.as_double()) << k.name << " buffer " << b << " at " << i;
      else
        EXPECT_EQ(g, w) << k.name << " buffer " << b << " at " << i << ": " << g.as_double()
                        << " for " << w.as_double();
    }
}

std::vector<Case> integer_cases() {
  std::vector<Case> cases;
  for (DType t : kMemoryTypes)
    if (is_int(t))
      for (int width : {1, 8}) cases.push_back({integer_kernel(t, width)});
  return cases;
}

std::vector<Case> float_cases() {
  std::vector<Case> cases;
  for (DType t : {DType::F32, DType::F64})
    for (int width : {1, 4, 16}) cases.push_back({float_kernel(t, width)});
  return cases;
}

std::vector<Case> cast_cases(std::span<const DType> types) {
  std::vector<Case> cases;
  for (DType from : types)
    for (DType to : types)
      for (int width : {1, 8})
        if (from != to)
          cases.push_back({cast_kernel(from, to, width),
                           is_float(from) && !is_float(to) ? Values::Safe : Values::Any});
  return cases;
}

}  // namespace tuff::render
