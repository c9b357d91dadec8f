#include "serve/http.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/os.h"
#include "base/shipped.h"
#include "serve/http_api.h"

namespace tuff::serve {
namespace {

constexpr const char* kFile = "libtuff_http.so";

const http_api::Api& library() {
  const std::vector<std::string> places = shipped_places(kFile);
  std::vector<std::string> there;
  std::ranges::copy_if(places, std::back_inserter(there), os::exists);
  std::string why;
  const auto library = os::Library::open(there, &why);
  if (!library && there.empty())
    fail<Unsupported>("{}, which does HTTP, is at none of {}: build the target tuff_http", kFile,
                      fmt::join(places, ", "));
  if (!library)
    fail<Unsupported>("{}, which does HTTP, cannot be opened: {}; it needs cpp-httplib (Debian: "
                      "libcpp-httplib0.11)",
                      kFile, why);
  using Function = const http_api::Api* (*)();
  const auto function = reinterpret_cast<Function>(library->symbol(http_api::kApiSymbol));
  const http_api::Api* api = function ? function() : nullptr;
  if (!api || std::strcmp(api->build, http_api::kApiBuild) != 0)
    fail<Unsupported>("{} is of another build of tuff: build both together", kFile);
  return *api;
}

}  // namespace

HttpServer::HttpServer(const HttpOptions& options, const HttpHandlers& handlers) {
  std::string why;
  server_ = library().open(options, handlers, why);
  if (!server_) fail<IoError>("cannot listen on {} port {}: {}", options.host, options.port, why);
}

HttpServer::~HttpServer() = default;
int HttpServer::port() const { return server_->port(); }
void HttpServer::stop(std::chrono::milliseconds most) { server_->stop(most); }

}  // namespace tuff::serve
