// Methods of texts, lists and dicts: Python's, those that change nothing.
#include <algorithm>

#include "base/check.h"
#include "base/contains.h"
#include "text/jinja/functions.h"
#include "text/unicode.h"

namespace tuff::text::jinja {
namespace {

using Bound = std::vector<const Value*>;

const std::string* optional_text(std::string_view function, const Value* v) {
  return !v || v->is<None>() ? nullptr : &text_of(function, *v);
}

namespace methods {

std::vector<std::string_view> words(std::string_view text, int64_t most) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  const auto space_at = [&](size_t i, size_t& bytes) {
    const Utf8Character c = next_character(text.substr(i));
    bytes = c.bytes;
    return is_space(c.code);
  };
  size_t bytes = 0;
  for (size_t i = 0; i < text.size();) {
    while (i < text.size() && space_at(i, bytes)) i += bytes;
    if (i == text.size()) break;
    begin = i;
    if (most >= 0 && int64_t(out.size()) == most) {
      std::string_view rest = text.substr(begin);
      while (!rest.empty() && is_space(uint8_t(rest.back()))) rest.remove_suffix(1);
      out.push_back(rest);
      break;
    }
    while (i < text.size() && !space_at(i, bytes)) i += bytes;
    out.push_back(text.substr(begin, i - begin));
  }
  return out;
}

Value split(Host& host, const Value& self, const Bound& a) {
  const std::string_view text = *self.text();
  const int64_t most = a[1] ? whole_number("split", *a[1]) : -1;
  const std::string* separator = optional_text("split", a[0]);
  host.charge(text.size());
  Values out;
  if (!separator) {
    for (const std::string_view w : words(text, most)) out.emplace_back(w);
  } else {
    if (separator->empty()) fail<InvalidArgument>("split: empty separator");
    size_t at = 0;
    for (size_t end; (most < 0 || int64_t(out.size()) < most) &&
                     (end = text.find(*separator, at)) != std::string_view::npos;
         at = end + separator->size())
      out.emplace_back(text.substr(at, end - at));
    out.emplace_back(text.substr(at));
  }
  host.charge(out.size() * sizeof(Value));
  return out;
}

Value rsplit(Host& host, const Value& self, const Bound& a) {
  const int64_t most = a[1] ? whole_number("rsplit", *a[1]) : -1;
  const std::string* separator = optional_text("rsplit", a[0]);
  if (most < 0) return split(host, self, a);
  if (!separator || separator->empty()) fail<InvalidArgument>("rsplit: a separator is wanted");
  std::string_view text = *self.text();
  host.charge(text.size());
  Values out;
  for (size_t at;
       int64_t(out.size()) < most && (at = text.rfind(*separator)) != std::string_view::npos;
       text = text.substr(0, at))
    out.insert(out.begin(), Value(text.substr(at + separator->size())));
  out.insert(out.begin(), Value(text));
  return out;
}

Value splitlines(Host& host, const Value& self, const Bound& a) {
  const bool keep = a[0] && truth(*a[0]);
  std::string_view text = *self.text();
  host.charge(text.size() * 2);
  Values out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\r"), text.size());
    size_t next = std::min(end + 1, text.size());
    if (text.substr(end).starts_with("\r\n")) next++;
    out.emplace_back(text.substr(0, keep ? next : end));
    text.remove_prefix(next);
  }
  return out;
}

template <bool left, bool right>
Value strip(Host& host, const Value& self, const Bound& a) {
  host.charge(self.text()->size());
  return Value(stripped(*self.text(), optional_text("strip", a[0]), left, right), self.is_markup());
}

template <bool start>
Value with_affix(Host&, const Value& self, const Bound& a) {
  if (!a[0]) fail<InvalidArgument>("startswith: an argument is missing");
  const Values choices = a[0]->list() ? *a[0]->list() : Values{*a[0]};
  return std::ranges::any_of(choices, [&](const Value& c) {
    const std::string& affix = text_of("startswith", c);
    return start ? self.text()->starts_with(affix) : self.text()->ends_with(affix);
  });
}

template <bool prefix>
Value without_affix(Host&, const Value& self, const Bound& a) {
  std::string_view text = *self.text();
  const std::string& affix = text_of("removeprefix", a[0] ? *a[0] : Value());
  if (prefix && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!prefix && text.ends_with(affix)) text.remove_suffix(affix.size());
  return text;
}

Value replace(Host& host, const Value& self, const Bound& a) {
  if (!a[0] || !a[1]) fail<InvalidArgument>("replace: two arguments are wanted");
  return replaced(host, *self.text(), text_of("replace", *a[0]), text_of("replace", *a[1]),
                  a[2] ? whole_number("replace", *a[2]) : -1);
}

template <bool last, bool must>
Value find(Host& host, const Value& self, const Bound& a) {
  const std::string& what = text_of("find", a[0] ? *a[0] : Value());
  host.charge(self.text()->size() / 16);
  const size_t at = last ? self.text()->rfind(what) : self.text()->find(what);
  if (at == std::string::npos) {
    if (must) fail<InvalidArgument>("index: substring not found");
    return int64_t{-1};
  }
  return int64_t(characters(std::string_view(*self.text()).substr(0, at)).size());
}

Value count(Host& host, const Value& self, const Bound& a) {
  if (!a[0]) fail<InvalidArgument>("count: an argument is missing");
  if (const auto* l = self.list())
    return int64_t(std::ranges::count_if(*l, [&](const Value& v) { return equal(v, *a[0]); }));
  const std::string& what = text_of("count", *a[0]);
  host.charge(self.text()->size() / 16);
  if (what.empty()) return int64_t(length_of(self) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = self.text()->find(what, at)) != std::string::npos; at += what.size())
    n++;
  return n;
}

