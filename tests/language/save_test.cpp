// Model::save(): adapters merged into their models, other weights than the file's, and what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include <tuff/adapter.h>
#include <tuff/io.h>
#include "base/os.h"
#include "io/scratch_folder.h"
#include "language/fixtures.h"

namespace tuff::language {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kModels = TUFF_SOURCE_DIR "/tests/data/language/";
constexpr double kRounded = 1e-4, kOfHalves = 2e-2;  // of what is computed otherwise; and written

class Save : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path(name); }
  static Model open(const std::string& path) { return Model::open(path, {.device = "CPU"}); }
  static Model adapted(const std::string& path, const std::string& name) {
    const Model model = open(path);
    return model.with_adapter(Adapter::open(kModels + name + "_lora", model));
  }
  static std::vector<float> logits(const Model& model) {
    return model(Tensor::from(fixture_tokens(), {14}, {.device = "CPU"})).to_vector<float>();
  }
  static double difference(const Model& a, const Model& b) {
    const std::vector<float> x = logits(a), y = logits(b);
    double most = 0;
    for (size_t i = 0; i < x.size(); i++) most = std::max(most, std::abs(double(x[i]) - double(y[i])));
    return most;
  }
  static std::vector<uint8_t> bytes(const TensorInfo& t) {
    std::ifstream in(t.file, std::ios::binary);
    in.seekg(std::streamoff(t.offset));
    std::vector<uint8_t> out(t.size_bytes);
    in.read(reinterpret_cast<char*>(out.data()), std::streamsize(out.size()));
    return out;
  }
  // Which tensors of a file have other bytes, or another type, than those of another file.
  static std::vector<std::string> changed(const std::string& before, const std::string& after) {
    const std::vector<TensorInfo> a = load(before).info(), b = load(after).info();
    EXPECT_EQ(a.size(), b.size());
    std::vector<std::string> out;
    for (const TensorInfo& t : a) {
      const auto other = std::ranges::find(b, t.name, &TensorInfo::name);
      EXPECT_NE(other, b.end()) << t.name;
      if (other != b.end() && (other->type != t.type || bytes(*other) != bytes(t)))
        out.push_back(t.name);
    }
    return out;
  }
  // The folder llama3 with its weights in two files.
  std::string sharded() const {
    const std::string to = at("shards");
    fs::copy(kModels + "llama3", to);
    fs::remove(to + "/model.safetensors");
    const TensorDict all = load(kModels + "llama3/model.safetensors");
    nlohmann::json map;
    TensorDict parts[2];
    for (const std::string& name : all.names()) {
      const size_t part = map.size() % 2;
      map[name] = part == 0 ? "model-1.safetensors" : "model-2.safetensors";
      parts[part].set(name, all[name]);
    }
    save(to + "/model-1.safetensors", parts[0]), save(to + "/model-2.safetensors", parts[1]);
    os::write_text(to + "/model.safetensors.index.json",
                   nlohmann::json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
    return to;
  }
  ScratchFolder folder_;
};

TEST_F(Save, AnAdapterIsMerged) {
  for (const std::string name : {"llama3", "phi3", "gpt2"}) {
    for (const std::string end : {".gguf", ""}) {
      const std::string to = at(name + end);
      const Model with = adapted(kModels + name + end, name);
      with.save(to, {.type = "f32"});
      EXPECT_LT(difference(open(to), with), kRounded) << to;
    }
  }
}

TEST_F(Save, MergedWeightsHaveTheTypesThatTheyHad) {
  const Model with = adapted(kModels + "llama3", "llama3");
  const Quantized done = with.save(at("merged"));
  EXPECT_LT(difference(open(at("merged")), with), kOfHalves);
  EXPECT_EQ(done.bytes, done.bytes_before);
}

TEST_F(Save, WhatHasNotChangedIsCopied) {
  const std::string file = kModels + "llama3.gguf";
  const Model model = open(file);
  const Adapter part = Adapter::create(model, {.rank = 2, .targets = {"k_proj"}});
  {
    const NoGradGuard guard;
    for (const nn::NamedTensor& p : part.parameters()) Tensor(p.tensor).assign(p.tensor + 0.1);
  }
  model.with_adapter(part).save(at("k.gguf"));
  EXPECT_THAT(changed(file, at("k.gguf")),
              testing::ElementsAre("blk.0.attn_k.weight", "blk.1.attn_k.weight"));
  model.save(at("same.gguf"));
  EXPECT_EQ(os::read_file(at("same.gguf")), os::read_file(file));
  open(kModels + "llama3").save(at("same"));
  for (const char* name : {"config.json", "tokenizer.json"})
    EXPECT_EQ(os::read_file(at("same/") + name), os::read_file(kModels + "llama3/" + name));
  EXPECT_TRUE(changed(kModels + "llama3/model.safetensors", at("same/model.safetensors")).empty());
}

