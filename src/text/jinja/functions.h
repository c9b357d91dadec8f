// What templates call: filters, tests and methods, as Jinja and Python have them. Called by the
// evaluator. Must never know of statements.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/value.h"

namespace tuff::text::jinja {

// What functions ask of whoever evaluates. What they throw names neither line nor template.
class Host {
 public:
  virtual ~Host() = default;
  // Before so many bytes or values are made: InvalidArgument where a template has used up its
  // share.
  virtual void charge(size_t amount) = 0;
};

Value apply_filter(Host& host, std::string_view name, const Value& value, const Arguments& args);
bool apply_test(Host& host, std::string_view name, const Value& value, const Arguments& args);
// obj.name: a method, an item of a dict or namespace; else Undefined.
Value attribute(Host& host, const Value& object, const std::string& name);
// obj[key]
Value item(Host& host, const Value& object, const Value& key);
Value slice(Host& host, const Value& object, const Value& begin, const Value& end,
            const Value& step);
Value binary(Host& host, std::string_view op, const Value& a, const Value& b);
bool is_in(Host& host, const Value& item, const Value& container);
// What a loop goes over. InvalidArgument for what cannot be iterated.
Values iterated(Host& host, const Value& value);
size_t length_of(const Value& value);  // InvalidArgument for what has none

// Arguments by the names of parameters; null where none is given. InvalidArgument naming the
// function for more, unknown ones and those that are given twice.
std::vector<const Value*> bound(std::string_view function, const Arguments& args,
                                const std::vector<std::string_view>& parameters);
[[noreturn]] void refuse_undefined(const Undefined& value);
int64_t whole_number(std::string_view function, const Value& value);
const std::string& text_of(std::string_view function, const Value& value);
std::vector<std::string_view> characters(std::string_view text);
std::string stripped(std::string_view text, const std::string* characters, bool left, bool right);
std::string replaced(Host& host, std::string_view text, std::string_view what, std::string_view by,
                     int64_t count);

}  // namespace tuff::text::jinja
