// What a Model holds. Shared by Model and Sequence.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <tuff/adapter.h>
#include <tuff/io.h>
#include <tuff/language.h>

#include "language/config.h"
#include "language/weights.h"

namespace tuff::language {

// What embed() has captured, by the number of rows.
struct EmbeddingGraphs {
  std::mutex mutex;
  std::map<int64_t, std::unique_ptr<Jit>> by_rows;
};

struct Model::State {
  static std::shared_ptr<const State> read(const std::string& path, const LoadOptions& options);
  Config config;
  Description description;
  Tokenizer tokenizer;
  Weights weights;
  std::string device;
  std::string path;
  nn::StateDict parameters = {};                   // in place of weights of the file
  std::shared_ptr<const Adapter> adapter = {};     // null: none
  std::unique_ptr<EmbeddingGraphs> embeddings = std::make_unique<EmbeddingGraphs>();
  bool is_folder() const;
  // All tensors, read anew, with `parameters`, as a GGUF file would name them.
  TensorDict tensors() const;
  // What the adapter adds, by the names of tensors.
  std::map<std::string, LowRank> additions() const;
  // InvalidArgument for a token that is not in the vocabulary.
  void require_tokens(std::span<const int32_t> tokens) const;
  // What the last layer gives of tokens: (tokens of all texts, width).
  Tensor decoded(const Tensor& tokens, const ReadOptions& options) const;
  void require_writer() const;  // InvalidArgument for an encoder
  // Of what reads and writes. 0: as usual. InvalidArgument for one below 1 or beyond what the model
  // was trained for, and for an encoder.
  int64_t context(int64_t wanted) const;
  // Frequencies are divided by these, in a text of so many positions.
  const std::vector<float>& rope_factors(int64_t positions) const;
};

}  // namespace tuff::language
