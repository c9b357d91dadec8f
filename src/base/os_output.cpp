// os_stream.h and os.h: files are written beside their target, synced and renamed; pipes and devices
// are written through.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/os.h"
#include "base/os_stream.h"
#include "base/os_target.h"
#include "base/os_write_fault.h"

namespace tuff::os {
namespace {

constexpr const char* kTemporary = ".tmp.";
constexpr size_t kLongestName = 255 - 60;  // NAME_MAX less what is added to it

// The file beside the target is gone by then: the error names the target.
[[noreturn]] void fail_write(const std::string& target, uint64_t offset, int error) {
  fail<IoError>("cannot write '{}': at byte {}: {}{}", target, offset, std::strerror(error),
                write_remedy(error));
}

Descriptor open_file(const std::string& path, int flags, mode_t mode = 0) {
  return Descriptor(::open(path.c_str(), flags | O_CLOEXEC, mode));
}
// Held by a writer for as long as it lives, wherever it runs.
void lock(const Descriptor& file) {
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {}
}
bool has_name(const Descriptor& file) {
  struct stat status;
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}
bool is_regular(const Descriptor& file) {
  struct stat status;
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

// What the names of all temporary files of a target begin with.
std::string temporary_prefix(const std::string& target) {
  return std::filesystem::path(target).filename().string().substr(0, kLongestName) + kTemporary;
}

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// A process that was killed leaves its file behind, and its number comes again: hence the time.
std::string temporary_beside(const std::string& target) {
  static std::atomic<uint64_t> serial{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string name = fmt::format("{}{}.{}.{}.{}", temporary_prefix(target), ::getpid(),
                                       now.tv_sec, now.tv_nsec, serial.fetch_add(1));
  return (std::filesystem::path(target).parent_path() / name).string();
}

// So that the new name outlives a loss of power. Not every file system can: those say EINVAL.
void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path).string();
  const Descriptor open = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!open.is_open() && errno == EACCES) return;  // it may be written and not read
  if (!open.is_open() || (::fsync(open.get()) != 0 && errno != EINVAL))
    fail_errno("cannot sync the folder", folder, errno);
}

// A file beside `target` that goes with the object unless it was renamed.
class Temporary {
 public:
  // `path` is what the user called it.
  Temporary(const WriteTarget& target, const std::string& path) {
    // No other user reads what goes into a file that others may not read.
    const bool replaces = target.kind == WriteTarget::Kind::File;
    const mode_t mode = replaces ? 0600 : 0666;
    // Between its making and its lock a file looks abandoned: remove_abandoned() may take it away.
    for (int attempt = 0; attempt == 0 || (!has_name(file_) && attempt < 8); ++attempt) {
      path_ = temporary_beside(target.path);
      file_ = open_file(path_, O_WRONLY | O_CREAT | O_EXCL, mode);
      if (!file_.is_open()) fail_target(path, errno);
      lock(file_);
    }
    if (replaces) keep_permissions(target, file_.get());
  }
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  int get() const { return file_.get(); }
  void rename_to(const std::string& target, const std::string& path) {
    struct stat there;
    if (::lstat(target.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
      fail<IoError>("cannot write '{}': it has just become something else; write it again", path);
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_target(path, errno);
    path_.clear();
  }

 private:
  std::string path_;
  Descriptor file_;
};

bool is_file(const WriteTarget& target) {
  return target.kind == WriteTarget::Kind::NewFile || target.kind == WriteTarget::Kind::File;
}

// Who reads from a pipe may end: an error of the write, instead of the end of this process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const int error = errno;
    const timespec at_once{};
    while (!was_pending_ && ::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {}
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoPipeSignal(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

// A pipe, a device or a file that this process has open: what is written is there at once.
class Stream {
 public:
  Stream(const WriteTarget& target, const std::string& path) : file_(open_stream(target, path)) {
    if (target.kind == WriteTarget::Kind::Descriptor) std::fflush(stdout);  // comes before
    const bool appends = ::fcntl(file_.get(), F_GETFL) & O_APPEND;
    begin_ = appends ? -1 : ::lseek(file_.get(), 0, SEEK_CUR);
  }
  int get() const { return file_.get(); }
  bool is_regular() const { return os::is_regular(file_); }
  int64_t begin() const { return begin_; }  // -1 where nothing can be written over

  ssize_t write(std::span<const uint8_t> bytes) const {
    const NoPipeSignal error_instead;
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n >= 0 || errno != EAGAIN) return n;
    pollfd ready{file_.get(), POLLOUT, 0};  // its other owners have made it so
    ::poll(&ready, 1, -1);
    return 0;
  }

 private:
  Descriptor file_;
  int64_t begin_ = 0;
};

}  // namespace

struct OutputFile::State {
  explicit State(const std::string& p) : path(p), target(write_target(p)), fault(p) {
    if (is_file(target))
      temporary.emplace(target, path);
    else
      stream.emplace(target, path);
  }
  int descriptor() const { return temporary ? temporary->get() : stream->get(); }
  ssize_t write(std::span<const uint8_t> bytes) const {
    return temporary ? ::write(temporary->get(), bytes.data(), bytes.size()) : stream->write(bytes);
  }

  std::string path;
  WriteTarget target;
  WriteFault fault;
  std::optional<Temporary> temporary;
  std::optional<Stream> stream;
};

OutputFile::OutputFile(const std::string& path) {
  remove_abandoned(path);
  state_ = std::make_unique<State>(path);
}
OutputFile::~OutputFile() = default;

void OutputFile::write(std::span<const uint8_t> bytes) {
  const State& s = *state_;
  while (!bytes.empty()) {
    if (const int error = s.fault.at_byte(offset_)) fail_write(s.path, offset_, error);
    const ssize_t n = s.write(bytes.first(s.fault.allowed(offset_, bytes.size())));
    if (n >= 0) {
      bytes = bytes.subspan(size_t(n));
      offset_ += uint64_t(n);
    } else if (errno != EINTR) {
      fail_write(s.path, offset_, errno);
    }
  }
}

void OutputFile::require_replace() const {
  if (state_->stream && state_->stream->begin() < 0)
    fail<IoError>(
        "cannot write '{}': it is a stream, and this format goes back in what was written; write "
        "it to a file first",
        state_->path);
}

void OutputFile::replace(uint64_t offset, std::span<const uint8_t> bytes) {
  TUFF_CHECK(offset <= offset_ && bytes.size() <= offset_ - offset);
  require_replace();
  const State& s = *state_;
  const int64_t begin = s.stream ? s.stream->begin() : 0;
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(s.descriptor(), bytes.data(), bytes.size(), off_t(offset) + begin);
    if (n >= 0) {
      bytes = bytes.subspan(size_t(n));
      offset += uint64_t(n);
    } else if (errno != EINTR) {
      fail_write(s.path, offset, errno);
    }
  }
}

void OutputFile::commit(bool sync_folder) {
  State& s = *state_;
  s.fault.before("sync");
  const bool on_disk = s.temporary || s.stream->is_regular();
  if (on_disk && ::fsync(s.descriptor()) != 0 && errno != EINVAL)
    fail_write(s.path, offset_, errno);
  if (!s.temporary) return;
  s.fault.before("rename");
  s.temporary->rename_to(s.target.path, s.path);
  s.fault.before("folder");
  if (sync_folder) sync_folder_of(s.target.path);
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
  const WriteTarget target = write_target(path);
  if (is_file(target))
    const Temporary probe(target, path);
  else if (target.kind == WriteTarget::Kind::Descriptor)
    const Descriptor probe(open_stream(target, path));
  else if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    fail_target(path, errno);
}

void remove_abandoned(const std::string& path) {
  const WriteTarget target = write_target(path);
  if (!is_file(target)) return;
  const std::string prefix = temporary_prefix(target.path);
  std::error_code error;  // what cannot be listed keeps what it holds
  std::filesystem::directory_iterator it(folder_of(target.path), error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (!it->path().filename().string().starts_with(prefix)) continue;
    const std::string file = it->path().string();
    const Descriptor open = open_file(file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (open.is_open() && is_regular(open) && ::flock(open.get(), LOCK_EX | LOCK_NB) == 0)
      ::unlink(file.c_str());
  }
}

}  // namespace tuff::os
