// What libtuff_http.so offers (http_library.cpp) to http.cpp, which opens it; both of one build.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "serve/http.h"

namespace tuff::serve::http_api {

class Server {
 public:
  virtual ~Server() = default;
  virtual int port() const = 0;
  virtual void stop(std::chrono::milliseconds most) = 0;
};

struct Api {
  const char* build;  // kApiBuild
  // Null and why, where it cannot listen.
  std::unique_ptr<Server> (*open)(const HttpOptions& options, const HttpHandlers& handlers,
                                  std::string& why);
};

inline constexpr char kApiBuild[] = "1 " __VERSION__;
inline constexpr char kApiSymbol[] = "tuff_http_api";  // extern "C" const Api* ()

}  // namespace tuff::serve::http_api
