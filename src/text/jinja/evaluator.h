// Walks a template's tree. Called by ChatTemplate.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/syntax.h"

namespace tuff::text::jinja {

// InvalidArgument naming the line, the construct and the reason; also for a template that takes too
// many steps, or makes too much.
std::string evaluate(const Block& block, std::vector<std::pair<std::string, Value>> variables);

}  // namespace tuff::text::jinja
