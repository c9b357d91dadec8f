// Text from a GPT: a key-value cache, one captured graph for every length that writes a token, and
// one that reads many.
// Called by `tuff generate`, by the trainer's sample and by tests. Must never know files or print.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tuff/jit.h>

#include "models/gpt_model.h"
#include "models/vocabulary.h"

namespace tuff::models {

// The logits of a text's last position. Keys and values of the positions before are kept in memory
// of the context's size, whose rows up to the position are read: a symbolic extent, so that a call
// costs what the model costs for the tokens that are new, and nothing is compiled from the third
// call on. Many new ones are read in pieces of one size, which share the weights' way from memory.
class GptDecoder {
 public:
  explicit GptDecoder(const Gpt& model);  // which stays where it is, and outlives this
  // The logits after the last of `seen`: 1 to context tokens, of which the first `known` were seen
  // by the calls before. Valid until the next call.
  std::span<const float> operator()(std::span<const uint8_t> seen, size_t known);
  JitStats stats() const { return steps_.stats(); }
  JitStats piece_stats() const { return pieces_.stats(); }

 private:
  std::vector<Tensor> forward(const Tensor& seen, int64_t rows, const Tensor& last);
  void run(Jit& jit, std::span<const uint8_t> seen, size_t padded, std::vector<Tensor> more);
  void read_pieces(std::span<const uint8_t> seen, size_t known);
  const Gpt& model_;
  std::vector<KeyValues> caches_;  // by block
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  const uint32_t piece_tokens_;
  Jit steps_, pieces_;
};

// Where the window of a model that has `count` tokens before it begins: at 0 while they fit its
// context. Learned positions do not move, so the window does, by half a context at a time, and its
// tokens are read again from position 0.
uint64_t gpt_window_begin(uint64_t count, uint32_t context);

// The index of the largest logit (the first of equals) at temperature 0, else one drawn with
// probability softmax(logits / temperature); `unit` in [0, 1).
uint8_t draw_token(std::span<const float> logits, double temperature, double unit);

// Reads tokens and writes what might follow. The same tokens, seed and temperature give the same
// text on one device.
class GptGenerator {
 public:
  GptGenerator(const Gpt& model, uint32_t seed) : decoder_(model), model_(model), seed_(seed) {}
  void read(std::span<const uint8_t> tokens);
  // The next token, which is read too. InvalidArgument before anything was read, and for a
  // temperature below 0.
  uint8_t write(double temperature);
  const GptDecoder& decoder() const { return decoder_; }
  // Whether the last write() drew from logits that are nan, so that the token means nothing.
  bool drew_from_nan() const { return drew_from_nan_; }

 private:
  GptDecoder decoder_;
  const Gpt& model_;
  uint32_t seed_;
  std::vector<uint8_t> text_;
  uint64_t window_begin_ = 0, known_ = 0;  // the decoder has seen so many from there
  uint32_t written_ = 0;
  bool drew_from_nan_ = false;
};

// What a text begins with if nothing else is said: a line break, if the vocabulary has one.
uint8_t first_token(const Vocabulary& vocabulary);

// A model as `tuff train gpt --save` wrote it.
struct SavedGpt {
  Gpt model;
  Vocabulary vocabulary;
};
// Errors as Checkpoint's, and InvalidArgument where settings and tensors do not fit each other.
SavedGpt load_gpt(const std::string& path, const std::string& device);

}  // namespace tuff::models
