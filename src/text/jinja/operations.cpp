// Operators of templates, and access to parts of values.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "text/jinja/functions.h"
#include "text/unicode.h"

namespace tuff::text::jinja {
namespace {

std::optional<int64_t> as_whole(const Value& v) {
  if (const auto* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<int64_t>()) return *i;
  return std::nullopt;
}

[[noreturn]] void refuse_operands(std::string_view op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (const auto* u = v->as<Undefined>()) refuse_undefined(*u);
  fail<InvalidArgument>("unsupported operand types for {}: '{}' and '{}'", op, type_name(a),
                        type_name(b));
}

int64_t floored(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Value whole_result(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool beyond = false;
  if (op == "+") beyond = __builtin_add_overflow(a, b, &out);
  if (op == "-") beyond = __builtin_sub_overflow(a, b, &out);
  if (op == "*") beyond = __builtin_mul_overflow(a, b, &out);
  if (op == "//" || op == "%") {
    if (b == 0) fail<InvalidArgument>("division by zero");
    beyond = a == INT64_MIN && b == -1;
    if (!beyond) out = op == "%" ? a - floored(a, b) * b : floored(a, b);
  }
  if (beyond) fail<InvalidArgument>("{} {} {} is beyond 64 bits", a, op, b);
  return out;
}

Value power(const Value& a, const Value& b) {
  const auto x = as_whole(a), n = as_whole(b);
  if (!x || !n || *n < 0) return std::pow(to_double(a), to_double(b));
  int64_t out = 1;
  for (int64_t i = 0; i < *n && out != 0 && (*x != 1); i++) {
    if (i > 128 || __builtin_mul_overflow(out, *x, &out))
      fail<InvalidArgument>("{} ** {} is beyond 64 bits", *x, *n);
  }
  return out;
}

Value numeric(std::string_view op, const Value& a, const Value& b) {
  if (op == "**") return power(a, b);
  const auto x = as_whole(a), y = as_whole(b);
  if (x && y && op != "/") return whole_result(op, *x, *y);
  const double p = to_double(a), q = to_double(b);
  if (op == "+") return p + q;
  if (op == "-") return p - q;
  if (op == "*") return p * q;
  if (q == 0) fail<InvalidArgument>("division by zero");
  if (op == "/") return p / q;
  const double floor = std::floor(p / q);
  return op == "//" ? floor : p - floor * q;
}

// text % arguments, of the conversions s, d, i, f, r, x and %.
std::string formatted(Host& host, const std::string& format, const Value& arguments) {
  const bool tuple = arguments.is<List>() && arguments.as<List>()->tuple;
  const Values values = tuple ? *arguments.list() : Values{arguments};
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); i++) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    size_t end = format.find_first_not_of("0123456789.+- #", ++i);
    if (end == std::string::npos) fail<InvalidArgument>("incomplete format '{:.80}'", format);
    std::string flags = format.substr(i, end - i);
    const char kind = format[i = end];
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (next == values.size()) fail<InvalidArgument>("not enough arguments for format string");
    const Value& v = values[next++];
    if (flags.size() > 6) fail<InvalidArgument>("a format's width is '{:.20}'", flags);
    const bool left = flags.starts_with('-');
    if (kind == 's' || kind == 'r') {
      if (left)
        flags[0] = '<';
      else if (!flags.empty() && flags[0] != '.')
        flags.insert(0, 1, '>');
      out +=
          fmt::format(fmt::runtime("{:" + flags + "}"), kind == 's' ? printed(v) : represented(v));
    } else if (std::string_view("dixXfFeEgG").find(kind) != std::string_view::npos &&
               is_number(v)) {
      if (left) flags[0] = '<';
      const bool whole = kind == 'd' || kind == 'i' || kind == 'x' || kind == 'X';
      const std::string spec = "{:" + flags + (kind == 'i' ? 'd' : kind) + "}";
      out += whole ? fmt::format(fmt::runtime(spec), int64_t(to_double(v)))
                   : fmt::format(fmt::runtime(spec), to_double(v));
    } else {
      fail<InvalidArgument>("the format '%{}' does not take {}", kind, type_name(v));
    }
    host.charge(out.size() / 16);
  }
  if (tuple && next < values.size())
    fail<InvalidArgument>("not all arguments converted during string formatting");
  return out;
}

