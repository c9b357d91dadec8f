// What os_process.cpp and the library tuff_fork_server say to each other. A request is a header,
// which carries four descriptors (standard input, output, error, and where the run's status goes, as
// waitpid() gives it), and the arguments, each with its zero.
#pragma once

#include <cstdint>

namespace tuff::os {

inline constexpr char kForkServerFlag[] = "--tuff-fork-server";
inline constexpr char kForkServerReady[] = "tuff fork server\n";

struct RequestHeader {
  uint32_t bytes, count;  // of the arguments
};

}  // namespace tuff::os
