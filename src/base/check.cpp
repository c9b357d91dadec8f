#include "base/check.h"

namespace tuff {

void check_failed(const char* expr, const char* file, int line, const std::string& message) {
  fail<InternalError>("check failed at {}:{}: {}{}{} (a bug in tuff; please report it)", file, line,
                      expr, message.empty() ? "" : ": ", message);
}

}  // namespace tuff
