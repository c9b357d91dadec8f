// What a language model is fine-tuned on: files of text and chats as tokens, packed into rows of one
// length. Called by the trainer and by `tuff finetune`. Must never know the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tuff/tokenizer.h>

namespace tuff::models {

// Tokens, and of each whether it is to be predicted.
struct TrainingText {
  std::vector<int32_t> tokens;
  std::vector<bool> learned;
};

// Files as they are, folders as load_corpus() walks them: each file is a text, which the
// vocabulary's tokens begin and end. IoError; InvalidArgument for no text.
std::vector<TrainingText> read_texts(const Tokenizer& tokenizer, std::span<const std::string> paths);
// A chat a line, as JSON: {"messages": [{"role": "user", "content": "Hello"}, ...]}, as the model's
// template writes it. What the assistant says is learned. IoError; InvalidArgument naming file and
// line for what is no chat, or one that the template has no words for.
std::vector<TrainingText> read_chats(const Tokenizer& tokenizer, const std::string& path);

// Rows of one length: texts behind each other.
class PackedTexts {
 public:
  // A text that does not fit into what is left of a row begins in it and goes on in the next ones,
  // as a text of its own, if `splits`; else it begins a row, and what exceeds one is left out.
  // InvalidArgument if nothing is to be learned.
  PackedTexts(std::span<const TrainingText> texts, uint32_t length, bool splits);
  uint32_t length() const { return length_; }
  size_t rows() const { return tokens_.size() / length_; }
  uint64_t learned_tokens() const { return learned_; }
  uint64_t left_out_tokens() const { return left_out_; }
  const std::string& hash_hex() const { return hash_hex_; }  // XXH64 of all of it
  static constexpr int32_t kNotLearned = -100;

  // By row. Targets are the tokens that follow, or kNotLearned; texts are numbered in each row.
  std::span<const int32_t> tokens(size_t row) const { return part(tokens_, row); }
  std::span<const int32_t> targets(size_t row) const { return part(targets_, row); }
  std::span<const int32_t> texts(size_t row) const { return part(texts_, row); }
  std::span<const int32_t> positions(size_t row) const { return part(positions_, row); }

 private:
  std::span<const int32_t> part(const std::vector<int32_t>& all, size_t row) const {
    return std::span(all).subspan(row * length_, length_);
  }
  void append(const TrainingText& text, size_t begin, size_t count);
  void fill_row();
  uint32_t length_;
  int32_t text_ = 0;  // of this row
  uint64_t learned_ = 0, left_out_ = 0;
  std::vector<int32_t> tokens_, targets_, texts_, positions_;
  std::string hash_hex_;
};

}  // namespace tuff::models
