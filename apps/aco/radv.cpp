#include "aco/radv.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>
#include <vulkan/vk_icd.h>

#include "base/check.h"
#include "base/compilers.h"
#include "base/contains.h"
#include "base/cooperative_matrix.h"
#include "base/env.h"
#include "base/os.h"

namespace tuff::aco {
namespace {

constexpr const char* kRemedy =
    "install Mesa's Vulkan driver (Debian: mesa-vulkan-drivers), or name libvulkan_radeon.so or a "
    "folder that scripts/mesa made with TUFF_RADV";
constexpr uint32_t kWaveLanes = 32;

// What Mesa calls the processors: LLVM's names up to 22.3, the chips' since then.
struct Family {
  const char *processor, *chip;
};
constexpr Family kFamilies[] = {{"gfx1030", "navi21"}, {"gfx1031", "navi22"}, {"gfx1032", "navi23"},
                                {"gfx1034", "navi24"}, {"gfx1100", "navi31"}, {"gfx1101", "navi32"},
                                {"gfx1102", "navi33"}};

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) fail<CompileError>("RADV: {} failed with {}", what, int(result));
}

// The rows of a list that Vulkan counts at a first call and fills in at a second.
template <class Row, class Get>
std::vector<Row> listed(const char* what, Row empty, Get get) {
  uint32_t count = 0;
  check(get(&count, nullptr), what);
  std::vector<Row> rows(count, empty);
  check(get(&count, rows.data()), what);
  return rows;
}

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// A driver that does not know a family ends the process, so its names are looked for first.
std::string family_name(const std::string& processor, const std::string& library) {
  const std::vector<uint8_t> bytes = os::read_file(library);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> names = {processor};
  for (const Family& f : kFamilies)
    if (processor == f.processor) names.insert(names.begin(), f.chip);
  for (const std::string& name : names)
    if (text.find('\0' + upper(name) + '\0') != text.npos) return name;
  fail<Unsupported>("{} compiles for no '{}'; name a processor as LLVM does (gfx1100), or a newer "
                    "driver with TUFF_RADV",
                    library, processor);
}

// The listing's lines end in the words that they stand for: "v_mov_b32_e32 v0, 0 ; 7e000280". An
// instruction that comes several times running stands there once.
std::vector<uint32_t> code_of(const std::string& assembly) {
  std::vector<uint32_t> code;
  size_t last = 0;  // where the last instruction begins
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    unsigned repeated = 0;
    if (std::sscanf(line.c_str(), " (then repeated %u times)", &repeated) == 1) {
      const std::vector<uint32_t> instruction(code.begin() + ptrdiff_t(last), code.end());
      for (; repeated > 0; --repeated)
        code.insert(code.end(), instruction.begin(), instruction.end());
      continue;
    }
    const size_t comment = line.rfind(';');
    if (comment == line.npos) continue;
    const size_t begin = code.size();
    std::istringstream words(line.substr(comment + 1));
    for (std::string word; words >> word;) {
      if (word.size() != 8 || word.find_first_not_of("0123456789abcdef") != word.npos) break;
      code.push_back(uint32_t(std::strtoul(word.c_str(), nullptr, 16)));
    }
    if (code.size() > begin) last = begin;
  }
  return code;
}

uint64_t number_of(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return s.value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return uint64_t(s.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: return uint64_t(s.value.f64);
    default: return s.value.u64;
  }
}

}  // namespace

uint64_t CompiledShader::statistic(const std::string& name) const {
  const auto it = statistics.find(name);
  if (it == statistics.end()) fail<CompileError>("RADV: the driver tells no '{}'", name);
  return it->second;
}

struct RadvCompiler::Driver {
  explicit Driver(const std::string& processor);
  ~Driver();
  void open_instance();
  void open_device();
  void read_matrices();
  template <class F>
  F device_function(const char* name) const;
  std::vector<VkDescriptorSetLayout> set_layouts(
      const std::map<Binding, BufferKind>& buffers) const;
  VkPipelineLayout pipeline_layout(const ShaderModule& module) const;
  VkPipeline pipeline(const ShaderModule& module) const;
  std::map<std::string, uint64_t> statistics(VkPipeline pipeline) const;
  void read_listings(VkPipeline pipeline, CompiledShader& to) const;

  PFN_vkGetInstanceProcAddr instance_function = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::string version;
  std::vector<MatrixShape> matrices;
};

template <class F>
F RadvCompiler::Driver::device_function(const char* name) const {
  const auto get =
      reinterpret_cast<PFN_vkGetDeviceProcAddr>(instance_function(instance, "vkGetDeviceProcAddr"));
  return reinterpret_cast<F>(get(device, name));
}
#define INSTANCE(name) reinterpret_cast<PFN_##name>(instance_function(instance, #name))
#define DEVICE(name) device_function<PFN_##name>(#name)

