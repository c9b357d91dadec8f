// What the server has done, in Prometheus's text form. Called by the server from any thread. Must
// never know of HTTP or run a model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <tuff/language.h>

namespace tuff::serve {

// Observations in buckets.
class Histogram {
 public:
  void observe(double seconds);
  std::string text(const char* name, const char* help) const;

 private:
  static constexpr std::array kBounds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
                                         2.5,  5.0,   10.0, 30., 60.,  300.};
  std::array<uint64_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0;
};

class Metrics {
 public:
  void request(const std::string& route, int status);
  void first_token(double seconds);
  void answer(double seconds);
  void cancelled();
  // With what the model is at.
  std::string text(const language::BatchStats& batch) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  uint64_t cancelled_ = 0;
  Histogram first_token_, answer_;
};

}  // namespace tuff::serve
