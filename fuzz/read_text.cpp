// libFuzzer's entry point of the room text: the first byte says what the others are. Whatever they
// are, there is a tokenizer, a prompt or a grammar, or one of tuff's errors.
#include <tuff/chat_template.h>
#include <tuff/error.h>
#include <tuff/grammar.h>
#include <tuff/tokenizer.h>

#include "base/check.h"
#include "base/os_data_file.h"
#include "io/formats/gguf.h"
#include "io/formats/read_all.h"

using namespace tuff;

// Tokenizer::open() alone opens files, and is not called here.
namespace tuff::os {
DataFile::DataFile(const std::string& path, Mode) : path_(path) { fail<IoError>("{}", path); }
DataFile::~DataFile() = default;
void DataFile::read_at(uint64_t, std::span<uint8_t>) const {}
}  // namespace tuff::os

namespace {

constexpr const char* kTexts[] = {"The quick 12 fox<s> isn't\n\n \xc3\xbc", "\xff\xf0\x9f \xe6\x95\x8f",
                                  "   [MASK] "};
constexpr const char* kMessages =
    R"([{"role": "user", "content": "a <b> 'c'"}, {"role": "assistant", "content": null, "n": [1.5, true]}])";

void use(const Tokenizer& tokenizer) {
  for (const char* text : kTexts) {
    TextStream stream(tokenizer);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    tokenizer.decode(ids);
    for (const int32_t id : ids) stream.push(id);
    stream.finish();
  }
}

void use(const Grammar& grammar, std::string_view own) {
  for (const std::string_view text : {std::string_view("{\"a\": [1, null]}"), own})
    grammar.accepts(text);
}

void read(char kind, std::span<const uint8_t> data) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (kind == 'J') use(Tokenizer::from_json(text));
  if (kind == 'G')
    use(Tokenizer::from_metadata(io::read_gguf(io::MemoryBytes("damaged", data)).metadata));
  if (kind == 'N') use(Grammar::parse(text), text);
  if (kind == 'S') use(Grammar::from_json_schema(text), text);
  if (kind == 'C') ChatTemplate(text).render(kMessages, {.tools = "[1]", .now = 0});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (size > 0) read(char(data[0]), {data + 1, size - 1});
  } catch (const Error&) {  // what damaged inputs are answered with; all else is a finding
  }
  return 0;
}
