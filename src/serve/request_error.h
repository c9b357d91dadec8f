// Requests that are refused: a status of HTTP and OpenAI's JSON form of an error. Thrown wherever a
// request is read or waits; answered by the server. Must never know of HTTP beyond a status.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace tuff::serve {

class RequestError : public std::runtime_error {
 public:
  // `param`: the member of the request that is wrong; `code`: for programs. Both may be empty.
  RequestError(int status, const std::string& message, std::string param = {},
               std::string code = {})
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_, code_;
};

// refuse("top_p", "top_p is {}: a number from 0 to 1 was wanted", 3)
template <class... Args>
[[noreturn]] void refuse(const std::string& param, fmt::format_string<Args...> text,
                         Args&&... args) {
  throw RequestError(400, fmt::format(text, std::forward<Args>(args)...), param);
}

// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
std::string error_body(const RequestError& error);

}  // namespace tuff::serve