Value repeated(Host& host, const Value& value, int64_t n) {
  n = std::max<int64_t>(n, 0);
  if (const auto* t = value.text()) {
    if (n > 0 && t->size() > SIZE_MAX / size_t(n)) fail<InvalidArgument>("a text is too long");
    host.charge(t->size() * size_t(n));
    std::string out;
    for (int64_t i = 0; i < n && !t->empty(); i++) out += *t;
    return Value(std::move(out), value.is_markup());
  }
  host.charge(value.list()->size() * size_t(n) * sizeof(Value));
  Values out;
  for (int64_t i = 0; i < n && !value.list()->empty(); i++)
    out.insert(out.end(), value.list()->begin(), value.list()->end());
  return Value(std::move(out), value.as<List>()->tuple);
}

Value added_texts(Host& host, const Value& a, const Value& b) {
  host.charge(a.text()->size() + b.text()->size());
  if (!a.is_markup() && !b.is_markup()) return *a.text() + *b.text();
  return Value((a.is_markup() ? *a.text() : escaped(*a.text())) +
                   (b.is_markup() ? *b.text() : escaped(*b.text())),
               true);
}

// A place of a slice within 0 to n (or -1 to n - 1 where it goes backwards).
int64_t slice_place(const Value& v, int64_t n, int64_t otherwise, bool backwards) {
  if (v.is<None>()) return otherwise;
  int64_t at = whole_number("slice", v);
  if (at < 0) at += n;
  return std::clamp<int64_t>(at, backwards ? -1 : 0, backwards ? n - 1 : n);
}

}  // namespace

