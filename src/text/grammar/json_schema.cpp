#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/grammar/json_multiples.h"
#include "text/grammar/json_numbers.h"
#include "text/grammar/json_objects.h"
#include "text/grammar/json_texts.h"
#include "text/grammar/pattern.h"

namespace tuff::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostMembers = 1000;     // of an object, and values of an enum
constexpr int64_t kMostCount = 1 << 16;   // of a text's characters and a list's items
constexpr size_t kMostSchemas = 1 << 16;  // with those that are merged
constexpr int64_t kMostBound = int64_t{1} << 53;

// A line's beginning or a space: what a model likes between parts, and no endless room.
Expression space() {
  return optional(choice({literal(" "), sequence({literal("\n"), repeated(literal(" "), 0, 20)})}));
}
Expression mark(std::string_view text) { return sequence({space(), literal(text), space()}); }
Expression beginning(std::string_view text) { return sequence({literal(text), space()}); }
Expression ending(std::string_view text) { return sequence({space(), literal(text)}); }

// Keywords that describe texts and change none.
bool says_nothing(std::string_view keyword) {
  static constexpr std::string_view kNames[] = {
      "title", "description", "default",  "examples",   "example",  "$schema",    "$id",
      "$comment", "$defs",    "definitions", "deprecated", "readOnly", "writeOnly", "$anchor"};
  return std::ranges::find(kNames, keyword) != std::end(kNames);
}

class SchemaReader {
 public:
  explicit SchemaReader(const Json& schema) : root_(schema) {
    comma_ = add("comma", mark(","));
    colon_ = add("colon", mark(":"));
    character_ = add("character", json_character());
    string_ = add("string", quoted(repeated(rule(character_), 0)));
    number_ = add("number", numbers({}, {}));
    value_ = add("value");
    object_ = add("object", braces({.others = member(rule(string_), rule(value_))}, ""));
    rules_.rows[value_].body =
        choice({rule(object_), rule(add("array", brackets({}, rule(value_), 0, kUnbounded))),
                rule(string_), rule(number_), literal("true"), literal("false"), literal("null")});
  }
  size_t object() const { return object_; }
  Rules read() {
    rules_.root = add("root");
    Expression body = schema(root_, "", 0);
    rules_.rows[rules_.root].body = std::move(body);
    return std::move(rules_);
  }
  Rules with_root(size_t root) {
    rules_.root = root;
    return std::move(rules_);
  }

