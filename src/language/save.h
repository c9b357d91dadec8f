// Where a model is written, and as what. Called by Model::save() and, hours earlier, by who trains
// one. Must never know what is written.
#pragma once

#include <string>

#include <tuff/language.h>

namespace tuff::language {

// InvalidArgument, unless a model that was opened from `from` may be written to `to`: naming a type
// that its weights are not written in, files that are there already, and weights in a folder that
// would be of no model then.
void require_savable(const std::string& from, const std::string& to, const SaveOptions& options);

}  // namespace tuff::language
