// Grammars: their notation, JSON schemas, bytes of characters, and the tokens that may come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include <fmt/format.h>

#include <tuff/error.h>
#include <tuff/grammar.h>
#include <tuff/tokenizer.h>

#include "base/error_of.h"
#include "text/fixtures.h"
#include "text/grammar/json_numbers.h"
#include "text/grammar/matcher.h"
#include "text/grammar/token_filter.h"
#include "text/unicode.h"

namespace tuff::text::grammar {
namespace {

using testing::HasSubstr;

struct Case {
  std::string grammar;
  std::vector<std::string> good, bad;
};

void expect(const Grammar& g, const Case& c) {
  for (const std::string& text : c.good) EXPECT_TRUE(g.accepts(text)) << c.grammar << "\n" << text;
  for (const std::string& text : c.bad) EXPECT_FALSE(g.accepts(text)) << c.grammar << "\n" << text;
}

TEST(Grammar, Notation) {
  const Case cases[] = {
      {"root ::= \"a\" | \"bc\"", {"a", "bc"}, {"", "b", "abc", "bcc"}},
      {"root ::= [a-c]+ # letters\n", {"a", "cab"}, {"", "d", "a "}},
      {"root ::= \"x\"{2} \"y\"{1,} \"z\"{0,2}", {"xxy", "xxyyzz", "xxyz"}, {"xy", "xx", "xxyzzz"}},
      {"root ::= \"x\"{2,4}", {"xx", "xxx", "xxxx"}, {"x", "xxxxx"}},
      {"root ::= (\"a\" | other)*\nother ::= \"(\" root \")\"", {"", "a(a)a", "((()))"}, {"(", "())"}},
      {"root ::= \"\\\"\\\\\\n\\x41\\u00e9\\U0001F600\"", {"\"\\\nA\u00e9\U0001F600"}, {"", "\""}},
      {"root ::= [^a\\]é]", {"b", "[", "€", "\U0001F600"}, {"a", "]", "é", "", "\xc3", "bb"}},
      {"root ::= [a-]. ", {"-x", "a\n", "aé"}, {"b-", "a"}},
      {"root ::=\n  \"a\" |\n  (\n \"b\"\n \"c\" )\n\nunused ::= \"x\"", {"a", "bc"}, {"b"}},
      {"root ::= item (\",\" item)*\nitem ::= [0-9]{1,3}", {"1", "1,22,333"}, {"", "1,", "1111"}},
      {"root ::= \"\"", {""}, {"a"}},
      {"root ::= (\"a\"?)* (\"b\"*)+", {"", "aab", "b"}, {"ba", "c"}},
  };
  for (const Case& c : cases) expect(Grammar::parse(c.grammar), c);
}

TEST(Grammar, NotationErrorsNameTheLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "no rule root"},
      {"a ::= \"x\"", "no rule root"},
      {"root ::= b", "there is no rule b"},
      {"root ::= \"x", "line 1: more was wanted before its end"},
      {"root ::= \"x\"\n\nb := 1", "line 3: ::= was wanted"},
      {"root ::= \"x\"\nroot ::= \"y\"", "line 2: there is a rule root already"},
      {"root ::= (\"x\"", ") was wanted"},
      {"root ::= \"x\")", "the end of a rule was wanted"},
      {"root ::= [z-a]", "the end of a range"},
      {"root ::= []", "a set of characters has none"},
      {"root ::= \"\\q\"", "an escape that is not known"},
      {"root ::= \"\\uzzzz\"", "4 hexadecimal digits"},
      {"root ::= \"x\"{3,2}", "the least number of repetitions"},
      {"root ::= \"x\"{9999999}", "at most 1048576 repetitions"},
      {"root ::= \"x\"*?", "a text, a set of characters"},
      {"root ::= \xff", "no UTF-8"},
      {"root ::= " + std::string(300, '('), "groups go deeper than 200"},
      {"root ::= ([a-z]{1000}){2000}{1000}", "a text, a set"},
      {"root ::= (([a-z] | x){1000000} x){2}\nx ::= [0-9]{1000000}", "takes more than 1048576 nodes"},
      {"root ::= root \"x\" | \"y\"", "root begins with itself"},
      {"root ::= \"q\" a\na ::= \" \"? b\nb ::= (a \"x\"){2}", "begins with itself"},
  };
  for (const auto& [text, error] : cases)
    EXPECT_THAT(error_of<InvalidArgument>([&] { Grammar::parse(text); }), HasSubstr(error)) << text;
}

