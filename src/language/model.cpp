#include "language/model_state.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/os.h"
#include "io/dequantize.h"
#include "language/decoder.h"
#include "language/hugging_face.h"

namespace tuff::language {
namespace {

constexpr int64_t kUsualContext = 4096;
constexpr std::string_view kRopeFactors = "rope_";  // how names of what is no weight begin

tuff::LoadOptions from_file(const std::string& device) { return {.device = device, .mmap = true}; }

Description description_of(const Config& c, const TensorDict& file) {
  Description d;
  d.name = c.name, d.architecture = c.architecture.name;
  d.layers = c.layers, d.width = c.width, d.heads = c.heads, d.kv_heads = c.kv_heads;
  d.vocabulary = c.vocabulary, d.context = c.context, d.encodes = c.architecture.encodes;
  for (const TensorInfo& info : file.info()) {
    uint64_t elements = 1;
    for (const int64_t n : info.shape) elements *= uint64_t(n);
    d.parameters += elements, d.weight_bytes += info.size_bytes;
  }
  return d;
}

std::string text_of(const std::string& path) {
  const std::vector<uint8_t> bytes = os::read_file(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

const std::vector<float>& Model::State::rope_factors(int64_t positions) const {
  const bool is_long = double(positions) > config.scaling.original_context;
  return is_long && !config.long_rope_divisors.empty() ? config.long_rope_divisors
                                                       : config.rope_divisors;
}

void Model::State::require_tokens(std::span<const int32_t> tokens) const {
  for (const int32_t t : tokens)
    if (t < 0 || t >= config.vocabulary)
      fail<InvalidArgument>("token {} is none of the vocabulary's {}", t, config.vocabulary);
}

void Model::State::require_writer() const {
  if (config.architecture.encodes)
    fail<InvalidArgument>("a model of the architecture {} writes no texts: embed() takes it",
                          config.architecture.name);
}

int64_t Model::State::context(int64_t wanted) const {
  require_writer();
  if (wanted == 0) return std::min(config.context, kUsualContext);
  if (wanted < 1 || wanted > config.context)
    fail<InvalidArgument>("a context of {} tokens: the model was trained for 1 to {}", wanted,
                          config.context);
  return wanted;
}

Model Model::open(const std::string& path, const LoadOptions& options) {
  try {
    return Model(State::read(path, options));
  } catch (const InvalidArgument& e) {
    fail<InvalidArgument>("{}: {}", path, e.what());
  } catch (const Unsupported& e) {
    fail<Unsupported>("{}: {}", path, e.what());
  }
}

bool Model::State::is_folder() const { return std::filesystem::is_directory(path); }

TensorDict Model::State::tensors() const {
  const tuff::LoadOptions how = from_file(device);
  TensorDict out = is_folder() ? hugging_face_tensors(path, config, how) : tuff::load(path, how);
  for (const nn::NamedTensor& p : parameters) out.set(p.name, p.tensor);
  return out;
}

std::shared_ptr<const Model::State> Model::State::read(const std::string& path,
                                                       const LoadOptions& options) {
  const tuff::LoadOptions how = from_file(options.device);
  std::optional<TensorDict> file;
  std::optional<Tokenizer> tokenizer;
  Config config;
  if (std::filesystem::is_directory(path)) {
    config = hugging_face_config(text_of(path + "/config.json"));
    if (const std::string pooling = path + "/1_Pooling/config.json"; os::exists(pooling))
      config.pooling = hugging_face_pooling(text_of(pooling));
    file = hugging_face_tensors(path, config, how);
    tokenizer = Tokenizer::open(path);
  } else {
    file = tuff::load(path, how);
    if (file->format() != "gguf")
      fail<Unsupported>("a file of the format {}: language models are GGUF files, or folders with "
                        "config.json and safetensors", file->format());
    config = config_of(file->metadata());
    tokenizer = Tokenizer::from_metadata(file->metadata());
    config.vocabulary = int64_t(tokenizer->size());
  }
  Description description = description_of(config, *file);
  Weights weights = weights_of(*file, config);
  // Read here: functions that a Jit captures may not.
  const auto take = [](const Tensor& from, std::vector<float>& to) {
    if (from.defined()) to = from.to_vector<float>();
  };
  take(weights.rope_factors, config.rope_divisors);
  take(weights.rope_factors_long, config.long_rope_divisors);
  return std::make_shared<State>(State{std::move(config), std::move(description),
                                       std::move(*tokenizer), std::move(weights),
                                       options.device, path});
}

nn::StateDict Model::parameters() const {
  const TensorDict all = state_->tensors();
  for (const TensorInfo& t : all.info())
    if (io::packed_blocks(all, t.name).defined())
      fail<Unsupported>("{}: the tensor {} is of packed blocks, {}, which are not trained: an "
                        "adapter is, or floats (tuff quantize --type f16)", state_->path, t.name,
                        t.type);
  nn::StateDict out;
  for (const std::string& name : all.names()) {
    if (name.starts_with(kRopeFactors)) continue;
    Tensor t = all.at(name).detach().to(DType::F32).clone().realize();
    out.push_back({name, t.set_requires_grad()});
  }
  return out;
}

Model Model::with_parameters(const nn::StateDict& parameters) const {
  const State& s = *state_;
  TensorDict all = s.tensors();
  for (const nn::NamedTensor& p : parameters) {
    if (!all.contains(p.name) || p.name.starts_with(kRopeFactors))
      fail<InvalidArgument>("{} is none of the model's weights", p.name);
    all.set(p.name, p.tensor);
  }
  auto state = std::make_shared<State>(State{s.config, s.description, s.tokenizer,
                                             weights_of(all, s.config), s.device, s.path});
  state->parameters = s.parameters;
  for (const nn::NamedTensor& p : parameters) {
    const auto known = std::ranges::find(state->parameters, p.name, &nn::NamedTensor::name);
    if (known == state->parameters.end())
      state->parameters.push_back(p);
    else
      *known = p;
  }
  const Model model(std::move(state));
  return s.adapter ? model.with_adapter(*s.adapter) : model;
}

const Description& Model::description() const { return state_->description; }
const Tokenizer& Model::tokenizer() const { return state_->tokenizer; }
const std::string& Model::device() const { return state_->device; }

namespace {

void require_readable(const Tensor& tokens, const ReadOptions& options) {
  const int64_t axes = tokens.dim();
  if (axes < 1 || axes > 2 || !is_int(tokens.dtype()))
    fail<ShapeError>("tokens are {} of {} dimensions, (tokens) or (texts, tokens) of integers were "
                     "wanted", name(tokens.dtype()), axes);
  for (const Tensor* t : {&options.texts, &options.positions}) {
    if (t->defined() && (t->sizes() != tokens.sizes() || !is_int(t->dtype())))
      fail<ShapeError>("texts and positions are integers, as many as tokens");
  }
  if (options.texts.defined() != options.positions.defined())
    fail<InvalidArgument>("texts and positions are given together");
  if (axes == 2 && tokens.size(0) == 0) fail<ShapeError>("tokens of no text: (0, {})", int64_t(tokens.size(1)));
}

}  // namespace

// What the last layer gives: (tokens of all texts, width).
Tensor Model::State::decoded(const Tensor& tokens, const ReadOptions& options) const {
  require_readable(tokens, options);
  require_writer();
  const int64_t count = tokens.size(-1), sequences = tokens.dim() == 1 ? 1 : int64_t(tokens.size(0));
  const RopeTables rope = rope_tables(config, count, rope_factors(count), tokens.device());
  const auto rows = [&](const Tensor& t) { return t.defined() ? t.flatten() : t; };
  return decode(config, weights, rope, rows(tokens),
                {.sequences = sequences,
                 .positions = rows(options.positions),
                 .texts = rows(options.texts),
                 .checkpoints = options.checkpoints});
}

Tensor Model::operator()(const Tensor& tokens, const ReadOptions& options) const {
  const State& s = *state_;
  const Tensor y = logits(s.config, s.weights, s.decoded(tokens, options));
  Sizes sizes = tokens.sizes();
  sizes.push_back(s.config.vocabulary);
  return tokens.dim() == 1 ? y : y.reshape(sizes);
}

Tensor Model::cross_entropy(const Tensor& tokens, const Tensor& targets, int64_t ignore_index,
                            Reduction reduction, const ReadOptions& options) const {
  const State& s = *state_;
  if (targets.sizes() != tokens.sizes() || !is_int(targets.dtype()))
    fail<ShapeError>("targets are integers, as many as tokens");
  const Tensor x = s.decoded(tokens, options);
  return loss(s.config, s.weights, x, targets.flatten(), ignore_index, reduction);
}

}  // namespace tuff::language
