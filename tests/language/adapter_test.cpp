// Adapters against PEFT's (scripts/finetune-values.py): logits, training steps, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <tuff/adapter.h>
#include <tuff/io.h>
#include <tuff/jit.h>
#include <tuff/optim.h>

#include "base/os.h"
#include "io/scratch_folder.h"
#include "language/fixtures.h"

namespace tuff::language {
namespace {

const std::string kModels = TUFF_SOURCE_DIR "/tests/data/language/";
const std::string kFolder = kModels + "llama3_lora";
constexpr double kNearPeft = 1e-4;

nlohmann::json lora_values(const std::string& name = "llama3") {
  std::ifstream in(kModels + name + "_lora/values.json");
  return nlohmann::json::parse(in);
}
Tensor tokens_as(const Sizes& sizes) { return Tensor::from(fixture_tokens(), sizes); }
void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LT((got - want).abs().max().item(), kNearPeft);
}
std::vector<float> flat(const nlohmann::json& rows) {
  std::vector<float> out;
  for (const auto& row : rows)
    for (const float x : row) out.push_back(x);
  return out;
}
Tensor mean_loss(const Model& model, const Tensor& tokens, bool checkpoints) {
  const Tensor logits = model(tokens, {.checkpoints = checkpoints});
  return logits.narrow(1, 0, 6).flatten(0, 1).cross_entropy(tokens.narrow(1, 1, 6).flatten());
}
// The adapter with one field of its configuration changed.
std::string with_field(const ScratchFolder& in, const char* key, const nlohmann::json& value) {
  const std::string folder = in.path(key);
  std::filesystem::copy(kFolder, folder, std::filesystem::copy_options::recursive);
  std::ifstream from(kFolder + "/adapter_config.json");
  nlohmann::json config = nlohmann::json::parse(from);
  config[key] = value;
  os::write_text(folder + "/adapter_config.json", config.dump());
  return folder;
}

class AdaptersOf : public testing::TestWithParam<const char*> {};

// GGUF files have rows of queries and keys in another order than the folder that the adapter is of.
TEST_P(AdaptersOf, GiveTheLogitsThatPeftGives) {
  const std::string name = GetParam();
  const Tensor want = Tensor::from(flat(lora_values(name)["logits"]), {14, 48});
  for (const Model& model : {fixture_model(name), Model::open(kModels + name)}) {
    const Adapter adapter = Adapter::open(kModels + name + "_lora", model);
    expect_near(model.with_adapter(adapter)(tokens_as({14})), want);
  }
}

TEST(Adapters, AreReadTokenByTokenToo) {
  const Model model = fixture_model("llama3");
  const Model with = model.with_adapter(Adapter::open(kFolder, model));
  Sequence sequence(with, {.cache = CacheType::F32});
  const std::vector<float> want = lora_values()["logits"].back();
  std::span<const float> got;
  for (const int32_t token : fixture_tokens()) got = sequence.read({&token, 1});
  for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], kNearPeft);
}

void expect_losses(const Model& model, const nn::StateDict& parameters, double rate,
                   const std::vector<double>& want, bool checkpoints = false) {
  optim::AdamW optimizer(nn::parameters_of(parameters), {.lr = rate, .weight_decay = 0});
  Jit step([&](const std::vector<Tensor>& in) {
    optimizer.zero_grad();
    const Tensor loss = mean_loss(model, in[0], checkpoints);
    loss.backward();
    optimizer.step({loss});
    return std::vector<Tensor>{loss};
  });
  for (const double loss : want)
    EXPECT_NEAR(step({tokens_as({2, 7})})[0].item(), loss, 2e-3 * loss);
}

TEST_P(AdaptersOf, LearnAsPeftsDo) {
  const std::string name = GetParam();
  const nlohmann::json values = lora_values(name);
  const Model model = fixture_model(name);
  const Adapter adapter = Adapter::open(kModels + name + "_lora", model);
  expect_losses(model.with_adapter(adapter), adapter.parameters(), values["rate"],
                values["losses"]);
}
INSTANTIATE_TEST_SUITE_P(, AdaptersOf, testing::Values("llama3", "phi3", "gpt2"),
                         [](const auto& row) { return std::string(row.param); });