Matcher matcher_of(Expression e) {
  Rules rules;
  rules.add("root", std::move(e));
  return Matcher(std::make_shared<const Automaton>(build_automaton(rules)));
}

Matcher::State behind(Matcher& m, const std::string& text) {
  Matcher::State at = m.start();
  for (size_t i = 0; i < text.size() && at != Matcher::kNone; i++)
    at = m.next(at, uint8_t(text[i]));
  return at;
}

bool accepts(Matcher& m, const std::string& text) {
  const Matcher::State at = behind(m, text);
  return at != Matcher::kNone && m.accepts(at);
}

// Each character by itself, beside what the set says.
TEST(Grammar, SetsAreUtf8) {
  std::mt19937 random(1);
  std::vector<uint32_t> edges{0,      0x7f,   0x80,   0x7ff,  0x800,   0xfff,    0x1000, 0xd7ff,
                              0xe000, 0xffff, 0x10000, 0x3ffff, 0x40000, 0xfffff, 0x100000, 0x10ffff};
  for (int i = 0; i < 60; i++) edges.push_back(random() % (i % 2 ? 0x800 : 0x110000));
  const auto utf8 = [](uint32_t c) {
    std::string s;
    append_character(s, c);
    return s;
  };
  for (int i = 0; i < 400; i++) {
    const uint32_t a = edges[random() % edges.size()], b = edges[random() % edges.size()];
    const CharacterRange range{std::min(a, b), std::max(a, b)};
    if (range.first >= 0xd800 && range.last <= 0xdfff) continue;
    if (i % 2 == 0 && range.first == 0 && range.last == kLastCharacter) continue;
    Matcher m = matcher_of(i % 2 ? characters({range}) : all_but({range}));
    for (uint32_t edge : edges) {
      for (const uint32_t c : {edge - 1, edge, edge + 1}) {
        if (c > kLastCharacter || (c >= 0xd800 && c <= 0xdfff)) continue;
        const bool inside = c >= range.first && c <= range.last;
        ASSERT_EQ(accepts(m, utf8(c)), inside == (i % 2 == 1))
            << range.first << " " << range.last << " " << c;
      }
    }
  }
}

TEST(Grammar, NumbersBetweenBounds) {
  std::mt19937 random(2);
  const auto some = [&] { return int64_t(random() % 2400) - 1200; };
  for (int i = 0; i < 120; i++) {
    const int64_t a = i % 3 ? some() : some() / 100, b = i % 3 ? some() : some() / 100;
    std::optional<int64_t> least = std::min(a, b), most = std::max(a, b);
    if (i % 7 == 1) least.reset();
    if (i % 7 == 2) most.reset();
    Matcher whole = matcher_of(whole_numbers({least, most}));
    const bool exclusive = i % 2 && *std::max(least, most) - least.value_or(-2000) > 1;
    const auto bound = [&](std::optional<int64_t> v) {
      return v ? std::optional(NumberBound{*v, exclusive}) : std::nullopt;
    };
    Matcher fractions = matcher_of(numbers(bound(least), bound(most)));
    for (int64_t n = -1300; n <= 1300; n++) {
      const bool in = (!least || n >= *least) && (!most || n <= *most);
      ASSERT_EQ(accepts(whole, std::to_string(n)), in)
          << n << " " << least.value_or(-9999) << " " << most.value_or(9999);
      const bool inside = exclusive ? (!least || n > *least) && (!most || n < *most) : in;
      ASSERT_EQ(accepts(fractions, std::to_string(n)), inside) << n;
      // Behind n, away from 0.
      const double x = double(n) + (n < 0 ? -0.25 : 0.25);
      const bool between = (!least || x > double(*least)) && (!most || x < double(*most));
      ASSERT_EQ(accepts(fractions, std::to_string(n) + ".25"), between)
          << x << " " << least.value_or(-9999) << " " << most.value_or(9999);
    }
    EXPECT_FALSE(accepts(whole, "007") || accepts(whole, "+1") || accepts(whole, ""));
  }
}

