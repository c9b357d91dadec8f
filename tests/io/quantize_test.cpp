// The encoders beside what ggml itself made of the same values (tests/data/ggml.gguf).
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <tuff/io.h>
#include "io/dequantize.h"
#include "io/formats/gguf.h"
#include "io/quantize.h"
#include "io/tensor_bytes.h"

namespace tuff::io {
namespace {

constexpr int64_t kRows = 2, kRow = 256;  // of values that ggml has quantized

class GgmlQuantized : public testing::TestWithParam<const char*> {
 protected:
  std::vector<uint8_t> ours() const {
    std::vector<float> values = file_["F32"].to_vector<float>();
    values.resize(kRows * kRow);
    std::vector<uint8_t> out(theirs().size());
    quantize(GetParam(), values, out);
    return out;
  }
  std::vector<uint8_t> theirs() const {
    const BlockType block = *gguf_block(GetParam());
    const uint64_t bytes = uint64_t(kRows * kRow) / block.elements * block.size_bytes;
    const std::vector<TensorInfo> tensors = file_.info();
    const auto found = std::ranges::find(tensors, GetParam(), &TensorInfo::name);
    return FileBytes(found->file).bytes(found->offset, bytes);
  }
  // The root of the mean square beside the values.
  double error(const std::vector<uint8_t>& bytes) const {
    const std::vector<float> values = file_["F32"].to_vector<float>();
    const int64_t block = gguf_block(GetParam())->size_bytes;
    const Tensor blocks = Tensor::from(bytes, {int64_t(bytes.size()) / block, block});
    const std::vector<float> decoded = dequantize(GetParam(), blocks).to_vector<float>();
    double squares = 0;
    for (size_t i = 0; i < decoded.size(); i++)
      squares += std::pow(double(decoded[i]) - double(values[i]), 2);
    return std::sqrt(squares / double(decoded.size()));
  }
  const TensorDict file_ = load(TUFF_SOURCE_DIR "/tests/data/ggml.gguf", {.device = "CPU"});
};

using SameBits = GgmlQuantized;
TEST_P(SameBits, AsGgml) { EXPECT_EQ(ours(), theirs()); }
INSTANTIATE_TEST_SUITE_P(Types, SameBits,
                         testing::Values("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"));

using NoWorse = GgmlQuantized;
TEST_P(NoWorse, ThanGgml) { EXPECT_LE(error(ours()), 1.02 * error(theirs())); }
INSTANTIATE_TEST_SUITE_P(Types, NoWorse,
                         testing::Values("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"));

TEST(Quantize, ExtremesDecodeToWhatTheyAre) {
  const float kExtremes[] = {0, 1, -1, 65504, -65504, 1e-40f, -1e-30f, 3e-8f};
  for (const char* type : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                           "Q6_K"}) {
    const BlockType block = *gguf_block(type);
    for (const float extreme : kExtremes) {
      const std::vector<float> values(block.elements, extreme);
      std::vector<uint8_t> bytes(block.size_bytes);
      quantize(type, values, bytes);
      const Tensor blocks = Tensor::from(bytes, {1, int64_t(block.size_bytes)}, {.device = "CPU"});
      for (const float got : dequantize(type, blocks).to_vector<float>())
        EXPECT_NEAR(got, extreme, std::abs(extreme) * 0.01 + 1e-6) << type << " of " << extreme;
    }
  }
}

TEST(Quantize, KnowsItsTypes) {
  EXPECT_TRUE(can_quantize("Q4_K"));
  EXPECT_FALSE(can_quantize("IQ2_XS"));
}

}  // namespace
}  // namespace tuff::io
