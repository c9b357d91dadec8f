// The driver against a kernel that only writes down: which calls it makes in which order, that all
// of them are undone, whatever fails, and what it makes of the topology.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <tuff/error.h>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/amd/amd_device.h"
#include "devices/amd/kfd/kfd_space.h"
#include "devices/amd/scripted_kernel.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

struct Machine {
  Machine() {
    iface.kernel = kernel;
    kernel->add_cpu();
  }
  // As the process's end would.
  void end() { iface.process.reset(); }
  std::unique_ptr<hcq::Device> open(const std::string& selector = "") {
    return amd_open(iface, selector);
  }
  std::shared_ptr<ScriptedKernel> kernel = std::make_shared<ScriptedKernel>();
  AmdIface iface;
};

struct Model {
  const char* name;
  std::string properties;
  uint64_t vram_bytes;
  int heap_type;  // 1: public
};
std::vector<Model> models() {
  return {{"gfx1100", navi31_properties(), 24 * kGiB, 1},
          {"gfx1100_small_bar", navi31_properties(), 24 * kGiB, 2},
          {"gfx942", mi300x_properties(), 192 * kGiB, 1},
          {"gfx1103", phoenix_properties(), 0, 1}};
}

TEST(AmdKfd, SequenceOfCalls) {
  for (const Model& model : models()) {
    Machine m;
    m.kernel->add_gpu(model.properties, model.vram_bytes, model.heap_type);
    {
      const auto device = m.open();
      for (int kind = 0; kind < hcq::kMemoryKindCount; ++kind) {
        const hcq::MemoryBlock b = device->map_block(3 << 20, hcq::MemoryKind(kind));
        device->unmap_block(b);
      }
      device->create_signal(5);
    }
    m.end();
    EXPECT_EQ(m.kernel->leaks(), "") << model.name;
    EXPECT_TRUE(m.kernel->misuse.empty()) << m.kernel->misuse[0];
    const std::string path =
        fmt::format("{}/tests/devices/amd/golden/calls_{}.txt", TUFF_SOURCE_DIR, model.name);
    if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, m.kernel->log());
    std::stringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(golden.str(), m.kernel->log()) << path;
  }
}

// Whichever call fails: one error that names it, and nothing stays behind.
TEST(AmdKfd, EveryCallMayFail) {
  for (const Model& model : models()) {
    for (const int error : {ENOMEM, EINVAL, EIO}) {
      for (uint64_t n = 1;; ++n) {
        Machine m;
        m.kernel->add_gpu(model.properties, model.vram_bytes, model.heap_type);
        m.kernel->fail_at = n;
        m.kernel->fail_with = error;
        std::string text;
        try {
          auto device = m.open();
          EXPECT_LT(m.kernel->calls, n)
              << model.name << ": the failure of call " << n << " is lost";
          device.reset();
          if (m.kernel->calls >= n) text = "while closing";
        } catch (const Error& e) {
          text = e.what();
          EXPECT_NE(text.find(std::strerror(error)), std::string::npos) << text;
          EXPECT_NE(text.find("AMD: "), std::string::npos) << text;
        }
        m.end();
        EXPECT_EQ(m.kernel->leaks(), "") << model.name << ", call " << n << ": " << text;
        EXPECT_TRUE(m.kernel->misuse.empty()) << m.kernel->misuse[0] << ", call " << n;
        if (text.empty()) break;
      }
    }
  }
}

TEST(AmdKfd, FailedOpeningCanBeRepeated) {
  for (uint64_t n = 6;; ++n) {  // behind what is opened once
    Machine m;
    m.kernel->add_gpu(navi31_properties(), kGiB, 1);
    m.kernel->fail_at = n;
    try {
      m.open();
      break;
    } catch (const OutOfMemory&) {}
    if (!m.iface.process) continue;
    EXPECT_NE(m.open(), nullptr) << n;
    m.end();
    EXPECT_EQ(m.kernel->leaks(), "") << n;
  }
}

TEST(AmdKfd, OpensAgainInOneProcess) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  for (int i = 0; i < 3; ++i) EXPECT_NE(m.open(), nullptr);
  m.end();
  EXPECT_EQ(m.kernel->leaks(), "");
}