TEST(Grammar, Schemas) {
  const Case cases[] = {
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
           "required": ["a"]})",
       {R"({"a": 1})", R"({"a":1,"b":"x"})", "{\n  \"a\": -20,\n  \"b\": \"\\u00e9\\n\" }"},
       {"{}", R"({"b":"x"})", R"({"b":"x","a":1})", R"({"a":1.5})", R"({"a":1,"c":2})", R"({"a":01})"}},
      {R"({"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": {"type": "null"}})",
       {"{}", R"({"b":[1,{}]})", R"({"a":1,"c":"x"})", R"({"c":1,"d":null,"ab":null})", R"({"d":null})"},
       {R"({"d":1})", R"({"c":1,"a":1})", R"({"d":null,"a":null})", R"({"":null})"}},
      {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3})",
       {"[true]", "[true, false,true]"}, {"[]", "[true,true,true,true]", "[1]", "[true,]"}},
      {R"({"prefixItems": [{"type": "integer"}, {"const": "x"}], "items": {"type": "null"}, "minItems": 1})",
       {"[1]", R"([1,"x"])", R"([1,"x",null,null])"}, {"[]", "[1,null]", R"(["x"])"}},
      {R"({"prefixItems": [{}, {}], "items": false})", {"[1,2]"}, {"[1]", "[1,2,3]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"enum": ["red", 1, null, {"a": [1]}]})", {"\"red\"", "1", "null", R"({"a":[1]})"}, {"red", "2"}},
      {R"({"type": "string", "enum": ["red", 1]})", {"\"red\""}, {"1"}},
      {R"({"type": ["string", "null"], "maxLength": 2})",
       {"null", "\"\"", "\"ab\"", R"("\"é")", R"("\ud83d\ude00x")"}, {"\"abc\"", "1", R"("\ud83d")", "\"\n\""}},
      {R"({"minLength": 2})", {"\"ab\"", "\"abcdef\""}, {"\"a\""}},
      {R"({"type": "string", "pattern": "^[a-z]+(-\\d{2})?$"})", {"\"ab\"", "\"ab-12\""}, {"\"ab-1\"", "\"\""}},
      {R"({"type": "string", "pattern": "a.c|^\"$"})", {"\"xxabcyy\"", R"("\"")", R"("a\\c")"}, {"\"ac\""}},
      {R"({"type": "string", "format": "date-time"})",
       {"\"2026-11-30T01:02:03Z\"", "\"2026-12-31T01:02:03.5+01:00\""},
       {"\"2026-13-30T01:02:03Z\"", "\"2026-11-31T01:02:03Z\"", "\"2026-11-30\""}},
      {R"({"type": "string", "format": "ipv4"})", {"\"255.0.10.1\""}, {"\"256.0.0.1\"", "\"1.2.3\""}},
      {R"({"type": "string", "format": "uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"x\""}},
      {R"({"type": "integer", "minimum": 0, "exclusiveMaximum": 10})", {"0", "9"}, {"10", "-1", "1.0"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1, "format": "double"})",
       {"0", "1", "0.25", "1.0"}, {"1.5", "-0.5", "2"}},
      {R"({"type": "number"})", {"0", "-1.5e-3", "12E2"}, {"01", ".5", "1.", "e1", "1e999"}},
      {R"({"anyOf": [{"type": "integer"}, {"type": "boolean"}], "description": "d"})", {"1", "true"}, {"\"\""}},
      {R"({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"],
           "oneOf": [{"properties": {"n": {"type": "integer"}}, "required": ["n"]},
                     {"properties": {"k": {"maxLength": 1}}}]})",
       {R"({"n":1,"k":"abc"})", R"({"k":"a"})"}, {R"({"k":"ab"})", "{}"}},
      {R"({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {"type": "null"}}, "required": ["y"]}],
           "$defs": {"a": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}}})",
       {R"({"x":null,"y":null})"}, {R"({"x":null})", R"({"y":null})"}},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "required": ["v"], "properties":
           {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}}}}})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"}, {R"({"v":1,"next":{}})"}},
      {R"({"type": "object", "properties": {"r": {"type": "array", "items": {"$ref": "#"}}}})",
       {"{}", R"({"r":[{},{"r":[]}]})"}, {R"({"r":[1]})"}},
      {R"({"type": "object", "required": ["x y"], "additionalProperties": {"type": "integer"}})",
       {R"({"x y":1})", R"({"x y":1,"z":2})"}, {"{}", R"({"z":1})", R"({"x y":1,"x y":2})"}},
      {"true", {"1", "[{}]", "\"x\""}, {"", "x"}},
      {R"({"const": "quo\"te"})", {R"("quo\"te")"}, {"\"\""}},
  };
  for (const Case& c : cases) expect(Grammar::from_json_schema(c.grammar), c);
}