TEST(Adapters, LearnTheSameWhereLayersAreComputedAgain) {
  const nlohmann::json values = lora_values();
  const Model model = fixture_model("llama3");
  const Adapter adapter = Adapter::open(kFolder, model);
  expect_losses(model.with_adapter(adapter), adapter.parameters(), values["rate"],
                values["losses"], true);
}

// All weights of a folder, by the losses that transformers has.
class AllWeights : public testing::TestWithParam<const char*> {};
TEST_P(AllWeights, LearnAsThoseOfTransformers) {
  std::ifstream in(kModels + "full.json");
  const nlohmann::json values = nlohmann::json::parse(in);
  const Model model = Model::open(kModels + GetParam());
  const nn::StateDict parameters = model.parameters();
  expect_losses(model.with_parameters(parameters), parameters, values["rate"],
                values["losses"][GetParam()]);
}
INSTANTIATE_TEST_SUITE_P(, AllWeights,
                         testing::Values("llama3", "phi3", "gemma3", "gpt2", "qwen2moe"),
                         [](const auto& row) { return std::string(row.param); });

TEST(Adapters, ASaidTargetIsTheEndOfANameOrAllOfIt) {
  const Model model = fixture_model("gpt2");
  const auto count = [&](std::vector<std::string> targets) {
    return Adapter::create(model, {.rank = 1, .targets = std::move(targets)}).parameters().size();
  };
  EXPECT_EQ(count({}), 16u);
  EXPECT_EQ(count({"c_proj"}), 8u) << "of attention and of the branch behind it";
  EXPECT_EQ(count({"attn.c_proj"}), 4u);
  EXPECT_NE(error_of([&] { count({"c_proj", "mlp.c_proj"}); }).find("given twice"),
            std::string::npos);
}

TEST(Adapters, ANewOneChangesNothingAndHasGradients) {
  const Model model = fixture_model("llama");
  const Adapter adapter = Adapter::create(model, {.rank = 4});
  const Model with = model.with_adapter(adapter);
  expect_near(with(tokens_as({14})), model(tokens_as({14})));
  mean_loss(with, tokens_as({2, 7}), false).backward();
  for (const nn::NamedTensor& p : adapter.parameters()) {
    ASSERT_TRUE(p.tensor.grad().defined()) << p.name;
    // While the second matrix is 0 the first has no effect.
    EXPECT_EQ(p.tensor.grad().abs().max().item() > 0, p.name.find("lora_B") != std::string::npos);
  }
}

// One model bounds its logits by a function.
TEST(Models, GiveTheLossOfTheirLogits) {
  for (const char* name : {"llama", "gemma2"}) {
    const Model model = fixture_model(name);
    const Tensor tokens = tokens_as({2, 7}), targets = tokens_as({14}).roll({-1}).reshape({2, 7});
    const Tensor want = model(tokens).flatten(0, 1).cross_entropy(targets.flatten(), {}, 3);
    expect_near(model.cross_entropy(tokens, targets, 3), want);
    EXPECT_EQ(model.cross_entropy(tokens, targets, 3, Reduction::None).sizes(), Sizes{14});
    EXPECT_THROW(model.cross_entropy(tokens, tokens_as({14})), ShapeError);
  }
}

