// tokenizer.json of the package tokenizers (huggingface.co/docs/tokenizers), and the JSON files
// that stand beside it.
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/base64.h"
#include "text/json_parts.h"
#include "text/pipeline.h"

namespace tuff::text {
namespace {

constexpr size_t kSparse = 1000;  // ids may be so many more than twice the tokens

// Spellings by id; InvalidArgument for ids that no list could hold.
class Spellings {
 public:
  explicit Spellings(size_t count) : limit_(2 * count + kSparse) {}
  void set(const std::string& token, int64_t id) {
    if (id < 0 || uint64_t(id) >= limit_)
      fail<InvalidArgument>("tokenizer.json: token '{:.80}' has the id {}, beyond {}", token, id,
                            limit_);
    if (size_t(id) >= tokens_.size()) tokens_.resize(size_t(id) + 1);
    tokens_[size_t(id)] = token;
  }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  size_t limit_;
  std::vector<std::string> tokens_;
};

class JsonReader {
 public:
  JsonReader(std::string_view text, const TokenizerFiles& files)
      : json_(parsed("tokenizer.json", text)), files_(files) {}

  std::shared_ptr<Tokenizer::State> read() {
    if (!json_.is_object() || !part("model").is_object())
      fail<InvalidArgument>("tokenizer.json: no object with a \"model\"");
    type_ = model_type();
    read_tokens();
    s_->normalize = normalizer(part("normalizer"));
    s_->cut = pre_tokenizer(part("pre_tokenizer"));
    read_added();
    read_model();
    read_decoder();
    read_post_processor(part("post_processor"));
    read_config();
    return s_;
  }

 private:
  const Json& part(const char* name) const { return json_part(json_, name); }
  const Json& model() const { return part("model"); }
  size_t size() const { return s_->vocabulary->size(); }

  // Files of older versions do not name it.
  std::string model_type() const {
    const std::string type = text_in(model(), "type", "");
    if (!type.empty()) return type;
    if (model().contains("merges")) return "BPE";
    return json_part(model(), "vocab").is_array() ? "Unigram" : "WordPiece";
  }

  void read_tokens() {
    const Json &vocab = json_part(model(), "vocab"), &added = part("added_tokens");
    Spellings spellings(vocab.size() + added.size());
    if (vocab.is_object()) {
      for (const auto& [token, id] : vocab.items()) spellings.set(token, whole_number("an id", id));
    } else if (vocab.is_array()) {
      for (size_t i = 0; i < vocab.size(); i++) {
        if (!vocab[i].is_array() || vocab[i].size() != 2 || !vocab[i][0].is_string() ||
            !vocab[i][1].is_number())
          fail<InvalidArgument>("tokenizer.json: the vocabulary holds {:.80}", vocab[i].dump());
        spellings.set(vocab[i][0], int64_t(i));
        scores_.push_back(vocab[i][1]);
      }
    }
    Spellings all = spellings;
    for (const Json& t : added) all.set(text_in(t, "content"), number_in(t, "id"));
    // What was added is no token to the model, which would find it inside of words.
    words_ = std::make_shared<const Vocabulary>(spellings.take());
    spellings = std::move(all);
    s_->vocabulary = std::make_shared<const Vocabulary>(spellings.take());
    if (size() == 0) fail<InvalidArgument>("tokenizer.json: the vocabulary is empty");
  }

  void read_added() {
    s_->special.resize(size());
    std::vector<AddedToken> plain, normalized;
    for (const Json& t : part("added_tokens")) {
      const bool special = flag_in(t, "special", false);
      AddedToken token{int32_t(number_in(t, "id")),
                       text_in(t, "content"),
                       special,
                       flag_in(t, "lstrip", false),
                       flag_in(t, "rstrip", false),
                       flag_in(t, "single_word", false)};
      s_->special[size_t(token.id)] = special;
      added_.insert(token.id);
      if (flag_in(t, "normalized", !special)) {
        if (s_->normalize) token.content = s_->normalize(token.content);
        normalized.push_back(std::move(token));
      } else {
        plain.push_back(std::move(token));
      }
    }
    s_->added = AddedTokens(std::move(plain));
    s_->added_normalized = AddedTokens(std::move(normalized));
  }

  std::optional<int32_t> token_named(const std::string& name) const {
    if (name.empty()) return std::nullopt;
    const auto id = s_->vocabulary->find(name);
    if (!id) fail<InvalidArgument>("tokenizer.json: there is no token '{:.80}'", name);
    return id;
  }

