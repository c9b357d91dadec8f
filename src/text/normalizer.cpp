#include "text/normalizer.h"

#include <cstring>
#include <memory>

#include "base/check.h"

namespace tuff::text {
namespace {

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  out.reserve(text.size());
  for (size_t at; (at = text.find(what)) != std::string_view::npos;) {
    out += text.substr(0, at);
    out += by;
    text.remove_prefix(at + what.size());
  }
  out += text;
  return out;
}

std::string bert_cleaned(std::string_view text, const BertOptions& options) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = next_character(text);
    const bool space = is_space(c.code);
    const bool kept = !is_control(c.code) || c.code == '\t' || c.code == '\n' || c.code == '\r';
    const bool dropped = !kept || c.code == 0xfffd;
    const bool apart = options.ideographs && is_ideograph(c.code);
    if (!options.clean || !dropped) {
      if (apart) out += ' ';
      if (options.clean && space) {
        out += ' ';
      } else {
        out += text.substr(0, c.bytes);
      }
      if (apart) out += ' ';
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string with_visible_spaces(std::string_view text, const SpaceOptions& options) {
  if (options.merge) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  if (text.empty()) return {};
  std::string out;
  out.reserve(text.size() * 2);
  if (options.prefix) out += kVisibleSpace;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != ' ') {
      out += text[i];
    } else if (!options.merge || text[i - 1] != ' ') {
      out += kVisibleSpace;
    }
  }
  if (options.suffix) out += kVisibleSpace;
  return out;
}

// A double array (Darts-clone's layout): units of 32 bits, then texts that end in a zero.
class Charsmap {
 public:
  explicit Charsmap(std::string_view table) {
    uint32_t bytes = 0;
    if (table.size() >= sizeof bytes) std::memcpy(&bytes, table.data(), sizeof bytes);
    if (bytes < sizeof(uint32_t) || bytes % sizeof(uint32_t) || bytes > table.size() - sizeof bytes)
      fail<InvalidArgument>(
          "tokenizer: a precompiled charsmap of {} bytes cannot have a table of {}", table.size(),
          bytes);
    units_.resize(bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), table.data() + sizeof bytes, bytes);
    texts_ = table.substr(sizeof bytes + bytes);
  }
  std::string operator()(std::string_view text) const {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    while (!text.empty()) {
      const auto [bytes, by] = longest(text);
      const size_t taken = bytes ? bytes : next_character(text).bytes;
      out += bytes ? by : text.substr(0, taken);
      text.remove_prefix(taken);
    }
    return out;
  }

 private:
  uint32_t unit(size_t i) const { return i < units_.size() ? units_[i] : 0; }
  static size_t offset(uint32_t unit) { return size_t(unit >> 10) << ((unit & 0x200) >> 6); }

  std::pair<size_t, std::string_view> longest(std::string_view text) const {
    std::pair<size_t, std::string_view> out{0, {}};
    size_t node = offset(unit(0));
    for (size_t i = 0; i < text.size(); i++) {
      const auto byte = uint8_t(text[i]);
      if (byte == 0) break;
      node ^= byte;
      const uint32_t u = unit(node);
      if ((u & 0x800000ff) != byte) break;  // the label, of which leaves have the highest bit
      node ^= offset(u);
      if (u & 0x100) out = {i + 1, text_at(unit(node) & 0x7fffffff)};
    }
    return out;
  }
  std::string_view text_at(size_t at) const {
    if (at >= texts_.size()) return {};
    const std::string_view rest = std::string_view(texts_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace

TextStep normal_form(NormalForm form) {
  return [form](const std::string& text) { return normalized(text, form); };
}

TextStep lowercase() {
  return [](const std::string& text) { return lowercased(text); };
}

TextStep strip_marks() {
  return [](const std::string& text) { return without_marks(text); };
}

TextStep strip_spaces(bool left, bool right) {
  return [left, right](const std::string& text) {
    size_t begin = text.size(), end = 0;  // of what is no space
    for (size_t at = 0; at < text.size();) {
      const Utf8Character c = next_character(std::string_view(text).substr(at));
      if (!is_space(c.code)) {
        begin = std::min(begin, at);
        end = at + c.bytes;
      }
      at += c.bytes;
    }
    if (!left) begin = 0;
    if (!right) end = text.size();
    return begin < end ? text.substr(begin, end - begin) : std::string();
  };
}

TextStep prepend(std::string prefix) {
  return [prefix = std::move(prefix)](const std::string& text) {
    return text.empty() ? text : prefix + text;
  };
}

TextStep replace(std::string what, std::string by) {
  if (what.empty()) return [](std::string text) { return text; };
  return [what = std::move(what), by = std::move(by)](const std::string& text) {
    return replaced(text, what, by);
  };
}

TextStep replace(Regex what, std::string by) {
  return [what = std::move(what), by = std::move(by)](const std::string& text) {
    std::string out;
    size_t at = 0;
    what.each_match(text, [&](size_t begin, size_t end) {
      out.append(text, at, begin - at);
      out += by;
      at = end;
    });
    return out.append(text, at);
  };
}

TextStep english_spacing() {
  // Those of the package tokenizers, in its order.
  constexpr std::pair<const char*, const char*> kPairs[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  std::vector<TextStep> steps;
  for (const auto& [what, by] : kPairs) steps.push_back(replace(std::string(what), by));
  return in_order(std::move(steps));
}

TextStep in_order(std::vector<TextStep> steps) {
  return [steps = std::move(steps)](std::string text) {
    for (const TextStep& step : steps) text = step(std::move(text));
    return text;
  };
}

TextStep bert(BertOptions options) {
  return [options](std::string text) {
    if (options.clean || options.ideographs) text = bert_cleaned(text, options);
    if (options.strip_accents) text = without_marks(normalized(text, NormalForm::NFD));
    return options.lowercase ? lowercased(text) : text;
  };
}

TextStep sentence_piece_spaces(SpaceOptions options) {
  return [options](const std::string& text) { return with_visible_spaces(text, options); };
}

TextStep charsmap(std::string_view table) {
  return [map = std::make_shared<const Charsmap>(table)](const std::string& text) {
    return (*map)(text);
  };
}

}  // namespace tuff::text
