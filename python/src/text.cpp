// Tokenizer, TextStream, ChatTemplate and Grammar.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <tuff/chat_template.h>
#include <tuff/grammar.h>
#include <tuff/tokenizer.h>

#include <filesystem>

#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Ids = std::vector<int32_t>;

// What tokens spell may be no UTF-8.
py::str text(const std::string& t) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(t.data(), py::ssize_t(t.size()), "replace"));
}

std::string json_of(const py::object& value) {
  return py::module_::import("json").attr("dumps")(value).cast<std::string>();
}

void bind_tokenizer(py::module_& m) {
  py::class_<Tokenizer>(m, "Tokenizer",
                        "A vocabulary, and how texts are cut into its tokens; made by open() "
                        "and from_json().")
      .def_static(
          "open",
          [](const std::filesystem::path& path) {
            const py::gil_scoped_release released;
            return Tokenizer::open(path.string());
          },
          arg("path"), "Of a GGUF file, a tokenizer.json or a folder that holds one.")
      .def_static("from_json", &Tokenizer::from_json, arg("json"),
                  "Of the contents of a tokenizer.json.")
      .def(
          "encode",
          [](const Tokenizer& t, const std::string& text, bool add_special, bool parse_special) {
            const py::gil_scoped_release released;
            return t.encode(text, {add_special, parse_special});
          },
          arg("text"), py::kw_only(), arg("add_special") = true, arg("parse_special") = true,
          "The ids of a text's tokens; of str or bytes.")
      .def(
          "decode",
          [](const Tokenizer& t, const Ids& ids, bool skip_special) {
            return text(t.decode(ids, skip_special));
          },
          arg("ids"), py::kw_only(), arg("skip_special") = true,
          "The text of tokens; what is no UTF-8 is U+FFFD.")
      .def(
          "piece", [](const Tokenizer& t, int32_t id) { return py::bytes(t.piece(id)); }, arg("id"),
          "The bytes that a token adds to a text.")
      .def(
          "token", [](const Tokenizer& t, int32_t id) { return text(t.token(id)); }, arg("id"),
          "As the vocabulary spells a token.")
      .def(
          "find", [](const Tokenizer& t, const std::string& token) { return t.find(token); },
          arg("token"), "The id of a token by its spelling, or None.")
      .def("size", &Tokenizer::size)
      .def("__len__", &Tokenizer::size)
      .def("bos", &Tokenizer::bos, "Begins a text.")
      .def("eos", &Tokenizer::eos, "Ends a text.")
      .def("unknown", &Tokenizer::unknown, "Stands for what the vocabulary lacks.")
      .def("pad", &Tokenizer::pad)
      .def("is_end", &Tokenizer::is_end, arg("id"),
           "Whether a model that gives this token has ended its answer.")
      .def("is_special", &Tokenizer::is_special, arg("id"), "Whether decode() leaves it out.")
      .def(
          "chat_template", [](const Tokenizer& t) { return text(t.chat_template()); },
          "The Jinja template of chats that came with it, or ''.");
  py::class_<TextStream>(m, "TextStream",
                         "The text of tokens that arrive one by one, in whole characters.")
      .def(py::init<Tokenizer, bool>(), arg("tokenizer"), arg("skip_special") = true)
      .def("push", &TextStream::push, arg("id"), "What is certain of the text with this token.")
      .def("finish", &TextStream::finish, "What is left of an unfinished character.");
}

void bind_grammar(py::module_& m) {
  py::class_<Grammar>(m, "Grammar", "What an answer may be: a grammar, or a JSON schema.")
      .def(py::init<>(), "Any text.")
      .def_static("parse", &Grammar::parse, arg("text"), "GBNF, the notation of llama.cpp.")
      .def_static(
          "from_json_schema",
          [](const py::object& schema, std::string_view before, std::string_view behind) {
            return Grammar::from_json_schema(
                py::isinstance<py::str>(schema) ? schema.cast<std::string>() : json_of(schema),
                before, behind);
          },
          arg("schema"), arg("before") = "", arg("behind") = "",
          "JSON of a schema: a dict, as pydantic's model_json_schema() gives it, or its text; "
          "before, behind: what stands around it.")
      .def_static("json_object", &Grammar::json_object, "Any JSON object.")
      .def("defined", &Grammar::defined)
      .def("accepts", &Grammar::accepts, arg("text"), "Whether all of a text is one of its.");
}

void bind_chat_template(py::module_& m) {
  py::class_<ChatTemplate>(m, "ChatTemplate", "A chat template: Jinja, as transformers renders it.")
      .def(py::init<std::string_view>(), arg("text"))
      .def(
          "render",
          [](const ChatTemplate& t, const py::object& messages, const py::object& tools,
             bool add_generation_prompt, std::string bos_token, std::string eos_token,
             std::optional<int64_t> now, const py::kwargs& variables) {
            ChatOptions options{add_generation_prompt, std::move(bos_token), std::move(eos_token)};
            if (!tools.is_none()) options.tools = json_of(tools);
            if (variables) options.variables = json_of(variables);
            options.now = now;
            return text(t.render(json_of(messages), options));
          },
          arg("messages"), arg("tools") = py::none(), py::kw_only(),
          arg("add_generation_prompt") = true, arg("bos_token") = "", arg("eos_token") = "",
          arg("now") = py::none(),
          "The prompt of messages: [{'role': 'user', 'content': 'Hello'}]. Other keyword arguments "
          "are variables of the template.")
      .def("text", [](const ChatTemplate& t) { return text(t.text()); });
}

}  // namespace

void bind_text(py::module_& m) {
  bind_tokenizer(m);
  bind_grammar(m);
  bind_chat_template(m);
}

}  // namespace tuff::python
