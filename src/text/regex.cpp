#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include "base/check.h"
#include "base/utf8.h"

namespace tuff::text {
namespace {

// Steps of backtracking for a match. Few matches need more than a few; those that do (a long run of
// spaces that ends without a newline) are tried again with the large limit, which so many of a text
// may be.
constexpr uint32_t kSteps = 10'000, kManySteps = 20'000'000;
constexpr size_t kLongMatches = 64, kBytesPerLongMatch = 10'000;
constexpr uint32_t kHeapKiB = 256 * 1024;

std::string message(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What one thread needs to match.
class Matcher {
 public:
  Matcher(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        checked_(is_utf8(text) ? PCRE2_NO_UTF_CHECK : 0),
        long_matches_(kLongMatches + text.size() / kBytesPerLongMatch),
        context_(pcre2_match_context_create(nullptr)),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)) {
    TUFF_CHECK(context_ && data_, "no memory for matching");
    pcre2_set_heap_limit(context_.get(), kHeapKiB);
  }
  // Whether there is a match from `from` on.
  bool find(size_t from, uint32_t options, const std::string& pattern) {
    pcre2_set_match_limit(context_.get(), kSteps);
    int result = match(from, options);
    if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_JIT_STACKLIMIT) {
      pcre2_set_match_limit(context_.get(), kManySteps);
      if (long_matches_ > 0) {
        long_matches_--;
        result = match(from, options | PCRE2_NO_JIT);
      }
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0)
      fail<InvalidArgument>(
          "tokenizer: matching '{:.200}' at byte {} of {} was given up: {}; cut the text", pattern,
          from, text_.size(), message(result));
    return true;
  }
  size_t begin() const { return pcre2_get_ovector_pointer(data_.get())[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(data_.get())[1]; }

 private:
  int match(size_t from, uint32_t options) {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       options | checked_, data_.get(), context_.get());
  }
  struct Free {
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };
  const pcre2_code* code_;
  std::string_view text_;
  uint32_t checked_;
  size_t long_matches_;
  std::unique_ptr<pcre2_match_context, Free> context_;
  std::unique_ptr<pcre2_match_data, Free> data_;
};

}  // namespace

Regex::Regex(const std::string& pattern) : pattern_(pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF |
                                       PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY,
                                   &error, &at, nullptr);
  if (!code)
    fail<InvalidArgument>("tokenizer: the regular expression '{:.200}' is wrong at byte {}: {}",
                          pattern, at, message(error));
  code_ = std::shared_ptr<pcre2_code>(code, pcre2_code_free);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is none, matching is interpreted
}

void Regex::each_match(std::string_view text,
                       const std::function<void(size_t begin, size_t end)>& found) const {
  Matcher matcher(code_.get(), text);
  size_t at = 0;
  bool again = false;  // behind an empty match: another one at this place is none
  while (at <= text.size()) {
    const uint32_t options = again ? PCRE2_NOTEMPTY_ATSTART : 0;
    if (!matcher.find(at, options, pattern_)) break;
    found(matcher.begin(), matcher.end());
    again = matcher.begin() == matcher.end();
    at = matcher.end();
  }
}

}  // namespace tuff::text
