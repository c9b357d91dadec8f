// Files read at any offset and files written piece by piece. Called by io: os.h's read_file and
// write_file are for what fits into memory as a whole. Failures throw IoError naming path and
// errno.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tuff::os {

// A regular file open for reading; thread-safe.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_; }  // when it was opened
  // All of `into`; IoError naming the offset if the file ends before.
  void read_at(uint64_t offset, std::span<uint8_t> into) const;

 private:
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

// Writes beside the target; commit() syncs, renames and syncs the folder. Without it nothing is
// left behind, but by a process that is killed. IoError naming the target, the byte and the remedy
// where a disk is full or a limit reached.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  void write(std::span<const uint8_t> bytes);
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

// Removes what killed writers of `path` have left beside it; files that somebody still writes stay.
void remove_abandoned(const std::string& path);

}  // namespace tuff::os
