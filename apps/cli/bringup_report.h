// What `tuff bringup` tells of its steps: lines for people or JSON, and a file that who has the
// device can send to who has not. Made by bringup_command.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace tuff::cli {

// The system as far as it shows without opening a device: kernel, processor, the files by which
// GPUs are reached, NVIDIA's driver, the environment variables of tuff that are set.
Json machine_facts();

class BringupReport {
 public:
  // `file`: empty for none. It is written before and after each step, so that it names the step
  // that took the whole machine along.
  BringupReport(std::string file, bool json) : file_(std::move(file)), json_(json) {}
  void begin(const char* step);
  // `facts`: what else there is to know of it, as an object, or null.
  void end(const char* step, const std::string& status, double ms, const std::string& detail,
           const Json& facts);

 private:
  void write(const Json* begun) const;
  const std::string file_;
  const bool json_;
  std::vector<Json> rows_;
};

}  // namespace tuff::cli