TEST(Grammar, SchemasOfNamesAndTheirNumber) {
  const Case cases[] = {
      {R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
       {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}", R"({"a":1,"b":2,"c":3})"}},
      {R"({"type": "object", "maxProperties": 0})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"], "minProperties": 2})",
       {R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
       {R"({"b":1})", R"({"a":1,"c":1})", "{}"}},
      {R"({"properties": {"a": {}, "b": {}}, "additionalProperties": true, "maxProperties": 2,
           "minProperties": 1})",
       {R"({"a":1,"b":1})", R"({"b":1,"x":1})", R"({"x":1,"y":1})", R"({"x":1})"},
       {R"({"a":1,"b":1,"x":1})", "{}", R"({"x":1,"y":1,"z":1})"}},
      {R"({"patternProperties": {"^s_": {"type": "string"}, "^n[0-9]$": {"type": "integer"}}})",
       {"{}", R"({"s_a":"x","n1":2})"}, {R"({"s_a":2})", R"({"n12":2})", R"({"a":"x"})"}},
      {R"({"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "null"}})",
       {"{}", R"({"y":null})"}, {R"({"z":null})", R"({"x":1})"}},
      {R"({"propertyNames": {"maxLength": 2}})", {R"({"ab":[1]})"}, {R"({"abc":1})"}},
      {R"({"type": "integer", "nullable": true})", {"1", "null"}, {"\"x\""}},
      {R"({"type": "string", "nullable": false})", {"\"x\""}, {"null"}},
  };
  for (const Case& c : cases) expect(Grammar::from_json_schema(c.grammar), c);
}

// Against arithmetic: every whole number near the bounds.
TEST(Grammar, Multiples) {
  struct Bounds {
    std::string json;
    int64_t least, most;
  };
  const Bounds bounds[] = {{"", -4000, 4000},
                           {R"(, "exclusiveMinimum": 0, "maximum": 234)", 1, 234},
                           {R"(, "minimum": -277, "exclusiveMaximum": 106)", -277, 105},
                           {R"(, "minimum": -277, "exclusiveMaximum": -3)", -277, -4}};
  for (const int64_t step : {1, 3, 25, 120})
    for (const Bounds& b : bounds) {
      const std::string schema =
          fmt::format(R"({{"type": "integer", "multipleOf": {}{}}})", step, b.json);
      const Grammar g = Grammar::from_json_schema(schema);
      for (int64_t n = -290; n <= 250; n++)
        ASSERT_EQ(g.accepts(std::to_string(n)), n % step == 0 && n >= b.least && n <= b.most)
            << schema << " " << n;
      EXPECT_FALSE(g.accepts("00") || g.accepts("-0") || g.accepts("") || g.accepts("01"));
    }
  const Grammar large = Grammar::from_json_schema(R"({"type": "integer", "multipleOf": 256})");
  for (const int64_t n : {256L, 512L, 300L, 9999999999999744L, 9999999999999745L})
    EXPECT_EQ(large.accepts(std::to_string(n)), n % 256 == 0) << n;
  const Grammar thousands = Grammar::from_json_schema(R"({"multipleOf": 25000})");
  EXPECT_TRUE(thousands.accepts("75000") && thousands.accepts("-125000") && thousands.accepts("0"));
  EXPECT_FALSE(thousands.accepts("70000") || thousands.accepts("7500"));
}

