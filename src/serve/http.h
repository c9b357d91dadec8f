// HTTP/1.1 for the server: connections, limits on bytes and time, and whether who asked is still
// there. The library that does it is opened at run time. Must never know what is served.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuff::serve {

struct HttpRequest {
  std::string method, path, body;
  std::function<std::string(const char*)> header;  // by name; empty where there is none
};

// Who asked.
class HttpPeer {
 public:
  virtual ~HttpPeer() = default;
  virtual bool gone() = 0;
  // A part of a body that is streamed; false if it cannot be sent any more.
  virtual bool write(std::string_view text) = 0;
};

struct HttpResponse {
  int status = 200;
  std::string body = {}, type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Instead of `body`: writes it as it comes.
  std::function<void(HttpPeer&)> stream = {};
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;            // 0: any that is free
  size_t connections = 128;   // that are served at once; others wait
  size_t body_bytes = 4 << 20;
  std::chrono::seconds read_time{30};   // for a request to arrive
  std::chrono::seconds write_time{60};  // without any of an answer being read
};

// What requests are answered by. None of them throws.
struct HttpHandlers {
  // Asked before the body is read; a response refuses it.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> gate;
  std::function<HttpResponse(const HttpRequest&, HttpPeer&)> answer;
  // What is said where HTTP itself goes wrong: 400, 413, 414.
  std::function<std::string(int status)> error_body;
};

namespace http_api {
class Server;
}

class HttpServer {
 public:
  // IoError if it cannot listen there; Unsupported if the library of HTTP is not there.
  HttpServer(const HttpOptions& options, const HttpHandlers& handlers);
  ~HttpServer();  // stops
  int port() const;
  // Closes the door, and all connections: those that get answers within this time once they have
  // them.
  void stop(std::chrono::milliseconds most);

 private:
  std::unique_ptr<http_api::Server> server_;
};

}  // namespace tuff::serve
