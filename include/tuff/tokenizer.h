// Tokenizers of language models: texts as lists of ids and back. Called by users and by whatever
// runs language models. Must never know of tensors, graphs or models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tuff/metadata.h>

namespace tuff {

namespace text::grammar {
class TokenFilter;
}

/// How encode() takes a text.
struct EncodeOptions {
  /// Whether the tokens that the file wants around a text (BOS, EOS, [CLS], [SEP]) are added.
  bool add_special = true;
  /// Whether the spelling of a special token in the text ("<|im_end|>") is that token. Not for what
  /// users of a chat have written, who could end their own turn by it.
  bool parse_special = true;
};

/// A vocabulary, and how texts are cut into its tokens: byte-level BPE, SentencePiece's BPE and
/// unigram, WordPiece, as GGUF files and tokenizer.json describe them. It does not change, copies
/// share, and any thread may use it.
class Tokenizer {
 public:
  /// A GGUF file, a tokenizer.json, or a folder that holds one, whose tokenizer_config.json,
  /// generation_config.json and chat_template.jinja are read too. IoError naming the file for what
  /// is missing or damaged; Unsupported naming what tuff does not know, and what it does.
  static Tokenizer open(const std::string& path);
  /// Of a GGUF file's metadata, the keys "tokenizer.ggml.*". InvalidArgument for what is missing
  /// or contradicts itself; Unsupported as open().
  static Tokenizer from_metadata(const Metadata& metadata);

  /// Of the contents of a tokenizer.json, which does not say what ends a text: eos() is nothing.
  /// InvalidArgument and Unsupported as from_metadata().
  static Tokenizer from_json(std::string_view json);

  /// The ids of a text's tokens. Bytes that are no UTF-8 are kept where the vocabulary has tokens
  /// for bytes. InvalidArgument for a text that takes the file's regular expressions too long.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The text of tokens. Not always UTF-8: a token may end inside of a character (see TextStream).
  /// InvalidArgument for an id that is not in the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;
  /// The bytes that a token adds to a text; of one that begins a text a space less, in some
  /// vocabularies.
  const std::string& piece(int32_t id) const;
  /// As the vocabulary spells a token: "Ġthe", "▁the", "<0x0A>".
  const std::string& token(int32_t id) const;
  /// The id of a token by that spelling.
  std::optional<int32_t> find(std::string_view token) const;
  size_t size() const;

  std::optional<int32_t> bos() const;      ///< begins a text
  std::optional<int32_t> eos() const;      ///< ends a text
  std::optional<int32_t> unknown() const;  ///< stands for what the vocabulary lacks
  std::optional<int32_t> pad() const;
  /// Whether a model that gives this token has ended its answer: EOS, and tokens that are known to
  /// end a turn ("<|eot_id|>", "<|im_end|>").
  bool is_end(int32_t id) const;
  /// Whether decode() leaves it out: control tokens, and the one for what is unknown.
  bool is_special(int32_t id) const;
  /// The Jinja template of chats that came with it (see ChatTemplate); empty if none did.
  const std::string& chat_template() const;

  struct State;

 private:
  friend class TextStream;
  friend class text::grammar::TokenFilter;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The text of tokens that arrive one by one, in whole UTF-8 characters.
class TextStream {
 public:
  explicit TextStream(Tokenizer tokenizer, bool skip_special = true);
  /// What is certain of the text now that this token has come; empty inside of a character. Bytes
  /// that cannot become a character are U+FFFD.
  std::string push(int32_t id);
  /// What is left of an unfinished character, as U+FFFD. The next token begins a text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_, begun_ = false;
  std::string rest_;  // the beginning of a character
};

}  // namespace tuff