TEST(Grammar, MultiplesWithDecimals) {
  const Case cases[] = {
      {R"({"type": "number", "multipleOf": 0.25})", {"0", "0.25", "-12.50", "3.00", "1000.75"},
       {"0.3", "0.10", "1", "0.250", ".25", "-0.00"}},
      {R"({"type": "number", "multipleOf": 0.01, "minimum": 0, "exclusiveMaximum": 2})",
       {"0", "0.01", "1.99", "1.00"}, {"2.00", "-0.01", "0.001", "1.5"}},
      {R"({"multipleOf": 1.5, "exclusiveMinimum": 1, "maximum": 6})", {"1.5", "3.0", "6.0"},
       {"0", "1.0", "7.5", "2.5"}},
      {R"({"multipleOf": 10.0})", {"0", "10", "-120"}, {"5", "1", "010"}},
  };
  for (const Case& c : cases) expect(Grammar::from_json_schema(c.grammar), c);
}

TEST(Grammar, AnyJsonObject) {
  expect(Grammar::json_object(),
         {"object",
          {"{}", R"({"a": [1, -2.5e3, "x\\", {"b": null}], "c": true})", R"({ "é" : [ ] })"},
          {"[]", "1", "{", R"({"a":})", R"({"a":1,})", R"({"a":1}x)", R"({a:1})"}});
}

TEST(Grammar, SchemasThatAreNone) {
  const std::pair<std::string, std::string> wrong[] = {
      {"{", "it is no JSON"},
      {"3", "it is 3: an object was wanted"},
      {R"({"type": "text"})", "/type is \"text\""},
      {R"({"type": []})", "the name of a type"},
      {R"({"properties": {"a": {"type": 1}}})", "/properties/a/type is 1"},
      {R"({"$ref": "#/nowhere"})", "a place that the schema has"},
      {R"({"$ref": "http://x/y"})", "a place within the schema"},
      {R"({"$ref": "#"})", "begins with itself"},
      {R"({"type": "integer", "minimum": 2, "maximum": 1})",
       "schema: the root: no number is between"},
      {R"({"type": "number", "minimum": 0.5})", "/minimum is 0.5: a whole number"},
      {R"({"minItems": 3, "maxItems": 2})", "at least 3 items and at most 2"},
      {R"({"type": "string", "minLength": -1})", "/minLength is -1"},
      {R"({"properties": {}, "required": ["a"], "additionalProperties": false})", "requires \"a\""},
      {R"({"type": "integer", "enum": ["x"]})", "a value of the schema's type"},
      {R"({"anyOf": []})", "a list of 1 to 1000 schemas"},
      {R"({"type": "integer", "multipleOf": 0})", "/multipleOf is 0: a number above 0"},
      {R"({"type": "integer", "multipleOf": 257})", "up to 256"},
      {R"({"type": "integer", "multipleOf": 0.5})", "a whole number, for integers,"},
      {R"({"multipleOf": 7, "minimum": 8, "maximum": 13})", "no multiple of 7 is between"},
      {R"({"properties": {"a": {}}, "minProperties": 2})", "so many members"},
      {R"({"minProperties": 3, "maxProperties": 2})", "so many members"},
      {R"({"properties": {"a": {}}, "required": ["a"], "maxProperties": 0})", "so many members"},
      {R"({"pattern": "a("})", "the pattern 'a('"},
      {R"({"pattern": "*"})", "something to repeat"},
      {R"({"$ref": "#/$defs/a", "type": "object", "$defs": {"a": {"properties": {
           "l": {"$ref": "#/$defs/a", "type": "object"}, "r": {"$ref": "#/$defs/a", "type": "object"}}}}})",
       "deeper than 200"},
      {std::string(100000, '[') + std::string(100000, ']'), "deeper than 200"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}})", "refers to itself"},
  };
  for (const auto& [schema, error] : wrong)
    EXPECT_THAT(error_of<InvalidArgument>([&] { Grammar::from_json_schema(schema); }),
                HasSubstr(error)) << schema;
  const std::pair<std::string, std::string> unknown[] = {
      {R"({"type": "array", "uniqueItems": true})", "/uniqueItems is not known; known are type,"},
      {R"({"patternProperties": {"a": {}}, "properties": {"b": {}}})", "/patternProperties beside"},
      {R"({"propertyNames": {}, "required": ["a"]})", "/propertyNames beside properties"},
      {R"({"not": {}})", "/not"},
      {R"({"type": "string", "format": "colour"})", "\"colour\" is not known; known are date,"},
      {R"x({"pattern": "(?=a)b"})x", "a look ahead"},
      {R"({"pattern": "a^b"})", "^ within"},
      {R"x({"pattern": "(a$)"})x", "$ within"},
      {R"x({"pattern": "(a)\\1"})x", "a reference to a group"},
      {R"({"pattern": "\\bx"})", "\\b"},
      {R"({"pattern": "a", "maxLength": 2})", "bounds of its length"},
      {R"({"allOf": [{"type": "string"}, {"type": "null"}]})", "differ in type"},
  };
  for (const auto& [schema, error] : unknown)
    EXPECT_THAT(error_of<Unsupported>([&] { Grammar::from_json_schema(schema); }), HasSubstr(error))
        << schema;
}

