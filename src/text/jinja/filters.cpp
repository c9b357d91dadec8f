// Filters and tests of templates: those of jinja2 that chat templates use.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "text/jinja/functions.h"
#include "text/unicode.h"

namespace tuff::text::jinja {
namespace {

using Bound = std::vector<const Value*>;

bool flag(const Value* v, bool otherwise) { return v ? truth(*v) : otherwise; }

std::string printed_text(const Value& v) { return printed(v); }

// "a.b.0" of an item.
Value path(Host& host, Value v, const Value& attribute_name) {
  if (attribute_name.is<int64_t>()) return item(host, v, attribute_name);
  std::string_view rest = text_of("attribute", attribute_name);
  while (true) {
    const size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    v = item(host, v, number && part.size() < 10 ? Value(int64_t(std::stoi(part))) : Value(part));
    if (dot == std::string_view::npos) return v;
    rest.remove_prefix(dot + 1);
  }
}

Value lower(Host& host, const Value& v, const Bound&) {
  const std::string text = printed_text(v);
  host.charge(text.size());
  return lowercased(text);
}
Value upper(Host& host, const Value& v, const Bound&) {
  const std::string text = printed_text(v);
  host.charge(text.size());
  return uppercased(text);
}
Value capitalize(Host&, const Value& v, const Bound&) {
  const std::string text = printed_text(v);
  const size_t first = text.empty() ? 0 : next_character(text).bytes;
  return uppercased(text.substr(0, first)) + lowercased(text.substr(first));
}
Value title(Host&, const Value& v, const Bound&) {
  std::string out;
  bool inside = false;
  const std::string text = printed_text(v);
  for (const std::string_view c : characters(text)) {
    out += inside ? lowercased(c) : uppercased(c);
    inside = is_word(next_character(c).code) || c == "'";
  }
  return out;
}
Value trim(Host& host, const Value& v, const Bound& a) {
  const std::string text = printed_text(v);
  host.charge(text.size());
  return stripped(text, a[0] && !a[0]->is<None>() ? &text_of("trim", *a[0]) : nullptr, true, true);
}
Value string(Host&, const Value& v, const Bound&) { return v.text() ? v : Value(printed(v)); }
Value safe(Host&, const Value& v, const Bound&) { return Value(printed(v), true); }
Value escape(Host&, const Value& v, const Bound&) {
  return v.is_markup() ? v : Value(escaped(printed(v)), true);
}
Value length(Host&, const Value& v, const Bound&) { return int64_t(length_of(v)); }
Value list(Host& host, const Value& v, const Bound&) { return iterated(host, v); }

Value otherwise(Host&, const Value& v, const Bound& a) {
  const bool missing = v.is<Undefined>() || (flag(a[1], false) && !truth(v));
  return missing ? (a[0] ? *a[0] : Value("")) : v;
}
Value join(Host& host, const Value& v, const Bound& a) {
  const std::string between = a[0] ? printed(*a[0]) : "";
  std::string out;
  bool first = true;
  for (const Value& item : iterated(host, v)) {
    const std::string text = printed(a[1] ? path(host, item, *a[1]) : item);
    host.charge(text.size() + between.size());
    if (!std::exchange(first, false)) out += between;
    out += text;
  }
  return out;
}
Value items(Host& host, const Value& v, const Bound&) {
  if (v.is<Undefined>()) return Values{};
  if (!v.dict()) fail<InvalidArgument>("items: a mapping is wanted instead of {}", type_name(v));
  return (*attribute(host, v, "items").as<Function>()->call)({});
}
Value first(Host& host, const Value& v, const Bound&) {
  const Values all = iterated(host, v);
  return all.empty() ? Undefined{"the first item of nothing"} : all.front();
}
Value last(Host& host, const Value& v, const Bound&) {
  const Values all = iterated(host, v);
  return all.empty() ? Undefined{"the last item of nothing"} : all.back();
}
Value reverse(Host& host, const Value& v, const Bound&) {
  if (v.text()) return slice(host, v, {}, {}, int64_t{-1});
  Values all = iterated(host, v);
  std::ranges::reverse(all);
  return all;
}
Value replace(Host& host, const Value& v, const Bound& a) {
  if (!a[0] || !a[1]) fail<InvalidArgument>("replace: two arguments are wanted");
  return replaced(host, printed(v), printed(*a[0]), printed(*a[1]),
                  a[2] && !a[2]->is<None>() ? whole_number("replace", *a[2]) : -1);
}

// "Aa" before "Ab", whatever the case, unless it matters.
Value sort_key(Value v, bool case_sensitive) {
  return v.text() && !case_sensitive ? Value(lowercased(*v.text())) : v;
}
template <class Item, class Key>
std::vector<Item> sorted(Host& host, const std::vector<Item>& all, bool backwards, Key&& key) {
  std::vector<std::pair<Value, size_t>> keys;
  for (size_t i = 0; i < all.size(); i++) keys.emplace_back(key(all[i]), i);
  std::ranges::stable_sort(keys, [&](const auto& a, const auto& b) {
    host.charge(1);
    return backwards ? compare(b.first, a.first) < 0 : compare(a.first, b.first) < 0;
  });
  std::vector<Item> out;
  for (const auto& [k, i] : keys) out.push_back(all[i]);
  return out;
}
Value sort(Host& host, const Value& v, const Bound& a) {
  const bool cases = flag(a[1], false);
  return sorted(host, iterated(host, v), flag(a[0], false), [&](const Value& x) {
    return sort_key(a[2] && !a[2]->is<None>() ? path(host, x, *a[2]) : x, cases);
  });
}
Value dictsort(Host& host, const Value& v, const Bound& a) {
  const bool cases = flag(a[0], false);
  const bool by_value = a[1] && text_of("dictsort", *a[1]) == "value";
  if (const auto* u = v.as<Undefined>()) refuse_undefined(*u);
  const Value all = items(host, v, {});
  return sorted(host, *all.list(), flag(a[2], false), [&](const Value& pair) {
    return sort_key((*pair.list())[by_value ? 1 : 0], cases);
  });
}
Value unique(Host& host, const Value& v, const Bound& a) {
  const bool cases = flag(a[0], false);
  Values seen, out;
  for (const Value& x : iterated(host, v)) {
    const Value key = sort_key(a[1] ? path(host, x, *a[1]) : x, cases);
    host.charge(seen.size());
    if (std::ranges::any_of(seen, [&](const Value& s) { return equal(s, key); })) continue;
    seen.push_back(key);
    out.push_back(x);
  }
  return Value::generator(std::move(out));
}
template <int sign>
Value extreme(Host& host, const Value& v, const Bound& a) {
  const Values all = iterated(host, v);
  if (all.empty()) return Undefined{"the extreme of nothing"};
  const auto key = [&](const Value& x) {
    return sort_key(a[1] ? path(host, x, *a[1]) : x, flag(a[0], false));
  };
  const Value* best = &all.front();
  for (const Value& x : all)
    if (compare(key(x), key(*best)) * sign > 0) best = &x;
  return *best;
}
Value sum(Host& host, const Value& v, const Bound& a) {
  Value total = a[1] ? *a[1] : Value(int64_t{0});
  for (const Value& x : iterated(host, v))
    total = binary(host, "+", total, a[0] && !a[0]->is<None>() ? path(host, x, *a[0]) : x);
  return total;
}

Value to_int(Host&, const Value& v, const Bound& a) {
  const Value fallback = a[0] ? *a[0] : Value(int64_t{0});
  if (v.is<int64_t>()) return v;
  if (is_number(v) && std::abs(to_double(v)) < 9e18) return int64_t(to_double(v));
  if (!v.text()) return fallback;
  const std::string text = stripped(*v.text(), nullptr, true, true);
  const char *begin = text.data() + (text.starts_with('+') ? 1 : 0),
             *end = text.data() + text.size();
  int64_t i = 0;
  const int base = a[1] ? int(whole_number("int", *a[1])) : 10;
  if (base < 2 || base > 36) fail<InvalidArgument>("int: a base of {}", base);
  if (const auto [at, error] = std::from_chars(begin, end, i, base);
      error == std::errc() && at == end)
    return i;
  double d = 0;
  if (const auto [at, error] = std::from_chars(begin, end, d);
      error == std::errc() && at == end && std::abs(d) < 9e18)
    return int64_t(d);
  return fallback;
}
Value to_float(Host&, const Value& v, const Bound& a) {
  if (is_number(v)) return to_double(v);
  const Value fallback = a[0] ? *a[0] : Value(0.0);
  if (!v.text()) return fallback;
  const std::string text = stripped(*v.text(), nullptr, true, true);
  double d = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), d);
  return error == std::errc() && at == text.data() + text.size() ? Value(d) : fallback;
}
Value absolute(Host& host, const Value& v, const Bound&) {
  if (!is_number(v)) fail<InvalidArgument>("abs: a number is wanted instead of {}", type_name(v));
  return to_double(v) < 0 ? binary(host, "*", v, int64_t{-1}) : v;
}
Value round(Host&, const Value& v, const Bound& a) {
  if (!is_number(v)) fail<InvalidArgument>("round: a number is wanted instead of {}", type_name(v));
  const double scale = std::pow(10.0, a[0] ? double(whole_number("round", *a[0])) : 0);
  const std::string method = a[1] ? text_of("round", *a[1]) : "common";
  const double x = to_double(v) * scale;
  if (method == "ceil") return std::ceil(x) / scale;
  if (method == "floor") return std::floor(x) / scale;
  return std::nearbyint(x) / scale;
}

