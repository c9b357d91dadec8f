// Tokenizers of GGUF's metadata: the keys are written down in github.com/ggml-org/ggml,
// docs/gguf.md, what they leave to the reader in llama.cpp's src/llama-vocab.cpp.
#include <tuff/metadata.h>
#include "base/check.h"
#include "text/pipeline.h"
#include "text/presets.h"

namespace tuff::text {
namespace {

enum class TokenType : int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

// The values of "tokenizer.ggml.*" by what follows.
class Keys {
 public:
  explicit Keys(const Metadata& metadata) {
    for (const auto& [key, value] : metadata) values_.try_emplace(key, &value);
  }
  const MetadataValue* find(std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : it->second;
  }
  const MetadataValue* ggml(const char* name) const {
    return find(fmt::format("tokenizer.ggml.{}", name));
  }
  std::string text(const char* name, std::string otherwise) const {
    const MetadataValue* v = ggml(name);
    if (!v) return otherwise;
    if (const auto* s = std::get_if<std::string>(&v->value)) return *s;
    wrong(name, *v, "a text");
  }
  bool flag(const char* name, bool otherwise) const {
    const MetadataValue* v = ggml(name);
    if (!v) return otherwise;
    if (const auto* b = std::get_if<bool>(&v->value)) return *b;
    wrong(name, *v, "true or false");
  }
  const MetadataValue::List& list(const char* name) const {
    static const MetadataValue::List none;
    const MetadataValue* v = ggml(name);
    if (!v) return none;
    if (const auto* l = std::get_if<MetadataValue::List>(&v->value)) return *l;
    wrong(name, *v, "a list");
  }
  // Of tokens; none where the key is missing or -1, as files write it.
  std::optional<int32_t> id(const char* name, size_t tokens) const {
    const MetadataValue* v = ggml(name);
    if (!v) return std::nullopt;
    const int64_t n = whole_number(name, *v);
    if (n == -1 || n == int64_t{UINT32_MAX}) return std::nullopt;
    if (n < 0 || uint64_t(n) >= tokens)
      fail<InvalidArgument>("tokenizer.ggml.{} is {}, outside the vocabulary of {}", name, n,
                            tokens);
    return int32_t(n);
  }
  static int64_t whole_number(const char* name, const MetadataValue& v) {
    if (const auto* i = std::get_if<int64_t>(&v.value)) return *i;
    if (const auto* u = std::get_if<uint64_t>(&v.value))
      return *u > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(*u);
    wrong(name, v, "a whole number");
  }
  static double number(const char* name, const MetadataValue& v) {
    if (const auto* d = std::get_if<double>(&v.value)) return *d;
    return double(whole_number(name, v));
  }
  static const std::string& string(const char* name, const MetadataValue& v) {
    if (const auto* s = std::get_if<std::string>(&v.value)) return *s;
    wrong(name, v, "a text");
  }
  [[noreturn]] static void wrong(const char* name, const MetadataValue& v, const char* wanted) {
    fail<InvalidArgument>("tokenizer.ggml.{} holds {}; {} belongs there", name, v.str(), wanted);
  }

 private:
  std::unordered_map<std::string_view, const MetadataValue*> values_;
};

class GgufReader {
 public:
  explicit GgufReader(const Metadata& metadata) : keys_(metadata) {}

  std::shared_ptr<Tokenizer::State> read() {
    const std::string model = keys_.text("model", "");
    const auto* row = std::ranges::find(kModels, model, &Model::name);
    if (row == std::end(kModels)) refuse(model);
    read_tokens();
    read_special();
    (this->*row->read)();
    read_chat_template();
    return s_;
  }

 private:
  struct Model {
    std::string_view name;
    void (GgufReader::*read)();
  };
  static const Model kModels[5];

  [[noreturn]] void refuse(const std::string& model) const {
    if (model.empty())
      fail<InvalidArgument>("there is no tokenizer in the metadata: tokenizer.ggml.model is not");
    std::string known;
    for (const Model& m : kModels) known += (known.empty() ? "" : ", ") + std::string(m.name);
    fail<Unsupported>("tokenizer.ggml.model is '{:.80}', which tuff does not know; known are {}",
                      model, known);
  }

  size_t size() const { return s_->vocabulary->size(); }
  const Vocabulary& vocabulary() const { return *s_->vocabulary; }
  TokenType type(size_t id) const { return types_.empty() ? TokenType::Normal : types_[id]; }

