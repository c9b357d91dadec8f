// The values of templates: what JSON has, and what Jinja adds to it. Values do not change, so that
// copies share; a namespace alone does. Called by the evaluator, filters and methods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tuff::text::jinja {

inline constexpr size_t kMaxDepth = 100;

class Value;
using Values = std::vector<Value>;

// What a template names and nothing is: empty where it is printed, an error where it is used.
struct Undefined {
  std::string what = "a value";  // "'x'"
};
struct None {};
struct Text {
  std::shared_ptr<const std::string> text;
  bool markup = false;  // marked as safe: what is added to it is escaped
};
struct List {
  std::shared_ptr<const Values> items;
  bool tuple = false;
  size_t depth = 1;
  bool generator = false;  // what map() gives: something to go over, without a length
};
// In the order of insertion.
struct Dict {
  std::shared_ptr<const std::vector<std::pair<Value, Value>>> items;
  size_t depth = 1;
};
struct Namespace {
  std::shared_ptr<std::vector<std::pair<std::string, Value>>> items;
};
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};
struct Function {
  std::string name;
  std::shared_ptr<const std::function<Value(const Arguments&)>> call;
  size_t depth = 0;  // of what it holds
};

class Value {
 public:
  Value() : v_(None{}) {}
  Value(bool b) : v_(b) {}
  Value(int64_t i) : v_(i) {}
  Value(double d) : v_(d) {}
  Value(std::string s, bool markup = false)
      : v_(Text{std::make_shared<const std::string>(std::move(s)), markup}) {}
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(const char* s) : Value(std::string(s)) {}
  static Value generator(Values items);
  // InvalidArgument for lists and dicts inside of one another beyond kMaxDepth.
  Value(Values items, bool tuple = false);
  Value(std::vector<std::pair<Value, Value>> items);
  Value(Undefined u) : v_(std::move(u)) {}
  Value(Namespace n) : v_(std::move(n)) {}
  Value(Function f) : v_(std::move(f)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&v_);
  }
  template <class T>
  bool is() const {
    return as<T>() != nullptr;
  }
  const std::string* text() const { return is<Text>() ? as<Text>()->text.get() : nullptr; }
  bool is_markup() const { return is<Text>() && as<Text>()->markup; }
  const Values* list() const { return is<List>() ? as<List>()->items.get() : nullptr; }
  const std::vector<std::pair<Value, Value>>* dict() const {
    return is<Dict>() ? as<Dict>()->items.get() : nullptr;
  }
  size_t depth() const;  // of lists and dicts inside of one another
  // Of a dict, by key; null where it is not there.
  const Value* find(const Value& key) const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, Text, List, Dict, Namespace, Function> v_;
};
using Pairs = std::vector<std::pair<Value, Value>>;

// As Python has them. What is no number: nothing.
bool truth(const Value& v);
bool equal(const Value& a, const Value& b);
bool is_number(const Value& v);
double to_double(const Value& v);
// Below 0, 0 or above. InvalidArgument for values that have no order.
int compare(const Value& a, const Value& b);
const char* type_name(const Value& v);    // "str"
std::string printed(const Value& v);      // str()
std::string represented(const Value& v);  // repr()
std::string escaped(std::string_view html);

struct JsonOptions {
  bool ascii = false, sorted = false;
  int indent = -1;  // -1: one line
  std::string between = ", ", behind_key = ": ";
};
// InvalidArgument for what JSON has not.
std::string to_json(const Value& v, const JsonOptions& options);
// InvalidArgument for what is nested too deep.
Value from_json(const nlohmann::ordered_json& json);

}  // namespace tuff::text::jinja