// Lines but the first (unless `first`), which do not begin with it, and none that is blank.
Value indent(Host& host, const Value& v, const Bound& a) {
  std::string by = "    ";
  if (a[0]) {
    const int64_t n = a[0]->text() ? 0 : std::max<int64_t>(whole_number("indent", *a[0]), 0);
    host.charge(size_t(n));
    by = a[0]->text() ? *a[0]->text() : std::string(size_t(n), ' ');
  }
  const bool begin = flag(a[1], false), blank = flag(a[2], false);
  std::string out;
  const std::string text = printed(v);
  std::string_view rest = text;
  for (bool first_line = true;; first_line = false) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    host.charge(line.size() + by.size());
    if (first_line ? begin : (blank || !line.empty())) out += by;
    out += line;
    if (end == std::string_view::npos) return Value(std::move(out), v.is_markup());
    out += '\n';
    rest.remove_prefix(end + 1);
  }
}

Value tojson(Host& host, const Value& v, const Bound& a) {
  JsonOptions options;
  options.ascii = flag(a[0], false);
  if (a[1] && !a[1]->is<None>()) {
    options.indent = int(std::clamp<int64_t>(whole_number("tojson", *a[1]), 0, 100));
    options.between = ",";
  }
  if (a[2] && a[2]->list() && a[2]->list()->size() == 2) {
    options.between = text_of("tojson", a[2]->list()->front());
    options.behind_key = text_of("tojson", a[2]->list()->back());
  }
  options.sorted = flag(a[3], false);
  std::string out = to_json(v, options);
  host.charge(out.size());
  return out;
}

