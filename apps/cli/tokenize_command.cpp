// `tuff tokenize MODEL TEXT`: a text as the tokens of a model's vocabulary, and back.
#include <memory>
#include <sstream>

#include <tuff/tokenizer.h>
#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace tuff::cli {
namespace {

struct TokenizeOptions {
  std::string model, text, file;
  bool ids = false, decode = false, plain = false, json = false;
};

std::string text_of(const TokenizeOptions& o) {
  if (o.file.empty()) return o.text;
  const std::vector<uint8_t> bytes = os::read_file(o.file);
  return {bytes.begin(), bytes.end()};
}

// "1, 2 3" or "[1, 2, 3]"
std::vector<int32_t> ids_of(std::string text) {
  for (char& c : text)
    if (c == ',' || c == '[' || c == ']') c = ' ';
  std::istringstream in(text);
  std::vector<int32_t> out;
  for (std::string word; in >> word;) {
    std::istringstream number(word);
    int32_t id = 0;
    if (!(number >> id) || !number.eof())
      fail<InvalidArgument>("tokenize: '{:.80}' is no token's number", printable(word));
    out.push_back(id);
  }
  return out;
}

void print_table(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids)
    fmt::print("{:>8}  {}{}\n", id, printable(tokenizer.token(id)),
               tokenizer.is_end(id)       ? "  (ends an answer)"
               : tokenizer.is_special(id) ? "  (special)"
                                          : "");
}

int tokenize(const TokenizeOptions& o) {
  const Tokenizer tokenizer = Tokenizer::open(o.model);
  const std::string text = text_of(o);
  if (o.decode) {
    const std::string decoded = tokenizer.decode(ids_of(text), !o.plain);
    if (o.json)
      print_json({{"event", "text"}, {"text", decoded}});
    else
      fmt::print("{}\n", decoded);
    return kExitOk;
  }
  const std::vector<int32_t> ids = tokenizer.encode(text, {!o.plain, !o.plain});
  if (o.json) {
    for (const int32_t id : ids)
      print_json({{"event", "token"}, {"id", id}, {"token", tokenizer.token(id)}});
    print_json({{"event", "done"}, {"tokens", ids.size()}, {"vocabulary", tokenizer.size()}});
  } else if (o.ids) {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else {
    print_table(tokenizer, ids);
  }
  return kExitOk;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand("tokenize",
                                   "A text as tokens of a model's vocabulary: of a GGUF file, a "
                                   "tokenizer.json, or a folder that "
                                   "holds one");
  auto o = std::make_shared<TokenizeOptions>();
  c->add_option("model", o->model, "Where the vocabulary is")->required()->type_name("MODEL");
  CLI::Option* text = c->add_option("text", o->text, "The text")->type_name("TEXT");
  CLI::Option* file = c->add_option("--file", o->file, "Takes the text from a file")
                          ->type_name("FILE")
                          ->excludes(text);
  c->add_flag("--ids", o->ids, "Prints the numbers alone, on one line");
  c->add_flag("--decode", o->decode, "The text is a list of numbers; prints what they spell");
  c->add_flag("--plain", o->plain,
              "Adds no special tokens and finds none in the text; decoding shows them");
  c->add_flag("--json", o->json, "One JSON object per line");
  c->footer(
      "Examples:\n"
      "  tuff tokenize model.gguf \"Hello world\"\n"
      "  tuff tokenize model.gguf --file book.txt --ids\n"
      "  tuff tokenize model.gguf --decode \"9906 1917\"");
  c->callback([o, text, file, &chosen] {
    if (text->empty() && file->empty()) throw CLI::RequiredError("TEXT or --file");
    chosen = [o] { return tokenize(*o); };
  });
}

}  // namespace tuff::cli
