#include "text/grammar/pattern.h"

#include "base/check.h"
#include "text/grammar/code_reader.h"

namespace tuff::text::grammar {
namespace {

using Ranges = std::vector<CharacterRange>;

class PatternReader {
 public:
  explicit PatternReader(const std::string& pattern)
      : pattern_(pattern), in_(fmt::format("the pattern '{:.80}'", pattern), pattern) {}
  Expression read() {
    Expression out = alternatives(0);
    if (!in_.at_end()) in_.refuse("the end was wanted");
    return out;
  }

 private:
  [[noreturn]] void unsupported(std::string_view what) const {
    fail<Unsupported>(
        "the pattern '{:.80}' has {}: characters, sets, groups, |, * + ? {{n,m}} and ^ $ at its ends "
        "are known",
        pattern_, what);
  }
  Expression alternatives(int depth) {
    if (depth > kMaxDepth) in_.refuse(fmt::format("groups go deeper than {}", kMaxDepth));
    std::vector<Expression> out;
    do {
      out.push_back(items(depth));
    } while (in_.take_if('|'));
    return choice(std::move(out));
  }
  Expression items(int depth) {
    std::vector<Expression> out;
    const Expression anything = repeated(all_but({}), 0);
    if (!in_.take_if('^') && depth == 0) out.push_back(anything);
    bool ended = false;
    while (!in_.at_end() && in_.peek() != '|' && in_.peek() != ')') {
      if (ended) unsupported("$ within");
      if (in_.take_if('$')) {
        if (depth > 0) unsupported("$ within");
        ended = true;
        continue;
      }
      out.push_back(in_.counted(item(depth)));
      in_.take_if('?');  // of few matches: the same texts
    }
    if (!ended && depth == 0) out.push_back(anything);
    return sequence(std::move(out));
  }
  Expression item(int depth) {
    const uint32_t c = in_.take();
    switch (c) {
      case '.': return all_but({{'\n', '\n'}, {'\r', '\r'}});
      case '[': return in_.set([this] { return escaped(); });
      case '(': return group(depth);
      case '\\': return characters(escaped());
      case '^': unsupported("^ within");
      case '*':
      case '+':
      case '?':
      case '{': in_.refuse("something to repeat was wanted");
      default: return characters({{c, c}});
    }
  }
  Expression group(int depth) {
    if (in_.take_text("?=") || in_.take_text("?!") || in_.take_text("?<=") ||
        in_.take_text("?<!"))
      unsupported("a look ahead or behind");
    if (in_.take_text("?<")) {
      while (in_.take() != '>') {}
    } else if (!in_.take_text("?:") && in_.take_if('?')) {
      in_.refuse("a group of a kind that is not known");
    }
    Expression inside = alternatives(depth + 1);
    if (!in_.take_if(')')) in_.refuse(") was wanted");
    return inside;
  }
  Ranges escaped() {
    static const Ranges kDigits{{'0', '9'}};
    static const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const Ranges kSpace{{'\t', '\r'}, {' ', ' '}};
    const uint32_t c = in_.peek();
    const auto known = [&](const Ranges& r) { return in_.take(), r; };
    switch (c) {
      case 'd': return known(kDigits);
      case 'w': return known(kWord);
      case 's': return known(kSpace);
      case 'D': return known(all_but(kDigits).ranges);
      case 'W': return known(all_but(kWord).ranges);
      case 'S': return known(all_but(kSpace).ranges);
      case 'f': return known({{'\f', '\f'}});
      case 'v': return known({{'\v', '\v'}});
      case 'b':
      case 'B':
      case 'p':
      case 'P':
      case 'k': unsupported(fmt::format("\\{}", char(c)));
      default: break;
    }
    if (c >= '1' && c <= '9') unsupported("a reference to a group");
    return {in_.escaped_range()};
  }

  const std::string& pattern_;
  CodeReader in_;
};

}  // namespace

Expression read_pattern(const std::string& pattern) { return PatternReader(pattern).read(); }

}  // namespace tuff::text::grammar