// map, select, reject and theirs of attributes: the rest of the arguments is another filter's or
// test's.
Arguments rest_of(const Arguments& args, size_t from) {
  Arguments out;
  out.positional.assign(
      args.positional.begin() + std::ptrdiff_t(std::min(from, args.positional.size())),
      args.positional.end());
  out.named = args.named;
  return out;
}
Value map(Host& host, const Value& v, const Arguments& args) {
  Values out;
  const Value *by = nullptr, *missing = nullptr;
  for (const auto& [name, value] : args.named) {
    if (name == "attribute") by = &value;
    if (name == "default") missing = &value;
  }
  if (!by && args.positional.empty()) fail<InvalidArgument>("map: a filter's name is missing");
  for (const Value& x : truth(v) ? iterated(host, v) : Values()) {
    if (by) {
      Value item = path(host, x, *by);
      out.push_back(item.is<Undefined>() && missing ? *missing : item);
    } else {
      out.push_back(apply_filter(host, text_of("map", args.positional[0]), x, rest_of(args, 1)));
    }
  }
  return Value::generator(std::move(out));
}
template <bool wanted, bool by_attribute>
Value select(Host& host, const Value& v, const Arguments& args) {
  const size_t test = by_attribute ? 1 : 0;
  if (args.positional.size() < test) fail<InvalidArgument>("selectattr: an attribute is missing");
  Values out;
  for (const Value& x : truth(v) ? iterated(host, v) : Values()) {
    const Value subject = by_attribute ? path(host, x, args.positional[0]) : x;
    const bool holds = args.positional.size() > test
                           ? apply_test(host, text_of("select", args.positional[test]), subject,
                                        rest_of(args, test + 1))
                           : truth(subject);
    if (holds == wanted) out.push_back(x);
  }
  return Value::generator(std::move(out));
}

