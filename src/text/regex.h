// Regular expressions of tokenizers, by PCRE2: Unicode classes, lookahead, and an end of patience.
// Called by normalizers and pre-tokenizers. Must never know of vocabularies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace tuff::text {

// Immutable; any thread may match.
class Regex {
 public:
  // InvalidArgument naming the pattern, the place and the reason.
  explicit Regex(const std::string& pattern);
  const std::string& pattern() const { return pattern_; }
  // Each match from left to right, as begin and end in the text, which ends where it ends: what
  // follows in a longer text is not seen. Bytes that are no UTF-8 are in no match. InvalidArgument
  // naming the pattern where matching takes too many steps.
  void each_match(std::string_view text,
                  const std::function<void(size_t begin, size_t end)>& found) const;

 private:
  std::string pattern_;
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace tuff::text
