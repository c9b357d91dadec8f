// Objects: what the resource manager keeps of its clients: a tree of objects for each, and what
// stands behind them. Called by machine.cpp, one call at a time; each throws RmRefused where the
// driver answers with a status. Sources: open-gpu-kernel-modules, src/nvidia/generated/
// (g_*_nvoc.h: who may be whose parent), src/nvidia/src/libraries/resserv/src/rs_server.c,
// src/nvidia/src/kernel/rmapi/alloc_free.c, control.c.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/os_nvrm.h"
#include "emu/nv/mock.h"
#include "emu/nv/rm/engines.h"

namespace tuff::emu::nv {

namespace nvrm = os::nvrm;

struct RmRefused {
  nvrm::Status status;
  std::string why;
  bool mistake = true;  // of the caller; else something has run out
};
template <class... Args>
[[noreturn]] void refuse_rm(nvrm::Status status, fmt::format_string<Args...> text, Args&&... args) {
  throw RmRefused{status, fmt::format(text, std::forward<Args>(args)...)};
}

// A call's parameters, of which the driver compares the size for equality.
template <class T>
T exactly(std::span<const std::byte> from, const char* name) {
  if (from.size() != sizeof(T))
    refuse_rm(nvrm::Status::InvalidParamStruct, "{}: {} bytes, {} are wanted", name, from.size(),
              sizeof(T));
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

// An allocation, which its mappings and handles keep.
struct MemoryObject : Buffer {
  Pages pages;
  bool video = false;
  uint64_t page_bytes = 0;  // of the GPU's page tables
};

struct SpaceObject {
  uint32_t gpu = 0;
  std::shared_ptr<Context> context;
  bool registered = false;  // with unified memory
};

struct ChannelObject {
  uint32_t id = 0, token = 0;
  std::shared_ptr<SpaceObject> space;
  std::shared_ptr<MemoryObject> notifier, userd;  // null where they are named by addresses
  std::mutex mutex;  // of what follows: the engines' thread writes it
  nvrm::MmuFaultInfo fault{};
  bool registered = false;  // with unified memory
};

struct Object {
  nvrm::Handle parent = 0;
  uint32_t object_class = 0, gpu = 0;
  uint64_t order = 0;  // of its making
  std::shared_ptr<MemoryObject> memory;
  std::shared_ptr<SpaceObject> space;
  std::shared_ptr<ChannelObject> channel;
  nvrm::Handle used_space = 0;  // of groups, subcontexts
};

// What stands for NVIDIA's kernel driver where there is none, and names memory by its address.
class ChannelAddresses {
 public:
  virtual ~ChannelAddresses() = default;
  // USERD's bytes. RmRefused.
  virtual std::byte* userd(const nvrm::ChannelParameters& parameters) = 0;
  // Compute objects of that channel may be made. RmRefused.
  virtual void check_context(nvrm::Handle client, nvrm::Handle channel) = 0;
  // On the engines' thread.
  virtual void failed(uint32_t channel, const ChannelError& error) = 0;
};

class Objects {
 public:
  Objects(const MockOptions& options, std::shared_ptr<PageFile> file, Engines& engines,
          Reports& reports);
  ~Objects();

  // `parameters`: a copy of what the caller gave, of the class's own size.
  nvrm::Handle alloc(uint64_t file, const nvrm::Alloc& a, std::span<std::byte> parameters);
  // How many bytes the driver copies for a class.
  uint32_t parameter_bytes(uint32_t object_class) const;
  void free(nvrm::Handle client, nvrm::Handle object);
  void free_clients(uint64_t file);  // it was closed
  // `parameters` as above; what is embedded in them by address is `entries`.
  void control(const nvrm::Control& c, std::span<std::byte> parameters,
               std::vector<nvrm::InfoEntry>& entries);
  Object& find(nvrm::Handle client, nvrm::Handle object, uint32_t object_class = ~0u);
  size_t count() const;

  const ChipKind& chip() const { return chip_; }
  const nvrm::Branch& branch() const { return branch_; }
  nvrm::Uuid uuid_of(uint32_t gpu) const;
  bool has_gpu(const nvrm::Uuid& uuid) const;
  MockOptions::Peers peers() const { return options_.peers; }
  PeerMemory* peer_memory() const { return peer_memory_.get(); }
  Engines& engines() const { return engines_; }
  ChannelAddresses* addresses = nullptr;  // null: memory of channels is named by handles

 private:
  struct Client {
    uint64_t file = 0;
    std::map<nvrm::Handle, Object> objects;
  };
  Client& client(nvrm::Handle handle);
  void check_parent(uint32_t object_class, const Object& parent) const;
  void make(Client& c, Object& o, const nvrm::Alloc& a, std::span<std::byte> parameters);
  void make_memory(Object& o, std::span<std::byte> parameters);
  void make_space(Object& o, std::span<std::byte> parameters);
  void make_group(Client& c, Object& o, std::span<std::byte> parameters);
  void make_subcontext(Client& c, Object& o, std::span<std::byte> parameters);
  void make_channel(Client& c, Object& o, std::span<std::byte> parameters);
  void name_memory(Client& c, ChannelObject& channel, const nvrm::ChannelParameters& p,
                   ChannelSetup& setup);
  void make_engine(Client& c, const nvrm::Alloc& a, const Object& o);
  void failed(ChannelObject& channel, const ChannelError& error);
  void free_tree(Client& c, nvrm::Handle handle);
  void end(const Object& o);
  void control_of_gpu(uint32_t command, std::span<std::byte> parameters,
                      std::vector<nvrm::InfoEntry>& entries, uint32_t gpu) const;

  const MockOptions& options_;
  const ChipKind& chip_;
  const nvrm::Branch& branch_;
  std::shared_ptr<PageFile> file_;
  Engines& engines_;
  Reports& reports_;
  const std::shared_ptr<PeerMemory> peer_memory_;  // null: of one GPU
  std::map<nvrm::Handle, Client> clients_;
  std::vector<std::shared_ptr<std::atomic<uint64_t>>> video_used_;  // by GPU
  nvrm::Handle next_handle_ = 0xc1d00001;
  uint64_t next_order_ = 1, seed_;
  uint32_t next_channel_ = 1;
};

}  // namespace tuff::emu::nv
