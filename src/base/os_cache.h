// Files that steer a process or are run by it: the disk caches. Folders are made for their owner
// alone, and what another user may have written is refused. Called by engine (disk cache), devices
// (drivers' binaries, verdicts), render (the compiler's name) and cli. Knows no file's contents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuff::os {

struct TrustedPath {
  std::string path;     // without symbolic links, or where it would be made
  bool exists = false;  // as far as the last part
  std::string refusal;  // path, owner, mode and remedy; empty if no other user can have written it
};
// Walks from the root: every folder and symbolic link on the way belongs to this user or to root,
// and no other user may rename what is in it (a sticky folder as /tmp will do) or write the last
// part. Nothing can then be put in the place of `path` behind the caller's back.
// `make_folders` makes what is missing, of mode 0700.
TrustedPath trusted_path(const std::string& path, bool make_folders = false);

// The place of a file in the cache folder, which nothing is made for yet. Empty if TUFF_CACHE is 0,
// or if the folder is not to be trusted, which is a warning once.
std::string cache_path(const std::string& name);
// One line for each folder in a process.
void warn_no_cache(const std::string& folder, const std::string& why);

uint64_t cache_limit_bytes();            // of TUFF_CACHE_MIB; the largest number if there is none

struct CacheFile {
  std::string path;
  uint64_t size = 0;
  int64_t used = 0;  // seconds since 1970, to a day
};
// The files of a folder in the cache folder that end so, longest unused first; none without it.
std::vector<CacheFile> cache_files(const std::string& folder, const std::string& ending);
// Removes the longest unused ones until the others take no more than that. Returns their number.
size_t trim_cache_files(const std::vector<CacheFile>& files, uint64_t limit_bytes);

// Folders of mode 0700; IoError if that is impossible or one that is there is not to be trusted.
void make_private_directories(const std::string& path);
// Nothing, with a warning, if others may have written the file; nothing at all if there is none.
std::optional<std::vector<uint8_t>> read_private_file(const std::string& path);
void make_private_file(const std::string& path);  // empty, of mode 0600, unless it is there
// As write_file, with the folders above it; modes 0600 and 0700.
void write_private_file(const std::string& path, std::span<const uint8_t> bytes);

// An empty folder that is this user's alone and goes with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tuff::os
