#include "emu/amd/kfd/topology.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/os.h"
#include "emu/profile/chip.h"

namespace tuff::emu::amd {
namespace {

const std::string kTopology = "/sys/devices/virtual/kfd/kfd/topology/";
constexpr uint32_t kHeapSystem = 0, kHeapPublic = 1, kHeapPrivate = 2;  // HSA_MEM_HEAP_TYPE_
constexpr uint32_t kLinkPcie = 2;  // CRAT_IOLINK_TYPE_PCIEXPRESS
constexpr uint32_t kCpuCores = 16;

using Properties = std::vector<std::pair<const char*, uint64_t>>;

std::string to_text(const Properties& properties) {
  std::string text;
  for (const auto& [name, value] : properties) text += fmt::format("{} {}\n", name, value);
  return text;
}

std::string bank(uint32_t heap, uint64_t size_bytes, uint32_t width, uint32_t clock) {
  return to_text({{"heap_type", heap},
                  {"size_in_bytes", size_bytes},
                  {"flags", 0},
                  {"width", width},
                  {"mem_clk_max", clock}});
}

std::string link(uint32_t from, uint32_t to, uint32_t weight) {
  return to_text({{"type", kLinkPcie},
                  {"version_major", 0},
                  {"version_minor", 0},
                  {"node_from", from},
                  {"node_to", to},
                  {"weight", weight},
                  {"min_latency", 0},
                  {"max_latency", 0},
                  {"min_bandwidth", 312},
                  {"max_bandwidth", 32000},
                  {"recommended_transfer_size", 0},
                  {"recommended_sdma_engine_id_mask", 0},
                  {"flags", 1}});
}

// Index and peers are of a GPU alone. The order is the kernel's.
std::string node_properties(bool is_gpu, const profile::Chip& chip, uint32_t index, uint32_t links,
                            uint32_t peers) {
  using N = Navi31;
  constexpr uint64_t kAbsent = ~uint64_t(0);
  struct Property {
    const char* name;
    uint64_t of_cpu, of_gpu;
  };
  const Property properties[] = {{"cpu_cores_count", kCpuCores, 0},
                                 {"simd_count", 0, chip.cus * chip.core.simds_per_cu},
                                 {"mem_banks_count", 1, 1},
                                 {"caches_count", 0, 0},
                                 {"io_links_count", links, links},
                                 {"p2p_links_count", 0, peers},
                                 {"cpu_core_id_base", 0, 0},
                                 {"simd_id_base", 0, 2147487744u + index * 8192},
                                 {"max_waves_per_simd", 0, chip.core.waves_per_simd},
                                 {"lds_size_in_kb", 0, 64},
                                 {"gds_size_in_kb", 0, 0},
                                 {"num_gws", 0, 64},
                                 {"wave_front_size", 0, 32},
                                 {"array_count", 0, chip.arrays},
                                 {"simd_arrays_per_engine", 0, chip.arrays / chip.engines},
                                 {"cu_per_simd_array", 0, chip.cus / chip.arrays},
                                 {"simd_per_cu", 0, chip.core.simds_per_cu},
                                 {"max_slots_scratch_cu", 0, 32},
                                 {"gfx_target_version", 0, N::kTargetVersion},
                                 {"vendor_id", 0, 0x1002},
                                 {"device_id", 0, 0x744c},
                                 {"location_id", 0, (3 + index) << 8},
                                 {"domain", 0, 0},
                                 {"drm_render_minor", 0, render_minor_of(index)},
                                 {"hive_id", 0, 0},
                                 {"num_sdma_engines", 0, N::kSdmaEngines},
                                 {"num_sdma_xgmi_engines", 0, 0},
                                 {"num_sdma_queues_per_engine", 0, N::kSdmaQueuesPerEngine},
                                 {"num_cp_queues", 0, 8},
                                 {"max_engine_clk_fcompute", kAbsent, 2371},
                                 {"local_mem_size", kAbsent, 0},
                                 {"fw_version", kAbsent, 550},
                                 {"capability", kAbsent, 671588992},
                                 {"debug_prop", kAbsent, 1495},
                                 {"sdma_fw_version", kAbsent, 19},
                                 {"unique_id", kAbsent, 0x746d6f636b000000u + index},
                                 {"num_xcc", kAbsent, 1},
                                 {"max_engine_clk_ccompute", 4500, 4500}};
  std::string text;
  for (const auto& [name, of_cpu, of_gpu] : properties) {
    const uint64_t value = is_gpu ? of_gpu : of_cpu;
    if (value != kAbsent) text += fmt::format("{} {}\n", name, value);
  }
  return text;
}

std::string node_path(uint32_t node) { return fmt::format("{}nodes/{}/", kTopology, node); }

}  // namespace

Topology::Topology(const MockOptions& options) {
  files_[kTopology + "generation_id"] = "2\n";
  files_[kTopology + "system_properties"] = "platform_oem 0\nplatform_id 0\nplatform_rev 0\n";
  add_cpu_node(options.gpus);
  for (uint32_t index = 0; index < options.gpus; ++index) {
    add_gpu_node(index, options);
    add_discovery(index);
  }
}

void Topology::add_cpu_node(uint32_t gpus) {
  const std::string node = node_path(0);
  files_[node + "gpu_id"] = "0\n";
  files_[node + "name"] = "\n";
  files_[node + "properties"] = node_properties(false, profile::chip("", profile::Vendor::Amd), 0, gpus, 0);
  files_[node + "mem_banks/0/properties"] =
      bank(kHeapSystem, os::physical_memory_bytes(), 72, 3200);
  for (uint32_t index = 0; index < gpus; ++index)
    files_[fmt::format("{}io_links/{}/properties", node, index)] = link(0, index + 1, 20);
}

// Links between GPUs over PCI Express are in a folder of their own, and there only if the host
// maps all of their memory (kfd_dev_create_p2p_links). VRAM is one bank: of the public heap if the
// host maps it whole, else of the private one (kfd_fill_gpu_memory_affinity).
void Topology::add_gpu_node(uint32_t index, const MockOptions& options) {
  const std::string node = node_path(index + 1);
  const uint32_t peers = options.large_bar ? options.gpus - 1 : 0;
  files_[node + "gpu_id"] = fmt::format("{}\n", gpu_id_of(index));
  files_[node + "name"] = "ip discovery\n";
  files_[node + "properties"] =
      node_properties(true, profile::chip(options.profile.chip, profile::Vendor::Amd), index, 1, peers);
  files_[node + "mem_banks/0/properties"] =
      bank(options.large_bar ? kHeapPublic : kHeapPrivate, options.vram_bytes, 384, 1249);
  files_[node + "io_links/0/properties"] = link(index + 1, 0, 20);
  for (uint32_t peer = 0, number = 0; peer < options.gpus && peers != 0; ++peer) {
    if (peer == index) continue;
    files_[fmt::format("{}p2p_links/{}/properties", node, number++)] =
        link(index + 1, peer + 1, 40);
  }
}

// One instance of each block: numbers of hardware ids from soc15_hw_ip.h, versions of Navi 31.
void Topology::add_discovery(uint32_t index) {
  struct Block {
    uint32_t id, major, minor, revision;
    const char* name;
  };
  constexpr Block kBlocks[] = {{11, 11, 0, 0, "GC"},
                               {42, 6, 0, 0, "SDMA0"},
                               {43, 6, 0, 0, "SDMA1"},
                               {41, 5, 2, 0, "HDP"},
                               {108, 4, 3, 0, "NBIF"}};
  const std::string die =
      fmt::format("/sys/class/drm/renderD{}/device/ip_discovery/die/0/", render_minor_of(index));
  for (const Block& block : kBlocks) {
    for (const std::string& folder :
         {fmt::format("{}{}/0/", die, block.id), fmt::format("{}{}/0/", die, block.name)}) {
      files_[folder + "major"] = fmt::format("{}\n", block.major);
      files_[folder + "minor"] = fmt::format("{}\n", block.minor);
      files_[folder + "revision"] = fmt::format("{}\n", block.revision);
      files_[folder + "hw_id"] = fmt::format("{}\n", block.id);
      files_[folder + "num_instance"] = "0\n";
    }
  }
}

bool Topology::owns(const std::string& path) {
  for (const char* root : {"/dev/kfd", "/dev/dri", "/sys/devices/virtual/kfd", "/sys/class/kfd",
                           "/sys/class/drm", "/sys/module/amdgpu"}) {
    if (path.starts_with(root)) return true;
  }
  return false;
}

int Topology::read_text(const std::string& path, std::string& text) const {
  const auto file = files_.find(path);
  if (file == files_.end()) {
    std::vector<std::string> names;
    return list_directory(path, names) == 0 ? -EISDIR : -ENOENT;
  }
  text = file->second;
  return 0;
}

int Topology::list_directory(const std::string& path, std::vector<std::string>& names) const {
  if (files_.contains(path)) return -ENOTDIR;
  const std::string folder = path.ends_with('/') ? path : path + '/';
  names.clear();
  for (auto at = files_.lower_bound(folder); at != files_.end() && at->first.starts_with(folder);
       ++at) {
    const std::string rest = at->first.substr(folder.size());
    const std::string name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names.empty() ? -ENOENT : 0;
}

}  // namespace tuff::emu::amd
