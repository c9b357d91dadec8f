#include "devices/cuda/fake/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

extern "C" const tuff::emu_api::Api* tuff_emulator_api();

namespace tuff::devices::cuda {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostGpus = 8;

std::string options_of_environment() {
  const char* text = std::getenv("FAKE_CUDA");
  return text ? text : "";
}

}  // namespace

Options parse_options(const std::string& text) {
  Options o;
  std::string rest = text;
  while (!rest.empty()) {
    const std::string pair = rest.substr(0, rest.find(','));
    rest.erase(0, pair.size() + 1);
    const size_t colon = pair.find(':');
    const std::string name = pair.substr(0, colon);
    const uint64_t value =
        colon == std::string::npos ? 1 : std::strtoull(pair.c_str() + colon + 1, nullptr, 10);
    if (name == "gpus") o.gpus = int(value);
    else if (name == "vram") o.vram_mib = value;
    else if (name == "capability") o.capability = int(value);
    else if (name == "seed") o.seed = value;
    else if (name == "peers") o.peers = value != 0;
    else if (name == "integrated") o.integrated = value != 0;
    else if (name == "memory_operations") o.memory_operations = value != 0;
    else if (name == "fail") o.fail = value;
    else if (name == "code") o.code = CUresult(value);
    else std::fprintf(stderr, "FAKE_CUDA: there is no option '%s'\n", name.c_str()), std::abort();
  }
  return o;
}

uint64_t now_ns() {
  return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / 1ns);
}

const emu_api::Api& emulator_api() { return *tuff_emulator_api(); }

// Leaked: the process may end while its thread sleeps.
Machine& machine() {
  static Machine& m = *new Machine;
  return m;
}

Machine::Machine() : options(parse_options(options_of_environment())), random(options.seed) {
  contexts.resize(kMostGpus);
  for (size_t i = 0; i < contexts.size(); ++i) contexts[i].device = int(i);
  std::thread([this] { serve(); }).detach();
}

void Machine::push(CUstream_st* stream, Operation operation) {
  stream->queued.push_back(std::move(operation));
  changed.notify_all();
}

bool Machine::empty() const {
  const auto is_empty = [](const CUstream_st* s) { return s->queued.empty(); };
  return std::ranges::all_of(streams, is_empty) && std::ranges::all_of(destroyed, is_empty);
}

bool Machine::idle(const CUctx_st* context) const {
  for (const auto* list : {&streams, &destroyed})
    for (const CUstream_st* s : *list)
      if (s->context == context && !s->queued.empty()) return false;
  return true;
}

void Machine::drain(std::unique_lock<std::mutex>& lock, const CUctx_st* context) {
  while (!idle(context) && context->error == CUDA_SUCCESS) changed.wait_for(lock, 1ms);
}

// Now and then it lets a host that is faster go on.
void Machine::serve() {
  std::unique_lock lock(mutex);
  for (;;) {
    const bool stepped = step(lock);
    if (!stepped && empty()) changed.wait(lock);
    else if (!stepped) changed.wait_for(lock, 50us);
    if (random() % 8 == 0) {
      lock.unlock();
      std::this_thread::sleep_for(20us);
      lock.lock();
    }
  }
}

// One operation of one stream; false if all wait.
bool Machine::step(std::unique_lock<std::mutex>&) {
  std::vector<CUstream_st*> ready;
  for (const auto* list : {&streams, &destroyed})
    for (CUstream_st* s : *list)
      if (!s->queued.empty()) ready.push_back(s);
  std::shuffle(ready.begin(), ready.end(), random);
  for (CUstream_st* s : ready) {
    // What a context had to do when it was ended is never done.
    const Progress did =
        s->context->error != CUDA_SUCCESS ? Progress::Done : s->queued.front()();
    if (did == Progress::Blocked) continue;
    if (did == Progress::Done) s->queued.pop_front();
    if (s->queued.empty()) std::erase_if(destroyed, [&](CUstream_st* d) {
      return d == s && (delete d, true);
    });
    changed.notify_all();
    return true;
  }
  return false;
}

void Machine::fault(CUctx_st* context, CUresult code, const std::string& why) {
  std::fprintf(stderr, "fake CUDA, GPU %d: %s (error %d)\n", context->device, why.c_str(), code);
  if (context->error == CUDA_SUCCESS) context->error = code;
  changed.notify_all();
}

uint8_t* Machine::bytes_of(CUctx_st* context, uint64_t address, size_t size_bytes,
                           const char* what) {
  const auto next = memory.upper_bound(address);
  std::string why = "nothing was ever there";
  if (next != memory.begin()) {
    Allocation& a = std::prev(next)->second;
    if (address + size_bytes <= a.address + a.size_bytes) {
      if (!a.owner || a.owner == context || context->reaches.contains(a.owner))
        return a.bytes + (address - a.address);
      why = "it is another GPU's";
    } else if (address < a.address + a.size_bytes) {
      why = "it ends behind its allocation of " + std::to_string(a.size_bytes) + " bytes";
    }
  }
  const auto gone = freed.upper_bound(address);
  if (gone != freed.begin() && address - std::prev(gone)->first < std::prev(gone)->second)
    why = "it was freed";
  char text[200];
  std::snprintf(text, sizeof text, "%s of %zu bytes at 0x%llx: %s", what, size_bytes,
                static_cast<unsigned long long>(address), why.c_str());
  fault(context, CUDA_ERROR_ILLEGAL_ADDRESS, text);
  return nullptr;
}

void Machine::run(CUctx_st* context, const Copy& copy) {
  const uint8_t* from = bytes_of(context, copy.src, copy.size_bytes, "a copy's source");
  if (!from) return;
  uint8_t* to = bytes_of(context, copy.dst, copy.size_bytes, "a copy's destination");
  if (!to) return;
  if (from < to + copy.size_bytes && to < from + copy.size_bytes)
    return fault(context, CUDA_ERROR_INVALID_VALUE, "a copy's source and destination overlap");
  std::memcpy(to, from, copy.size_bytes);
}

// One node for each step: other streams go on between them.
Operation Machine::graph_run(CUctx_st* context, std::vector<Node> nodes) {
  struct State {
    std::vector<Node> nodes;
    std::vector<bool> done;
    size_t left;
  };
  const size_t count = nodes.size();
  auto state = std::make_shared<State>(
      State{std::move(nodes), std::vector<bool>(count, false), count});
  return [this, context, state] {
    std::vector<size_t> ready;
    for (size_t i = 0; i < state->nodes.size(); ++i) {
      const Node& n = state->nodes[i];
      if (!state->done[i] &&
          std::ranges::all_of(n.after, [&](size_t a) { return bool(state->done[a]); }))
        ready.push_back(i);
    }
    if (ready.empty()) return Progress::Done;
    const size_t chosen = ready[random() % ready.size()];
    const Node& node = state->nodes[chosen];
    if (node.enabled && node.launch) run(context, *node.launch);
    if (node.enabled && !node.launch) run(context, node.copy);
    state->done[chosen] = true;
    return --state->left == 0 ? Progress::Done : Progress::More;
  };
}

}  // namespace tuff::devices::cuda