TEST(Adapters, OfOneSeedAreEqual) {
  const Model model = fixture_model("llama");
  const auto first = [&](uint64_t seed) {
    return Adapter::create(model, {.seed = seed}).parameters()[0].tensor.to_vector<float>();
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
}

// The second matrices drawn too, so that it changes something.
Adapter drawn_adapter(const Model& model, const LoraOptions& options) {
  const Adapter adapter = Adapter::create(model, options);
  const NoGradGuard writing;
  uint64_t seed = 1;
  for (const nn::NamedTensor& p : adapter.parameters()) {
    Tensor t = p.tensor;
    const std::vector<float> numbers =
        Adapter::create(model, {.rank = 1, .targets = {"q_proj"}, .seed = seed++})
            .parameters()[0].tensor.to_vector<float>();
    std::vector<float> values(size_t(t.numel()));
    for (size_t i = 0; i < values.size(); i++) values[i] = numbers[i % numbers.size()];
    t.copy_from(values.data(), values.size() * sizeof(float));
  }
  return adapter;
}

// Maps of experts have matrices each: as merged weights give, read at once and token by token.
class AdaptersOfExperts : public testing::TestWithParam<const char*> {};
TEST_P(AdaptersOfExperts, AreWhatMergedWeightsGive) {
  const std::string name = GetParam();
  const Model model = fixture_model(name);
  const Adapter adapter = drawn_adapter(model, {.rank = 2, .alpha = 3});
  const Model with = model.with_adapter(adapter);
  const Tensor want = with(tokens_as({14}));
  EXPECT_GT((want - model(tokens_as({14}))).abs().max().item(), 0.01);
  const ScratchFolder scratch;
  with.save(scratch.path("merged.gguf"), {.type = "f32"});
  expect_near(Model::open(scratch.path("merged.gguf"))(tokens_as({14})), want);
  Sequence at_once(with, {.cache = CacheType::F32}), by_token(with, {.cache = CacheType::F32});
  const std::vector<float> last = want.select(0, 13).contiguous().to_vector<float>();
  std::span<const float> got = at_once.read(fixture_tokens());
  for (size_t i = 0; i < last.size(); i++) ASSERT_NEAR(got[i], last[i], kNearPeft);
  for (const int32_t token : fixture_tokens()) got = by_token.read({&token, 1});
  for (size_t i = 0; i < last.size(); i++) ASSERT_NEAR(got[i], last[i], kNearPeft);
  // Of a file as it was, and with a file's names.
  adapter.save(scratch.path("saved"));
  expect_near(model.with_adapter(Adapter::open(scratch.path("saved"), model))(tokens_as({14})), want);
  const TensorDict file = load(scratch.path("saved") + "/adapter_model.safetensors");
  const bool mixtral = name == "mixtral";
  const std::string expert = std::string("base_model.model.model.layers.1.") +
                             (mixtral ? "block_sparse_moe.experts.3.w2" : "mlp.experts.3.down_proj");
  EXPECT_EQ(file.at(expert + ".lora_A.weight").size(0), 2) << expert;
  EXPECT_TRUE(file.contains("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"));
}
INSTANTIATE_TEST_SUITE_P(, AdaptersOfExperts, testing::Values("mixtral", "qwen2moe"),
                         [](const auto& row) { return std::string(row.param); });

TEST(Adapters, OfExpertsAreMergedIntoFoldersToo) {
  const Model model = Model::open(kModels + "mixtral");
  const Adapter adapter = drawn_adapter(model, {.rank = 2, .targets = {"w1", "w2"}});
  const Model with = model.with_adapter(adapter);
  const ScratchFolder scratch;
  with.save(scratch.path("merged"), {.type = "f32"});
  expect_near(Model::open(scratch.path("merged"))(tokens_as({14})), with(tokens_as({14})));
}

TEST(Adapters, OfExpertsHaveGradients) {
  const Model model = fixture_model("mixtral");
  const Adapter adapter = drawn_adapter(model, {.rank = 2, .targets = {"w1", "w2", "w3"}});
  mean_loss(model.with_adapter(adapter), tokens_as({2, 7}), false).backward();
  for (const nn::NamedTensor& p : adapter.parameters())
    EXPECT_GT(p.tensor.grad().abs().max().item(), 0) << p.name;
}

TEST(Adapters, AreSavedAsTheyAre) {
  const Model model = fixture_model("llama3");
  const Adapter adapter = Adapter::open(kFolder, model);
  const ScratchFolder scratch;
  const std::string folder = scratch.path("saved");
  adapter.save(folder, "llama\xff");  // paths need not be UTF-8
  const Adapter again = Adapter::open(folder, model);
  EXPECT_EQ(again.options().rank, 3);
  EXPECT_EQ(again.options().alpha, 5);
  ASSERT_EQ(again.parameters().size(), adapter.parameters().size());
  for (size_t i = 0; i < again.parameters().size(); i++)
    EXPECT_EQ(again.parameters()[i].tensor.to_vector<float>(),
              adapter.parameters()[i].tensor.to_vector<float>());
}

TEST(Adapters, TextsBehindEachOtherDoNotSeeEachOther) {
  const Model model = fixture_model("gemma2");  // with windows
  const std::vector<int32_t> tokens = fixture_tokens();
  std::vector<int32_t> texts(14), positions(14);
  for (size_t i = 0; i < 14; i++) texts[i] = i >= 5, positions[i] = int32_t(i < 5 ? i : i - 5);
  const ReadOptions packed{.texts = Tensor::from(texts, {14}),
                           .positions = Tensor::from(positions, {14})};
  const Tensor got = model(tokens_as({14}), packed);
  expect_near(got.narrow(0, 0, 5), model(tokens_as({14}).narrow(0, 0, 5).contiguous().realize()));
  expect_near(got.narrow(0, 5, 9), model(tokens_as({14}).narrow(0, 5, 9).contiguous().realize()));
}

TEST(Adapters, SeveralTextsAreReadAsEachAlone) {
  const Model model = fixture_model("gemma3");
  const Tensor both = model(tokens_as({2, 7}));
  for (int64_t i = 0; i < 2; i++)
    expect_near(both.select(0, i), model(tokens_as({2, 7}).select(0, i).contiguous().realize()));
}

TEST(Adapters, WhatIsNotKnownIsNamed) {
  const Model model = fixture_model("llama3"), other = fixture_model("qwen3");
  EXPECT_NE(error_of([&] { Adapter::open(kFolder, other); }).find("was wanted"),
            std::string::npos);
  EXPECT_NE(error_of([&] { other.with_adapter(Adapter::open(kFolder, model)); }).find("another model"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Adapter::create(model, {.rank = 0}); }).find("a rank of 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Adapter::create(model, {.targets = {"wq"}}); }).find("'wq'"),
            std::string::npos);
  EXPECT_THROW(Adapter::create(fixture_model("bert_mean")), Unsupported);
  const Model experts = fixture_model("mixtral");
  EXPECT_EQ(Adapter::create(experts, {.targets = {"q_proj"}}).parameters().size(), 4u);
  EXPECT_NE(error_of([&] { Adapter::create(experts, {.targets = {"gate_proj"}}); }).find("w1"),
            std::string::npos);
  EXPECT_THAT(error_text<Error>([&] {
                Adapter::create(fixture_model("qwen3moe"), {.targets = {"shared_expert.up_proj"}});
              }),
              testing::HasSubstr("no map up_proj"));
  EXPECT_THROW(Adapter::open("/nowhere", model), IoError);
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    const ScratchFolder scratch;
    return error_text<Error>([&] { Adapter::open(with_field(scratch, key, value), model); });
  };
  EXPECT_THAT(refused("use_dora", true), testing::HasSubstr("use_dora is true"));
  EXPECT_THAT(refused("r", 4), testing::HasSubstr("(4, 32) was wanted"));
  EXPECT_THAT(refused("r", 1'000'000),
              testing::HasSubstr("adapter_config.json: a rank of 1000000"));
  EXPECT_THAT(refused("r", "3"), testing::HasSubstr("r, lora_alpha and a list"));
  EXPECT_THAT(refused("peft_type", "IA3"), testing::HasSubstr("peft_type is \"IA3\""));
  EXPECT_THAT(refused("target_modules", {"q_proj"}),
              testing::HasSubstr("none of the adapter's targets"));
  EXPECT_THAT(refused("target_modules", {"wq"}),
              testing::HasSubstr("adapter_config.json: an adapter of 'wq'"));
  EXPECT_THROW(model(Tensor::zeros({0, 3}, {.dtype = DType::I32})), ShapeError);
}

}  // namespace
}  // namespace tuff::language