TEST_F(Save, PackedWeightsStayPacked) {
  quantize(kModels + "llama3.gguf", at("q8.gguf"), "q8_0", {.device = "CPU"});
  const Model with = adapted(at("q8.gguf"), "llama3");
  const Quantized same = with.save(at("merged.gguf"));
  const TensorDict before = load(at("q8.gguf")), after = load(at("merged.gguf"));
  for (size_t i = 0; i < before.size(); i++) EXPECT_EQ(after.info()[i].type, before.info()[i].type);
  EXPECT_LT(difference(open(at("merged.gguf")), with), 0.5);
  with.save(at("f16.gguf"), {.type = "f16"});
  EXPECT_LT(difference(open(at("f16.gguf")), with), kOfHalves);
  EXPECT_EQ(load(at("f16.gguf")).metadata("general.file_type")->str(), "1");
  EXPECT_EQ(same.tensors.count("F16"), 1u) << "rows of 40, which were no whole blocks";
}

TEST_F(Save, FoldersOfSeveralFilesAndOtherTypes) {
  const std::string from = sharded();
  const Model with = adapted(from, "llama3");
  with.save(at("bf16"), {.type = "bf16"});
  const Model again = open(at("bf16"));
  EXPECT_LT(difference(again, with), 0.2);
  const TensorDict all = load(at("bf16/model.safetensors.index.json"));
  EXPECT_EQ(all["model.layers.0.mlp.up_proj.weight"].dtype(), DType::BF16);
  EXPECT_EQ(all["lm_head.weight"].dtype(), DType::F16) << "it has not changed";
  std::ifstream config(at("bf16/config.json"));
  EXPECT_EQ(nlohmann::json::parse(config)["dtype"], "bfloat16");
  EXPECT_TRUE(os::exists(at("bf16/model-2.safetensors")));
}

// Ones that are tied, transposed, in pieces, or have a 1 added.
TEST_F(Save, OtherWeights) {
  for (const std::string name : {"gpt2", "gemma3", "qwen2moe", "llama3.gguf"}) {
    const Model model = open(kModels + name);
    nn::StateDict parameters = model.parameters();
    for (nn::NamedTensor& p : parameters)
      p.tensor = (p.tensor.detach() * 1.25 + 0.01).to(DType::F16).to(DType::F32).realize();
    const Model other = model.with_parameters(parameters);
    EXPECT_GT(difference(other, model), 0.1);
    other.save(at(name));
    EXPECT_LT(difference(open(at(name)), other), kOfHalves) << name;
  }
}

TEST_F(Save, AnAdapterOnOtherWeights) {
  const Model model = adapted(kModels + "llama3.gguf", "llama3");
  nn::StateDict norm = {model.parameters()[1]};
  norm[0].tensor = (norm[0].tensor * 1.5).detach();
  const Model other = model.with_parameters(norm);
  EXPECT_GT(difference(other, model), 1e-3);
  other.save(at("x.gguf"), {.type = "f32"});
  EXPECT_LT(difference(open(at("x.gguf")), other), kRounded);
}

TEST_F(Save, RefusesByName) {
  const Model file = open(kModels + "llama3.gguf"), folder = open(kModels + "llama3");
  const auto error = [](const Model& model, const std::string& to, const SaveOptions& o = {}) {
    return error_text<Error>([&] { model.save(to, o); });
  };
  EXPECT_THAT(error(file, kModels + "llama3.gguf"), HasSubstr("is there already; --force"));
  EXPECT_THAT(error(folder, kModels + "llama3"), HasSubstr("is there already; --force"));
  EXPECT_THAT(error(file, folder_.path("")), HasSubstr("is a folder"));
  EXPECT_THAT(error(file, at("x"), {.type = "q9"}), HasSubstr("'q9'"));
  EXPECT_THAT(error(folder, at("x"), {.type = "q8_0"}), HasSubstr("f32, f16 or bf16"));
  EXPECT_THAT(error(folder, kModels + "llama3.gguf"), HasSubstr("is no folder"));
  EXPECT_FALSE(os::exists(at("x")));
  folder.save(at("single"));
  EXPECT_THAT(error(open(sharded()), at("single"), {.overwrite = true}),
              HasSubstr("model.safetensors of another model"));
  quantize(kModels + "llama3.gguf", at("q8.gguf"), "q8_0", {.device = "CPU"});
  EXPECT_THAT(error_text<Unsupported>([&] { open(at("q8.gguf")).parameters(); }),
              HasSubstr("token_embd.weight is of packed blocks, Q8_0"));
  EXPECT_THAT(error_text<InvalidArgument>([&] {
                file.with_parameters({{"x", Tensor::zeros({1}, {.device = "CPU"})}});
              }),
              HasSubstr("x is none of the model's weights"));
}

TEST_F(Save, WhatEndsItLeavesNothing) {
  const Model with = adapted(kModels + "llama3", "llama3");
  const auto stop = [](uint64_t, uint64_t) { throw 1; };
  EXPECT_THROW(with.save(at("out"), {.progress = stop}), int);
  EXPECT_FALSE(os::exists(at("out")));
  with.save(at("out"));
  const auto before = os::read_file(at("out/model.safetensors"));
  EXPECT_THROW(with.save(at("out"), {.type = "f32", .overwrite = true, .progress = stop}), int);
  EXPECT_EQ(os::read_file(at("out/model.safetensors")), before);
  with.save(at("out"), {.type = "f32", .overwrite = true});
  EXPECT_LT(difference(open(at("out")), with), kRounded);
}

}  // namespace
}  // namespace tuff::language