void refuse_undefined(const Undefined& value) {
  fail<InvalidArgument>("{} is undefined", value.what);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t bytes = next_character(text).bytes;
    out.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

size_t length_of(const Value& v) {
  if (const auto* t = v.text()) return characters(*t).size();
  if (v.list() && !v.as<List>()->generator) return v.list()->size();
  if (const auto* d = v.dict()) return d->size();
  if (v.is<Undefined>()) return 0;
  fail<InvalidArgument>("object of type '{}' has no length", type_name(v));
}

Values iterated(Host& host, const Value& v) {
  Values out;
  if (const auto* l = v.list()) {
    host.charge(l->size() * sizeof(Value));
    return *l;
  }
  if (const auto* d = v.dict()) {
    host.charge(d->size() * sizeof(Value));
    for (const auto& [key, item] : *d) out.push_back(key);
  } else if (const auto* t = v.text()) {
    host.charge(t->size() * sizeof(Value));
    for (const std::string_view c : characters(*t)) out.emplace_back(c);
  } else if (!v.is<Undefined>()) {
    fail<InvalidArgument>("'{}' object is not iterable", type_name(v));
  }
  return out;
}

Value item(Host& host, const Value& object, const Value& key) {
  if (const auto* u = object.as<Undefined>()) refuse_undefined(*u);
  if (object.dict()) {
    if (const Value* v = object.find(key)) return *v;
  } else if (const auto at = as_whole(key);
             at && (object.text() || (object.list() && !object.as<List>()->generator))) {
    const auto n = int64_t(length_of(object));
    const int64_t i = *at < 0 ? *at + n : *at;
    if (i >= 0 && i < n)
      return object.list() ? (*object.list())[size_t(i)]
                           : Value(characters(*object.text())[size_t(i)]);
  }
  if (key.text()) return attribute(host, object, *key.text());
  return Undefined{fmt::format("{} object's item {:.80}", type_name(object), represented(key))};
}

Value slice(Host& host, const Value& object, const Value& begin, const Value& end,
            const Value& step) {
  if (const auto* u = object.as<Undefined>()) refuse_undefined(*u);
  if (!object.text() && !object.list())
    fail<InvalidArgument>("'{}' object cannot be sliced", type_name(object));
  const int64_t by = step.is<None>() ? 1 : whole_number("slice", step);
  if (by == 0) fail<InvalidArgument>("slice step cannot be zero");
  const Values items = iterated(host, object);
  const auto n = int64_t(items.size());
  const int64_t from = slice_place(begin, n, by > 0 ? 0 : n - 1, by < 0);
  const int64_t to = slice_place(end, n, by > 0 ? n : -1, by < 0);
  Values out;
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    out.push_back(items[size_t(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (object.list()) return Value(std::move(out), object.as<List>()->tuple);
  std::string text;
  for (const Value& c : out) text += *c.text();
  return Value(std::move(text), object.is_markup());
}

bool is_in(Host& host, const Value& item, const Value& container) {
  if (const auto* t = container.text()) {
    if (!item.text())
      fail<InvalidArgument>("'in <string>' requires string as left operand, not {}",
                            type_name(item));
    host.charge(t->size() / 16);
    return t->find(*item.text()) != std::string::npos;
  }
  if (container.dict()) return container.find(item) != nullptr;
  if (const auto* l = container.list()) {
    host.charge(l->size());
    return std::ranges::any_of(*l, [&](const Value& v) { return equal(v, item); });
  }
  if (container.is<Undefined>()) return false;
  fail<InvalidArgument>("argument of type '{}' is not iterable", type_name(container));
}

Value binary(Host& host, std::string_view op, const Value& a, const Value& b) {
  if (op == "%" && a.text()) return formatted(host, *a.text(), b);
  if (is_number(a) && is_number(b)) return numeric(op, a, b);
  if (op == "+" && a.text() && b.text()) return added_texts(host, a, b);
  if (op == "+" && a.list() && b.list() && a.as<List>()->tuple == b.as<List>()->tuple) {
    host.charge((a.list()->size() + b.list()->size()) * sizeof(Value));
    Values out = *a.list();
    out.insert(out.end(), b.list()->begin(), b.list()->end());
    return Value(std::move(out), a.as<List>()->tuple);
  }
  if (op == "*") {
    if (const auto n = as_whole(b); n && (a.text() || a.list())) return repeated(host, a, *n);
    if (const auto n = as_whole(a); n && (b.text() || b.list())) return repeated(host, b, *n);
  }
  refuse_operands(op, a, b);
}

std::vector<const Value*> bound(std::string_view function, const Arguments& args,
                                const std::vector<std::string_view>& parameters) {
  std::vector<const Value*> out(parameters.size());
  if (args.positional.size() > out.size())
    fail<InvalidArgument>("{}() takes {} arguments at most, {} are given", function, out.size(),
                          args.positional.size());
  for (size_t i = 0; i < args.positional.size(); i++) out[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto it = std::ranges::find(parameters, name);
    if (it == parameters.end()) fail<InvalidArgument>("{}() has no parameter '{}'", function, name);
    const Value*& place = out[size_t(it - parameters.begin())];
    if (place) fail<InvalidArgument>("{}() is given '{}' twice", function, name);
    place = &value;
  }
  return out;
}

int64_t whole_number(std::string_view function, const Value& value) {
  if (const auto n = as_whole(value)) return *n;
  fail<InvalidArgument>("{}: a whole number is wanted instead of {}", function, type_name(value));
}

const std::string& text_of(std::string_view function, const Value& value) {
  if (const auto* u = value.as<Undefined>()) refuse_undefined(*u);
  if (const auto* t = value.text()) return *t;
  fail<InvalidArgument>("{}: a text is wanted instead of {}", function, type_name(value));
}

}  // namespace tuff::text::jinja