Matcher matcher_of(const Rules& rules) {
  return Matcher(std::make_shared<const Automaton>(build_automaton(rules)));
}

// What a stranger sends takes neither long nor much memory before it is refused.
TEST(Grammar, LargeOnesAreRefused) {
  std::string rules = "root ::= a1\n";
  for (int i = 0; i < 60000; i++) rules += fmt::format("a{} ::= \"x\"\n", i);
  EXPECT_TRUE(Grammar::parse(rules).accepts("x")) << "many are no matter";
  std::string schema = R"({"properties": {)";
  for (int i = 0; i < 900; i++)
    schema += fmt::format(R"({}"{}{}": true)", i ? "," : "", std::string(200, 'n'), i);
  schema += R"(}, "anyOf": [{})";
  for (int i = 0; i < 900; i++) schema += ",{}";
  EXPECT_THAT(error_of<InvalidArgument>([&] { Grammar::from_json_schema(schema + "]}"); }),
              HasSubstr("more than 1048576 expressions"));
  EXPECT_THAT(error_of<InvalidArgument>([&] {
                Grammar::parse("root ::= \"" + std::string(1 << 20, 'a') + "\"");
              }),
              HasSubstr("at most 1048576 were wanted"));
}

// Texts that are drawn at random are JSON, whatever the way they took.
TEST(Grammar, WhatItWritesIsJson) {
  const Rules rules = read_json_schema(
      R"({"type": "array", "items": {"anyOf": [{}, {"properties": {"a": {"pattern": "\\w|\\s\""}},
          "additionalProperties": {"type": "number", "minimum": -3}}]}})");
  std::mt19937 random(3);
  size_t whole = 0;
  for (int i = 0; i < 200; i++) {
    Matcher m = matcher_of(rules), fresh = m;
    std::string text;
    Matcher::State at = m.start();
    while (m.goes_on(at) && text.size() < 2000) {
      m.renew_steps();
      std::vector<uint8_t> some;
      for (unsigned b = 0; b < 256; b++)
        if (m.next(at, uint8_t(b)) != Matcher::kNone) some.push_back(uint8_t(b));
      uint8_t byte = some[random() % some.size()];
      // Closing marks are preferred, or most texts would not end.
      for (const char c : std::string_view("]}\""))
        if (std::ranges::find(some, uint8_t(c)) != some.end() && random() % 3 == 0) byte = uint8_t(c);
      text += char(byte);
      at = m.next(at, byte);
      if (random() % 50 == 0) at = m.forget_others(at);
    }
    if (!m.accepts(at)) continue;
    whole++;
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    EXPECT_TRUE(accepts(fresh, text)) << text;
  }
  EXPECT_GT(whole, 100u);
}

