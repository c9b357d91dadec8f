// What scripts/load-figures measures, one thing a process, so that its peak of memory is its own:
//   load_file make FILE MIB         a safetensors file of about MIB MiB in tensors of 64
//   load_file plain FILE            read(2) in blocks of 8 MiB, into the same memory again
//   load_file load FILE DEVICE [--check]    tuff::load, all tensors realized on a device
// Prints a line of JSON: seconds, bytes, rates, and by how much memory grew at most.
#include <fcntl.h>
#include <sys/mman.h>
#include <tuff/io.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tensor/impl.h"

namespace {

constexpr uint64_t kMiB = 1 << 20, kTensorBytes = 64 * kMiB, kBlockBytes = 8 * kMiB;

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

uint64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  return 0;
}

// VmHWM begins anew.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

// Numbers that tell a wrong place from the right one.
uint64_t number(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 27);
}
void fill(std::vector<uint64_t>& words, uint64_t tensor) {
  for (uint64_t i = 0; i < words.size(); i++) words[i] = number(tensor * words.size() + i);
}

int make(const std::string& path, uint64_t mib) {
  const uint64_t tensors = std::max<uint64_t>(1, mib * kMiB / kTensorBytes);
  std::string header = "{";
  for (uint64_t i = 0; i < tensors; i++)
    header += (i ? "," : "") + ("\"w" + std::to_string(i)) + "\":{\"dtype\":\"I64\",\"shape\":[" +
              std::to_string(kTensorBytes / 8) + "],\"data_offsets\":[" +
              std::to_string(i * kTensorBytes) + "," + std::to_string((i + 1) * kTensorBytes) +
              "]}";
  header += "}";
  while (header.size() % 8) header += ' ';
  std::ofstream out(path, std::ios::binary);
  const uint64_t size = header.size();
  out.write(reinterpret_cast<const char*>(&size), 8);
  out << header;
  std::vector<uint64_t> words(kTensorBytes / 8);
  for (uint64_t i = 0; i < tensors && out; i++) {
    fill(words, i);
    out.write(reinterpret_cast<const char*>(words.data()), std::streamsize(kTensorBytes));
  }
  out.close();
  if (!out) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return out ? 0 : 1;
}

void print(double seconds, uint64_t bytes, uint64_t before) {
  const uint64_t peak = status_bytes("VmHWM");
  std::printf("{\"seconds\": %.4f, \"bytes\": %llu, \"mb_per_s\": %.1f, \"grown_bytes\": %lld}\n",
              seconds, static_cast<unsigned long long>(bytes), double(bytes) / seconds / 1e6,
              static_cast<long long>(peak) - static_cast<long long>(before));
}

int plain(const std::string& path) {
  void* block =
      ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return 1;
  std::memset(block, 1, kBlockBytes);
  const uint64_t before = status_bytes("VmRSS");
  forget_peak();
  const double start = seconds_now();
  const int fd = ::open(path.c_str(), O_RDONLY);
  uint64_t bytes = 0;
  for (ssize_t n; (n = ::read(fd, block, kBlockBytes)) > 0;) bytes += uint64_t(n);
  ::close(fd);
  print(seconds_now() - start, bytes, before);
  return 0;
}

int load(const std::string& path, const std::string& device, bool check) {
  tuff::Tensor::from<float>({1}, {1}, {.device = device}).realize();  // opens it
  const uint64_t before = status_bytes("VmRSS");
  forget_peak();
  const double start = seconds_now();
  const tuff::TensorDict dict = tuff::load(path, {.device = device});
  std::vector<tuff::Tensor> tensors;
  for (const std::string& name : dict.names()) tensors.push_back(dict.at(name));
  tuff::detail::wait_for(tensors);
  const double seconds = seconds_now() - start;
  print(seconds, tensors.size() * kTensorBytes, before);
  std::vector<uint64_t> wanted(kTensorBytes / 8), got(kTensorBytes / 8);
  for (size_t i = 0; check && i < tensors.size(); i++) {
    fill(wanted, i);
    tensors[i].copy_to(got.data(), kTensorBytes);
    if (wanted == got) continue;
    std::fprintf(stderr, "tensor %zu on %s is not what the file has\n", i, device.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  try {
    if (a.size() == 3 && a[0] == "make") return make(a[1], std::stoull(a[2]));
    if (a.size() == 2 && a[0] == "plain") return plain(a[1]);
    if (a.size() >= 3 && a[0] == "load") return load(a[1], a[2], a.back() == "--check");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::fprintf(stderr,
               "usage: load_file make FILE MIB | plain FILE | load FILE DEVICE [--check]\n");
  return 2;
}
