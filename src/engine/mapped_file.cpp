#include "engine/mapped_file.h"

#include <tuff/error.h>

#include "base/atomic_max.h"
#include "base/log.h"
#include "base/os_file_mapping.h"

namespace tuff::engine {

class MappedFile::State final : public Outcome {
 public:
  State(std::shared_ptr<const os::DataFile> file, bool unchanged)
      : file_(std::move(file)), unchanged_(unchanged) {}
  const std::shared_ptr<const os::DataFile>& file() const { return file_; }
  void is_used(const hcq::Queue& cpu, uint64_t end) {
    cpu_ = &cpu;
    raise_to(end_, end);
  }
  void look(const hcq::Queue& queue, uint64_t reached) override {
    try {
      file_->require_mapped(end_.load());
      if (unchanged_) file_->require_unchanged();
      // Whatever accesses could find missing they have found when they are over.
      if (&queue == cpu_) raise_to(right_until_, reached);
    } catch (const IoError& e) {
      fail(1, e.what(), Cause::File);
    }
  }
  bool is_settled(const hcq::Queue& queue, uint64_t value) const override {
    return &queue == cpu_ && value <= right_until_.load();
  }

 private:
  std::shared_ptr<const os::DataFile> file_;
  bool unchanged_;
  std::atomic<const hcq::Queue*> cpu_{nullptr};
  std::atomic<uint64_t> end_{0};          // of what is mapped
  std::atomic<uint64_t> right_until_{0};  // on cpu_'s timeline
};

MappedFile::MappedFile(std::shared_ptr<const os::DataFile> file, bool unchanged)
    : state_(std::make_shared<State>(std::move(file), unchanged)), origin_(state_, 1) {}

Ref<Buffer> MappedFile::view(const std::shared_ptr<Device>& device, DType dtype, int64_t count,
                             uint64_t offset) const {
  const uint64_t size = uint64_t(count) * size_bytes(dtype);
  if (!hcq::reaches_host(device->hcq())) return {};
  state_->file()->require_range(offset, size);
  if (offset % size_bytes(dtype) != 0) return {};
  std::shared_ptr<os::FileMapping> mapping = os::FileMapping::make(state_->file(), offset, size);
  if (!mapping) {
    if (size > 0)
      TUFF_DEBUG_LINE(1, "'{}' at byte {}: no mapping to be had, it is read",
                      state_->file()->path(), offset);
    return {};
  }
  state_->is_used(device->queue(), offset + size);
  state_->look(device->queue(), 0);
  origin_.require();
  auto* data = const_cast<std::byte*>(mapping->data());
  hcq::ForeignMemory memory = hcq::over_host(device->hcq(), data, size);
  memory.after_release([mapping] {});
  memory.read_only = true;
  return Buffer::adopted(device, dtype, count, std::move(memory), origin_);
}

}  // namespace tuff::engine
