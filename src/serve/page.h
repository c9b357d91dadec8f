// The chat page, as page.html has it. Called by the server.
#pragma once

#include <string_view>

namespace tuff::serve {

extern const std::string_view kPage;

}  // namespace tuff::serve
