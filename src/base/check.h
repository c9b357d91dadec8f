// TUFF_CHECK for broken invariants and fail<E>() for errors with formatted text.
// Called by every room. A failed check throws InternalError with expression, place and message.
#ifndef TUFF_BASE_CHECK_H
#define TUFF_BASE_CHECK_H

#include <fmt/format.h>
#include <tuff/error.h>

namespace tuff {

[[noreturn]] void check_failed(const char* expr, const char* file, int line,
                               const std::string& message);

// fail<ShapeError>("matmul: inner dimensions differ: {} x {}", a, b)
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tuff

// TUFF_CHECK(cond) or TUFF_CHECK(cond, "format {}", value...)
#define TUFF_CHECK(cond, ...)                                                         \
  do {                                                                                \
    if (!(cond)) [[unlikely]]                                                         \
      ::tuff::check_failed(#cond, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (0)

#endif  // TUFF_BASE_CHECK_H
