// Language models from files: read, run, and text that they write. Called by users and
// `tuff chat`. Must never know of graphs or devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tuff/grammar.h>
#include <tuff/jit.h>
#include <tuff/module.h>
#include <tuff/tensor.h>
#include <tuff/tokenizer.h>

namespace tuff::language {

/// What a model is, without running anything of it.
struct Description {
  std::string name;          ///< as its file calls it; may be empty
  std::string architecture;  ///< "llama", "qwen2", "gemma3"
  int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, vocabulary = 0;
  int64_t context = 0;        ///< positions that it was trained for
  uint64_t parameters = 0;    ///< elements of all weights
  uint64_t weight_bytes = 0;  ///< as they are stored
  bool encodes = false;       ///< embed() alone takes it: it writes no texts
};

/// How a model is loaded.
struct LoadOptions {
  std::string device;  ///< where it runs; "" is the default device
};

/// How several texts are read in one call, without a cache.
struct ReadOptions {
  /// Of each token the number of its text and its position in it, as tokens are shaped: texts behind
  /// each other in a row do not see each other. Undefined: each row is one text.
  Tensor texts = {}, positions = {};
  /// For gradients, what is inside of a layer is computed again instead of kept.
  bool checkpoints = false;
};

/// How Model::save() writes.
struct SaveOptions {
  /// Of weights that have changed: as quantize() names types, in folders "f32", "f16" or "bf16". "":
  /// the type that each had, or F16 in place of one that tuff has no encoder for.
  std::string type;
  bool overwrite = false;  ///< files that are there already
  /// As QuantizeOptions has it.
  std::function<void(uint64_t written, uint64_t total)> progress = {};
};

class Adapter;
class DraftModel;
struct Quantized;

/// A model with its tokenizer: one that writes texts, or an encoder, which embed() alone takes.
/// Weights stay in the blocks that the file packs them in, and are read when they are first used.
/// Does not change; copies share.
class Model {
 public:
  /// A GGUF file, or a folder as Hugging Face has them: config.json, tokenizer.json, and
  /// model.safetensors or the index of several. IoError naming what is missing or damaged;
  /// Unsupported naming an architecture, a feature or a type that tuff does not know, and those
  /// it does.
  static Model open(const std::string& path, const LoadOptions& options = {});
  const Description& description() const;
  const Tokenizer& tokenizer() const;
  const std::string& device() const;  ///< where it runs; "" is the default device
  /// (tokens) of integers -> (tokens, vocabulary): the logits behind each of the first tokens of a
  /// text, without a cache; (texts, tokens) -> (texts, tokens, vocabulary) of several. ShapeError
  /// for anything else, InvalidArgument for an encoder.
  Tensor operator()(const Tensor& tokens, const ReadOptions& options = {}) const;
  /// (*this)(tokens).cross_entropy(targets), of which memory never holds the logits of all tokens
  /// (linear_cross_entropy()) where the model bounds them by no function (as Gemma 2 does). targets:
  /// integers in the tokens' shape, ShapeError otherwise; those of ignore_index count for nothing.
  /// Reduction::None gives one loss a token, behind one another.
  Tensor cross_entropy(const Tensor& tokens, const Tensor& targets, int64_t ignore_index = -100,
                       Reduction reduction = Reduction::Mean, const ReadOptions& options = {}) const;
  /// The same model with what an adapter adds to its linear maps; in place of another adapter.
  /// InvalidArgument for an adapter of another model.
  Model with_adapter(const Adapter& adapter) const;
  /// Copies of all weights, F32, by the names that GGUF files have for them; they require gradients:
  /// for fine-tuning all of a model. Reads the file again. Unsupported naming a tensor of packed
  /// blocks.
  nn::StateDict parameters() const;
  /// The same model with these in place of some or all of its weights; with the same adapter.
  /// InvalidArgument naming what is no weight of it or has another shape.
  Model with_parameters(const nn::StateDict& parameters) const;
  /// Writes the model as it is now, whatever it was opened from: a GGUF file, or a folder with its
  /// other files. What an adapter adds is merged in, in F32; weights that have not changed are
  /// copied byte for byte. Files are whole or as they were before; memory holds no more than a
  /// tensor. InvalidArgument for another type and files that are there already; IoError as
  /// tuff::load() and save().
  Quantized save(const std::string& to, const SaveOptions& options = {}) const;