TEST(AmdKfd, SharedMemoryReachesGpusThatComeLater) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  const uint32_t second = m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  {
    const auto a = m.open("0");
    const hcq::MemoryBlock staging = a->map_block(4096, hcq::MemoryKind::Upload);
    const hcq::MemoryBlock own = a->map_block(4096, hcq::MemoryKind::Device);
    const auto b = m.open("1");
    const auto mapped = [&](uint64_t handle) {
      return m.kernel->log().find(fmt::format("\nMAP object {} on gpu {}\n", handle, second)) !=
             std::string::npos;
    };
    EXPECT_TRUE(mapped(staging.native));
    EXPECT_FALSE(mapped(own.native));
    const hcq::MemoryBlock later = a->map_block(4096, hcq::MemoryKind::Readback);
    EXPECT_TRUE(mapped(later.native));
    for (const auto& block : {staging, own, later}) a->unmap_block(block);
  }
  m.end();
  EXPECT_EQ(m.kernel->leaks(), "");
  EXPECT_TRUE(m.kernel->misuse.empty()) << m.kernel->misuse[0];
}

TEST(AmdKfd, PeersAndUserPointers) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  {
    const auto process = std::make_shared<Process>(m.kernel);
    const auto nodes = read_topology(*m.kernel);
    Gpu& a = process->attach(nodes[0]);
    Gpu& b = process->attach(nodes[1]);
    auto vram = process->allocate(a, {100, MemoryDomain::Vram});
    EXPECT_EQ(vram->size_bytes(), kPageBytes);
    EXPECT_EQ(vram->host(), nullptr);
    vram->map_to(b);
    vram->map_to(b);  // once is enough
    alignas(4096) static std::byte pages[2 * 4096];
    const auto user = process->allocate(a, {sizeof pages, MemoryDomain::User, false, pages});
    EXPECT_EQ(user->host(), pages);
    EXPECT_NE(user->address(), reinterpret_cast<uint64_t>(pages));
    EXPECT_NE(m.kernel->log().find("USERPTR"), std::string::npos);
    EXPECT_NE(error_of<InvalidArgument>([&] {
                process->allocate(a, {4096, MemoryDomain::User, false, pages + 8});
              }).find("page"),
              std::string::npos);
  }
  EXPECT_EQ(m.kernel->leaks(), "");
  EXPECT_TRUE(m.kernel->misuse.empty()) << m.kernel->misuse[0];
}

TEST(AmdKfd, OutOfMemoryTellsSizes) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  const auto device = m.open();
  m.kernel->fail_at = m.kernel->calls + 2;  // behind the reservation
  const std::string text =
      error_of<OutOfMemory>([&] { device->map_block(5 << 20, hcq::MemoryKind::Device); });
  EXPECT_NE(text.find("5242880 bytes of VRAM on gfx1100"), std::string::npos) << text;
  EXPECT_NE(text.find("12345 bytes available"), std::string::npos) << text;
}

