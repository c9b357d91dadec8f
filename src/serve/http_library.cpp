// HTTP by cpp-httplib: all of the library libtuff_http.so, which http.cpp opens. Debian has
// cpp-httplib as a shared library alone, and a portable program links none. Nothing is thrown from
// here to the program.

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <httplib.h>

#include "serve/http_api.h"

namespace tuff::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTick = 100;  // ms between looks at whether the server stops
constexpr size_t kHeaderBytes = size_t(64) << 10;
constexpr std::chrono::seconds kIdle{15}, kShortIdle{1};  // between two requests of a connection
constexpr std::chrono::seconds kLinger{2};
constexpr size_t kLingerBytes = size_t(64) << 20;
constexpr int kBacklog = 512;
constexpr size_t kRequests = 1000;  // of a connection

// What all connections have in common.
struct House {
  const HttpOptions options;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> open{0};  // connections
  std::atomic<size_t> busy{0};  // those that have a request
  bool full() const { return open >= options.connections; }
};

// A socket within limits: a request has so many bytes and so much time.
class Connection : public httplib::Stream, public HttpPeer {
 public:
  Connection(socket_t socket, const House& house)
      : socket_(socket), options_(house.options), stopping_(house.stopping), house_(house) {}

  // Waits for the next request's first byte, less long where others may wait for a place; false if
  // none comes.
  bool next_request() {
    const auto begin = Clock::now();
    const auto late = [&] { return Clock::now() - begin > (house_.full() ? kShortIdle : kIdle); };
    while (begin_ == end_ && !stopping_ && !late() && !poll_for(POLLIN, kTick)) {
    }
    left_ = kHeaderBytes + options_.body_bytes;
    until_ = Clock::now() + options_.read_time;
    return begin_ != end_ || (!stopping_ && poll_for(POLLIN, 0));
  }
  // The body was not read: there is no next request.
  void close_behind_answer() { closing_ = true; }
  bool closing() const { return closing_; }
  // What was sent arrives only if nothing unread is thrown away (RFC 9112, 9.6).
  void close() {
    ::shutdown(socket_, SHUT_WR);
    char rest[4096];
    const auto until = Clock::now() + kLinger;
    for (size_t n = 0; closing_ && n < kLingerBytes && Clock::now() < until;) {
      if (!poll_for(POLLIN, kTick)) continue;
      const ssize_t got = ::recv(socket_, rest, sizeof rest, MSG_DONTWAIT);
      if (got <= 0) break;
      n += size_t(got);
    }
    ::close(socket_);
  }

  bool gone() override {
    pollfd p{socket_, POLLIN | POLLRDHUP, 0};
    if (::poll(&p, 1, 0) <= 0) return false;
    return (p.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL)) != 0;
  }
  bool write(std::string_view text) override {
    while (!text.empty()) {
      const ssize_t n = write(text.data(), text.size());
      if (n <= 0) return false;
      text.remove_prefix(size_t(n));
    }
    return true;
  }

  bool is_readable() const override { return begin_ != end_ || poll_for(POLLIN, 0); }
  bool is_writable() const override { return poll_for(POLLOUT, 0); }
  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const size_t n = std::min({size, end_ - begin_, left_});
    std::memcpy(to, buffer_ + begin_, n);
    begin_ += n;
    left_ -= n;
    return n > 0 ? ssize_t(n) : -1;
  }
  ssize_t write(const char* from, size_t size) override {
    const auto until = Clock::now() + options_.write_time;
    while (!poll_for(POLLOUT, kTick))
      if (Clock::now() > until || stopping_) return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool poll_for(short events, int ms) const {
    pollfd p{socket_, events, 0};
    return ::poll(&p, 1, ms) > 0;
  }
  bool fill() {
    while (!poll_for(POLLIN, kTick))
      if (Clock::now() > until_ || stopping_) return false;
    if (Clock::now() > until_) return false;
    const ssize_t n = ::recv(socket_, buffer_, sizeof buffer_, 0);
    begin_ = 0, end_ = n > 0 ? size_t(n) : 0;
    return n > 0;
  }

  socket_t socket_;
  const HttpOptions& options_;
  const std::atomic<bool>& stopping_;
  const House& house_;
  char buffer_[16384];
  size_t begin_ = 0, end_ = 0;
  size_t left_ = 0;  // of the request's bytes
  Clock::time_point until_;
  bool closing_ = false;
};

// Of the request that the thread answers.
thread_local Connection* t_connection = nullptr;

// Chunks of a body that is streamed.
class ChunkedPeer : public HttpPeer {
 public:
  explicit ChunkedPeer(httplib::DataSink& sink) : sink_(sink) {}
  bool gone() override { return t_connection->gone(); }
  bool write(std::string_view text) override { return sink_.write(text.data(), text.size()); }