 private:
  static std::string named(const std::string& where) { return where.empty() ? "the root" : where; }
  [[noreturn]] static void wrong(const std::string& where, std::string_view keyword,
                                 const Json& value, std::string_view wanted) {
    fail<InvalidArgument>("a JSON schema: {}/{} is {:.80}: {} was wanted", where, keyword,
                          value.dump(-1, ' ', false, Json::error_handler_t::replace), wanted);
  }
  [[noreturn]] static void unsupported(const std::string& where, std::string_view keyword) {
    fail<Unsupported>(
        "a JSON schema: {}/{} is not known; known are type, nullable, properties, required, "
        "additionalProperties, patternProperties, propertyNames, minProperties, maxProperties, "
        "items, prefixItems, minItems, maxItems, minLength, maxLength, pattern, format, minimum, "
        "maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, enum, const, anyOf, oneOf, allOf and $ref",
        where, keyword);
  }
  static Expression quoted(Expression inside) {
    return sequence({literal("\""), std::move(inside), literal("\"")});
  }
  static Expression constant(const Json& value) {
    return literal(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  size_t add(std::string name, Expression body = {}) {
    written_ += size_of(body);
    if (written_ > kMaxSize)
      fail<InvalidArgument>("a JSON schema is too large: it is made of more than {} expressions",
                            kMaxSize);
    return rules_.add(std::move(name), std::move(body));
  }
  static size_t size_of(const Expression& e) {
    size_t n = 1;
    for (const Expression& part : e.parts) n += size_of(part);
    return n;
  }

  // By a rule of its own, so that each is counted once.
  Expression schema(const Json& s, const std::string& where, int depth) {
    Expression e = read_schema(s, where, depth);
    if (e.kind == Expression::Kind::Rule) return e;
    return rule(add(where.empty() ? "root" : where, std::move(e)));
  }
  Expression read_schema(const Json& s, const std::string& where, int depth) {
    if (depth > kMaxDepth) fail<InvalidArgument>("a JSON schema goes deeper than {}", kMaxDepth);
    if (++read_ > kMostSchemas)
      fail<InvalidArgument>("a JSON schema is made of more than {} schemas", kMostSchemas);
    if (s == true || (s.is_object() && s.empty())) return rule(value_);
    if (!s.is_object())
      fail<InvalidArgument>("a JSON schema: {} is {:.80}: an object was wanted",
                            where.empty() ? "it" : named(where),
                            s.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (s.contains("nullable")) {
      const Expression body = schema(without(s, "nullable"), where, depth + 1);
      return s["nullable"] == true ? choice({body, literal("null")}) : body;
    }
    if (s.contains("$ref")) return reference(s, where, depth);
    for (const char* any : {"anyOf", "oneOf"})
      if (s.contains(any)) return any_of(s, any, where, depth);
    if (s.contains("allOf")) return schema(all_of(s, where, 0), where, depth + 1);
    if (s.contains("const")) return constant(s["const"]);
    if (s.contains("enum")) return one_of(s, where);
    return typed(s, where, depth);
  }

  // What a $ref names: a pointer within the schema.
  const Json& target(const Json& ref, const std::string& where) const {
    const std::string* text = ref.get_ptr<const std::string*>();
    if (!text || !text->starts_with("#"))
      wrong(where, "$ref", ref, "a place within the schema, like \"#/$defs/name\",");
    try {
      return root_.at(Json::json_pointer(text->substr(1)));
    } catch (const Json::exception&) {
      wrong(where, "$ref", ref, "a place that the schema has");
    }
  }
  Expression reference(const Json& s, const std::string& where, int depth) {
    const Json others = without(s, "$ref");
    const Json& to = target(s["$ref"], where);
    if (!others.empty()) return schema(merged(to, others, where, 0), where, depth + 1);
    const std::string name = s["$ref"];
    const auto [known, added] = references_.try_emplace(name, 0);
    if (added) {
      const size_t place = known->second = add(name);
      Expression body = name == "#" ? rule(rules_.root) : schema(to, name, depth + 1);
      rules_.rows[place].body = std::move(body);
    }
    return rule(references_.at(name));
  }
  // Without a keyword, and without those that say nothing.
  static Json without(const Json& s, std::string_view keyword) {
    Json out = Json::object();
    for (const auto& [name, value] : s.items())
      if (name != keyword && !says_nothing(name)) out[name] = value;
    return out;
  }
  Expression any_of(const Json& s, const char* keyword, const std::string& where, int depth) {
    const Json& list = s[keyword];
    if (!list.is_array() || list.empty() || list.size() > kMostMembers)
      wrong(where, keyword, list, fmt::format("a list of 1 to {} schemas", kMostMembers));
    const Json others = without(s, keyword);
    std::vector<Expression> some;
    for (size_t i = 0; i < list.size(); i++) {
      const std::string at = fmt::format("{}/{}/{}", where, keyword, i);
      some.push_back(
          schema(others.empty() ? list[i] : merged(list[i], others, at, 0), at, depth + 1));
    }
    return choice(std::move(some));
  }
  Json all_of(const Json& s, const std::string& where, int depth) const {
    const Json& list = s["allOf"];
    if (!list.is_array() || list.empty()) wrong(where, "allOf", list, "a list of schemas");
    Json all = without(s, "allOf");
    for (const Json& one : list) all = merged(all, one, where + "/allOf", depth + 1);
    return all;
  }
  // What holds for both.
  Json merged(Json a, Json b, const std::string& where, int depth) const {
    if (depth > kMaxDepth)
      fail<InvalidArgument>("a JSON schema: {} refers to itself", named(where));
    for (Json* s : {&a, &b}) {
      if (*s == true) *s = Json::object();
      if (!s->is_object()) wrong(where, "", *s, "an object");
      if (s->contains("$ref")) {
        Json others = without(*s, "$ref");
        *s = merged(target((*s)["$ref"], where), std::move(others), where, depth + 1);
      }
      if (s->contains("allOf")) *s = all_of(*s, where, depth + 1);
    }
    for (const auto& [name, value] : b.items()) {
      if (says_nothing(name)) continue;
      if (!a.contains(name)) {
        a[name] = value;
      } else if (name == "required" && value.is_array() && a[name].is_array()) {
        a[name].insert(a[name].end(), value.begin(), value.end());
      } else if (name == "properties" && value.is_object() && a[name].is_object()) {
        for (const auto& [property, one] : value.items()) {
          Json& here = a[name][property];
          here = here.is_null() ? one : merged(here, one, where, depth + 1);
        }
      } else if (a[name] != value) {
        fail<Unsupported>("a JSON schema: {}: two schemas for one value differ in {}", named(where),
                          name);
      }
    }
    return a;
  }

  Expression one_of(const Json& s, const std::string& where) {
    const Json& list = s["enum"];
    if (!list.is_array() || list.empty() || list.size() > kMostMembers)
      wrong(where, "enum", list, fmt::format("a list of 1 to {} values", kMostMembers));
    for (const auto& [name, value] : s.items())
      if (name != "enum" && name != "type" && !says_nothing(name)) unsupported(where, name);
    std::vector<Expression> some;
    for (const Json& value : list)
      if (!s.contains("type") || is_of(value, s["type"])) some.push_back(constant(value));
    if (some.empty()) wrong(where, "enum", list, "a value of the schema's type");
    return choice(std::move(some));
  }
  static bool is_of(const Json& value, const Json& type) {
    if (type.is_array())
      return std::ranges::any_of(type, [&](const Json& t) { return is_of(value, t); });
    if (type == "integer") return value.is_number_integer();
    return type == value.type_name();
  }

  // The types that a schema allows: those that it names, or that its keywords are about.
  std::vector<std::string> types(const Json& s, const std::string& where) {
    std::vector<std::string> out;
    if (!s.contains("type")) {
      for (const auto& [name, value] : s.items()) {
        const std::string_view of = type_of(name);
        if (of.empty() && !says_nothing(name)) unsupported(where, name);
        if (!of.empty() && std::ranges::find(out, of) == out.end()) out.emplace_back(of);
      }
      return out;
    }
    const Json& type = s["type"];
    for (const Json& t : type.is_array() ? type : Json::array({type})) {
      if (!t.is_string()) wrong(where, "type", type, "the name of a type or a list of them");
      out.push_back(t);
    }
    if (out.empty()) wrong(where, "type", type, "the name of a type or a list of them");
    return out;
  }
  static std::string_view type_of(std::string_view keyword) {
    static constexpr std::pair<std::string_view, std::string_view> kKeywords[] = {
        {"properties", "object"},        {"required", "object"},
        {"additionalProperties", "object"}, {"patternProperties", "object"},
        {"propertyNames", "object"},     {"minProperties", "object"},
        {"maxProperties", "object"},     {"items", "array"},
        {"prefixItems", "array"},        {"minItems", "array"},
        {"maxItems", "array"},           {"minLength", "string"},
        {"maxLength", "string"},         {"pattern", "string"},
        {"format", "string"},            {"minimum", "number"},
        {"maximum", "number"},           {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"},  {"multipleOf", "number"}};
    for (const auto& [name, type] : kKeywords)
      if (name == keyword) return type;
    return {};
  }
  Expression typed(const Json& s, const std::string& where, int depth) {
    const std::vector<std::string> types = this->types(s, where);
    if (types.empty()) return rule(value_);
    require_known(s, types, where);
    std::vector<Expression> some;
    for (const std::string& type : types) {
      if (type == "object") some.push_back(object(s, where, depth));
      else if (type == "array") some.push_back(array(s, where, depth));
      else if (type == "string") some.push_back(string(s, where));
      else if (type == "number") some.push_back(number(s, where));
      else if (type == "integer") some.push_back(integer(s, where));
      else if (type == "boolean") some.push_back(choice({literal("true"), literal("false")}));
      else if (type == "null") some.push_back(literal("null"));
      else
        wrong(where, "type", s["type"],
              "object, array, string, number, integer, boolean or null");
    }
    return choice(std::move(some));
  }
  void require_known(const Json& s, const std::vector<std::string>& types,
                     const std::string& where) const {
    const auto allowed = [&](std::string_view type) {
      const auto is = [&](const std::string& t) {
        return t == type || (type == "number" && t == "integer");
      };
      return std::ranges::any_of(types, is);
    };
    for (const auto& [name, value] : s.items()) {
      if (name == "type" || says_nothing(name)) continue;
      // Formats of numbers say how they are stored.
      if (name == "format" && !allowed("string") && allowed("number")) continue;
      // A keyword of a type that the schema does not allow makes no difference.
      if (type_of(name).empty()) unsupported(where, name);
    }
  }

  int64_t count(const Json& s, const std::string& where, const char* keyword, int64_t otherwise) {
    if (!s.contains(keyword)) return otherwise;
    const Json& value = s[keyword];
    if (!value.is_number_integer() || value < 0 || value > kMostCount)
      wrong(where, keyword, value, fmt::format("a number from 0 to {}", kMostCount));
    return value;
  }
  Expression string(const Json& s, const std::string& where) {
    const int64_t least = count(s, where, "minLength", 0);
    const int64_t most = count(s, where, "maxLength", int64_t(kUnbounded));
    const bool bounded = s.contains("minLength") || s.contains("maxLength");
    for (const char* keyword : {"pattern", "format"}) {
      if (!s.contains(keyword)) continue;
      if (!s[keyword].is_string()) wrong(where, keyword, s[keyword], "a text");
      if (bounded)
        fail<Unsupported>("a JSON schema: {} has a {} and bounds of its length: write these into a "
                          "pattern, like ^[a-z]{{1,8}}$",
                          named(where), keyword);
      if (s.contains("pattern") && s.contains("format"))
        fail<Unsupported>("a JSON schema: {} has a pattern and a format", named(where));
      const std::string text = s[keyword];
      const bool format = std::string_view(keyword) == "format";
      return quoted(json_escaped(format ? text_format(text) : read_pattern(text)));
    }
    if (most < least) wrong(where, "maxLength", s["maxLength"], "minLength at least");
    if (!bounded) return rule(string_);
    return quoted(repeated(rule(character_), uint32_t(least), uint32_t(most)));
  }
  std::optional<NumberBound> bound(const Json& s, const std::string& where, bool least) {
    const char* exclusive = least ? "exclusiveMinimum" : "exclusiveMaximum";
    const char* inclusive = least ? "minimum" : "maximum";
    std::optional<NumberBound> out;
    for (const char* keyword : {inclusive, exclusive}) {
      if (!s.contains(keyword)) continue;
      const Json& value = s[keyword];
      if (!value.is_number() || value != std::floor(value.get<double>()) ||
          std::abs(value.get<double>()) > double(kMostBound))
        wrong(where, keyword, value, "a whole number of at most 53 bits");
      const NumberBound b{int64_t(value.get<double>()), keyword == exclusive};
      const bool narrower = !out || (least ? b.value >= out->value : b.value <= out->value);
      if (narrower) out = b;
    }
    return out;
  }
  Expression number(const Json& s, const std::string& where) {
    const auto least = bound(s, where, true), most = bound(s, where, false);
    if (s.contains("multipleOf")) return multiple(s, where, least, most, false);
    if (!least && !most) return rule(number_);
    if (least && most &&
        (least->value > most->value ||
         (least->value == most->value && (least->exclusive || most->exclusive))))
      fail<InvalidArgument>("a JSON schema: {}: no number is between its bounds", named(where));
    return numbers(least, most);
  }
  AddRule adder() {
    return [this](std::string name, Expression body) {
      return add(std::move(name), std::move(body));
    };
  }
  // With a fraction where the schema is not of integers and the step has one.
  Expression multiple(const Json& s, const std::string& where,
                      const std::optional<NumberBound>& least,
                      const std::optional<NumberBound>& most, bool whole) {
    const Json& value = s["multipleOf"];
    const std::optional<Step> step = value.is_number() ? step_of(value.dump()) : std::nullopt;
    if (step && whole && step->decimals > 0)
      wrong(where, "multipleOf", value, "a whole number, for integers,");
    if (!step)
      wrong(where, "multipleOf", value,
            fmt::format("a number above 0 of at most {} decimals and up to {} without the zeros "
                        "before and behind it",
                        kMostDecimals, kMostStep));
    const auto e = multiples(*step, least, most, adder());
    if (!e)
      fail<InvalidArgument>("a JSON schema: {}: no multiple of {} is between its bounds",
                            named(where), value.dump());
    return *e;
  }
  Expression integer(const Json& s, const std::string& where) {
    const auto least = bound(s, where, true), most = bound(s, where, false);
    if (s.contains("multipleOf")) return multiple(s, where, least, most, true);
    WholeBounds bounds;
    if (least) bounds.least = least->value + (least->exclusive ? 1 : 0);
    if (most) bounds.most = most->value - (most->exclusive ? 1 : 0);
    if (bounds.least && bounds.most && *bounds.least > *bounds.most)
      fail<InvalidArgument>("a JSON schema: {}: no number is between its bounds", named(where));
    return whole_numbers(bounds);
  }

  Expression array(const Json& s, const std::string& where, int depth) {
    std::vector<Expression> first;
    if (s.contains("prefixItems")) {
      const Json& list = s["prefixItems"];
      if (!list.is_array() || list.size() > size_t(kMaxDepth))
        wrong(where, "prefixItems", list, fmt::format("a list of at most {} schemas", kMaxDepth));
      for (size_t i = 0; i < list.size(); i++)
        first.push_back(
            schema(list[i], fmt::format("{}/prefixItems/{}", where, i), depth + 1));
    }
    const bool more = s.contains("items") ? s["items"] != false : first.empty();
    const int64_t least = count(s, where, "minItems", int64_t(first.size()));
    int64_t most = count(s, where, "maxItems", int64_t(kUnbounded));
    if (!more) most = std::min(most, int64_t(first.size()));
    if (most < least)
      fail<InvalidArgument>("a JSON schema: {} has at least {} items and at most {}", named(where),
                            least, most);
    const Expression rest = !more                 ? Expression()
                            : s.contains("items") ? schema(s["items"], where + "/items", depth + 1)
                                                  : rule(value_);
    return brackets(std::move(first), rule(add("item", rest)), uint32_t(least),
                    uint32_t(most));
  }
  // A list whose first items are of one kind each, and others of one.
  Expression brackets(std::vector<Expression> first, const Expression& rest, uint32_t least,
                      uint32_t most) {
    if (first.size() > most) first.resize(most);
    const size_t fixed = first.size();
    const auto bounded = [&](size_t taken) {
      return repeated(sequence({rule(comma_), rest}),
                      least > taken ? least - uint32_t(taken) : 0,
                      most == kUnbounded ? kUnbounded : most - uint32_t(taken));
    };
    Expression inside;
    if (fixed > 0) {
      inside = bounded(fixed);
      for (size_t i = fixed; i-- > 0;) {
        Expression item = i > 0 ? sequence({rule(comma_), std::move(first[i])}) : std::move(first[i]);
        inside = sequence({std::move(item), std::move(inside)});
        if (i >= least) inside = optional(std::move(inside));
      }
    } else if (most > 0) {
      inside = sequence({rest, bounded(1)});
      if (least == 0) inside = optional(std::move(inside));
    }
    return sequence({beginning("["), std::move(inside), ending("]")});
  }

  std::set<std::string> required_names(const Json& s, const std::string& where) {
    std::set<std::string> out;
    if (!s.contains("required")) return out;
    if (!s["required"].is_array()) wrong(where, "required", s["required"], "a list of names");
    for (const Json& name : s["required"]) {
      if (!name.is_string()) wrong(where, "required", s["required"], "a list of names");
      out.insert(name);
    }
    return out;
  }
  // Members that a schema does not name, by their names.
  std::optional<Expression> other_members(const Json& s, const std::string& where, int depth) {
    for (const char* keyword : {"patternProperties", "propertyNames"})
      if (s.contains(keyword) && (s.contains("properties") || s.contains("required")))
        fail<Unsupported>("a JSON schema: {}/{} beside properties or required is not known", where,
                          keyword);
    if (s.contains("patternProperties")) return by_patterns(s, where, depth);
    const bool open = s.contains("additionalProperties") ? s["additionalProperties"] != false
                                                         : !s.contains("properties");
    if (!open) return {};
    return s.contains("additionalProperties")
               ? schema(s["additionalProperties"], where + "/additionalProperties", depth + 1)
               : rule(value_);
  }
  std::optional<Expression> by_patterns(const Json& s, const std::string& where, int depth) {
    const Json& patterns = s["patternProperties"];
    if (!patterns.is_object() || patterns.empty() || patterns.size() > kMostMembers)
      wrong(where, "patternProperties", patterns,
            fmt::format("an object of 1 to {}", kMostMembers));
    if (s.contains("propertyNames"))
      fail<Unsupported>("a JSON schema: {}/patternProperties beside propertyNames is not known",
                        where);
    std::vector<Expression> some;
    for (const auto& [pattern, value] : patterns.items())
      some.push_back(
          member(quoted(json_escaped(read_pattern(pattern))),
                 schema(value, fmt::format("{}/patternProperties/{}", where, pattern), depth + 1)));
    return choice(std::move(some));
  }
  Expression object(const Json& s, const std::string& where, int depth) {
    ObjectShape shape;
    std::set<std::string> required = required_names(s, where);
    std::vector<std::string> names;
    if (s.contains("properties")) {
      const Json& properties = s["properties"];
      if (!properties.is_object() || properties.size() > kMostMembers)
        wrong(where, "properties", properties, fmt::format("an object of at most {}", kMostMembers));
      for (const auto& [name, value] : properties.items()) {
        Expression e = schema(value, fmt::format("{}/properties/{}", where, name), depth + 1);
        shape.members.push_back(
            {member(constant(Json(name)), std::move(e)), required.erase(name) > 0});
        names.push_back(name);
      }
    }
    const std::optional<Expression> others = other_members(s, where, depth);
    for (const std::string& name : required) {
      if (!others)
        fail<InvalidArgument>("a JSON schema: {} requires \"{}\", which its properties lack", where,
                              name);
      shape.members.push_back({member(constant(Json(name)), *others), true});
      names.push_back(name);
    }
    if (others && s.contains("patternProperties")) {
      shape.others = others;
    } else if (others) {
      Expression name = s.contains("propertyNames") ? names_of_members(s, where, depth)
                                                    : rule(add("name", other_name(names)));
      shape.others = member(std::move(name), *others);
    }
    shape.least = uint32_t(count(s, where, "minProperties", 0));
    shape.most = uint32_t(count(s, where, "maxProperties", int64_t(kUnbounded)));
    return braces(std::move(shape), where);
  }
  Expression names_of_members(const Json& s, const std::string& where, int depth) {
    Json names = s["propertyNames"];
    if (names.is_object() && !names.contains("type")) names["type"] = "string";
    return schema(names, where + "/propertyNames", depth + 1);
  }
  Expression member(Expression name, Expression value) {
    return rule(add("member", sequence({std::move(name), rule(colon_), std::move(value)})));
  }
  Expression braces(ObjectShape shape, const std::string& where) {
    shape.comma = rule(comma_);
    std::optional<Expression> inside = object_inside(std::move(shape), adder());
    if (!inside)
      fail<InvalidArgument>("a JSON schema: {}: no object has so many members as it wants",
                            named(where));
    return sequence({beginning("{"), std::move(*inside), ending("}")});
  }

  const Json& root_;
  Rules rules_;
  std::map<std::string, size_t> references_;
  size_t read_ = 0, written_ = 0;
  size_t comma_, colon_, character_, string_, number_, value_, object_;
};

}  // namespace

Rules read_json_schema(std::string_view schema) {
  if (schema.size() > kMaxSize)
    fail<InvalidArgument>("a JSON schema has {} bytes: at most {} were wanted", schema.size(),
                          kMaxSize);
  const auto bounded = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) fail<InvalidArgument>("a JSON schema goes deeper than {}", kMaxDepth);
    return true;
  };
  const Json json = Json::parse(schema, bounded, false);
  if (json.is_discarded())
    fail<InvalidArgument>("a JSON schema: it is no JSON: '{:.80}'", schema);
  return SchemaReader(json).read();
}

Rules json_object_rules() {
  const Json any = true;
  SchemaReader reader(any);
  return reader.with_root(reader.object());
}

}  // namespace tuff::text::grammar
