// What a path that is written to stands for: a new file, a file to replace, or something that has to
// be written through. Called by os_output.cpp alone.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace tuff::os {

struct WriteTarget {
  enum class Kind {
    NewFile,
    File,        // regular: one beside it takes its place, with its mode and owner
    Stream,      // a pipe or a character device
    Descriptor,  // of this process: /dev/stdout, /proc/self/fd/N
  };
  Kind kind;
  std::string path;     // links followed, whether there is something at their end or not
  struct stat status{};  // of File and Stream
  int descriptor = -1;
};

// IoError for folders, disks, sockets, links in a loop, and files that this process may not write
// or not replace.
WriteTarget write_target(const std::string& path);

// A descriptor of the caller's own that is open for writing: of a Stream or a Descriptor. A pipe's
// reader is waited for a while.
int open_stream(const WriteTarget& target, const std::string& path);

// Gives a new file what the replaced one has: owner, as far as permitted, access list and mode.
void keep_permissions(const WriteTarget& from, int to_file);

[[noreturn]] void fail_target(const std::string& path, int error);
// What to do about an error in writing; empty where the error says it.
const char* write_remedy(int error);

}  // namespace tuff::os
