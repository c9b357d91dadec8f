#include "devices/opencl/list.h"

#include <algorithm>

#include "base/log.h"

namespace tuff::devices::opencl {
namespace {

// A buffer of one launch is a launch with more calls.
constexpr size_t kFewestRecorded = 2;

bool is_recordable(const ClCommand& c) {
  const auto* l = std::get_if<ClLaunch>(&c.body);
  return l && l->is_fixed();
}

void sort_unique(std::vector<uint32_t>& v) {
  std::ranges::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

}  // namespace

CommandBuffer::CommandBuffer(std::shared_ptr<Context> context, cl_command_queue queue)
    : context_(std::move(context)) {
  const ClApi& api = context_->api;
  if (!api.clCreateCommandBufferKHR || !api.clCommandNDRangeKernelKHR ||
      !api.clFinalizeCommandBufferKHR || !api.clEnqueueCommandBufferKHR ||
      !api.clReleaseCommandBufferKHR) {
    log_warn(
        "{}: it claims cl_khr_command_buffer and lacks a function of it: graphs are enqueued "
        "kernel by kernel",
        context_->name);
    good_ = false;
    return;
  }
  cl_int code = CL_SUCCESS;
  handle_ = api.clCreateCommandBufferKHR(1, &queue, nullptr, &code);
  check(code, "clCreateCommandBufferKHR");
}

CommandBuffer::~CommandBuffer() {
  if (handle_) context_->api.clReleaseCommandBufferKHR(handle_);
}

void CommandBuffer::check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  if (code == CL_OUT_OF_HOST_MEMORY) context_->check(code, call);
  log_warn("{}: {} returned {}: graphs are enqueued kernel by kernel", context_->name, call,
           error_name(code));
  good_ = false;
}

void CommandBuffer::add(cl_kernel kernel, const size_t global[3], const size_t local[3],
                        std::span<const uint32_t> after) {
  if (!good_) return;
  std::vector<cl_sync_point_khr> waits;
  for (const uint32_t a : after) waits.push_back(points_[a]);
  cl_sync_point_khr point = 0;
  check(context_->api.clCommandNDRangeKernelKHR(
            handle_, nullptr, nullptr, kernel, 3, nullptr, global, local, cl_uint(waits.size()),
            waits.empty() ? nullptr : waits.data(), &point, nullptr),
        "clCommandNDRangeKernelKHR");
  points_.push_back(point);
}

void CommandBuffer::finish() {
  if (good_) check(context_->api.clFinalizeCommandBufferKHR(handle_), "clFinalizeCommandBufferKHR");
}

bool ClLaunch::sizes(std::span<const uint64_t> slots, size_t global[3], size_t local[3]) const {
  for (size_t i = 0; i < 3; ++i) {
    const int32_t slot = group_slots[i];
    local[i] = program->local()[i];
    global[i] = (slot < 0 ? groups[i] : slots[size_t(slot)]) * local[i];
  }
  return global[0] * global[1] * global[2] != 0;
}

bool ClLaunch::is_fixed() const {
  const bool sized = std::ranges::all_of(group_slots, [](int32_t slot) { return slot < 0; });
  size_t global[3], local[3];
  return own && keeps_args && sized && sizes({}, global, local);
}

ClList::~ClList() {
  release(times);
  release(ends);
}

void ClList::release(std::vector<cl_event>& events) noexcept {
  for (cl_event& e : events) {
    if (e) context->api.clReleaseEvent(e);
    e = nullptr;
  }
}

std::unique_ptr<CommandBuffer> ClList::record_run(cl_command_queue handle, size_t begin,
                                                  size_t end) {
  auto buffer = std::make_unique<CommandBuffer>(context, handle);
  std::vector<uint32_t> after;
  for (size_t i = begin; i < end && buffer->good(); ++i) {
    const auto& l = std::get<ClLaunch>(commands[i].body);
    size_t global[3], local[3];
    l.sizes({}, global, local);
    after.clear();
    for (const uint32_t a : commands[i].after)
      if (a >= begin) after.push_back(a - static_cast<uint32_t>(begin));
    buffer->add(l.own->handle(), global, local, after);
  }
  buffer->finish();
  return buffer->good() ? std::move(buffer) : nullptr;
}

// Places in the list change where a run becomes one command: `place` says to what.
bool ClList::record(cl_command_queue handle) {
  std::vector<ClCommand> out;
  std::vector<uint32_t> place(commands.size());
  bool taken = true;
  const auto move_in = [&](ClCommand c, size_t begin, size_t end) {
    std::erase_if(c.after, [&](uint32_t a) { return a >= begin; });
    for (uint32_t& a : c.after) a = place[a];
    sort_unique(c.after);
    std::fill(place.begin() + ptrdiff_t(begin), place.begin() + ptrdiff_t(end),
              static_cast<uint32_t>(out.size()));
    out.push_back(std::move(c));
  };
  for (size_t begin = 0, end; begin < commands.size(); begin = end) {
    for (end = begin; end < commands.size() && is_recordable(commands[end]);) ++end;
    std::unique_ptr<CommandBuffer> buffer;
    if (taken && end - begin >= kFewestRecorded) {
      buffer = record_run(handle, begin, end);
      taken = buffer != nullptr;
    }
    if (!buffer) {
      end = std::max(end, begin + 1);
      for (size_t i = begin; i < end; ++i) move_in(std::move(commands[i]), i, i + 1);
      continue;
    }
    ClCommand c{RecordedLaunches{std::move(buffer), {}}};
    auto& launches = std::get<RecordedLaunches>(c.body).launches;
    for (size_t i = begin; i < end; ++i) {
      launches.push_back(std::move(std::get<ClLaunch>(commands[i].body)));
      c.after.insert(c.after.end(), commands[i].after.begin(), commands[i].after.end());
    }
    move_in(std::move(c), begin, end);
  }
  commands = std::move(out);
  for (uint32_t& l : last) l = place[l];
  sort_unique(last);
  return taken;
}

}  // namespace tuff::devices::opencl
