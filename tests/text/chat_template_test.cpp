// Templates against what jinja2 makes of them (scripts/chat-template-values.py), errors, and
// templates that mean harm.
#include <gmock/gmock.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include <tuff/chat_template.h>
#include <tuff/error.h>
#include "base/error_of.h"

namespace tuff {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string rendered(const std::string& text, const std::string& messages = "[]") {
  return ChatTemplate(text).render(messages);
}

TEST(ChatTemplate, RendersWhatJinja2Renders) {
  std::ifstream in(TUFF_SOURCE_DIR "/tests/data/chat_templates.json");
  const auto data = nlohmann::ordered_json::parse(in);
  ChatOptions options{true, "<s>", "</s>"};
  options.variables = R"({"extra": {"a": 1}})";
  options.now = 0;
  for (const auto& c : data["cases"]) {
    const std::string text = c["template"];
    SCOPED_TRACE(text);
    const auto render = [&] { return ChatTemplate(text).render(data["messages"].dump(), options); };
    if (c["text"].is_null()) {
      EXPECT_THROW(render(), InvalidArgument);
    } else {
      EXPECT_EQ(render(), std::string(c["text"]));
    }
  }
}

TEST(ChatTemplate, NamesLineAndConstruct) {
  const auto error = [](const char* text) {
    return error_of<InvalidArgument>([&] { rendered(text); });
  };
  EXPECT_THAT(error("a\n\n{% foo %}"), AllOf(HasSubstr("line 3"), HasSubstr("'foo'")));
  EXPECT_THAT(error("a\n{{ x.y }}"), AllOf(HasSubstr("line 2"), HasSubstr("'x' is undefined")));
  EXPECT_THAT(error("{{ 1 | nope }}"), AllOf(HasSubstr("'nope'"), HasSubstr("known are abs")));
  EXPECT_THAT(error("\n{{ raise_exception('only users') }}"),
              AllOf(HasSubstr("line 2"), HasSubstr("only users")));
  EXPECT_THAT(error("{% if x %}"), HasSubstr("'endif' is missing"));
  EXPECT_THAT(error("{{ 'x' }"), HasSubstr("line 1"));
}

TEST(ChatTemplate, RefusesWhatIsNoListOfMessages) {
  const ChatTemplate t("{{ messages }}");
  EXPECT_THAT(error_of<InvalidArgument>([&] { t.render("{}"); }), HasSubstr("a list"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { t.render("[1"); }), HasSubstr("no JSON"));
  ChatOptions options;
  options.variables = "[]";
  EXPECT_THAT(error_of<InvalidArgument>([&] { t.render("[]", options); }), HasSubstr("an object"));
}

TEST(ChatTemplate, EndsWhateverTheTemplate) {
  const auto deep = [](const std::string& a, const std::string& b, const std::string& c) {
    std::string out;
    for (int i = 0; i < 100'000; i++) out += a;
    out += b;
    for (int i = 0; i < 100'000; i++) out += c;
    return out;
  };
  const std::string hostile[] = {
      "{% for i in range(100000000) %}{% endfor %}",
      "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
      "{{ 'aaaaaaaaaa' * 100000000000 }}",
      "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "{{ '%999999d' % 1 * 9999999 }}",
      "{{ 2 ** 100000 }}",
      deep("{{ (", "1", ") }}"),
      "{{ " + deep("(", "1", ")") + " }}",
      "{{ " + deep("[", "1", "]") + " }}",
      "{{ " + deep("not ", "1", "") + " }}",
      "{{ " + deep("- ", "1", "") + " }}",
      "{{ 1" + deep("", "", " + 1") + " }}",
      "{{ x" + deep("", "", ".y") + " }}",
      "{{ 1" + deep("", "", "|string") + " }}",
      deep("{% if 1 %}", "", "{% endif %}"),
      deep("{% for i in [1] %}", "", "{% endfor %}")};
  for (const std::string& text : hostile)
    EXPECT_THROW(rendered(text), InvalidArgument) << text.substr(0, 80);
  EXPECT_EQ(rendered("{% set a = namespace() %}{% set a.a = a %}{{ a.a.a is defined }}"), "True");
}

}  // namespace
}  // namespace tuff