// Straight from the driver: Vulkan's loader would open other drivers too, and need not be there.
RadvCompiler::Driver::Driver(const std::string& processor) {
  const std::string named = env_text(Env::TUFF_RADV), name = radv_library(named);
  std::string why;
  const auto library = os::Library::open(std::span(&name, 1), &why);
  if (!library)
    fail<Unsupported>("{}no RADV to compile with ({}): {}",
                      named.empty() ? "" : fmt::format("TUFF_RADV='{}': ", named), why, kRemedy);
  const auto negotiate = reinterpret_cast<PFN_vkNegotiateLoaderICDInterfaceVersion>(
      library->symbol("vk_icdNegotiateLoaderICDInterfaceVersion"));
  instance_function = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      library->symbol("vk_icdGetInstanceProcAddr"));
  if (!instance_function || !negotiate)
    fail<Unsupported>("{} is no Vulkan driver: {}", name, kRemedy);
  const std::string path = os::file_of_code(reinterpret_cast<const void*>(instance_function));
  setenv("RADV_FORCE_FAMILY", family_name(processor, path).c_str(), 1);
  setenv("RADV_DEBUG", "nocache", 1);
  uint32_t interface_version = 5;
  check(negotiate(&interface_version), "negotiating its interface");
  open_instance();
  open_device();
}

void RadvCompiler::Driver::open_instance() {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  check(INSTANCE(vkCreateInstance)(&info, nullptr, &instance), "vkCreateInstance");
  uint32_t count = 1;
  const VkResult found = INSTANCE(vkEnumeratePhysicalDevices)(instance, &count, &physical);
  if (found < VK_SUCCESS || count == 0)
    fail<Unsupported>("RADV opens no null device (result {}): {}", int(found), kRemedy);
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &driver};
  INSTANCE(vkGetPhysicalDeviceProperties2)(physical, &properties);
  version = fmt::format("{}, {}", driver.driverName, driver.driverInfo);
}

void RadvCompiler::Driver::read_matrices() {
  const auto get = INSTANCE(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR);
  if (!get) return;
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = kMatrixProperties;
  for (const VkCooperativeMatrixPropertiesKHR& row :
       listed("its matrices", empty, [&](auto... to) { return get(physical, to...); })) {
    const std::optional<MatrixShape> shape = matrix_shape_of(row);
    if (shape) add_once(matrices, *shape);
  }
}

// With all features that it has, so that any module compiles.
void RadvCompiler::Driver::open_device() {
  const auto list = INSTANCE(vkEnumerateDeviceExtensionProperties);
  const auto all = listed("listing its extensions", VkExtensionProperties{},
                          [&](auto... to) { return list(physical, nullptr, to...); });
  const auto has = [&](const char* name) {
    return std::ranges::any_of(all, [&](auto& e) { return !std::strcmp(e.extensionName, name); });
  };
  if (has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) read_matrices();
  std::vector<const char*> extensions = {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME};
  if (!has(extensions[0]))
    fail<Unsupported>("RADV ({}) tells nothing of what it compiles", version);
  for (const char* name : {"VK_KHR_cooperative_matrix", "VK_EXT_shader_atomic_float"})
    if (has(name)) extensions.push_back(name);

  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{};
  matrix.sType = kMatrixFeatures;
  VkPhysicalDeviceVulkan13Features features13{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features features12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                              &features13};
  VkPhysicalDeviceVulkan11Features features11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                              &features12};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features11};
  INSTANCE(vkGetPhysicalDeviceFeatures2)(physical, &features);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  executables.pipelineExecutableInfo = VK_TRUE;
  features13.pNext = &executables;
  matrix.cooperativeMatrix = VK_TRUE;
  if (!matrices.empty()) executables.pNext = &matrix;

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(INSTANCE(vkCreateDevice)(physical, &info, nullptr, &device), "vkCreateDevice");
}

RadvCompiler::Driver::~Driver() {
  if (device) DEVICE(vkDestroyDevice)(device, nullptr);
  if (instance) INSTANCE(vkDestroyInstance)(instance, nullptr);
}

