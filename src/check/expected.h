// Which refusals are expected of a device: expected_unsupported.def. Called by run_case.
#pragma once

#include <string>

#include "check/run_case.h"

namespace tuff::check {

// True for pass, and for `unsupported` where the table has a row for the case's dtypes and a
// feature that the device lacks.
bool is_expected(const CaseResult& r, const Case& c, const std::string& device);

}  // namespace tuff::check
