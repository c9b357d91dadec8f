#include "devices/amd/kfd/topology.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
constexpr uint64_t kPublicHeap = 1, kPrivateHeap = 2;  // HSA_MEM_HEAP_TYPE_FB_PUBLIC, _PRIVATE

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A file of lines "name value".
class Properties {
 public:
  Properties(std::string path, const std::string& text) : path_(std::move(path)) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line(text.data() + at, end - at);
      at = end + 1;
      const size_t space = line.find(' ');
      if (line.empty()) continue;
      const auto value =
          space == line.npos ? std::nullopt : number<uint64_t>(line.substr(space + 1));
      if (!value) fail<IoError>("{}: \"{}\" is no property and its value", path_, line);
      values_.emplace(line.substr(0, space), *value);
    }
  }
  uint64_t get(const std::string& name, uint64_t otherwise) const {
    const auto it = values_.find(name);
    return it == values_.end() ? otherwise : it->second;
  }
  uint64_t get(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) fail<IoError>("{}: no property {}", path_, name);
    return it->second;
  }
  uint32_t get32(const std::string& name, uint32_t least) const {
    const uint64_t value = get(name);
    if (value < least || value > UINT32_MAX)
      fail<IoError>("{}: {} is {}; at least {} and below 2^32", path_, name, value, least);
    return uint32_t(value);
  }

 private:
  std::string path_;
  std::map<std::string, uint64_t, std::less<>> values_;
};

// Nullopt: not to be seen by this user (a container's devices are restricted), or gone meanwhile.
std::optional<std::string> text_of(os::Kernel& kernel, const std::string& path) {
  std::string text;
  const int result = kernel.read_text(path, text);
  if (result == -EPERM || result == -EACCES || result == -ENOENT) return std::nullopt;
  if (result < 0) fail<IoError>("{}: {}", path, std::strerror(-result));
  return text;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// Folders with numbers for names, in numeric order.
std::vector<uint32_t> numbered(os::Kernel& kernel, const std::string& path) {
  std::vector<std::string> names;
  std::vector<uint32_t> numbers;
  if (kernel.list_directory(path, names) < 0) return {};
  for (const std::string& n : names)
    if (const auto value = number<uint32_t>(n)) numbers.push_back(*value);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<Properties> properties_in(os::Kernel& kernel, const std::string& folder) {
  std::vector<Properties> all;
  for (uint32_t i : numbered(kernel, folder)) {
    const std::string path = fmt::format("{}/{}/properties", folder, i);
    if (const auto text = text_of(kernel, path)) all.emplace_back(path, *text);
  }
  return all;
}

void read_shape(const Properties& p, GpuNode& gpu) {
  Topology& t = gpu.shape;
  t.simd_count = p.get32("simd_count", 1);
  t.simd_per_cu = p.get32("simd_per_cu", 1);
  t.max_waves_per_simd = p.get32("max_waves_per_simd", 1);
  t.array_count = p.get32("array_count", 1);
  t.simd_arrays_per_engine = p.get32("simd_arrays_per_engine", 1);
  t.max_slots_scratch_cu = p.get32("max_slots_scratch_cu", 1);
  t.xccs = std::max(1u, uint32_t(p.get("num_xcc", 1)));
  if (t.cus() < t.xccs || t.engines() < t.xccs)
    fail<IoError>("{}/{}: {} compute units in {} shader engines of {} XCCs", kNodes, gpu.node,
                  t.cus(), t.engines(), t.xccs);
}

void read_memory(os::Kernel& kernel, const std::string& node, GpuNode& gpu) {
  bool any_private = false;
  for (const Properties& bank : properties_in(kernel, node + "/mem_banks")) {
    const uint64_t heap = bank.get("heap_type");
    if (heap != kPublicHeap && heap != kPrivateHeap) continue;
    gpu.vram_bytes += bank.get("size_in_bytes");
    any_private |= heap == kPrivateHeap;
  }
  gpu.large_bar = gpu.vram_bytes > 0 && !any_private;
  for (const char* links : {"/io_links", "/p2p_links"}) {
    for (const Properties& link : properties_in(kernel, node + links))
      gpu.links.push_back(link.get32("node_to", 0));
  }
}

std::optional<GpuNode> read_node(os::Kernel& kernel, uint32_t number_of_node) {
  GpuNode gpu;
  gpu.node = number_of_node;
  const std::string node = fmt::format("{}/{}", kNodes, number_of_node);
  const auto id_text = text_of(kernel, node + "/gpu_id");
  if (!id_text) return std::nullopt;
  const auto id = number<uint32_t>(trimmed(*id_text));
  if (!id) fail<IoError>("{}/gpu_id: \"{}\" is no number", node, trimmed(*id_text));
  if (*id == 0) return std::nullopt;  // a CPU
  gpu.gpu_id = *id;
  const auto text = text_of(kernel, node + "/properties");
  if (!text) return std::nullopt;
  const Properties p(node + "/properties", *text);
  gpu.target_version = p.get32("gfx_target_version", 1);
  gpu.render_minor = p.get32("drm_render_minor", 0);
  gpu.lds_kib = p.get32("lds_size_in_kb", 1);
  gpu.unique_id = p.get("unique_id", 0);
  gpu.integrated = p.get("cpu_cores_count", 0) > 0;
  gpu.name = trimmed(text_of(kernel, node + "/name").value_or(""));
  read_shape(p, gpu);
  read_memory(kernel, node, gpu);
  return gpu;
}

}  // namespace

std::vector<GpuNode> read_topology(os::Kernel& kernel) {
  std::vector<GpuNode> gpus;
  for (uint32_t i : numbered(kernel, kNodes))
    if (auto gpu = read_node(kernel, i)) gpus.push_back(std::move(*gpu));
  for (GpuNode& gpu : gpus) {
    gpu.has_peers = std::any_of(gpus.begin(), gpus.end(), [&](const GpuNode& other) {
      return &other != &gpu && other.reaches(gpu);
    });
  }
  return gpus;
}

}  // namespace tuff::devices::amd
