// Small random models of every architecture against the logits that transformers gives
// (scripts/language-values.py), read at once, token by token and in pieces.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>
#include <tuff/language.h>

#include "language/fixtures.h"
#include "language/config.h"
#include "language/hugging_face.h"
#include "language/kv_pages.h"

namespace tuff::language {
namespace {

// Beside logits of up to 4: sums of halves in another order.
constexpr double kWithin = 1e-4;

class Architectures : public testing::TestWithParam<const char*> {
 protected:
  void expect_logits(std::span<const float> got, size_t row) const {
    const std::vector<float> want = fixture_logits(GetParam())[row];
    ASSERT_EQ(got.size(), want.size());
    double worst = 0;
    for (size_t i = 0; i < want.size(); i++)
      worst = std::max(worst, double(std::abs(got[i] - want[i])));
    EXPECT_LT(worst, kWithin) << "behind token " << row;
  }
  const std::vector<int32_t> tokens_ = fixture_tokens();
  const Model model_ = fixture_model(GetParam());
};

TEST_P(Architectures, AllAtOnce) {
  const Tensor in = Tensor::from(tokens_, {int64_t(tokens_.size())});
  const std::vector<float> got = model_(in).to_vector<float>();
  const size_t columns = size_t(model_.description().vocabulary);
  for (size_t i = 0; i < tokens_.size(); i++)
    expect_logits(std::span(got).subspan(i * columns, columns), i);
}

TEST_P(Architectures, TokenByToken) {
  Sequence sequence(model_, {.cache = CacheType::F32});
  for (size_t i = 0; i < tokens_.size(); i++) expect_logits(sequence.read({&tokens_[i], 1}), i);
  EXPECT_GT(sequence.stats().replays, 0u) << "every length is the same graph";
}

TEST_P(Architectures, InPieces) {
  Sequence sequence(model_, {.cache = CacheType::F32});
  expect_logits(sequence.read(std::span(tokens_).first(10)), 9);
  expect_logits(sequence.read(std::span(tokens_).subspan(10)), tokens_.size() - 1);
  sequence.truncate(3);
  expect_logits(sequence.read(std::span(tokens_).subspan(3, 9)), 11);
}

TEST_P(Architectures, Embedding) {
  const std::vector<float> want = fixture_embedding(GetParam());
  for (int call = 0; call < 3; call++) {  // run, captured, replayed
    const std::vector<float> got = embed(model_, tokens_);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
  }
}

TEST_P(Architectures, HalvesInTheCacheAreNear) {
  Sequence sequence(model_);
  const std::span<const float> got = sequence.read(tokens_);
  const std::vector<float> want = fixture_logits(GetParam()).back();
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 0.02);
}

// Blocks of 32 numbers of 8 bits, whose heads have 32 elements.
TEST(Blocks, InTheCacheAreNear) {
  const Model model = fixture_model("qwen3_wide");
  const std::vector<int32_t> tokens = fixture_tokens();
  Sequence sequence(model, {.cache = CacheType::Q8_0});
  const std::span<const float> each = sequence.read_each(tokens);
  const std::vector<std::vector<float>> want = fixture_logits("qwen3_wide");
  for (size_t t = 0, at = 0; t < want.size(); t++)
    for (const float w : want[t]) ASSERT_NEAR(each[at++], w, 0.1) << t;
  EXPECT_EQ(error_of([&] { Sequence(fixture_model("llama"), {.cache = CacheType::Q8_0}); }),
            "a cache of q8_0 has blocks of 32 elements, which a head's 8 are no multiple of: f16 "
            "takes any");
  EXPECT_EQ(error_of([] { cache_type("q4_0"); }),
            "a cache of q4_0: one of f16, bf16, f32, q8_0 was wanted");
}

TEST(Blocks, HoldWhatWasPut) {
  KvPages blocks(CacheType::Q8_0, 2, 1, 64, ""), halves(CacheType::F16, 2, 1, 64, "");
  const auto bytes = [](const KvPages& pages) {
    int64_t sum = 0;
    for (const Tensor& t : pages.memory()) sum += t.numel() * int64_t(size_bytes(t.dtype()));
    return sum;
  };
  EXPECT_EQ(bytes(blocks) * 32, bytes(halves) * 17) << "34 bytes for 32 halves";
  std::vector<float> numbers(128, 0.0f);
  for (size_t i = 0; i < 32; i++) numbers[i] = float(i) - 15.5f, numbers[64 + i] = 1e-9f;
  numbers[32] = 1e30f, numbers[96] = std::numeric_limits<float>::quiet_NaN();
  const Tensor slots = Tensor::from(std::vector<int32_t>{40, 3}, {2});
  blocks.put(slots, Tensor::from(numbers, {2, 1, 64}));
  const std::vector<float> got = blocks.rows(slots).to_vector<float>();
  for (size_t i = 0; i < 32; i++) {
    EXPECT_NEAR(got[i], numbers[i], 15.5 / 127 * 0.501) << i;
    EXPECT_EQ(got[64 + i], 0) << "too small for the scale";
  }
  EXPECT_EQ(got[32], 65504.0f * 127) << "the largest there is";
  EXPECT_EQ(got[96], 0);
}

INSTANTIATE_TEST_SUITE_P(, Architectures,
                         testing::Values("llama", "llama3", "llama_linear", "llama_yarn", "qwen2",
                                         "qwen3", "qwen3_wide", "phi3", "gemma", "gemma2", "gemma3",
                                         "mixtral", "qwen2moe", "qwen3moe", "gpt2"),
                         [](const auto& info) { return std::string(info.param); });

// The factors of short texts; those of long ones are taken where the context is longer than the
// original one, whatever the text.
TEST(LongRope, OfAShortText) {
  const std::vector<int32_t> tokens = fixture_tokens();
  const Model model = fixture_model("phi3_longrope");
  const auto want = fixture_logits("phi3_longrope");
  const std::vector<float> got =
      model(Tensor::from(tokens, {int64_t(tokens.size())})).to_vector<float>();
  for (size_t i = 0; i < got.size(); i++)
    ASSERT_NEAR(got[i], want[i / want[0].size()][i % want[0].size()], kWithin);
  const auto worst = [&](int64_t context) {
    Sequence sequence(model, {.context = context, .cache = CacheType::F32});
    const std::span<const float> logits = sequence.read(tokens);
    double out = 0;
    for (size_t i = 0; i < logits.size(); i++)
      out = std::max(out, double(std::abs(logits[i] - want.back()[i])));
    return out;
  };
  EXPECT_LT(worst(16), kWithin);
  EXPECT_GT(worst(64), 0.01);
}

class Folders : public testing::TestWithParam<const char*> {};

TEST_P(Folders, HaveTheLogitsOfTheGgufFile) {
  const std::string folder = TUFF_SOURCE_DIR "/tests/data/language/";
  const std::vector<int32_t> tokens = fixture_tokens();
  const Tensor in = Tensor::from(tokens, {int64_t(tokens.size())});
  const Model model = Model::open(folder + GetParam()), file = fixture_model(GetParam());
  const std::vector<float> got = model(in).to_vector<float>(), want = file(in).to_vector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-5);
  EXPECT_EQ(model.tokenizer().encode("abc"), (std::vector<int32_t>{0, 1, 2}));
}

