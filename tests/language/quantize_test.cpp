// quantize(): what the file holds that it writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include <tuff/io.h>
#include "io/scratch_folder.h"
#include "language/fixtures.h"

namespace tuff::language {
namespace {

using testing::HasSubstr;

class Quantize : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path(name); }
  std::string error_of(const std::string& from, const std::string& to, const std::string& type) {
    try {
      quantize(from, to, type, {.device = "CPU"});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  const std::string from_ = TUFF_SOURCE_DIR "/tests/data/language/llama.gguf";
  ScratchFolder folder_;
};

TEST_F(Quantize, AModelOfBlocksComputesNearlyTheSame) {
  const Quantized q = quantize(from_, at("q8"), "q8_0", {.device = "CPU"});
  EXPECT_GT(q.tensors.at("Q8_0"), 8);
  EXPECT_EQ(q.tensors.at("F16"), 2) << "rows of 40 are no whole blocks";
  EXPECT_LT(q.bytes, q.bytes_before);
  const std::vector<int32_t> tokens = fixture_tokens();
  const Tensor in = Tensor::from(tokens, {int64_t(tokens.size())}, {.device = "CPU"});
  const auto logits = [&](const std::string& path) {
    return Model::open(path, {.device = "CPU"})(in).to_vector<float>();
  };
  const std::vector<float> got = logits(at("q8")), want = logits(from_);
  double off = 0, all = 0;
  for (size_t i = 0; i < want.size(); i++)
    off += std::pow(double(got[i]) - double(want[i]), 2), all += std::pow(double(want[i]), 2);
  EXPECT_LT(std::sqrt(off / all), 0.05);
}

TEST_F(Quantize, MetadataAndNormsStay) {
  quantize(from_, at("q4"), "q4_0", {.device = "CPU"});
  const TensorDict before = load(from_), after = load(at("q4"));
  EXPECT_EQ(after.names(), before.names());
  for (const auto& [key, value] : before.metadata()) EXPECT_EQ(*after.metadata(key), value) << key;
  EXPECT_EQ(after.metadata("general.file_type")->str(), "2");
  EXPECT_EQ(after.metadata("general.quantization_version")->str(), "2");
  for (const TensorInfo& t : after.info()) {
    const bool embedding = t.name == "token_embd.weight";  // and the output's: Q6_K, if it fits
    if (t.shape.size() == 1 || embedding) {
      EXPECT_EQ(t.type, embedding ? "Q8_0" : "F32") << t.name;
    }
  }
  EXPECT_EQ(after["output_norm.weight"].to_vector<float>(),
            before["output_norm.weight"].to_vector<float>());
}

TEST_F(Quantize, WhatIsPackedIsDecodedFirst) {
  quantize(from_, at("q8"), "q8_0", {.device = "CPU"});
  quantize(at("q8"), at("f32"), "f32", {.device = "CPU"});
  const TensorDict packed = load(at("q8"), {.device = "CPU"}), wide = load(at("f32"));
  for (const std::string& name : packed.names())
    EXPECT_EQ(wide[name].to_vector<float>(), packed[name].to(DType::F32).to_vector<float>());
}

// A single token picks blocks, several ones decode those of all experts.
TEST_F(Quantize, PackedExperts) {
  quantize(TUFF_SOURCE_DIR "/tests/data/language/qwen3moe.gguf", at("moe"), "q8_0",
           {.device = "CPU"});
  const Model model = Model::open(at("moe"), {.device = "CPU"});
  const std::vector<int32_t> tokens = fixture_tokens();
  const Tensor in = Tensor::from(tokens, {int64_t(tokens.size())}, {.device = "CPU"});
  const std::vector<float> want = model(in).to_vector<float>();
  Sequence sequence(model, {.cache = CacheType::F32});
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::span<const float> got = sequence.read({&tokens[i], 1});
    for (size_t k = 0; k < got.size(); k++)
      ASSERT_NEAR(got[k], want[i * got.size() + k], 1e-4) << i;
  }
}

TEST_F(Quantize, RefusesByName) {
  EXPECT_EQ(error_of(from_, at("x"), "q9"),
            "'q9' is none of the types that weights are written in: f32, f16, bf16, q8_0, q4_0, "
            "q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q4_k_s, q5_k, q5_k_s, q6_k");
  EXPECT_THAT(error_of(from_, from_, "q8_0"), HasSubstr("is there already; --force"));
  EXPECT_THAT(error_of(folder_.path(""), at("x"), "q8_0"), HasSubstr("is a folder"));
  EXPECT_THAT(error_of(at("missing"), at("x"), "q8_0"), HasSubstr("No such file"));
  TensorDict other;
  other.set("x", Tensor::full({32}, 1, {.device = "CPU"}));
  save(at("x.safetensors"), other);
  EXPECT_THAT(error_of(at("x.safetensors"), at("x"), "q8_0"),
              HasSubstr("of the format safetensors"));
  EXPECT_FALSE(std::filesystem::exists(at("x")));
}

TEST_F(Quantize, WhatEndsItLeavesTheFileAsItWas) {
  quantize(from_, at("out"), "q8_0", {.device = "CPU"});
  const auto bytes = std::filesystem::file_size(at("out"));
  const auto stop = [](uint64_t, uint64_t) { throw 1; };
  EXPECT_THROW(
      quantize(from_, at("out"), "f32", {.device = "CPU", .overwrite = true, .progress = stop}),
      int);
  EXPECT_EQ(std::filesystem::file_size(at("out")), bytes);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("")), {}), 1);
}

}  // namespace
}  // namespace tuff::language
