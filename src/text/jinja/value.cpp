#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/unicode.h"

namespace tuff::text::jinja {
namespace {

// repr() of a float: the shortest digits that are this number.
std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char digits[64];
  const auto [end, error] =
      std::to_chars(digits, digits + sizeof digits, d, std::chars_format::scientific);
  const std::string_view text(digits, size_t(end - digits));
  const int exponent = std::stoi(std::string(text.substr(text.find('e') + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto [fixed_end, fixed_error] =
      std::to_chars(digits, digits + sizeof digits, d, std::chars_format::fixed);
  std::string fixed(digits, size_t(fixed_end - digits));
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

// repr() of a str.
std::string python_literal(std::string_view text) {
  const bool single =
      text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  while (!text.empty()) {
    const Utf8Character c = next_character(text);
    if (c.code == uint32_t(quote) || c.code == '\\') {
      out += '\\';
      out += char(c.code);
    } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t";
    } else if (is_control(c.code) || (c.code != ' ' && is_space(c.code))) {
      out += c.code < 0x100     ? fmt::format("\\x{:02x}", c.code)
             : c.code < 0x10000 ? fmt::format("\\u{:04x}", c.code)
                                : fmt::format("\\U{:08x}", c.code);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out + quote;
}

std::string json_text(std::string_view text, bool ascii) {
  std::string out = "\"";
  while (!text.empty()) {
    const Utf8Character c = next_character(text);
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kBy = "\"\\nrtbf";
    const size_t at = c.code < 0x80 ? kEscaped.find(char(c.code)) : std::string_view::npos;
    if (at != std::string_view::npos) {
      out += '\\';
      out += kBy[at];
    } else if (c.code < 0x20 || (ascii && c.code >= 0x7f && c.code < 0x10000)) {
      c.code == 0x7f ? out += char(c.code) : out += fmt::format("\\u{:04x}", c.code);
    } else if (ascii && c.code >= 0x10000) {
      const uint32_t rest = c.code - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out + '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonOptions& options) : options_(options) {}
  std::string write(const Value& v) {
    add(v);
    return std::move(out_);
  }

 private:
  void add(const Value& v) {
    if (const auto* t = v.text()) {
      out_ += json_text(*t, options_.ascii);
    } else if (const auto* l = v.list(); l && !v.as<List>()->generator) {
      add_all('[', *l, ']', [this](const Value& item) { add(item); });
    } else if (v.dict()) {
      add_dict(v);
    } else {
      out_ += scalar(v);
    }
  }
  static std::string scalar(const Value& v) {
    if (v.is<None>()) return "null";
    if (const auto* b = v.as<bool>()) return *b ? "true" : "false";
    if (const auto* i = v.as<int64_t>()) return std::to_string(*i);
    const auto* d = v.as<double>();
    if (!d)
      fail<InvalidArgument>("tojson: Object of type {} is not JSON serializable", type_name(v));
    if (std::isnan(*d)) return "NaN";
    if (std::isinf(*d)) return *d < 0 ? "-Infinity" : "Infinity";
    return float_text(*d);
  }
  void add_dict(const Value& v) {
    Pairs pairs = *v.dict();
    if (options_.sorted)
      std::ranges::stable_sort(
          pairs, [](const auto& a, const auto& b) { return compare(a.first, b.first) < 0; });
    add_all('{', pairs, '}', [this](const std::pair<Value, Value>& pair) {
      const auto* key = pair.first.text();
      out_ += json_text(key ? *key : scalar(pair.first), options_.ascii);
      out_ += options_.behind_key;
      add(pair.second);
    });
  }
  template <class Items, class F>
  void add_all(char open, const Items& items, char close, F&& each) {
    out_ += open;
    depth_++;
    for (size_t i = 0; i < items.size(); i++) {
      if (i > 0) out_ += options_.between;
      new_line();
      each(items[i]);
    }
    depth_--;
    if (!items.empty()) new_line();
    out_ += close;
  }
  void new_line() {
    if (options_.indent < 0) return;
    out_ += '\n';
    out_.append(depth_ * size_t(options_.indent), ' ');
  }
  const JsonOptions& options_;
  std::string out_;
  size_t depth_ = 0;
};

void represent(const Value& v, std::string& out) {
  if (const auto* t = v.text()) {
    out += python_literal(*t);
  } else if (v.list() && v.as<List>()->generator) {
    out += "<generator object>";
  } else if (const auto* l = v.list()) {
    const bool tuple = v.as<List>()->tuple;
    out += tuple ? '(' : '[';
    for (size_t i = 0; i < l->size(); i++) {
      if (i > 0) out += ", ";
      represent((*l)[i], out);
    }
    if (tuple && l->size() == 1) out += ',';
    out += tuple ? ')' : ']';
  } else if (const auto* d = v.dict()) {
    out += '{';
    for (size_t i = 0; i < d->size(); i++) {
      if (i > 0) out += ", ";
      represent((*d)[i].first, out);
      out += ": ";
      represent((*d)[i].second, out);
    }
    out += '}';
  } else if (v.is<Undefined>()) {
    out += "Undefined";
  } else {
    out += printed(v);
  }
}

Value converted(const nlohmann::ordered_json& json, size_t depth) {
  if (depth > kMaxDepth) fail<InvalidArgument>("JSON is nested deeper than {}", kMaxDepth);
  switch (json.type()) {
    case nlohmann::detail::value_t::boolean: return json.get<bool>();
    case nlohmann::detail::value_t::number_integer: return json.get<int64_t>();
    case nlohmann::detail::value_t::number_unsigned: {
      const auto n = json.get<uint64_t>();
      return n <= uint64_t(INT64_MAX) ? Value(int64_t(n)) : Value(double(n));
    }
    case nlohmann::detail::value_t::number_float: return json.get<double>();
    case nlohmann::detail::value_t::string: return json.get<std::string>();
    case nlohmann::detail::value_t::array: {
      Values items;
      for (const auto& item : json) items.push_back(converted(item, depth + 1));
      return items;
    }
    case nlohmann::detail::value_t::object: {
      Pairs pairs;
      for (const auto& [key, item] : json.items())
        pairs.emplace_back(Value(key), converted(item, depth + 1));
      return pairs;
    }
    default: return {};
  }
}

void require_depth(size_t depth) {
  if (depth > kMaxDepth)
    fail<InvalidArgument>("lists and mappings nested deeper than {}", kMaxDepth);
}

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

Value::Value(Values items, bool tuple) {
  size_t depth = 0;
  for (const Value& v : items) depth = std::max(depth, v.depth());
  require_depth(depth + 1);
  v_ = List{std::make_shared<const Values>(std::move(items)), tuple, depth + 1};
}

Value Value::generator(Values items) {
  Value out(std::move(items));
  std::get<List>(out.v_).generator = true;
  return out;
}

Value::Value(Pairs items) {
  size_t depth = 0;
  for (const auto& [key, v] : items) depth = std::max({depth, key.depth(), v.depth()});
  require_depth(depth + 1);
  v_ = Dict{std::make_shared<const Pairs>(std::move(items)), depth + 1};
}

size_t Value::depth() const {
  if (const auto* l = as<List>()) return l->depth;
  if (const auto* d = as<Dict>()) return d->depth;
  const auto* f = as<Function>();
  return f ? f->depth : 0;
}

const Value* Value::find(const Value& key) const {
  if (!dict()) return nullptr;
  for (const auto& [k, v] : *dict())
    if (equal(k, key)) return &v;
  return nullptr;
}

bool is_number(const Value& v) { return v.is<bool>() || v.is<int64_t>() || v.is<double>(); }

double to_double(const Value& v) {
  if (const auto* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<int64_t>()) return double(*i);
  const auto* d = v.as<double>();
  return d ? *d : 0;
}

bool truth(const Value& v) {
  if (v.is<Undefined>() || v.is<None>()) return false;
  if (is_number(v)) return to_double(v) != 0;
  if (const auto* t = v.text()) return !t->empty();
  if (const auto* l = v.list()) return !l->empty();
  if (const auto* d = v.dict()) return !d->empty();
  return true;
}

bool equal(const Value& a, const Value& b) {
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (is_number(a) && is_number(b)) {
    if (a.is<double>() || b.is<double>()) return to_double(a) == to_double(b);
    const auto whole = [](const Value& v) {
      return v.is<bool>() ? int64_t(*v.as<bool>()) : *v.as<int64_t>();
    };
    return whole(a) == whole(b);
  }
  if (a.list() && b.list()) {
    return a.as<List>()->tuple == b.as<List>()->tuple &&
           std::ranges::equal(*a.list(), *b.list(), equal);
  }
  if (a.dict() && b.dict()) {
    return a.dict()->size() == b.dict()->size() &&
           std::ranges::all_of(*a.dict(), [&](const auto& pair) {
             const Value* other = b.find(pair.first);
             return other && equal(pair.second, *other);
           });
  }
  if (a.is<Namespace>() && b.is<Namespace>())
    return a.as<Namespace>()->items == b.as<Namespace>()->items;
  return (a.is<None>() && b.is<None>()) || (a.is<Undefined>() && b.is<Undefined>());
}

int compare(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) {
    if (a.is<int64_t>() && b.is<int64_t>()) return order(*a.as<int64_t>(), *b.as<int64_t>());
    return order(to_double(a), to_double(b));
  }
  if (a.text() && b.text()) return order(*a.text(), *b.text());
  if (a.list() && b.list()) {
    for (size_t i = 0; i < std::min(a.list()->size(), b.list()->size()); i++)
      if (const int c = compare((*a.list())[i], (*b.list())[i])) return c;
    return order(a.list()->size(), b.list()->size());
  }
  fail<InvalidArgument>("'<' is not supported between '{}' and '{}'", type_name(a), type_name(b));
}

const char* type_name(const Value& v) {
  if (v.is<Undefined>()) return "Undefined";
  if (v.is<None>()) return "NoneType";
  if (v.is<bool>()) return "bool";
  if (v.is<int64_t>()) return "int";
  if (v.is<double>()) return "float";
  if (v.is<Text>()) return "str";
  if (const auto* l = v.as<List>()) return l->generator ? "generator" : l->tuple ? "tuple" : "list";
  if (v.is<Dict>()) return "dict";
  return v.is<Namespace>() ? "namespace" : "function";
}

std::string printed(const Value& v) {
  if (const auto* t = v.text()) return *t;
  if (v.is<Undefined>()) return "";
  if (v.is<None>()) return "None";
  if (const auto* b = v.as<bool>()) return *b ? "True" : "False";
  if (const auto* i = v.as<int64_t>()) return std::to_string(*i);
  if (const auto* d = v.as<double>()) return float_text(*d);
  if (v.is<Namespace>()) return "<Namespace>";
  if (const auto* f = v.as<Function>()) return "<function " + f->name + ">";
  return represented(v);
}

std::string represented(const Value& v) {
  std::string out;
  represent(v, out);
  return out;
}

std::string escaped(std::string_view html) {
  std::string out;
  for (const char c : html) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string to_json(const Value& v, const JsonOptions& options) {
  return JsonWriter(options).write(v);
}

Value from_json(const nlohmann::ordered_json& json) { return converted(json, 0); }

}  // namespace tuff::text::jinja
