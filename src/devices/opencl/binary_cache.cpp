#include "devices/opencl/binary_cache.h"

#include <cstring>

#include <xxhash.h>

#include "base/log.h"
#include "base/os_cache.h"

namespace tuff::devices::opencl {
namespace {

constexpr char kMagic[8] = {'T', 'U', 'F', 'F', 'C', 'L', 'P', '1'};

struct Header {
  char magic[8];
  uint64_t key = 0, data_bytes = 0, checksum = 0;
};

}  // namespace

std::vector<uint8_t> wrap_binary(uint64_t key, std::span<const uint8_t> data) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.key = key;
  h.data_bytes = data.size();
  h.checksum = XXH64(data.data(), data.size(), 0);
  std::vector<uint8_t> file(sizeof h + data.size());
  std::memcpy(file.data(), &h, sizeof h);
  if (!data.empty()) std::memcpy(file.data() + sizeof h, data.data(), data.size());
  return file;
}

std::optional<std::span<const uint8_t>> unwrap_binary(uint64_t key, std::span<const uint8_t> file,
                                                      std::string* why) {
  Header h{};
  const auto refuse = [&](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  if (file.size() < sizeof h) return refuse("too short");
  std::memcpy(&h, file.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return refuse("not of this format");
  if (h.key != key) return refuse("of another source, device or driver");
  const auto data = file.subspan(sizeof h);
  if (data.size() != h.data_bytes) return refuse("truncated");
  if (XXH64(data.data(), data.size(), 0) != h.checksum) return refuse("damaged");
  return data;
}

BinaryCache::BinaryCache(const Context& context, const std::string& source) : context_(context) {
  if (context.facts.keeps_programs) return;
  const std::string identity = target_of(context.facts).identity;  // has the options, too
  key_ = XXH64(source.data(), source.size(), XXH64(identity.data(), identity.size(), 0));
  path_ = os::cache_path(fmt::format("opencl/{:016x}.bin", key_));
}

cl_program BinaryCache::load() const {
  const Context& c = context_;
  if (path_.empty()) return nullptr;
  try {
    const std::optional<std::vector<uint8_t>> file = os::read_private_file(path_);
    if (!file) return nullptr;
    std::string why;
    const auto data = unwrap_binary(key_, *file, &why);
    if (!data) {
      log_info("{}: {} is {}; it is made anew", c.name, path_, why);
      return nullptr;
    }
    const size_t size = data->size();
    const unsigned char* bytes = data->data();
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    cl_program program =
        c.api.clCreateProgramWithBinary(c.handle, 1, &c.facts.id, &size, &bytes, &status, &code);
    if (code != CL_SUCCESS) return nullptr;
    if (status == CL_SUCCESS &&
        c.api.clBuildProgram(program, 1, &c.facts.id, c.facts.build_options().c_str(), nullptr,
                             nullptr) == CL_SUCCESS)
      return program;
    c.api.clReleaseProgram(program);
  } catch (const Error& e) {
    log_warn("{}: a cached program cannot be read: {}", c.name, e.what());
  }
  return nullptr;
}

void BinaryCache::store(cl_program program) const noexcept {
  const Context& c = context_;
  if (path_.empty()) return;
  try {
    size_t size = 0;
    if (c.api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
            CL_SUCCESS ||
        size == 0)
      return;  // a driver that gives none
    std::vector<uint8_t> bytes(size);
    unsigned char* to = bytes.data();
    c.check(c.api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr),
            "clGetProgramInfo");
    os::write_private_file(path_, wrap_binary(key_, bytes));
    const std::string folder = path_.substr(0, path_.rfind('/'));
    os::trim_cache_files(os::cache_files(folder, ".bin"), os::cache_limit_bytes());
  } catch (const std::exception& e) {
    // A cache that cannot be written costs time, never a result.
    log_warn("{}: a program was not cached: {}", c.name, e.what());
  }
}

}  // namespace tuff::devices::opencl