  void read_tokens() {
    std::vector<std::string> tokens;
    for (const MetadataValue& v : keys_.list("tokens")) tokens.push_back(Keys::string("tokens", v));
    if (tokens.empty()) fail<InvalidArgument>("tokenizer.ggml.tokens is missing or empty");
    s_->vocabulary = std::make_shared<const Vocabulary>(std::move(tokens));
    for (const MetadataValue& v : keys_.list("token_type")) {
      const int64_t type = Keys::whole_number("token_type", v);
      types_.push_back(type >= 1 && type <= 6 ? TokenType(type) : TokenType::Normal);
    }
    require_size("token_type", types_.size());
    for (const MetadataValue& v : keys_.list("scores"))
      scores_.push_back(Keys::number("scores", v));
    require_size("scores", scores_.size());
  }
  void require_size(const char* name, size_t n) const {
    if (n != 0 && n != size())
      fail<InvalidArgument>("tokenizer.ggml.{} has {} values, and there are {} tokens", name, n,
                            size());
  }

  void read_special() {
    s_->bos = keys_.id("bos_token_id", size());
    s_->eos = keys_.id("eos_token_id", size());
    s_->unknown = keys_.id("unknown_token_id", size());
    s_->pad = keys_.id("padding_token_id", size());
    s_->ends = end_tokens(vocabulary(), s_->eos);
    for (const char* name : {"eot_token_id", "eom_token_id"})
      if (const auto id = keys_.id(name, size())) s_->ends.insert(*id);
    std::vector<AddedToken> added;
    for (size_t i = 0; i < size(); i++) {
      const bool special = type(i) == TokenType::Control || type(i) == TokenType::Unknown;
      s_->special.push_back(special);
      if (special || type(i) == TokenType::UserDefined)
        added.push_back({int32_t(i), vocabulary()[int32_t(i)], special});
    }
    set_stripping(added);
    s_->added = AddedTokens(std::move(added));
  }
  // The files do not say which tokens take spaces with them; their models' names do.
  void set_stripping(std::vector<AddedToken>& added) const {
    std::string name;
    if (const MetadataValue* v = keys_.find("general.name"))
      if (const auto* s = std::get_if<std::string>(&v->value)) name = lowercased(*s);
    if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return;
    for (AddedToken& t : added)
      t.right_strip = t.content != "<unk>" && t.content != "<s>" && t.content != "<|endoftext|>";
  }

  void put_around(bool bos, bool eos) {
    if (keys_.flag("add_bos_token", bos) && s_->bos) s_->before = {*s_->bos};
    if (keys_.flag("add_eos_token", eos) && s_->eos) s_->behind = {*s_->eos};
  }

  Merges merges() const {
    Merges out;
    for (const MetadataValue& v : keys_.list("merges")) {
      const std::string& m = Keys::string("merges", v);
      const size_t space = m.find(' ', 1);
      if (space == std::string::npos)
        fail<InvalidArgument>("tokenizer.ggml.merges holds '{:.80}' of one part", m);
      out.emplace_back(m.substr(0, space), m.substr(space + 1));
    }
    return out;
  }

  void read_byte_level_bpe() {
    const Preset& p = preset(keys_.text("pre", ""));
    std::vector<PieceStep> cut;
    for (const std::string_view pattern : p.patterns)
      cut.push_back(split(Regex(std::string(pattern)), SplitBehavior::Isolated));
    cut.push_back(byte_level());
    s_->cut = in_order(std::move(cut));
    BpeOptions options;
    options.whole_words = p.whole_words;
    s_->model = bpe_model(s_->vocabulary, merges(), options);
    set_pieces([this](size_t id) {
      return is_added(id) ? vocabulary()[int32_t(id)]
                          : bytes_of_characters(vocabulary()[int32_t(id)]);
    });
    put_around(p.add_bos, false);
  }
  // Of tokens that are not in GPT-2's characters.
  bool is_added(size_t id) const {
    return type(id) != TokenType::Normal && type(id) != TokenType::Unused;
  }

  // Merges of characters; pieces end at newlines alone, of which runs may be tokens.
  void read_raw_bpe() {
    s_->normalize = replace(" ", std::string(kVisibleSpace));
    s_->cut = split(Regex("\\n+"), SplitBehavior::Isolated);
    BpeOptions options;
    options.fallback = {s_->unknown, true, true};
    s_->model = bpe_model(s_->vocabulary, merges(), options);
    set_pieces([this](size_t id) { return sentence_piece(id); });
    put_around(true, false);
  }