 private:
  httplib::DataSink& sink_;
};

// httplib reads and writes messages; connections are our own.
class Library : public httplib::Server {
 public:
  explicit Library(House& house) : house_(house) {}
  // The library's backlog is 5.
  void lengthen_backlog() { ::listen(svr_sock_, kBacklog); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    house_.open++;
    Connection connection(socket, house_);
    t_connection = &connection;
    const auto without_ranges = [](httplib::Request& r) { r.ranges.clear(); };
    bool closed = false;
    for (size_t n = 1; !closed && !connection.closing() && connection.next_request(); n++) {
      const bool last = house_.stopping || n == kRequests;
      house_.busy++;
      closed |= !process_request(connection, last, closed, without_ranges) || last;
      house_.busy--;
    }
    t_connection = nullptr;
    connection.close();
    house_.open--;
    return true;
  }
  House& house_;
};

HttpRequest request_of(const httplib::Request& r) {
  return {r.method, r.path, r.body,
          [&r](const char* name) { return r.get_header_value(name); }};
}

void respond(HttpResponse response, httplib::Response& to) {
  to.status = response.status;
  for (const auto& [name, value] : response.headers) to.set_header(name, value);
  if (!response.stream) {
    to.set_content(response.body, response.type);
    return;
  }
  to.set_chunked_content_provider(
      response.type, [stream = std::move(response.stream)](size_t, httplib::DataSink& sink) {
        ChunkedPeer peer(sink);
        stream(peer);
        sink.done();
        return true;
      });
}

class LibraryServer : public http_api::Server {
 public:
  LibraryServer(const HttpOptions& options, const HttpHandlers& handlers) : house_{options} {
    library_.set_payload_max_length(options.body_bytes);
    library_.set_tcp_nodelay(true);
    library_.set_keep_alive_timeout(kIdle.count());  // of which the library tells clients
    library_.set_keep_alive_max_count(kRequests);
    // Two servers on one port would share its clients (SO_REUSEPORT, the library's choice).
    library_.set_socket_options([](socket_t s) {
      const int on = 1;
      ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    library_.new_task_queue = [n = options.connections] { return new httplib::ThreadPool(n); };
    route(handlers);
  }
  ~LibraryServer() override { stop({}); }

  // False where it cannot listen.
  bool listen() {
    const HttpOptions& o = house_.options;
    port_ = o.port ? o.port : library_.bind_to_any_port(o.host);
    const bool bound = o.port ? library_.bind_to_port(o.host, o.port) : port_ > 0;
    if (!bound) return false;
    library_.lengthen_backlog();
    thread_ = std::thread([this] { library_.listen_after_bind(); });
    while (!library_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  int port() const override { return port_; }
  void stop(std::chrono::milliseconds most) override {
    if (!thread_.joinable()) return;
    const auto until = Clock::now() + most;
    while (house_.busy > 0 && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    house_.stopping = true;
    library_.stop();
    thread_.join();
  }

 private:
  void route(const HttpHandlers& handlers) {
    using Handled = httplib::Server::HandlerResponse;
    const auto answer = [handler = handlers.answer](const httplib::Request& r,
                                                    httplib::Response& to) {
      respond(handler(request_of(r), *t_connection), to);
    };
    library_.set_pre_routing_handler([gate = handlers.gate, answer](const httplib::Request& r,
                                                                    httplib::Response& to) {
      std::optional<HttpResponse> refused = gate(request_of(r));
      if (!refused && r.method == "POST") return Handled::Unhandled;  // the body comes first
      if (r.has_header("Content-Length") || r.has_header("Transfer-Encoding"))
        t_connection->close_behind_answer();
      refused ? respond(std::move(*refused), to) : answer(r, to);
      return Handled::Handled;
    });
    library_.Post("/.*", answer);
    library_.set_error_handler([error_body = handlers.error_body](const httplib::Request&,
                                                                  httplib::Response& to) {
      if (!to.body.empty()) return;
      t_connection->close_behind_answer();  // what of the request was read is not known
      to.set_content(error_body(to.status), "application/json");
    });
  }

  House house_;
  Library library_{house_};
  int port_ = 0;
  std::thread thread_;
};

std::unique_ptr<http_api::Server> open(const HttpOptions& options, const HttpHandlers& handlers,
                                       std::string& why) {
  errno = 0;
  auto server = std::make_unique<LibraryServer>(options, handlers);
  if (server->listen()) return server;
  why = errno ? std::strerror(errno) : "there is no such address";
  return nullptr;
}

constexpr http_api::Api kApi{http_api::kApiBuild, open};

}  // namespace
}  // namespace tuff::serve

extern "C" [[gnu::visibility("default")]] const tuff::serve::http_api::Api* tuff_http_api() {
  return &tuff::serve::kApi;
}
