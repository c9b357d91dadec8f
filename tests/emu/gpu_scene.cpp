#include "emu/gpu_scene.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

namespace tuff::emu::amd {
namespace {

std::string kernel(const std::string& name, const std::string& body) {
  return fmt::format(R"(
.text
.globl {0}
.p2align 8
.type {0},@function
{0}:
  s_load_b128 s[4:7], s[0:1], 0x0
  s_load_b32 s8, s[0:1], 0x10
  s_lshl_b32 s3, s2, 7
  v_lshl_add_u32 v1, v0, 2, s3
  s_waitcnt lgkmcnt(0)
{1}
  global_store_b32 v1, v2, s[4:5]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {0}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
)",
                     name, body);
}

constexpr size_t kPage = 4096;

}  // namespace

std::string scene_kernels() {
  const std::string load = "global_load_b32 v2, v1, s[6:7]\n  s_waitcnt vmcnt(0)\n";
  return kernel("add", load + "v_add_nc_u32_e32 v2, s8, v2") +
         kernel("scalar",
                "s_load_b32 s9, s[6:7], 0x0\n  s_waitcnt lgkmcnt(0)\n  s_add_u32 s9, s9, s8\n"
                "  v_mov_b32_e32 v2, s9") +
         kernel("set", "v_mov_b32_e32 v2, s8\n  v_add_nc_u32_e32 v2, 0, v2") +
         kernel("set2", "v_mov_b32_e32 v2, s8\n  v_add_nc_u32_e32 v2, 1, v2") +
         kernel("twice", load + "v_lshl_add_u32 v2, v2, 1, s8");
}

uint32_t GpuScene::Block::word(size_t i) const {
  uint32_t value;
  std::memcpy(&value, host + i * 4, sizeof value);
  return value;
}
void GpuScene::Block::set(size_t i, uint32_t value) const {
  std::memcpy(host + i * 4, &value, sizeof value);
}
void GpuScene::Block::set64(size_t at, uint64_t value) const {
  std::memcpy(host + at, &value, sizeof value);
}

void GpuScene::Ring::push(const std::vector<uint32_t>& dwords) {
  const uint32_t unit = setup.kind == QueueKind::Pm4 ? 1 : setup.kind == QueueKind::Sdma ? 4 : 0;
  uint64_t at = unit ? written / unit : written * 16;
  for (const uint32_t dword : dwords) ring.set(at++ % (ring.bytes / 4), dword);
  written = unit ? at * unit : at / 16;
}

void GpuScene::Ring::announce() {
  pointers.set64(8, written);
  std::atomic_ref(doorbell).store(setup.kind == QueueKind::Aql ? written - 1 : written);
}

uint64_t GpuScene::Ring::read_pointer() const {
  uint64_t value;
  std::memcpy(&value, pointers.host, sizeof value);
  return value;
}

GpuScene::GpuScene(uint32_t gpus, uint64_t seed, const emu_api::ProfileOptions& profile)
    : random_(seed) {
  for (uint32_t i = 0; i < gpus; ++i) {
    spaces_.push_back(std::make_unique<AddressSpace>());
    gpus_.push_back(std::make_unique<Gpu>(i, *spaces_[i], *this, random_.next(), profile));
  }
  fast_ = random_.below(size_t(gpus) + 1);
  evicts_ = random_.below(4u) == 0;
}

GpuScene::~GpuScene() {
  for (const Ring& r : rings_) gpus_[r.gpu]->detach(r.setup.id);
}

GpuScene::Block GpuScene::make(size_t bytes, Buffer::Home home, uint32_t gpu, bool bar) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  Block b;
  b.bytes = bytes;
  b.address = next_address_;
  next_address_ += bytes + kPage;  // a gap, where nothing is mapped
  b.buffer = std::make_shared<Buffer>();
  b.buffer->home = home;
  b.buffer->gpu = gpu;
  b.buffer->size_bytes = bytes;
  b.host = b.buffer->memory = memory_.emplace_back(bytes).data();
  if (bar) b.host = b.buffer->bar = memory_.emplace_back(bytes).data();
  for (const auto& space : spaces_) {
    space->map({b.address, b.buffer, true, true, home == Buffer::Home::Vram, 0});
  }
  return b;
}

GpuScene::Block GpuScene::system(size_t bytes) {
  return make(bytes, Buffer::Home::System, 0, false);
}
GpuScene::Block GpuScene::vram(uint32_t gpu, size_t bytes, bool bar) {
  return make(bytes, Buffer::Home::Vram, gpu, bar);
}

GpuScene::Ring& GpuScene::queue(uint32_t gpu, QueueKind kind, uint32_t ring_bytes) {
  Ring r;
  r.gpu = gpu;
  r.ring = system(ring_bytes);
  r.pointers = system(kPage);
  r.eop = system(kPage);
  r.setup.id = next_queue_++;
  r.setup.kind = kind;
  r.setup.ring_address = r.ring.address;
  r.setup.ring_bytes = ring_bytes;
  r.setup.read_pointer_address = r.pointers.address;
  r.setup.write_pointer_address = r.pointers.address + 8;
  r.setup.eop_address = r.eop.address;
  r.setup.eop_bytes = kPage;
  for (uint32_t i = 0; kind == QueueKind::Aql && i < ring_bytes / 4; i += 16) r.ring.set(i, 1);
  return attach(gpu, std::move(r));
}

GpuScene::Ring& GpuScene::attach(uint32_t gpu, Ring ring) {
  Ring& r = rings_.emplace_back(std::move(ring));
  r.setup.doorbell = &r.doorbell;
  gpus_[gpu]->attach(r.setup);
  return r;
}

rdna::Kernel GpuScene::place(const Block& block, const std::vector<uint8_t>& file,
                             const std::string& name) {
  rdna::CodeObject object(file, block.address);
  const auto image = object.image();
  std::memcpy(block.host, image.data(), image.size());
  rdna::Kernel k = object.kernel(name);
  names[k.entry_address] = name;
  return k;
}

bool GpuScene::step() {
  if (evicts_ && random_.below(16u) == 0) gpus_[random_.below(gpus_.size())]->evict();
  const bool fast = fast_ < gpus_.size() && random_.below(16u) != 0;
  const size_t first = fast ? fast_ : random_.below(gpus_.size());
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[(first + i) % gpus_.size()]->step()) return true;
  }
  return false;
}

void GpuScene::run() {
  while (step()) {}
}

bool GpuScene::may_take_packet(uint32_t, uint32_t) {
  if (packets_left == 0) return false;
  --packets_left;
  return true;
}

std::string GpuScene::kernel_at(uint64_t entry) {
  const auto found = names.find(entry);
  return found == names.end() ? "" : found->second;
}

std::string GpuScene::findings_text() const {
  std::string text;
  for (const Finding& f : findings) text += to_text(f) + "\n";
  return text;
}

size_t GpuScene::count(FindingKind kind) const {
  size_t n = 0;
  for (const Finding& f : findings) n += f.kind == kind;
  return n;
}

}  // namespace tuff::emu::amd