 private:
  friend class Sequence;
  friend class Batch;
  friend class DraftModel;
  friend class Adapter;
  friend std::vector<float> embed(const Model& model, std::span<const int32_t> tokens);
  struct State;
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// How keys and values are kept: as numbers, or (Q8_0) in blocks of 32 along a head's width, each
/// of 32 numbers of 8 bits and a half that scales them. Those take half the memory of F16, and are
/// decoded where they are read. Heads are whole blocks then.
enum class CacheType : uint8_t { F16, BF16, F32, Q8_0 };
/// "f16", "bf16", "f32", "q8_0". InvalidArgument for another name.
CacheType cache_type(const std::string& name);

/// How a Sequence keeps what it has read.
struct SequenceOptions {
  int64_t context = 0;               ///< tokens that fit; 0: the model's, at most 4096
  CacheType cache = CacheType::F16;  ///< of keys and values
};

/// A text that a model reads token by token. Keys and values of what was read are kept, so that a
/// call costs what its new tokens cost; every length runs the same captured graphs: one for single
/// tokens, others for pieces of prompts.
class Sequence {
 public:
  /// InvalidArgument for a context below 1 or beyond what the model was trained for, an encoder, and
  /// blocks that its heads are none of.
  explicit Sequence(Model model, const SequenceOptions& options = {});
  ~Sequence();
  Sequence(Sequence&&) noexcept;
  /// The logits behind the last of these tokens, which follow those that were read before. Valid
  /// until the next call. InvalidArgument for no token, one that is not in the vocabulary, or more
  /// than the context has room for.
  std::span<const float> read(std::span<const int32_t> tokens);
  /// The same, but the logits behind each of them: rows of the vocabulary's size. Costs little more
  /// than one token as long as there are up to 8.
  std::span<const float> read_each(std::span<const int32_t> tokens);
  /// Everything that was read, in order.
  std::span<const int32_t> tokens() const;
  /// Forgets all but the first `count` tokens.
  void truncate(size_t count);
  /// Forgets `drop` tokens behind the first `keep`, and those that follow move up (context shift).
  /// Their rotary keys are turned by the distance, so nothing is read again, and they stay what
  /// they were when the forgotten tokens stood before them; with learned positions they are read
  /// again.
  /// InvalidArgument for more than was read.
  void shift(size_t keep, size_t drop);
  int64_t context() const;
  const Model& model() const;
  JitStats stats() const;  ///< of the graph that reads single tokens

 private:
  friend struct SequencePast;
  struct State;
  std::unique_ptr<State> state_;
};

/// How the next token is drawn. Logits are changed in this order: penalties, bias, temperature,
/// then top-k, min-p, typical-p and top-p cut off what is unlikely. Temperature 0 takes the most likely one.
struct Sampling {
  double temperature = 0.8;
  int64_t top_k = 40;       ///< 0: all
  double top_p = 0.95;      ///< 1: all
  double min_p = 0.05;      ///< of the most likely one's probability; 0: all
  /// Tokens that surprise about as much as is to be expected, which have this probability together
  /// (locally typical sampling; Meister et al., 2023); 1: all.
  double typical_p = 1;
  double repeat_penalty = 1;     ///< what logits of tokens that occur are divided by
  double presence_penalty = 0;   ///< taken off, once, for a token that occurs
  double frequency_penalty = 0;  ///< taken off for each time that it does
  int64_t penalty_tokens = 64;   ///< so many last tokens count for penalties; -1: all
  std::vector<std::pair<int32_t, double>> bias = {};  ///< added to the logits of tokens
  uint64_t seed = 0;
};

/// Draws tokens. The same logits, tokens, options and seed give the same draws on every machine.
class Sampler {
 public:
  /// InvalidArgument names an option that makes no sense.
  explicit Sampler(const Sampling& options);
  /// `seen`: the text so far. InvalidArgument for logits that are nan and for a bias of a token
  /// that the logits lack.
  int32_t draw(std::span<const float> logits, std::span<const int32_t> seen);

