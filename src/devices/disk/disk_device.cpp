#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/arith.h"
#include "base/check.h"
#include "base/os.h"
#include "devices/disk/disk.h"
#include "devices/disk/disk_queue.h"

namespace tuff::devices {
namespace {

using namespace hcq;

constexpr const char* kKind = "DISK";
// Ranges are whole pages, so that they are read around the page cache as they are.
constexpr uint64_t kRangeAlignment = 4096;

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

DeviceInfo describe(const std::string& path) {
  const os::Transfers& t = os::transfers();
  return {.name = path.empty() ? kKind : fmt::format("{}:{}", kKind, path),
          .description = "ranges of files; computes nothing",
          .driver = t.backend() == os::Transfers::Backend::Uring
                        ? "io_uring"
                        : fmt::format("threads ({})", t.why_threads()),
          .features = {{"requests", std::to_string(os::RequestQueue::kSlots)},
                       {"piece_bytes", std::to_string(os::Transfers::kPieceBytes)}}};
}

class DiskDevice final : public Device, private Files {
 public:
  explicit DiskDevice(const std::string& path) : path_(path), info_(describe(path)), queue_(*this) {
    target_.device = info_.name;
    target_.renderer = target_.arch = "null";
    target_.identity = "disk";
    // Whatever is asked for is not computed here, so nothing need be computed in another way.
    target_.features.storage8 = target_.features.storage16 = true;
    target_.features.i8 = target_.features.i16 = target_.features.i64 = true;
    target_.features.f16 = target_.features.bf16 = target_.features.f64 = true;
    target_.features.f8 = true;
    target_.features.device_address = true;
    close_in_children(*this);
  }
  ~DiskDevice() override {
    queue_.stop();
    shut_down();
  }
  const DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  MemoryBlock map_block(size_t size_bytes, MemoryKind kind) override;
  void unmap_block(const MemoryBlock& block) noexcept override;
  Files* files() override { return this; }
  std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary> binaries) override;
  Queue& compute_queue() override { return queue_; }
  std::unique_ptr<Signal> create_signal(uint64_t value) override {
    return std::make_unique<HostTimeline>(value);
  }

 private:
  ForeignMemory over_file(std::shared_ptr<const os::DataFile> file, uint64_t offset,
                          size_t size_bytes, bool unchanged) override;
  MemoryBlock range(size_t size_bytes);

  std::string path_;
  DeviceInfo info_;
  Target target_;
  std::mutex mutex_;
  std::weak_ptr<const os::DataFile> file_;  // open as long as memory of it is in use
  uint64_t end_ = 0;                        // of what was given out of it
  std::unordered_map<FileMemory*, std::unique_ptr<DiskMemory>> ranges_;
  DiskQueue queue_;
};

MemoryBlock DiskDevice::range(size_t size_bytes) {
  if (path_.empty())
    fail<Unsupported>("DISK: no file is named: say DISK:PATH for tensors at the end of that file");
  std::lock_guard lock(mutex_);
  std::shared_ptr<const os::DataFile> file = file_.lock();
  if (!file || !file->is_at_path()) {
    file = std::make_shared<const os::DataFile>(path_, os::DataFile::Mode::Create);
    file_ = file;
    end_ = 0;
  }
  const uint64_t end = std::max(end_, file->size_bytes());
  const uint64_t offset = align_up(end, kRangeAlignment);
  file->extend(offset + size_bytes);
  end_ = offset + size_bytes;
  auto memory = std::make_unique<DiskMemory>(std::move(file), offset, false);
  const MemoryBlock block{.address = offset, .size_bytes = size_bytes, .file = memory.get()};
  ranges_.emplace(block.file, std::move(memory));
  return block;
}

// Argument blocks and staging are memory of the host.
MemoryBlock DiskDevice::map_block(size_t size_bytes, MemoryKind kind) {
  fail_if_lost();
  if (kind == MemoryKind::Device) return range(size_bytes);
  void* p = os::map_pages(size_bytes);
  if (p == nullptr) fail<OutOfMemory>("{}: no {} bytes of host memory", name(), size_bytes);
  return host_block(p, size_bytes, kind);
}

void DiskDevice::unmap_block(const MemoryBlock& block) noexcept {
  if (!block.file) return os::unmap_pages(block.host, block.size_bytes);
  std::lock_guard lock(mutex_);
  ranges_.erase(block.file);
}

ForeignMemory DiskDevice::over_file(std::shared_ptr<const os::DataFile> file, uint64_t offset,
                                    size_t size_bytes, bool unchanged) {
  file->require_range(offset, size_bytes);
  const auto memory = std::make_shared<DiskMemory>(std::move(file), offset, unchanged);
  ForeignMemory out;
  out.block = {.address = offset, .size_bytes = size_bytes};
  out.block.file = memory.get();
  out.release = [memory] {};
  return out;
}

std::vector<std::unique_ptr<Program>> DiskDevice::load(std::span<const render::Binary> binaries) {
  fail_if_lost();
  if (!binaries.empty())
    fail<Unsupported>(
        "{} holds bytes and computes nothing (asked for: {}): take the tensor to a device that "
        "does first, with to(\"CPU\")",
        name(), binaries[0].name);
  return {};
}

}  // namespace

std::vector<Candidate> disk_probe() {
  // Rank 0, never the default: it computes nothing.
  return {{.name = kKind, .usable = true, .info = describe("")}};
}

std::unique_ptr<hcq::Device> disk_open(const std::string& selector) {
  return std::make_unique<DiskDevice>(selector.empty() ? "" : absolute(selector));
}

}  // namespace tuff::devices