TEST(AmdKfd, FaultsNameAddressAndFreedMemory) {
  Machine m;
  const uint32_t gpu = m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  const auto device = m.open();
  const hcq::MemoryBlock block = device->map_block(1 << 20, hcq::MemoryKind::Device);
  device->unmap_block(block);
  m.kernel->exception = {gpu + 1, block.address};  // another GPU's
  const auto signal = device->create_signal(0);
  EXPECT_FALSE(signal->wait(1, 2'000'000));
  m.kernel->exception = {gpu, block.address + 0x100};
  const std::string text = error_of<DeviceLost>([&] { signal->wait(1, 1'000'000'000); });
  EXPECT_NE(text.find(fmt::format("{:#x}", block.address + 0x100)), std::string::npos) << text;
  EXPECT_NE(text.find("not mapped"), std::string::npos) << text;
  EXPECT_NE(text.find("256 bytes into a block of 1048576 bytes that was freed"), std::string::npos)
      << text;
  EXPECT_TRUE(device->lost());
  EXPECT_EQ(error_of<DeviceLost>([&] { device->map_block(1, hcq::MemoryKind::Device); }), text);
}

// A child of fork() has the parent's queues and memory: it is told so, and asks the kernel nothing,
// whatever it does with what it has.
TEST(AmdKfd, AChildLeavesTheDeviceToItsParent) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  auto device = m.open();
  const hcq::MemoryBlock block = device->map_block(1 << 20, hcq::MemoryKind::Device);
  const hcq::MemoryBlock staging = device->map_block(4096, hcq::MemoryKind::Upload);
  auto signal = device->create_signal(0);
  const std::string before = m.kernel->log();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string told =
        error_of<DeviceLost>([&] { device->map_block(4096, hcq::MemoryKind::Device); });
    device->unmap_block(block);
    device->unmap_block(staging);
    signal.reset();
    device.reset();
    const bool right = told.find("before fork()") != told.npos && m.kernel->log() == before;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  device->unmap_block(block);
  device->unmap_block(staging);
  signal.reset();
  device.reset();
  m.end();
  EXPECT_EQ(m.kernel->leaks(), "");
}

TEST(AmdKfd, ProbeSaysWhyNot) {
  const auto reason = [](auto change) {
    Machine m;
    m.kernel->add_gpu(navi31_properties(), kGiB, 1);
    change(*m.kernel);
    const auto found = amd_probe(m.iface);
    EXPECT_EQ(found.size(), 1u);
    EXPECT_FALSE(found[0].usable);
    EXPECT_EQ(found[0].reason.find('\n'), std::string::npos);
    EXPECT_EQ(error_of<Unsupported>([&] { m.open(); }),
              fmt::format("{}: {}", found[0].name, found[0].reason));
    EXPECT_EQ(m.kernel->leaks(), "");
    return found[0].reason;
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(reason([](ScriptedKernel& k) { k.files.erase("/dev/kfd"); }), "kernel module amdgpu");
  has(reason([](ScriptedKernel& k) { k.files["/dev/kfd"] = "forbidden"; }), "groups render");
  has(reason([](ScriptedKernel& k) { k.minor_version = 1; }), "needs 1.3");
  has(reason([](ScriptedKernel& k) {
        std::string& p = k.files["/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties"];
        p.replace(p.find("110000"), 6, "90010");
      }),
      "gfx90a is not supported; supported are gfx942");
}

TEST(AmdKfd, ForbiddenRenderNodeNamesTheGroup) {
  Machine m;
  m.kernel->add_gpu(navi31_properties(), kGiB, 1);
  m.kernel->files["/dev/dri/renderD129"] = "forbidden";
  EXPECT_NE(error_of<Unsupported>([&] { m.open(); }).find("render"), std::string::npos);
}

TEST(AmdTopology, ReadsNodesInTheOrderOfNumbers) {
  ScriptedKernel k;
  k.add_cpu();
  for (int i = 0; i < 11; ++i)
    k.add_gpu(i == 3 ? mi300x_properties() : navi31_properties(), kGiB, 1);
  const auto gpus = read_topology(k);
  ASSERT_EQ(gpus.size(), 11u);
  for (uint32_t i = 0; i < 11; ++i) {
    EXPECT_EQ(gpus[i].node, i + 1);
    EXPECT_EQ(gpus[i].gpu_id, 1001 + i);
    EXPECT_EQ(gpus[i].render_minor, 129 + i);
  }
  EXPECT_EQ(gpus[3].shape.xccs, 8u);
  EXPECT_EQ(gpus[3].arch(), "gfx942");
  EXPECT_EQ(gpus[0].shape.cus(), 96u);
  EXPECT_EQ(gpus[0].links, std::vector<uint32_t>{0});
  EXPECT_TRUE(gpus[0].large_bar);
}

// Nodes that may not be seen are left out; what cannot be true is said with its file.
TEST(AmdTopology, DamagedTexts) {
  const std::string node = "/sys/devices/virtual/kfd/kfd/topology/nodes/1/";
  const auto read = [&](const std::string& file, const std::string& text) {
    ScriptedKernel k;
    k.add_cpu();
    k.add_gpu(navi31_properties(), kGiB, 1);
    k.files[node + file] = text;
    return read_topology(k);
  };
  EXPECT_TRUE(read("properties", "forbidden").empty());
  EXPECT_TRUE(read("gpu_id", "forbidden").empty());
  const auto whole = navi31_properties() + "drm_render_minor 129\n";
  for (const char* name : {"simd_count", "simd_per_cu", "array_count", "gfx_target_version",
                           "max_slots_scratch_cu", "lds_size_in_kb", "drm_render_minor"}) {
    std::string text = whole;
    const size_t at = text.find(name), end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    for (const std::string& put :
         {std::string(), std::string(name) + " ", std::string(name) + " 0x40",
          std::string(name) + " 99999999999999999999999", std::string(name) + " 4294967296"}) {
      text = whole;
      text.replace(at, end - at, put);
      const std::string why = error_of<IoError>([&] { read("properties", text); });
      EXPECT_NE(why.find(node + "properties"), std::string::npos) << why;
    }
  }
  for (const char* text : {"", "x", "-1", "1 2"})
    EXPECT_NE(error_of<IoError>([&] { read("gpu_id", text); }).find("gpu_id"), std::string::npos);
  EXPECT_NE(error_of<IoError>([&] {
              read("mem_banks/0/properties", "heap_type 1\n");
            }).find("size_in_bytes"),
            std::string::npos);
  for (size_t cut = 0; cut < whole.size(); ++cut) {  // none may crash
    try {
      read("properties", whole.substr(0, cut));
    } catch (const IoError&) {}
  }
}

}  // namespace
}  // namespace tuff::devices::amd
