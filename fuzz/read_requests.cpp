// libFuzzer's entry point of requests to the server: the first byte says of which kind the others
// are. Whatever they are, there is a request or a RequestError.
#include "serve/request.h"
#include "serve/request_error.h"
#include "serve/tool_calls.h"

using namespace tuff::serve;

namespace {

// As an answer that comes in two pieces.
void read_calls(std::string_view text) {
  const tuff::Json tools = tuff::Json::parse(R"([{"function": {"name": "f"}}])");
  ToolCallReader reader(tools);
  reader.push(text.substr(0, text.size() / 2));
  reader.push(text.substr(text.size() / 2));
  reader.finish();
}

void read(char kind, std::string_view body) {
  if (kind == 'C') read_chat_request(body);
  if (kind == 'P') read_completion_request(body);
  if (kind == 'E') read_embedding_request(body);
  if (kind == 'T') read_calls(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (size > 0) read(char(data[0]), {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const RequestError& e) {  // what wrong requests are answered with; all else is a finding
    error_body(e);
  }
  return 0;
}
