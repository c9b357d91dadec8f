// tuff on the device and queue of an application that uses Vulkan itself. The application's shader
// and tuff's kernels take turns on one buffer: nothing is copied, and the host waits once, at the
// end. Timeline semaphores order the turns.
// Usage: example_vulkan_sharing [ROUNDS [validate]]: `validate` asks for the validation layer.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <tuff/interop/vulkan.h>

#include "vulkan_sharing/application.h"

namespace interop = tuff::interop;
using tuff::Tensor;

// Of the values v: what one round makes of them, computed here.
static float expected_of(float v, float i) {
  const float line = v * 0.5f + 1 + i * 0.25f;  // the application's shader
  return std::sqrt(line * line + 1);            // tuff's turn
}

static int share(application::Application& app, const std::string& device, int rounds) {
  constexpr int64_t kCount = 10'000;
  application::Buffer values(app, kCount * sizeof(float), app.needs.buffer_usage);
  for (int64_t i = 0; i < kCount; i++) values.floats()[i] = float(i % 7);
  application::Shader shader(app, values);
  const VkSemaphore turns = app.create_timeline();

  // The application's buffer as a tensor.
  bool returned = false;
  tuff::BlobOptions blob;
  blob.deleter = [&](void*) { returned = true; };
  Tensor x = interop::from_blob(values.lend(), {kCount}, blob, {.device = device});
  const bool shared = interop::vulkan_memory(x).buffer == values.buffer;

  interop::VulkanPoint tuffs_turn_ended;
  for (int round = 1; round <= rounds; round++) {
    const interop::VulkanPoint shader_ended{turns, uint64_t(round)};
    shader.run({kCount, 0.5f, 1, 0.25f}, tuffs_turn_ended, shader_ended);
    interop::wait_for(x, shader_ended);
    x.assign((x * x + 1).sqrt());
    tuffs_turn_ended = interop::vulkan_ready(x);
  }
  app.wait(tuffs_turn_ended);

  double worst = 0;
  for (int64_t i = 0; i < kCount; i++) {
    float v = float(i % 7);
    for (int round = 0; round < rounds; round++) v = expected_of(v, float(i));
    worst = std::fmax(worst, std::fabs(values.floats()[i] - v) / v);
  }
  x = Tensor();  // the buffer goes back before it is destroyed
  interop::close_vulkan(device);
  std::printf("%d rounds on %s, one buffer: %s, given back: %s, largest error %.1e\n", rounds,
              device.c_str(), shared ? "yes" : "no", returned ? "yes" : "no", worst);
  return shared && returned && worst < 1e-5 ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    application::Application app({.validation = argc > 2});
    const int result =
        share(app, interop::open_vulkan(app.lend()), argc > 1 ? std::atoi(argv[1]) : 5);
    return application::Application::messages() == 0 ? result : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
