#include "models/finetune_texts.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "models/corpus.h"
#include "text/chat_prompts.h"

namespace tuff::models {
namespace {

void append_tokens(TrainingText& to, std::span<const int32_t> tokens, bool learned) {
  to.tokens.insert(to.tokens.end(), tokens.begin(), tokens.end());
  to.learned.insert(to.learned.end(), tokens.size(), learned);
}

// Renders chats, turn by turn.
class ChatReader {
 public:
  explicit ChatReader(const Tokenizer& tokenizer) : chats_(tokenizer, required_template(tokenizer)) {}

  TrainingText read(const Json& line) {
    const Json messages = line.is_object() ? line.value("messages", Json()) : Json();
    if (!messages.is_array() || messages.empty())
      fail<InvalidArgument>("an object with a list \"messages\" was wanted");
    tools_ = line.value("tools", Json());
    const std::string whole = render(messages, false);
    TrainingText out;
    size_t done = 0;
    Json before = Json::array();
    for (const Json& message : messages) {
      const bool answers = message.is_object() && message.value("role", Json()) == "assistant";
      if (answers) {
        const size_t begin = end_of(render(before, true), whole);
        Json with = before;
        with.push_back(message);
        const size_t end = end_of(render(with, false), whole);
        append(out, whole, done, begin, false);
        append(out, whole, begin, end, true);
        done = end;
      }
      before.push_back(message);
    }
    if (done == 0) fail<InvalidArgument>("no message is the assistant's");
    append(out, whole, done, whole.size(), false);
    return out;
  }

 private:
  static const std::string& required_template(const Tokenizer& tokenizer) {
    if (tokenizer.chat_template().empty())
      fail<InvalidArgument>("the model has no chat template: give it texts");
    return tokenizer.chat_template();
  }
  std::string render(const Json& messages, bool begins_answer) {
    return chats_.render(messages, tools_, {.add_generation_prompt = begins_answer});
  }
  static size_t end_of(const std::string& beginning, const std::string& whole) {
    if (!whole.starts_with(beginning))
      fail<InvalidArgument>("the model's template writes turns otherwise once others follow: a chat "
                            "with one answer was wanted");
    return beginning.size();
  }
  void append(TrainingText& out, const std::string& whole, size_t begin, size_t end,
              bool learned) const {
    const std::string_view text = std::string_view(whole).substr(begin, end - begin);
    append_tokens(out, begin == 0 ? chats_.encode_whole(text) : chats_.encode(text), learned);
  }

  const text::ChatPrompts chats_;
  Json tools_;
};

}  // namespace

std::vector<TrainingText> read_texts(const Tokenizer& tokenizer,
                                     std::span<const std::string> paths) {
  std::vector<TrainingText> out;
  for (const std::string& text : read_text_files(paths)) {
    std::vector<int32_t> tokens = tokenizer.encode(text, {.parse_special = false});
    if (tokenizer.eos() && (tokens.empty() || tokens.back() != *tokenizer.eos()))
      tokens.push_back(*tokenizer.eos());
    append_tokens(out.emplace_back(), tokens, true);
  }
  return out;
}

std::vector<TrainingText> read_chats(const Tokenizer& tokenizer, const std::string& path) {
  ChatReader reader(tokenizer);
  const std::vector<uint8_t> bytes = os::read_file(path);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<TrainingText> out;
  size_t number = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    at = end + 1, number++;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    try {
      if (json.is_discarded()) fail<InvalidArgument>("no JSON");
      out.push_back(reader.read(json));
    } catch (const InvalidArgument& e) {
      fail<InvalidArgument>("{}:{}: {}", path, number, e.what());
    }
  }
  if (out.empty()) fail<InvalidArgument>("{}: there is no chat in it", path);
  return out;
}

PackedTexts::PackedTexts(std::span<const TrainingText> texts, uint32_t length, bool splits)
    : length_(length) {
  if (length < 2) fail<InvalidArgument>("rows of {} tokens: 2 are the least", length);
  for (const TrainingText& t : texts) {
    const size_t steps = t.tokens.empty() ? 0 : t.tokens.size() - 1;
    for (size_t at = 0; at < steps;) {
      const size_t left = length_ - tokens_.size() % length_;
      if (!splits && steps > left && left < length_) fill_row();
      const size_t room = length_ - tokens_.size() % length_;
      const size_t count = std::min(steps - at, room);
      append(t, at, count);
      at += count;
      if (!splits && at < steps) left_out_ += steps - at, at = steps;
    }
  }
  if (tokens_.size() % length_ != 0) fill_row();
  if (learned_ == 0) fail<InvalidArgument>("the texts have no token that could be learned");
  XXH64_hash_t hash = 0;
  for (const auto* v : {&tokens_, &targets_, &positions_})
    hash = XXH64(v->data(), v->size() * sizeof(int32_t), hash);
  hash_hex_ = fmt::format("{:016x}", hash);
}

void PackedTexts::append(const TrainingText& text, size_t begin, size_t count) {
  text_ = tokens_.size() % length_ == 0 ? 0 : text_ + 1;
  for (size_t i = 0; i < count; i++) {
    const size_t at = begin + i;
    const bool learned = text.learned[at + 1];
    tokens_.push_back(text.tokens[at]);
    targets_.push_back(learned ? text.tokens[at + 1] : kNotLearned);
    texts_.push_back(text_);
    positions_.push_back(int32_t(i));
    learned_ += learned;
  }
}

void PackedTexts::fill_row() {
  const size_t rest = length_ - tokens_.size() % length_;
  tokens_.insert(tokens_.end(), rest, 0);
  targets_.insert(targets_.end(), rest, kNotLearned);
  texts_.insert(texts_.end(), rest, text_ + 1);
  positions_.insert(positions_.end(), rest, 0);
}

}  // namespace tuff::models
