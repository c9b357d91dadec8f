// Which refusals are expected of a device: expected_unsupported.def. Called by run_case and by
// the random graphs.
#pragma once

#include <string>

#include "check/run_case.h"

namespace tuff::check {

// True for pass, and for `unsupported` where the table has a row for the case's dtypes and a
// feature that the device lacks.
bool is_expected(const CaseResult& r, const Case& c, const std::string& device);
// Every dtype that memory holds but those that a device of this Target may refuse.
std::vector<DType> supported_dtypes(const Target& target);

}  // namespace tuff::check