INSTANTIATE_TEST_SUITE_P(, Folders,
                         testing::Values("llama3", "phi3", "phi3_longrope", "gemma3", "mixtral",
                                         "qwen2moe", "gpt2"),
                         [](const auto& info) { return std::string(info.param); });

// Encoders have no logits: the mean of their tokens, or the first.
class Encoders : public testing::TestWithParam<const char*> {};

TEST_P(Encoders, Embedding) {
  const std::string path = TUFF_SOURCE_DIR "/tests/data/language/" + std::string(GetParam());
  const std::string name = std::filesystem::path(path).stem().string();
  const std::vector<float> got = embed(Model::open(path), fixture_tokens()),
                           want = fixture_embedding(name);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(, Encoders,
                         testing::Values("bert_mean.gguf", "bert_first.gguf", "bert_first"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return std::string(name.ends_with(".gguf") ? "gguf_" : "folder_") +
                                  name.substr(0, name.find('.'));
                         });

TEST(Encoder, WritesNoTexts) {
  const Model model = fixture_model("bert_mean");
  EXPECT_THROW(Sequence{model}, InvalidArgument);
  EXPECT_THROW(model(Tensor::from(std::vector<int32_t>{1}, {1})), InvalidArgument);
}

TEST(Folder, NamesWhatItLacks) {
  const auto error = [](const char* json) -> std::string {
    try {
      hugging_face_config(json);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("{"), "config.json is no JSON");
  EXPECT_EQ(error("[]"), "config.json is no JSON object");
  EXPECT_EQ(error(R"({"model_type": "mamba"})"),
            "config.json: model_type 'mamba' is none of those that tuff runs: llama, mistral, "
            "mixtral, qwen2, qwen3, qwen2_moe, qwen3_moe, phi3, gemma, gemma2, gemma3_text, "
            "gpt2, bert");
  EXPECT_EQ(error(R"({"model_type": "llama"})"), "config.json lacks num_hidden_layers");
  EXPECT_EQ(error(R"({"model_type": "llama", "num_hidden_layers": "2"})"),
            "config.json: num_hidden_layers is \"2\", no number");
}

TEST(Folder, WindowsAreThoseOfTheArchitecture) {
  nlohmann::json config{{"model_type", "gemma3_text"}, {"num_hidden_layers", 2},
                        {"hidden_size", 32}, {"intermediate_size", 40},
                        {"num_attention_heads", 4}, {"vocab_size", 48},
                        {"max_position_embeddings", 64}, {"sliding_window", 5},
                        {"rope_local_base_freq", 5000.0},
                        {"layer_types", {"sliding_attention", "sliding_attention"}}};
  EXPECT_EQ(hugging_face_config(config.dump()).window_rope_base, 5000);
  config["layer_types"][1] = "full_attention";
  EXPECT_THROW(hugging_face_config(config.dump()), Unsupported);
}

TEST(Folder, ErrorsNameThePath) {
  const std::string path = TUFF_SOURCE_DIR "/tests/data/ggml.gguf";
  try {
    Model::open(path);
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_EQ(std::string(e.what()),
              path + ": the file lacks general.architecture: no language model");
  }
}

TEST(Config, NamesWhatItDoesNotKnow) {
  const auto error = [](Metadata metadata) -> std::string {
    try {
      config_of(metadata);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto text = [](const char* s) { return MetadataValue{std::string(s)}; };
  const auto number = [](uint64_t n) { return MetadataValue{n}; };
  EXPECT_EQ(error({}), "the file lacks general.architecture: no language model");
  EXPECT_EQ(error({{"general.architecture", text("mamba")}}),
            "the model's architecture 'mamba' is none of those that tuff runs: llama, qwen2, "
            "qwen3, qwen2moe, qwen3moe, phi3, gemma, gemma2, gemma3, gpt2, bert");
  Metadata m{{"general.architecture", text("llama")}};
  EXPECT_EQ(error(m), "the file lacks llama.block_count");
  m.push_back({"llama.block_count", text("two")});
  EXPECT_EQ(error(m), "llama.block_count is \"two\", a number was wanted");
  m.back() = {"llama.block_count", number(2)};
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"})
    m.push_back({std::string("llama.") + key, number(32)});
  m.push_back({"llama.attention.head_count", number(4)});
  EXPECT_EQ(error(m), "");
  m.push_back({"llama.attention.head_count_kv", number(3)});
  EXPECT_EQ(error(m), "3 heads of keys do not divide 4 heads");
  m.back() = {"llama.expert_count", number(8)};
  EXPECT_EQ(error(m), "the file lacks llama.expert_used_count");
  m.push_back({"llama.expert_used_count", number(9)});
  EXPECT_EQ(error(m), "9 of 8 experts, of 32 elements");
  m.pop_back();
  m.back() = {"llama.rope.scaling.type", text("su")};
  EXPECT_EQ(error(m), "rope.scaling.type 'su' is none of none, linear, yarn, longrope");
}

}  // namespace
}  // namespace tuff::language
