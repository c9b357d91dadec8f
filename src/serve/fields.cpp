#include "serve/fields.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

constexpr int kDepth = 64;
constexpr int64_t kMembers = 10000;  // members of an object are searched one after another
constexpr size_t kShown = 60;

}  // namespace

std::string error_body(const RequestError& error) {
  const int status = error.status();
  const char* type = status >= 500   ? "server_error"
                     : status == 429 ? "rate_limit_error"
                     : status == 401 ? "authentication_error"
                                     : "invalid_request_error";
  const auto or_null = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  const Json body = {{"error",
                      {{"message", error.what()},
                       {"type", type},
                       {"param", or_null(error.param())},
                       {"code", or_null(error.code())}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parse_object(std::string_view text) {
  int64_t members = 0;
  const auto within_bounds = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > kDepth)
      throw RequestError(400, fmt::format("the body is nested deeper than {} levels", kDepth));
    if (event == Json::parse_event_t::key && ++members > kMembers)
      throw RequestError(400, fmt::format("the body has more than {} members", kMembers));
    return true;
  };
  Json body;
  try {
    body = Json::parse(text.begin(), text.end(), within_bounds);
  } catch (const Json::exception& e) {
    const std::string_view what = e.what();
    // Without the library's own "[json.exception.parse_error.101] ".
    const size_t behind = what.find("] ");
    const size_t from = behind == std::string_view::npos ? 0 : behind + 2;
    throw RequestError(400, fmt::format("the body is no JSON: {}", what.substr(from)));
  }
  if (!body.is_object())
    throw RequestError(400, fmt::format("the body is {}: a JSON object was wanted", shown(body)));
  return body;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kShown) return text;
  size_t end = kShown;
  while ((uint8_t(text[end]) & 0xc0) == 0x80) end--;
  return text.substr(0, end) + "...";
}

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object.is_object()) return;
  if (where_.ends_with('.')) where_.pop_back();
  refuse(where_, "{} is {}: an object was wanted", where_, shown(object));
}

const Json* Fields::find(const std::string& name) {
  known_.push_back(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& Fields::required(const std::string& name, const char* wanted) {
  const Json* value = find(name);
  if (!value) refuse(path(name), "{} is missing: {} was wanted", path(name), wanted);
  return *value;
}

bool Fields::flag(const std::string& name, bool otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_boolean())
    refuse(path(name), "{} is {}: true or false was wanted", path(name), shown(*value));
  return value->get<bool>();
}

int64_t Fields::integer(const std::string& name, int64_t otherwise, int64_t low, int64_t high) {
  const Json* value = find(name);
  if (!value) return otherwise;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX));
  const int64_t n = fits ? value->get<int64_t>() : 0;
  if (!fits || n < low || n > high)
    refuse(path(name), "{} is {}: a whole number from {} to {} was wanted", path(name),
           shown(*value), low, high);
  return n;
}

double Fields::number(const std::string& name, double otherwise, double low, double high) {
  const Json* value = find(name);
  if (!value) return otherwise;
  const double x = value->is_number() ? value->get<double>() : std::nan("");
  if (!(x >= low && x <= high))
    refuse(path(name), "{} is {}: a number from {} to {} was wanted", path(name), shown(*value),
           low, high);
  return x;
}

std::string Fields::text(const std::string& name, const std::string& otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_string())
    refuse(path(name), "{} is {}: a text was wanted", path(name), shown(*value));
  return value->get<std::string>();
}

void Fields::ignore(std::initializer_list<const char*> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void Fields::end() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::ranges::find(known_, name) == known_.end())
      refuse(path(name), "{} is nothing that tuff knows{}", shown(path(name)),
             did_you_mean(name, known_));
  }
}

}  // namespace tuff::serve
