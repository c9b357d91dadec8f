// The machine of TUFF_MOCK=pci:1: one of NVIDIA's GPUs on the PCI bus that no driver holds, with
// firmware files that it knows. Its calls are VFIO's.
#include "emu/nv/pci/sample_gpu.h"

namespace tuff::emu::nv {
namespace {

constexpr uint64_t kRegisterBytes = 1u << 24, kApertureBytes = 1u << 28;  // BARs 0 and 1

class PciMachine final : public Mock {
 public:
  explicit PciMachine(const MockOptions& options)
      : options_(options),
        reports_(options.report),
        pages_(std::make_shared<PageFile>()),
        engines_(1, pages_, reports_, options_.seed),
        objects_(options_, pages_, engines_, reports_),
        bus_(reports_) {
    SampleGpu gpu = sample_gpu(options_.sm, options_.vram_bytes);
    for (auto& [path, bytes] : gpu.files) bus_.files[path] = std::move(bytes);
    if (options_.fail) bus_.fail_at = options_.fail;
    const auto function = std::make_shared<GpuFunction>(
        std::move(gpu.options), bus_.host_memory(kPciSlot), objects_,
        [this](const std::string& why) {
          reports_.add({FindingKind::BadCall, 0, 0, 0, why});
        });
    bus_.add({kPciSlot, 0x10de, gpu.device, 0x030200, "vfio-pci", "7",
              {kRegisterBytes, kApertureBytes}, function});
  }
  // What runs may tell of itself on the bus.
  ~PciMachine() override { engines_.stop(); }
  int open(const std::string& path, int flags) override { return woken(bus_.open(path, flags)); }
  int close(int fd) override { return woken(bus_.close(fd)); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return woken(bus_.ioctl(fd, request, argument));
  }
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override {
    return bus_.mmap(at, size_bytes, protection, flags, fd, offset);
  }
  int munmap(void* at, size_t size_bytes) override { return bus_.munmap(at, size_bytes); }
  int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) override {
    return bus_.pread(fd, bytes, size_bytes, offset);
  }
  int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) override {
    return woken(bus_.pwrite(fd, bytes, size_bytes, offset));
  }
  int read_text(const std::string& path, std::string& text) override {
    return bus_.read_text(path, text);
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    return bus_.list_directory(path, names);
  }
  MockStats stats() const override {
    const pci::Bus::Stats bus = bus_.stats();
    return {bus.calls, objects_.count(), bus.mappings, bus.files, reports_.count()};
  }
  std::vector<int> open_files() const override { return bus_.open_files(); }

 private:
  template <class T>
  T woken(T result) {
    engines_.wake();
    return result;
  }
  const MockOptions options_;
  Reports reports_;
  const std::shared_ptr<PageFile> pages_;
  Engines engines_;
  Objects objects_;
  pci::Bus bus_;
};

}  // namespace

std::unique_ptr<Mock> make_pci_mock(const MockOptions& options) {
  return std::make_unique<PciMachine>(options);
}

}  // namespace tuff::emu::nv
