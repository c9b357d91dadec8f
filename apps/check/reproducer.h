// The folder that a failing case leaves, and the case that such a folder holds: the graph as text
// IR, inputs, expected and actual results, the kernels' sources, the device's Target, the command
// line. Written by the worker; read by `tuff check --replay`, which needs neither the suite nor the
// seed. Must never know processes.
#pragma once

#include <string>

#include "check/run_case.h"

namespace tuff::check {

// What was asked for when a case ran.
struct Circumstances {
  std::string device;   // as given to the suite: "VULKAN:0"
  std::string against;  // empty: the interpreter
  uint64_t seed = 0;
  std::string command;  // the command line
};

// Writes OUT/DEVICE-CASE/ and returns its path. Parts that cannot be made any more (the device is
// gone) are left out and named in case.json's "left_out". `outputs`: what the device gave, or null.
std::string write_reproducer(const std::string& out, const Case& c, const CaseResult& result,
                             const Circumstances& how, const Arrays* outputs);

struct Reproducer {
  Case c;
  Circumstances how;
  Verdict verdict = Verdict::Fail;  // what was seen
};
// IoError or InvalidArgument naming the file that is missing or malformed.
Reproducer read_reproducer(const std::string& folder);

}  // namespace tuff::check
