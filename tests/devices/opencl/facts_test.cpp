// What of a device's own words becomes its Target: halves, which no software driver has, by the
// answers of a driver that has them.
#include "devices/opencl/facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/env.h"

namespace tuff::devices::opencl {
namespace {

decltype(&clGetDeviceInfo) real_info = nullptr;
bool has_extension = false;
cl_device_fp_config half_config = 0;

cl_int CL_API_CALL info(cl_device_id id, cl_device_info what, size_t size, void* value,
                        size_t* size_ret) {
  if (what == CL_DEVICE_EXTENSIONS) {
    const char* text = has_extension ? "cl_khr_icd cl_khr_fp16 cl_khr_fp64" : "cl_khr_icd";
    if (size_ret) *size_ret = std::strlen(text) + 1;
    if (value) std::memcpy(value, text, std::min(size, std::strlen(text) + 1));
    return CL_SUCCESS;
  }
  if (what != CL_DEVICE_HALF_FP_CONFIG) return real_info(id, what, size, value, size_ret);
  std::memcpy(value, &half_config, sizeof half_config);
  return CL_SUCCESS;
}

TEST(OpenclFacts, HalvesWhereTheyRoundAsTuffsDo) {
  constexpr cl_device_fp_config kAll = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN | CL_FP_DENORM;
  ClApi api = load_api();
  const cl_device_id id = list_devices(api)[0].id;
  real_info = api.clGetDeviceInfo;
  api.clGetDeviceInfo = info;
  struct Row {
    bool extension;
    cl_device_fp_config config;
    const char* disabled;
    bool halves;
  };
  const Row rows[] = {{true, kAll, "", true},
                      {true, kAll | CL_FP_FMA, "svm", true},
                      {false, kAll, "", false},
                      {true, kAll, "f16", false},
                      {true, CL_FP_ROUND_TO_ZERO | CL_FP_INF_NAN | CL_FP_DENORM, "", false},
                      {true, CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN, "", false},
                      {true, 0, "", false}};
  for (const Row& row : rows) {
    const EnvOverride disabled(Env::TUFF_CL_DISABLE, row.disabled);
    has_extension = row.extension;
    half_config = row.config;
    const Facts f = facts_of(api, id);
    EXPECT_EQ(target_of(f).features.f16, row.halves) << row.config;
    EXPECT_TRUE(target_of(f).features.f16_casts);
    EXPECT_EQ(f.build_options().find("-DTUFF_F16") != std::string::npos, row.halves);
  }
}

}  // namespace
}  // namespace tuff::devices::opencl