struct Filter {
  std::string_view name;
  std::vector<std::string_view> parameters;
  Value (*call)(Host&, const Value&, const Bound&);
  Value (*call_with_all)(Host&, const Value&, const Arguments&) = nullptr;
};

const std::vector<Filter>& filters() {
  static const std::vector<Filter> rows = {
      {"abs", {}, absolute},
      {"capitalize", {}, capitalize},
      {"count", {}, length},
      {"d", {"default_value", "boolean"}, otherwise},
      {"default", {"default_value", "boolean"}, otherwise},
      {"dictsort", {"case_sensitive", "by", "reverse"}, dictsort},
      {"e", {}, escape},
      {"escape", {}, escape},
      {"first", {}, first},
      {"float", {"default"}, to_float},
      {"indent", {"width", "first", "blank"}, indent},
      {"int", {"default", "base"}, to_int},
      {"items", {}, items},
      {"join", {"d", "attribute"}, join},
      {"last", {}, last},
      {"length", {}, length},
      {"list", {}, list},
      {"lower", {}, lower},
      {"map", {}, nullptr, map},
      {"max", {"case_sensitive", "attribute"}, extreme<1>},
      {"min", {"case_sensitive", "attribute"}, extreme<-1>},
      {"reject", {}, nullptr, select<false, false>},
      {"rejectattr", {}, nullptr, select<false, true>},
      {"replace", {"old", "new", "count"}, replace},
      {"reverse", {}, reverse},
      {"round", {"precision", "method"}, round},
      {"safe", {}, safe},
      {"select", {}, nullptr, select<true, false>},
      {"selectattr", {}, nullptr, select<true, true>},
      {"sort", {"reverse", "case_sensitive", "attribute"}, sort},
      {"string", {}, string},
      {"sum", {"attribute", "start"}, sum},
      {"title", {}, title},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, tojson},
      {"trim", {"chars"}, trim},
      {"unique", {"case_sensitive", "attribute"}, unique},
      {"upper", {}, upper}};
  return rows;
}

int64_t remainder(const Value& v, int64_t by) {
  if (by == 0) fail<InvalidArgument>("division by zero");
  return whole_number("test", v) % by;
}