Value index(Host& host, const Value& self, const Bound& a) {
  if (!self.list()) return find<false, true>(host, self, a);
  for (size_t i = 0; i < self.list()->size(); i++)
    if (a[0] && equal((*self.list())[i], *a[0])) return int64_t(i);
  fail<InvalidArgument>("index: the value is not in the list");
}

Value join(Host& host, const Value& self, const Bound& a) {
  std::string out;
  bool first = true;
  for (const Value& v : iterated(host, a[0] ? *a[0] : Value())) {
    if (!std::exchange(first, false)) out += *self.text();
    out += text_of("join", v);
    host.charge(text_of("join", v).size() + self.text()->size());
  }
  return out;
}

template <bool (*of)(uint32_t)>
Value all_characters(Host&, const Value& self, const Bound&) {
  std::string_view text = *self.text();
  bool all = !text.empty();
  while (all && !text.empty()) {
    const Utf8Character c = next_character(text);
    all = of(c.code);
    text.remove_prefix(c.bytes);
  }
  return all;
}
bool is_letter(uint32_t code) { return is_word(code) && !is_numeric(code) && code != '_'; }
bool is_letter_or_digit(uint32_t code) { return is_word(code) && code != '_'; }

template <int upper>
Value has_case(Host&, const Value& self, const Bound&) {
  const std::string low = lowercased(*self.text()), high = uppercased(*self.text());
  return low != high && *self.text() == (upper ? high : low);
}

Value of_filter(Host& host, const Value& self, const char* name) {
  return apply_filter(host, name, self, {});
}
Value lower(Host& host, const Value& self, const Bound&) { return of_filter(host, self, "lower"); }
Value upper(Host& host, const Value& self, const Bound&) { return of_filter(host, self, "upper"); }
Value title(Host& host, const Value& self, const Bound&) { return of_filter(host, self, "title"); }
Value capitalize(Host& host, const Value& self, const Bound&) {
  return of_filter(host, self, "capitalize");
}

Value get(Host&, const Value& self, const Bound& a) {
  if (!a[0]) fail<InvalidArgument>("get: an argument is missing");
  const Value* v = self.find(*a[0]);
  return v ? *v : a[1] ? *a[1] : Value();
}
Value items(Host& host, const Value& self, const Bound&) {
  host.charge(self.dict()->size() * 4 * sizeof(Value));
  Values out;
  for (const auto& [key, value] : *self.dict()) out.push_back(Value(Values{key, value}, true));
  return out;
}
Value keys(Host& host, const Value& self, const Bound&) { return iterated(host, self); }
Value values(Host& host, const Value& self, const Bound&) {
  host.charge(self.dict()->size() * sizeof(Value));
  Values out;
  for (const auto& [key, value] : *self.dict()) out.push_back(value);
  return out;
}
Value copy(Host&, const Value& self, const Bound&) { return self; }

struct Method {
  std::string_view name;
  std::vector<std::string_view> parameters;
  Value (*call)(Host&, const Value&, const Bound&);
};

const std::vector<Method>& text_methods() {
  static const std::vector<Method> rows = {{"split", {"sep", "maxsplit"}, split},
                                           {"rsplit", {"sep", "maxsplit"}, rsplit},
                                           {"splitlines", {"keepends"}, splitlines},
                                           {"strip", {"chars"}, strip<true, true>},
                                           {"lstrip", {"chars"}, strip<true, false>},
                                           {"rstrip", {"chars"}, strip<false, true>},
                                           {"startswith", {"prefix"}, with_affix<true>},
                                           {"endswith", {"suffix"}, with_affix<false>},
                                           {"removeprefix", {"prefix"}, without_affix<true>},
                                           {"removesuffix", {"suffix"}, without_affix<false>},
                                           {"replace", {"old", "new", "count"}, replace},
                                           {"find", {"sub"}, find<false, false>},
                                           {"rfind", {"sub"}, find<true, false>},
                                           {"index", {"sub"}, index},
                                           {"count", {"sub"}, count},
                                           {"join", {"iterable"}, join},
                                           {"lower", {}, lower},
                                           {"upper", {}, upper},
                                           {"title", {}, title},
                                           {"capitalize", {}, capitalize},
                                           {"isdigit", {}, all_characters<is_numeric>},
                                           {"isnumeric", {}, all_characters<is_numeric>},
                                           {"isalpha", {}, all_characters<is_letter>},
                                           {"isalnum", {}, all_characters<is_letter_or_digit>},
                                           {"isspace", {}, all_characters<is_space>},
                                           {"islower", {}, has_case<0>},
                                           {"isupper", {}, has_case<1>}};
  return rows;
}
const std::vector<Method>& list_methods() {
  static const std::vector<Method> rows = {
      {"index", {"value"}, index}, {"count", {"value"}, count}, {"copy", {}, copy}};
  return rows;
}
const std::vector<Method>& dict_methods() {
  static const std::vector<Method> rows = {{"get", {"key", "default"}, get},
                                           {"items", {}, items},
                                           {"keys", {}, keys},
                                           {"values", {}, values},
                                           {"copy", {}, copy}};
  return rows;
}

}  // namespace methods

