#include "render/c_text.h"

#include <fmt/format.h>

#include "base/check.h"
#include "render/c_late.h"

namespace tuff::render {

void CText::begin_op(size_t i) {
  op_ = i;
  variables_ = 0;
  defined_.clear();
}

void CText::begin_function(const std::string& arguments) { text_ = arguments + " {\n"; }

std::string CText::function() {
  TUFF_CHECK(indent_ == 1, "a brace of C is not closed");
  return text_ + "}\n";
}

void CText::line(const std::string& text) {
  if (text.front() == '}') --indent_;
  text_.append(static_cast<size_t>(indent_) * 2, ' ');
  text_ += text;
  text_ += '\n';
  if (text.back() == '{') ++indent_;
  if (text.back() == '{' || text.back() == '}') begin_block();
}

std::string CText::define(const std::string& type, const std::string& expr) {
  auto [it, is_new] = defined_.try_emplace(type + " " + expr);
  if (!is_new) return it->second;
  it->second = variables_ == 0 ? fmt::format("v{}", op_) : fmt::format("v{}_{}", op_, variables_);
  ++variables_;
  // Not const: clang (14, 19) evaluates what a const variable begins with again wherever it is
  // read, and what that reads, so that a chain of choices takes twice as long for each of its
  // steps.
  line(fmt::format("{} {} = {};", type, it->second, expr));
  return it->second;
}

std::string CText::fresh() { return fmt::format("v{}_{}", op_, variables_++); }

void CText::begin_block() { block_ = text_.size(); }

void CText::order_block(const std::string& type) {
  const std::string block = text_.substr(block_);
  text_.resize(block_);
  text_ += values_at_first_use(block, type);
}

}  // namespace tuff::render
