// CText: the statements of a C function, and the variables that hold its values. Called by CBody.
// Must never know UOps.
#pragma once

#include <string>
#include <unordered_map>

namespace tuff::render {

class CText {
 public:
  void begin_op(size_t i);  // whose number names the variables from here on
  void begin_function(const std::string& arguments);  // "(...)"
  std::string function();                             // all of it: the last brace closes it
  void line(const std::string& text);                 // indented by the braces before it
  // A variable of the current op holding `expr`; the same expression gives the same variable.
  std::string define(const std::string& type, const std::string& expr);
  std::string fresh();  // the name of a variable, to declare
  void begin_block();   // statements from here on only compute, until a brace or the next one
  void order_block(const std::string& type);  // c_late.h

 private:
  std::string text_;
  size_t block_ = 0;  // where in text_ the current one begins
  int indent_ = 1;
  size_t op_ = 0;
  int variables_ = 0;                                     // of the op
  std::unordered_map<std::string, std::string> defined_;  // expression -> variable, of the op
};

}  // namespace tuff::render