  void read_model() {
    struct Row {
      std::string_view type;
      void (JsonReader::*read)();
    };
    constexpr Row kRows[] = {{"BPE", &JsonReader::read_bpe},
                             {"WordPiece", &JsonReader::read_word_piece},
                             {"WordLevel", &JsonReader::read_word_level},
                             {"Unigram", &JsonReader::read_unigram}};
    (this->*known_row("model", type_, kRows).read)();
  }
  Merges merges() const {
    Merges out;
    for (const Json& m : json_part(model(), "merges")) {
      if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
        out.emplace_back(m[0], m[1]);
        continue;
      }
      const std::string text = m.is_string() ? m.get<std::string>() : "";
      const size_t space = text.find(' ', 1);
      if (space == std::string::npos)
        fail<InvalidArgument>("tokenizer.json: the merges hold {:.80}", m.dump());
      out.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    return out;
  }
  void read_bpe() {
    s_->unknown = token_named(text_in(model(), "unk_token", ""));
    BpeOptions options;
    options.fallback = {s_->unknown, flag_in(model(), "fuse_unk", false),
                        flag_in(model(), "byte_fallback", false)};
    options.whole_words = flag_in(model(), "ignore_merges", false);
    options.inner_prefix = text_in(model(), "continuing_subword_prefix", "");
    options.end_suffix = text_in(model(), "end_of_word_suffix", "");
    s_->model = bpe_model(words_, merges(), options);
  }
  void read_word_piece() {
    s_->unknown = token_named(text_in(model(), "unk_token", "[UNK]"));
    s_->model = word_piece_model(
        *words_,
        {*s_->unknown, "", text_in(model(), "continuing_subword_prefix", "##"),
         size_t(std::max<int64_t>(number_in(model(), "max_input_chars_per_word", 100), 0))});
  }
  void read_word_level() {
    s_->unknown = token_named(text_in(model(), "unk_token", ""));
    s_->model = word_level_model(words_, {s_->unknown, false, false});
  }
  void read_unigram() {
    if (const int64_t id = number_in(model(), "unk_id", -1); id >= 0) {
      if (uint64_t(id) >= scores_.size())
        fail<InvalidArgument>("tokenizer.json: unk_id {} is outside the vocabulary of {}", id,
                              scores_.size());
      s_->unknown = int32_t(id);
    }
    if (scores_.size() != words_->size())
      fail<InvalidArgument>("tokenizer.json: a Unigram's vocabulary is a list of pairs");
    s_->model = unigram_model(words_, scores_, std::vector<bool>(words_->size(), true),
                              {s_->unknown, true, flag_in(model(), "byte_fallback", false)});
  }

  void read_decoder() {
    const Decoder decoder = piece_decoder(part("decoder"));
    s_->dropped_start = decoder.dropped_start;
    for (size_t id = 0; id < size(); id++)
      s_->pieces.push_back(
          decoder.piece((*s_->vocabulary)[int32_t(id)], added_.contains(int32_t(id))));
  }

  int32_t known_id(const Json& id) const {
    const int64_t n = whole_number("an id", id);
    if (n < 0 || uint64_t(n) >= size())
      fail<InvalidArgument>("tokenizer.json: token {} is outside the vocabulary of {}", n, size());
    return int32_t(n);
  }
  // "[SEP]", 102
  int32_t named_id(const Json& post, const char* name) const {
    const Json& pair = json_part(post, name);
    if (!pair.is_array() || pair.size() != 2)
      fail<InvalidArgument>("tokenizer.json: \"{}\" holds {:.80}", name, pair.dump());
    return known_id(pair[1]);
  }
  void put_around(const Ids& before, const Ids& behind) {
    s_->before.insert(s_->before.begin(), before.begin(), before.end());
    s_->behind.insert(s_->behind.end(), behind.begin(), behind.end());
  }
  void read_post_processor(const Json& post, int depth = 0) {
    if (post.is_null()) return;
    const std::string type = text_in(post, "type");
    if (type == "ByteLevel") return;
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      put_around({named_id(post, "cls")}, {named_id(post, "sep")});
    } else if (type == "TemplateProcessing") {
      read_template(post);
    } else if (type == "Sequence") {
      require_depth(depth);
      for (const Json& p : json_part(post, "processors")) read_post_processor(p, depth + 1);
    } else {
      refuse("post_processor", type,
             "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
    }
  }
  void read_template(const Json& post) {
    Ids before, behind;
    bool seen = false;
    for (const Json& item : json_part(post, "single")) {
      if (item.is_object() && item.contains("Sequence")) {
        seen = true;
        continue;
      }
      const std::string name = text_in(json_part(item, "SpecialToken"), "id");
      const Json& row = json_part(json_part(post, "special_tokens"), name.c_str());
      for (const Json& id : json_part(row, "ids")) (seen ? behind : before).push_back(known_id(id));
    }
    put_around(before, behind);
  }

  // "<s>", {"content": "<s>"} or null.
  std::optional<int32_t> configured(const Json& config, const char* name) const {
    const Json& v = json_part(config, name);
    if (v.is_string()) return s_->vocabulary->find(v.get<std::string>());
    return v.is_object() ? s_->vocabulary->find(text_in(v, "content", "")) : std::nullopt;
  }
  void read_config() {
    const Json config =
        files_.config.empty() ? Json::object() : parsed("tokenizer_config.json", files_.config);
    s_->bos = configured(config, "bos_token");
    s_->eos = configured(config, "eos_token");
    s_->pad = configured(config, "pad_token");
    if (!s_->bos && !s_->before.empty()) s_->bos = s_->before.front();
    s_->ends = end_tokens(*s_->vocabulary, s_->eos);
    if (!files_.generation.empty()) {
      const Json generation = parsed("generation_config.json", files_.generation);
      const Json& ids = json_part(generation, "eos_token_id");
      for (const Json& id : ids.is_array() ? ids : Json::array({ids}))
        if (id.is_number_integer()) s_->ends.insert(known_id(id));
    }
    s_->chat_template = files_.chat_template;
    const Json& chat = json_part(config, "chat_template");
    if (s_->chat_template.empty() && chat.is_string()) s_->chat_template = chat;
    if (s_->chat_template.empty() && chat.is_array())
      for (const Json& t : chat)
        if (text_in(t, "name", "") == "default") s_->chat_template = text_in(t, "template");
  }

  Json json_;
  const TokenizerFiles& files_;
  std::string type_;
  std::shared_ptr<Tokenizer::State> s_ = std::make_shared<Tokenizer::State>();
  std::shared_ptr<const Vocabulary> words_;  // those of the model
  std::vector<double> scores_;               // of them
  std::unordered_set<int32_t> added_;
};

}  // namespace

std::shared_ptr<Tokenizer::State> read_json_tokenizer(std::string_view text,
                                                      const TokenizerFiles& files) {
  return JsonReader(text, files).read();
}

}  // namespace tuff::text
