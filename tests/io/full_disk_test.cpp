// Files that cannot grow: each format, refused at every one of its sizes. The error names file,
// byte and remedy; what stood under the name before stays, and nothing is left beside it.
#include <sys/resource.h>

#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuff/io.h>
#include "base/os.h"
#include "io/idx_files.h"
#include "io/scratch_folder.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// As a full disk: write() stops at a byte, then fails. EFBIG stands for ENOSPC.
class FilesNoLongerThan {
 public:
  explicit FilesNoLongerThan(size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FilesNoLongerThan() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FilesNoLongerThan(const FilesNoLongerThan&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

struct Writer {
  const char *name, *file;
  std::function<void(const std::string& path)> write;
};

TensorDict two_tensors() {
  TensorDict d;
  std::vector<float> values(700);
  for (size_t i = 0; i < values.size(); i++) values[i] = float(i * i % 97);
  d.set("a", Tensor::from(values, {7, 100}, {.device = "CPU"}));
  d.set("b", Tensor::from({1, 2, 3}, {3}, {.device = "CPU"}));
  return d;
}

const Writer kWriters[] = {
    {"safetensors", "a.safetensors", [](const auto& path) { save(path, two_tensors()); }},
    {"npz", "a.npz", [](const auto& path) { save(path, two_tensors(), {.compress = false}); }},
    {"npz_deflated", "a.npz",
     [](const auto& path) { save(path, two_tensors(), {.compress = true}); }},
    {"npy", "a.npy",
     [](const auto& path) {
       TensorDict d = two_tensors();
       d.erase("b");
       save(path, d);
     }},
    {"idx", "a.idx", [](const auto& path) { write_idx(path, {{500}, std::vector<uint8_t>(500)}); }},
    {"idx_gzip", "a.idx.gz",
     [](const auto& path) { write_idx(path, {{500}, std::vector<uint8_t>(500)}); }},
};

class FullDisk : public testing::TestWithParam<Writer> {};

TEST_P(FullDisk, LeavesWhatWasThereAtEverySize) {
  const ScratchFolder folder;
  const std::string path = folder.path(GetParam().file);
  GetParam().write(path);
  const std::vector<uint8_t> whole = os::read_file(path);
  const std::string old = "what was there";
  const size_t step = std::max<size_t>(whole.size() / 60, 1);
  for (size_t limit = 0; limit < whole.size(); limit += step) {
    folder.write(GetParam().file, old);
    const std::string text = error_text<IoError>([&] {
      const FilesNoLongerThan limited(limit);
      GetParam().write(path);
    });
    EXPECT_THAT(text, AllOf(HasSubstr("'" + path + "'"), HasSubstr("ulimit -f")));
    EXPECT_THAT(text, HasSubstr("at byte " + std::to_string(limit) + ":"));
    EXPECT_THAT(os::list_directory(folder.path()), ElementsAre(GetParam().file));
    EXPECT_EQ(os::read_text(path), old);
  }
  const FilesNoLongerThan limited(whole.size());
  GetParam().write(path);
  EXPECT_EQ(os::read_file(path), whole);
}

INSTANTIATE_TEST_SUITE_P(Formats, FullDisk, testing::ValuesIn(kWriters),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tuff::io