class TokenFilterTest : public testing::Test {
 protected:
  void look_at(const Tokenizer& tokenizer, const Grammar& grammar, const Rules& rules) {
    Matcher m = matcher_of(rules);
    TokenFilter filter(grammar, tokenizer);
    const std::vector<float> logits(tokenizer.size(), 1);
    std::vector<int32_t> ids;
    for (int step = 0; step < 12 && !filter.ended(); step++) {
      const std::string text = tokenizer.decode(ids);
      std::vector<int32_t> may;
      bool ends = false;
      for (int32_t t = 0; size_t(t) < tokenizer.size(); t++) {
        ids.push_back(t);
        const std::string with = tokenizer.decode(ids);
        ids.pop_back();
        const bool end = tokenizer.is_end(t);
        if (end && accepts(m, text)) ends = true;
        const bool writes = !end && !tokenizer.is_special(t) && with.size() > text.size();
        if (writes && behind(m, with) != Matcher::kNone) may.push_back(t);
      }
      if (may.empty() && !ends) {
        EXPECT_THAT(error_of<InvalidArgument>([&] { filter.filtered(logits); }),
                    HasSubstr("no token of the vocabulary"));
        return;
      }
      const std::span<const float> left = filter.filtered(logits);
      for (int32_t t = 0; size_t(t) < tokenizer.size(); t++) {
        const bool comes = std::ranges::find(may, t) != may.end() ||
                           (tokenizer.is_end(t) && accepts(m, text));
        ASSERT_EQ(left[size_t(t)] == 1, comes) << tokenizer.token(t) << " behind '" << text << "'";
      }
      if (may.empty()) return;
      looked_++;
      ids.push_back(may[random_() % may.size()]);
      filter.push(ids.back());
    }
  }
  std::mt19937 random_{4};
  size_t looked_ = 0;
};

// Beside a look at each token by itself.
TEST_F(TokenFilterTest, LetsThroughWhatGoesOn) {
  const std::string schema = R"({"properties": {"the": {"type": "string"}}, "required": ["the"]})";
  const std::string notation = "root ::= [ a-z]* ([^a-z] | \"th\")+";
  for (const auto& [name, fixture] : fixtures().items()) {
    const Tokenizer tokenizer = Tokenizer::from_json(fixture["tokenizer"].dump());
    for (int i = 0; i < 4; i++) {
      look_at(tokenizer, Grammar::from_json_schema(schema), read_json_schema(schema));
      look_at(tokenizer, Grammar::parse(notation), read_notation(notation));
      look_at(tokenizer, Grammar::json_object(), json_object_rules());
    }
  }
  EXPECT_GT(looked_, 100u);
}

TEST_F(TokenFilterTest, AGrammarThatTakesTooLongIsAnError) {
  const Grammar grammar = Grammar::parse("root ::= (((.{0,60} \"a\"?){0,60} .){0,60} .){0,60}");
  TokenFilter filter(grammar, Tokenizer::from_json(fixtures()["byte_level"]["tokenizer"].dump()));
  const std::vector<float> logits(1000, 0);
  EXPECT_THAT(error_of<Unsupported>([&] { filter.filtered(logits); }),
              testing::AnyOf(HasSubstr("too ambiguous"), HasSubstr("in more than 4096 ways")));
}

TEST_F(TokenFilterTest, WhatCannotGoOnIsAnError) {
  const Tokenizer tokenizer = Tokenizer::from_json(fixtures()["word_piece"]["tokenizer"].dump());
  TokenFilter filter(Grammar::parse("root ::= \"\\u4e00\""), tokenizer);
  const std::vector<float> logits(tokenizer.size(), 0);
  EXPECT_EQ(error_of<InvalidArgument>([&] { filter.filtered(logits); }),
            "no token of the vocabulary goes on as the grammar wants");
}

}  // namespace
}  // namespace tuff::text::grammar