 private:
  struct Candidate {
    int32_t token;
    double logit;
  };
  static bool before(const Candidate& a, const Candidate& b);
  void penalize(std::span<const int32_t> seen);
  void cut();
  void keep_typical();
  Sampling options_;
  uint64_t drawn_ = 0;
  std::vector<Candidate> candidates_;
};

/// What a token was drawn from: the natural logarithm of its probability, before sampling options.
struct TokenChoice {
  int32_t token = 0;
  float logprob = 0;
};

/// A token of an answer, and those that were most likely in its place.
struct TokenLogprobs {
  TokenChoice chosen;
  std::vector<TokenChoice> top;  ///< the most likely one first
};

/// A piece of an answer: text that is certain, and the tokens that have come since the last piece.
/// The last piece may have no text: tokens of a text that ended the answer.
struct AnswerPiece {
  std::string_view text;
  std::span<const int32_t> tokens;
  std::span<const TokenLogprobs> logprobs;  ///< of `tokens`, if they were asked for
};

/// What generate() is told.
struct GenerateOptions {
  int64_t tokens = -1;  ///< at most; -1: as many as the context has room for, if it ends there
  Sampling sampling = {};
  /// Texts that end the answer, which they are no part of.
  std::vector<std::string> stop = {};
  /// What the answer is held to: tokens that cannot go on as it says are not drawn, and the answer
  /// ends where nothing can follow. Cut off where `tokens` or `stop` end it before that.
  Grammar grammar = {};
  /// Told of each piece of text when it is certain; false ends the answer.
  std::function<bool(const AnswerPiece&)> on_piece = {};
  int64_t logprobs = -1;  ///< so many most likely tokens are told with each token; -1: nothing
  /// Speculative decoding: so many tokens, up to 7, are read with each token, and those that are
  /// drawn then need no call of their own. The answer is the same. They are those that followed the
  /// last ones where these stood before (prompt lookup, which pays where an answer repeats its
  /// prompt), or a draft model's.
  int64_t draft_tokens = 0;
  /// Of a smaller model with the same vocabulary, which proposes them (its likeliest ones). Lives
  /// as long as the call. For generate(); a Batch has its own model (BatchOptions::draft).
  Sequence* draft = nullptr;
  /// An answer that outgrows the context goes on: of what stands behind the first `keep` tokens the
  /// older half is forgotten (Sequence::shift). -1: the answer ends where the context does.
  int64_t keep = -1;
};

/// Why an answer ended. Failed: no token could go on as its grammar wants.
enum class Finish { End, Stop, Length, Cancelled, Failed };

/// An answer, and the time that it took.
struct Answer {
  std::string text;
  std::vector<int32_t> tokens;  ///< without the one that ended it
  std::vector<TokenLogprobs> logprobs;  ///< of `tokens`, if they were asked for
  Finish finish = Finish::Length;
  std::string error;  ///< why it failed
  size_t prompt_tokens = 0;  ///< those that were read; what the sequence knew already is not
  double prompt_seconds = 0, seconds = 0;  ///< until the first token; for those that follow it
};

/// The sequence reads the prompt and writes what follows. Of a prompt that begins as what it has
/// read, only the rest is read. InvalidArgument for an empty prompt and one beyond the context, and
/// for a draft of another vocabulary.
Answer generate(Sequence& sequence, std::span<const int32_t> prompt,
                const GenerateOptions& options = {});

/// How a Batch is set up.
struct BatchOptions {
  int64_t sequences = 8;             ///< that one call of the model reads at most
  int64_t context = 0;               ///< tokens of each; 0: the model's, at most 4096
  int64_t cache_tokens = 0;          ///< that all of them have together; 0: sequences * context
  CacheType cache = CacheType::F16;  ///< of keys and values
  /// A smaller model with the same vocabulary, which proposes the `draft_tokens` of answers. It has
  /// a whole context for each, in a cache of its own.
  std::optional<Model> draft = {};
};

/// What a Batch has done so far, and what it is at.
struct BatchStats {
  size_t waiting = 0, running = 0;
  uint64_t calls = 0;          ///< of the model
  uint64_t prompt_tokens = 0;  ///< that were read
  uint64_t cached_tokens = 0;  ///< of prompts that the cache knew already
  uint64_t tokens = 0;         ///< that were drawn
  uint64_t draft_tokens = 0;   ///< that were read in the hope that they would be
  uint64_t accepted_tokens = 0;  ///< those of them that were
  uint64_t preempted = 0;      ///< answers that had to let others go first
  size_t pages = 0, used_pages = 0;  ///< of the cache; those that running answers hold
};

/// Answers that one model writes side by side (continuous batching): a request joins as soon as
/// there is room, and leaves when its answer ends. Keys and values are kept in pages that answers
/// with one beginning share; what has ended stays known until its pages are needed. If there are
/// none left, who came last waits and is read again later: nothing is lost. Used by one thread at a
/// time, and not by on_piece.
class Batch {
 public:
  using Id = uint64_t;
  /// InvalidArgument for options that make no sense, and for a draft of another vocabulary.
  explicit Batch(Model model, const BatchOptions& options = {});
  ~Batch();
  Batch(Batch&&) noexcept;
  /// Queues a prompt. InvalidArgument for an empty prompt and one beyond the context.
  Id add(std::vector<int32_t> prompt, GenerateOptions options = {});
  /// Drops it, whether it waits or runs; its answer so far is not told. Unknown ids are none.
  void cancel(Id id);
  /// One call of the model. The answers that ended in it. What on_piece throws comes out of here;
  /// that answer is dropped, the others go on.
  std::vector<std::pair<Id, Answer>> step();
  bool idle() const;  ///< nothing waits or runs
  /// Captures the graphs that answers run, which the first ones would wait for otherwise (seconds
  /// each, where kernels have to be compiled). Told of each one, counted from 1; false ends it.
  void warm_up(const std::function<bool(size_t)>& on_graph = {});
  BatchStats stats() const;
  int64_t context() const;
  const Model& model() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A text as a vector of length 1, near those of texts that mean the like: the mean of what the
/// model's last norm gives for each token, or what an encoder's file says (its first). Lengths
/// are padded to powers of 2 from 16 on, each of which is a captured graph.
/// InvalidArgument for no token, one that is not in the vocabulary, or more than the model was
/// trained for.
std::vector<float> embed(const Model& model, std::span<const int32_t> tokens);

/// How perplexity() reads a text.
struct PerplexityOptions {
  int64_t context = 512;  ///< tokens of a piece
  /// Told of the pieces that are read, how many there are, and the perplexity so far; false ends
  /// it.
  std::function<bool(int64_t, int64_t, double)> on_piece = {};
};

/// What perplexity() found.
struct Perplexity {
  double value = 0;    ///< exp of the mean loss
  double error = 0;    ///< its standard error
  int64_t tokens = 0;  ///< that were predicted
};

/// How surprised a model is by a text, as llama.cpp reckons it: the text in pieces, which know
/// nothing of each other and begin with BOS if the vocabulary wants that; of each the second half
/// is predicted. InvalidArgument for a text of fewer tokens than two pieces, a context below 8 or
/// beyond the model's.
Perplexity perplexity(const Model& model, std::span<const int32_t> tokens,
                      const PerplexityOptions& options = {});

/// How quantize() writes.
struct QuantizeOptions {
  std::string device;  ///< where packed weights are decoded; "" is the default device
  bool overwrite = false;  ///< a file that is there already
  /// Called after each piece with the bytes of weights that were written and those of all. What it
  /// throws ends the writing, and nothing has changed.
  std::function<void(uint64_t written, uint64_t total)> progress = {};
};

/// What quantize() or Model::save() has written.
struct Quantized {
  uint64_t bytes_before = 0, bytes = 0;     ///< of all tensors
  std::map<std::string, int64_t> tensors;  ///< how many are of each type
};

/// Writes a GGUF file of another's metadata and tensors, with weights as `type`: "f32", "f16",
/// "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q4_k_s", "q5_k",
/// "q5_k_s", "q6_k". Norms, biases, what chooses experts and positions stay as they are; in files
/// of blocks the output's weight (the embedding where it is that as well) is Q6_K, or Q8_0 as all
/// others, and types are mixed as llama.cpp mixes them: "q4_k" is its Q4_K_M. Rows that are no
/// whole blocks of 256 are written in blocks of 32, or as halves. What is packed already is decoded
/// first and loses twice. The file is whole or as it was before; memory holds no more than a
/// tensor.
/// InvalidArgument for another type, a file that is there already and numbers that the type does
/// not hold; Unsupported for what is no GGUF file; IoError as tuff::load() and save().
Quantized quantize(const std::string& from, const std::string& to, const std::string& type,
                   const QuantizeOptions& options = {});

}  // namespace tuff::language
