// os_stream.h and os.h: files are written beside their target, synced and renamed.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/os.h"
#include "base/os_stream.h"
#include "base/os_write_fault.h"

namespace tuff::os {
namespace {

constexpr const char* kTemporary = ".tmp.";

[[noreturn]] void fail_errno(const char* what, const std::string& path, int error) {
  fail<IoError>("{} '{}': {}", what, path, std::strerror(error));
}

// What to do about an error in writing; empty where the error says it.
const char* write_remedy(int error) {
  switch (error) {
    case ENOSPC: return "; free space on its file system, or write elsewhere";
    case EDQUOT: return "; your quota there is used up: free space, or write elsewhere";
    case EFBIG: return "; its file system, or ulimit -f, allows no longer file";
    case ENOENT: return "; its folder is not there: make it, or write elsewhere";
    case EROFS: return "; its file system is read-only: write elsewhere";
    case EACCES:
    case EPERM: return "; you may not write there: write elsewhere, or change permissions";
    default: return "";
  }
}

[[noreturn]] void fail_target(const std::string& target, int error) {
  fail<IoError>("cannot write '{}': {}{}", target, std::strerror(error), write_remedy(error));
}

// What is beside the target is nobody's concern and gone.
[[noreturn]] void fail_write(const std::string& target, uint64_t offset, int error) {
  fail<IoError>("cannot write '{}': at byte {}: {}{}", target, offset, std::strerror(error),
                write_remedy(error));
}

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Held by a writer for as long as it lives, wherever it runs.
  bool lock() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }
  bool has_name() const {
    struct stat status;
    return ::fstat(fd_, &status) == 0 && status.st_nlink > 0;
  }

 private:
  int fd_ = -1;
};

// A process that was killed leaves its file behind, and its number comes again: hence the time.
std::string temporary_beside(const std::string& path) {
  static std::atomic<uint64_t> serial{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}{}{}.{}.{}.{}", path, kTemporary, ::getpid(), now.tv_sec, now.tv_nsec,
                     serial.fetch_add(1));
}

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// So that the new name outlives a loss of power. Not every file system can: those say EINVAL.
void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path).string();
  const Descriptor open(folder, O_RDONLY | O_DIRECTORY);
  if (!open.is_open() && errno == EACCES) return;  // it may be written and not read
  if (!open.is_open() || (::fsync(open.get()) != 0 && errno != EINVAL))
    fail_errno("cannot sync the folder", folder, errno);
}

// A file beside `target` that goes with the object unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const std::string& target) {
    // Between its making and its lock a file looks abandoned: remove_abandoned() may take it away.
    for (int attempt = 0; attempt == 0 || (!file_.has_name() && attempt < 8); ++attempt) {
      path_ = temporary_beside(target);
      file_ = Descriptor(path_, O_WRONLY | O_CREAT | O_EXCL);
      if (!file_.is_open()) fail_target(target, errno);
      file_.lock();
    }
  }
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  int get() const { return file_.get(); }
  void rename_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_target(target, errno);
    path_.clear();
  }

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace

struct OutputFile::State {
  explicit State(const std::string& path) : path(path), temporary(path), fault(path) {}
  std::string path;
  Temporary temporary;
  WriteFault fault;
};

OutputFile::OutputFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
OutputFile::~OutputFile() = default;

void OutputFile::write(std::span<const uint8_t> bytes) {
  const auto& [path, temporary, fault] = *state_;
  while (!bytes.empty()) {
    if (const int error = fault.at_byte(offset_)) fail_write(path, offset_, error);
    const ssize_t n = ::write(temporary.get(), bytes.data(), fault.allowed(offset_, bytes.size()));
    if (n >= 0) {
      bytes = bytes.subspan(size_t(n));
      offset_ += uint64_t(n);
    } else if (errno != EINTR) {
      fail_write(path, offset_, errno);
    }
  }
}

void OutputFile::replace(uint64_t offset, std::span<const uint8_t> bytes) {
  TUFF_CHECK(offset <= offset_ && bytes.size() <= offset_ - offset);
  const auto& [path, temporary, fault] = *state_;
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(temporary.get(), bytes.data(), bytes.size(), off_t(offset));
    if (n >= 0) {
      bytes = bytes.subspan(size_t(n));
      offset += uint64_t(n);
    } else if (errno != EINTR) {
      fail_write(path, offset, errno);
    }
  }
}

void OutputFile::commit(bool sync_folder) {
  auto& [path, temporary, fault] = *state_;
  fault.before("sync");
  if (::fsync(temporary.get()) != 0 && errno != EINVAL) fail_write(path, offset_, errno);
  fault.before("rename");
  temporary.rename_to(path);
  fault.before("folder");
  if (sync_folder) sync_folder_of(path);
}

void write_file(const std::string& path, std::span<const uint8_t> bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit(/*sync_folder=*/false);  // caches write thousands
}

void write_text(const std::string& path, const std::string& text) {
  write_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void require_writable(const std::string& path) {
  if (is_directory(path)) fail_target(path, EISDIR);
  const Temporary probe(path);
}

void remove_abandoned(const std::string& path) {
  const std::filesystem::path folder = folder_of(path);
  const std::string prefix = std::filesystem::path(path).filename().string() + kTemporary;
  std::error_code error;  // what cannot be listed keeps what it holds
  std::filesystem::directory_iterator it(folder, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (!it->path().filename().string().starts_with(prefix)) continue;
    const std::string file = it->path().string();
    const Descriptor open(file, O_RDONLY | O_NONBLOCK);
    if (open.is_open() && open.lock()) ::unlink(file.c_str());
  }
}

}  // namespace tuff::os