  void read_scored_bpe() {
    const bool prefix = keys_.flag("add_space_prefix", true);
    std::vector<TextStep> steps;
    if (prefix) steps.push_back(prepend(std::string(kVisibleSpace)));
    steps.push_back(replace(" ", std::string(kVisibleSpace)));
    s_->normalize = in_order(std::move(steps));
    if (scores_.empty()) scores_.resize(size());
    s_->model = scored_bpe_model(s_->vocabulary, {scores_.begin(), scores_.end()}, in_texts(),
                                 {s_->unknown, false, true});
    set_pieces([this](size_t id) { return sentence_piece(id); });
    if (prefix) s_->dropped_start = " ";
    put_around(true, false);
  }

  void read_unigram() {
    const bool prefix = keys_.flag("add_space_prefix", false);
    const bool suffix = keys_.flag("treat_whitespace_as_suffix", false);
    std::vector<TextStep> steps;
    std::string table;
    for (const MetadataValue& v : keys_.list("precompiled_charsmap"))
      table += char(uint8_t(Keys::whole_number("precompiled_charsmap", v)));
    if (!table.empty()) steps.push_back(charsmap(table));
    steps.push_back(sentence_piece_spaces(
        {keys_.flag("remove_extra_whitespaces", false), prefix && !suffix, prefix && suffix}));
    s_->normalize = in_order(std::move(steps));
    if (scores_.empty()) scores_.resize(size());
    for (size_t i = 0; i < size(); i++)
      if (type(i) == TokenType::UserDefined) scores_[i] = 0;  // likelier than all others
    s_->model = unigram_model(s_->vocabulary, scores_, in_texts(), {s_->unknown, true, false});
    set_pieces([this](size_t id) { return sentence_piece(id); });
    if (prefix && !suffix) s_->dropped_start = " ";
    put_around(false, true);
  }

  void read_word_piece() {
    if (!s_->bos) s_->bos = keys_.id("cls_token_id", size());
    const auto separator = keys_.id("seperator_token_id", size());
    if (!s_->unknown)
      fail<InvalidArgument>("tokenizer.ggml.unknown_token_id is missing; WordPiece wants one");
    BertOptions options;
    options.lowercase = keys_.flag("normalizer.lowercase", true);
    options.strip_accents = keys_.flag("normalizer.strip_accents", options.lowercase);
    s_->normalize = bert(options);
    s_->cut = bert_words();
    s_->model =
        word_piece_model(vocabulary(), {*s_->unknown, std::string(kVisibleSpace), "", SIZE_MAX});
    const TextStep tidy = english_spacing();
    set_pieces([&](size_t id) { return tidy(sentence_piece(id)); });
    s_->dropped_start = " ";
    if (s_->bos) s_->before = {*s_->bos};
    if (separator) s_->behind = {*separator};
  }

  // Tokens that texts are written in, by id.
  std::vector<bool> in_texts() const {
    std::vector<bool> out(size());
    for (size_t i = 0; i < size(); i++)
      out[i] = type(i) == TokenType::Normal || type(i) == TokenType::UserDefined ||
               type(i) == TokenType::Unused;
    return out;
  }
  std::string sentence_piece(size_t id) const {
    const std::string& token = vocabulary()[int32_t(id)];
    if (type(id) == TokenType::Byte)
      if (const auto byte = byte_of_token(token)) return std::string(1, char(*byte));
    if (type(id) == TokenType::Control) return token;
    return replace(std::string(kVisibleSpace), " ")(token);
  }
  template <class F>
  void set_pieces(F&& piece) {
    s_->pieces.reserve(size());
    for (size_t id = 0; id < size(); id++) s_->pieces.push_back(piece(id));
  }

  void read_chat_template() {
    const MetadataValue* v = keys_.find("tokenizer.chat_template");
    if (!v) return;
    const auto* text = std::get_if<std::string>(&v->value);
    if (!text)
      fail<InvalidArgument>("tokenizer.chat_template holds {}; a text belongs there", v->str());
    s_->chat_template = *text;
  }

  Keys keys_;
  std::shared_ptr<Tokenizer::State> s_ = std::make_shared<Tokenizer::State>();
  std::vector<TokenType> types_;  // by id; none: all are normal
  std::vector<double> scores_;    // by id
};

const GgufReader::Model GgufReader::kModels[5] = {{"gpt2", &GgufReader::read_byte_level_bpe},
                                                  {"llama", &GgufReader::read_scored_bpe},
                                                  {"bert", &GgufReader::read_word_piece},
                                                  {"t5", &GgufReader::read_unigram},
                                                  {"gemma4", &GgufReader::read_raw_bpe}};

}  // namespace

std::shared_ptr<Tokenizer::State> read_gguf_tokenizer(const Metadata& metadata) {
  return GgufReader(metadata).read();
}

}  // namespace tuff::text