struct Test {
  std::string_view name;
  bool (*of_value)(const Value&);
  bool (*of_two)(Host&, const Value&, const Value&) = nullptr;
};
constexpr Test kTests[] = {
    {"defined", [](const Value& v) { return !v.is<Undefined>(); }},
    {"undefined", [](const Value& v) { return v.is<Undefined>(); }},
    {"none", [](const Value& v) { return v.is<None>(); }},
    {"string", [](const Value& v) { return v.text() != nullptr; }},
    {"mapping", [](const Value& v) { return v.dict() != nullptr; }},
    {"sequence",
     [](const Value& v) { return v.text() || v.list() || v.dict() || v.is<Undefined>(); }},
    {"iterable",
     [](const Value& v) { return v.text() || v.list() || v.dict() || v.is<Undefined>(); }},
    {"boolean", [](const Value& v) { return v.is<bool>(); }},
    {"true", [](const Value& v) { return v.is<bool>() && *v.as<bool>(); }},
    {"false", [](const Value& v) { return v.is<bool>() && !*v.as<bool>(); }},
    {"integer", [](const Value& v) { return v.is<int64_t>(); }},
    {"float", [](const Value& v) { return v.is<double>(); }},
    {"number", [](const Value& v) { return is_number(v); }},
    {"callable", [](const Value& v) { return v.is<Function>(); }},
    {"lower", [](const Value& v) { return printed(v) == lowercased(printed(v)); }},
    {"upper", [](const Value& v) { return printed(v) == uppercased(printed(v)); }},
    {"odd", [](const Value& v) { return remainder(v, 2) != 0; }},
    {"even", [](const Value& v) { return remainder(v, 2) == 0; }},
    {"divisibleby", nullptr,
     [](Host&, const Value& a, const Value& b) {
       return remainder(a, whole_number("divisibleby", b)) == 0;
     }},
    {"in", nullptr, [](Host& h, const Value& a, const Value& b) { return is_in(h, a, b); }},
    {"==", nullptr, [](Host&, const Value& a, const Value& b) { return equal(a, b); }},
    {"eq", nullptr, [](Host&, const Value& a, const Value& b) { return equal(a, b); }},
    {"equalto", nullptr, [](Host&, const Value& a, const Value& b) { return equal(a, b); }},
    {"sameas", nullptr,
     [](Host&, const Value& a, const Value& b) {
       return std::string_view(type_name(a)) == type_name(b) && equal(a, b);
     }},
    {"!=", nullptr, [](Host&, const Value& a, const Value& b) { return !equal(a, b); }},
    {"ne", nullptr, [](Host&, const Value& a, const Value& b) { return !equal(a, b); }},
    {"<", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) < 0; }},
    {"lt", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) < 0; }},
    {">", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) > 0; }},
    {"gt", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) > 0; }},
    {"<=", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) <= 0; }},
    {"le", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) <= 0; }},
    {">=", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) >= 0; }},
    {"ge", nullptr, [](Host&, const Value& a, const Value& b) { return compare(a, b) >= 0; }}};

template <class Rows>
[[noreturn]] void refuse(const char* what, std::string_view name, const Rows& rows) {
  std::string known;
  for (const auto& row : rows) known += (known.empty() ? "" : ", ") + std::string(row.name);
  fail<InvalidArgument>("no {} named '{:.80}'; known are {}", what, name, known);
}

}  // namespace

Value apply_filter(Host& host, std::string_view name, const Value& value, const Arguments& args) {
  const auto row = std::ranges::find(filters(), name, &Filter::name);
  if (row == filters().end()) refuse("filter", name, filters());
  if (row->call_with_all) return row->call_with_all(host, value, args);
  return row->call(host, value, bound(name, args, row->parameters));
}

bool apply_test(Host& host, std::string_view name, const Value& value, const Arguments& args) {
  const auto* row = std::ranges::find(kTests, name, &Test::name);
  if (row == std::end(kTests)) refuse("test", name, kTests);
  if (row->of_value) {
    bound(name, args, {});
    return row->of_value(value);
  }
  const auto a = bound(name, args, {"other"});
  if (!a[0]) fail<InvalidArgument>("the test '{}' wants an argument", name);
  return row->of_two(host, value, *a[0]);
}

}  // namespace tuff::text::jinja
