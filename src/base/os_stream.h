// Files written piece by piece. Called by io: os.h's write_file is for what fits into memory as a
// whole. Failures throw IoError naming path and errno.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tuff::os {

// Writes beside the target; commit() syncs, renames and syncs the folder. Without it nothing is
// left behind, but by a process that is killed. Links are followed, what is replaced hands on its
// mode and owner, and its other hard links keep what it was. Pipes, character devices and
// descriptors of this process (/dev/stdout) are written through, so that what was written before an
// error has arrived. IoError naming the target, the byte and the remedy where a disk is full or a
// limit reached, and for disks, sockets and files that this process may not write.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  void write(std::span<const uint8_t> bytes);
  // Over bytes that were written. IoError where the target is a stream.
  void replace(uint64_t offset, std::span<const uint8_t> bytes);
  void require_replace() const;  // the same IoError, early
  uint64_t offset() const { return offset_; }
  // Without the folder's sync a loss of power may bring the file of before back, whole.
  void commit(bool sync_folder = true);

 private:
  struct State;
  std::unique_ptr<State> state_;
  uint64_t offset_ = 0;
};

// IoError unless an OutputFile of this path could begin: for who writes hours later.
void require_writable(const std::string& path);

// Removes what killed writers of `path` have left beside it; files that are still being written
// stay.
void remove_abandoned(const std::string& path);

}  // namespace tuff::os