// "{} and {1} and {name:>4}".format(...)
std::string formatted(Host& host, const std::string& format, const Arguments& args) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); i++) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      i++;
    } else if (c == '{') {
      const size_t end = format.find('}', i);
      if (end == std::string::npos) fail<InvalidArgument>("format: '}}' is missing");
      std::string field = format.substr(i + 1, end - i - 1);
      if (field.find_first_of(":!.[") != std::string::npos)
        fail<InvalidArgument>("format: the field '{{{:.40}}}' is more than a name or number",
                              field);
      const Value* value = nullptr;
      if (field.empty()) field = std::to_string(next++);
      for (const auto& [name, v] : args.named)
        if (name == field) value = &v;
      for (size_t k = 0; k < args.positional.size() && !value; k++)
        if (std::to_string(k) == field) value = &args.positional[k];
      if (!value) fail<InvalidArgument>("format: there is no argument for '{{{:.40}}}'", field);
      out += printed(*value);
      host.charge(printed(*value).size());
      i = end;
    } else {
      out += c;
    }
  }
  return out;
}

Value method(Host& host, const Value& self, const methods::Method& row) {
  const auto call = [&host, self, &row](const Arguments& args) {
    return row.call(host, self, bound(row.name, args, row.parameters));
  };
  return Function{std::string(row.name),
                  std::make_shared<const std::function<Value(const Arguments&)>>(call),
                  self.depth() + 1};
}

}  // namespace

std::string stripped(std::string_view text, const std::string* set, bool left, bool right) {
  const auto goes = [&](std::string_view c) {
    if (!set) return is_space(next_character(c).code) || (c[0] >= 0x1c && c[0] <= 0x1f);
    return contains(characters(*set), c);
  };
  while (left && !text.empty()) {
    const std::string_view c = text.substr(0, next_character(text).bytes);
    if (!goes(c)) break;
    text.remove_prefix(c.size());
  }
  while (right && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (uint8_t(text[at]) & 0xc0) == 0x80) at--;
    if (!goes(text.substr(at))) break;
    text = text.substr(0, at);
  }
  return std::string(text);
}

std::string replaced(Host& host, std::string_view text, std::string_view what, std::string_view by,
                     int64_t count) {
  std::string out;
  const auto put = [&](std::string_view part) {
    host.charge(part.size());
    out += part;
  };
  if (what.empty()) {  // before each character, and at the end
    for (const std::string_view c : characters(text)) {
      if (count-- != 0) put(by);
      put(c);
    }
    if (count != 0) put(by);
    return out;
  }
  for (size_t at; count-- != 0 && (at = text.find(what)) != std::string_view::npos;) {
    put(text.substr(0, at));
    put(by);
    text.remove_prefix(at + what.size());
  }
  put(text);
  return out;
}

Value attribute(Host& host, const Value& object, const std::string& name) {
  if (const auto* u = object.as<Undefined>()) refuse_undefined(*u);
  if (const auto* ns = object.as<Namespace>()) {
    for (const auto& [key, value] : *ns->items)
      if (key == name) return value;
    return Undefined{fmt::format("'namespace object' has no attribute '{:.80}': it", name)};
  }
  if (object.text() && name == "format") {
    const auto call = [&host, object](const Arguments& args) {
      return Value(formatted(host, *object.text(), args));
    };
    return Function{name, std::make_shared<const std::function<Value(const Arguments&)>>(call)};
  }
  const auto* rows = object.text()   ? &methods::text_methods()
                     : object.list() ? &methods::list_methods()
                     : object.dict() ? &methods::dict_methods()
                                     : nullptr;
  if (rows)
    for (const methods::Method& row : *rows)
      if (row.name == name) return method(host, object, row);
  if (const Value* v = object.find(Value(name))) return *v;
  return Undefined{
      fmt::format("'{} object' has no attribute '{:.80}': it", type_name(object), name)};
}

}  // namespace tuff::text::jinja
