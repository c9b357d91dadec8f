#include "emu/ptx/ptx_scene.h"

#include "emu/ptx/launch.h"

namespace tuff::emu::ptx {

std::string kernel_of(const std::string& body, const std::string& before) {
  return fmt::format(R"({}{}
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{{
  .reg .pred %p<64>;
  .reg .b16 %rs<64>;
  .reg .b32 %r<64>;
  .reg .b64 %rd<64>;
  .reg .f32 %f<64>;
  .reg .f64 %fd<64>;
  ld.param.u64 %rd0, [p0];
  ld.param.u64 %rd1, [p1];
  ld.param.u64 %rd2, [p2];
  ld.param.u64 %rd3, [p3];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r0, %r0, %r1, %r2;
{}
  ret;
}}
)",
                     kHead, before, body);
}

Scene::Scene(const std::string& text) : module_(load(text)) {
  request.module = module_.get();
  request.kernel = "k";
  request.counts = true;
  request.instruction_budget = 10'000'000;
}

uint64_t Scene::add_region(uint8_t* bytes, size_t count, bool writable) {
  const uint64_t address = next_;
  next_ += (count + 0xFFFF) / 0x10000 * 0x10000 + 0x10000;
  request.memory.push_back({address, count, bytes, writable});
  return address;
}

uint64_t Scene::add(std::vector<uint8_t>& bytes, bool writable) {
  return add_region(bytes.data(), bytes.size(), writable);
}

emu_api::PtxLaunchResult Scene::run(const std::vector<uint64_t>& arguments) {
  request.parameters.resize(arguments.size() * 8);
  std::memcpy(request.parameters.data(), arguments.data(), request.parameters.size());
  for (const auto& kernel : module_->kernels()) {
    if (kernel.name == request.kernel && request.parameters.size() < kernel.parameter_bytes)
      request.parameters.resize(kernel.parameter_bytes);
  }
  auto result = launch(request);
  for (const auto& [spelling, count] : result.counts)
    executed_opcodes()[spelling.substr(0, spelling.find('.'))] += count;
  return result;
}

void Scene::run_clean(const std::vector<uint64_t>& arguments) {
  const auto result = run(arguments);
  EXPECT_EQ(findings_text(result), "");
  EXPECT_TRUE(result.finished);
}

std::string findings_text(const emu_api::PtxLaunchResult& result) {
  std::string text;
  for (const auto& finding : result.findings) text += finding.text + "\n";
  return text;
}

std::map<std::string, uint64_t>& executed_opcodes() {
  static std::map<std::string, uint64_t> counts;
  return counts;
}

namespace {

// Registers by their bytes; those of one byte are loaded into 16 bits.
std::string register_name(uint32_t bytes, uint32_t number) {
  const char* prefix = bytes <= 2 ? "%rs" : bytes == 4 ? "%r" : "%rd";
  return fmt::format("{}{}", prefix, number);
}

}  // namespace

std::vector<uint8_t> run_instruction(const std::string& op, uint32_t bytes,
                                     std::vector<std::vector<uint8_t>> sources,
                                     const std::vector<uint32_t>& sizes, const std::string& extra,
                                     uint64_t seed) {
  std::string body, operands;
  const auto address = [&](uint32_t size, uint32_t base) {
    return fmt::format("  mul.wide.u32 %rd20, %r0, {};\n  add.u64 %rd21, %rd{}, %rd20;\n", size,
                       base);
  };
  for (uint32_t k = 0; k < sources.size(); ++k) {
    const std::string name = register_name(sizes[k], 40 + k);
    body += address(sizes[k], k + 1) +
            fmt::format("  ld.global.b{} {}, [%rd21];\n", sizes[k] * 8, name);
    operands += ", " + name;
  }
  const std::string result = register_name(bytes, 50);
  body += fmt::format("  {} {}{}{};\n", op, result, operands, extra) + address(bytes, 0) +
          fmt::format("  st.global.b{} [%rd21], {};", bytes * 8, result);
  std::vector<uint8_t> out(size_t(kThreads) * bytes, 0xAA);
  try {
    Scene scene(kernel_of(body));
    std::vector<uint64_t> arguments{scene.add(out)};
    for (auto& source : sources) arguments.push_back(scene.add(source, false));
    scene.request.grid = {4, 1, 1};
    scene.request.block = {kThreads / 4, 1, 1};
    scene.request.seed = seed;
    scene.run_clean(arguments);
  } catch (const std::exception& e) {
    ADD_FAILURE() << op << ": " << e.what();
  }
  return out;
}

}  // namespace tuff::emu::ptx