// One for each number up to the last, those that no buffer is in are empty.
std::vector<VkDescriptorSetLayout> RadvCompiler::Driver::set_layouts(
    const std::map<Binding, BufferKind>& buffers) const {
  std::vector<std::vector<VkDescriptorSetLayoutBinding>> sets;
  for (const auto& [at, kind] : buffers) {
    sets.resize(std::max(sets.size(), size_t(at.first) + 1));
    sets[at.first].push_back({at.second,
                              kind == BufferKind::Storage ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                          : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                              1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  std::vector<VkDescriptorSetLayout> out;
  for (const auto& rows : sets) {
    VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    info.bindingCount = uint32_t(rows.size());
    info.pBindings = rows.data();
    check(DEVICE(vkCreateDescriptorSetLayout)(device, &info, nullptr, &out.emplace_back()),
          "a descriptor set's layout");
  }
  return out;
}

VkPipelineLayout RadvCompiler::Driver::pipeline_layout(const ShaderModule& module) const {
  const std::vector<VkDescriptorSetLayout> sets = set_layouts(module.buffers);
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, module.push_bytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = uint32_t(sets.size());
  info.pSetLayouts = sets.data();
  info.pushConstantRangeCount = module.push_bytes ? 1 : 0;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check(DEVICE(vkCreatePipelineLayout)(device, &info, nullptr, &layout), "the layout");
  for (VkDescriptorSetLayout set : sets)
    DEVICE(vkDestroyDescriptorSetLayout)(device, set, nullptr);
  return layout;
}

VkPipeline RadvCompiler::Driver::pipeline(const ShaderModule& from) const {
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = from.words.size_bytes();
  module_info.pCode = from.words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(DEVICE(vkCreateShaderModule)(device, &module_info, nullptr, &module), "the shader module");
  const VkPipelineLayout layout = pipeline_layout(from);
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<uint32_t> values;
  for (const auto& [id, value] : from.constants) {
    entries.push_back({id, uint32_t(values.size() * sizeof value), sizeof value});
    values.push_back(value);
  }
  const VkSpecializationInfo constants{uint32_t(entries.size()), entries.data(),
                                       values.size() * sizeof(uint32_t), values.data()};

  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroup.requiredSubgroupSize = kWaveLanes;
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
               VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, &subgroup};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = from.entry.c_str();
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(DEVICE(vkCreateComputePipelines)(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
        "compiling");
  DEVICE(vkDestroyShaderModule)(device, module, nullptr);
  DEVICE(vkDestroyPipelineLayout)(device, layout, nullptr);
  return pipeline;
}

std::map<std::string, uint64_t> RadvCompiler::Driver::statistics(VkPipeline pipeline) const {
  VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  which.pipeline = pipeline;
  const auto get = DEVICE(vkGetPipelineExecutableStatisticsKHR);
  const auto rows = listed(
      "its statistics",
      VkPipelineExecutableStatisticKHR{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR},
      [&](auto... to) { return get(device, &which, to...); });
  std::map<std::string, uint64_t> out;
  for (const VkPipelineExecutableStatisticKHR& row : rows) out[row.name] = number_of(row);
  return out;
}

void RadvCompiler::Driver::read_listings(VkPipeline pipeline, CompiledShader& to) const {
  VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  which.pipeline = pipeline;
  const auto get = DEVICE(vkGetPipelineExecutableInternalRepresentationsKHR);
  auto rows = listed(
      "its listings",
      VkPipelineExecutableInternalRepresentationKHR{
          VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR},
      [&](auto... to) { return get(device, &which, to...); });  // without texts: their sizes
  auto count = uint32_t(rows.size());
  std::vector<std::string> texts(count);
  for (uint32_t k = 0; k < count; ++k) {
    texts[k].resize(rows[k].dataSize);
    rows[k].pData = texts[k].data();
  }
  check(get(device, &which, &count, rows.data()), "its listings");
  for (uint32_t k = 0; k < count; ++k) {
    const std::string_view name = rows[k].name;
    const char* text = texts[k].c_str();
    if (name.find("ssembly") != name.npos) to.assembly = text;
    if (name.find("NIR") != name.npos) to.nir = text;
    if (name == "ACO IR") to.aco_ir = text;
  }
  if (to.assembly.empty()) fail<CompileError>("RADV ({}) lists no assembly", version);
}

RadvCompiler::RadvCompiler(const std::string& processor)
    : driver_(std::make_unique<Driver>(processor)) {}
RadvCompiler::~RadvCompiler() = default;

const std::string& RadvCompiler::version() const { return driver_->version; }
const std::vector<MatrixShape>& RadvCompiler::matrices() const { return driver_->matrices; }

CompiledShader RadvCompiler::compile(const ShaderModule& module) const {
  const VkPipeline pipeline = driver_->pipeline(module);
  CompiledShader out;
  out.statistics = driver_->statistics(pipeline);
  driver_->read_listings(pipeline, out);
  out.code = code_of(out.assembly);
  driver_->device_function<PFN_vkDestroyPipeline>("vkDestroyPipeline")(driver_->device, pipeline,
                                                                       nullptr);
  // Constants behind the code stand in no listing.
  if (const uint64_t bytes = out.statistic("Code size");
      out.code.size() * sizeof(uint32_t) != bytes)
    fail<CompileError>("RADV: {} bytes of instructions are listed of {} bytes of code",
                       out.code.size() * sizeof(uint32_t), bytes);
  return out;
}

}  // namespace tuff::aco
