# Read by ctest: what takes long starts first, so that no core waits for the last test alone; what runs
# alone starts before all others, so that it waits for none of them. Seconds of CPU, measured one at a
# time with cold caches on 2026-11-28 or estimated; only their order counts. Names that are not there do no harm.
foreach(device IN ITEMS CPU SHUFFLE AMD CUDA lavapipe SwiftShader PoCL PoCL_buffers PoCL_coarse AMD_aco bounds lavapipe_floor)
  set_tests_properties(conformance_${device} PROPERTIES COST 10000)
endforeach()
foreach(device IN ITEMS CPU lavapipe SwiftShader wide_lavapipe)
  set_tests_properties(random_opts_${device} PROPERTIES COST 10000)
endforeach()
set_tests_properties(check_faults_test PROPERTIES COST 10000)

set_tests_properties(training_test PROPERTIES COST 400)
set_tests_properties(environment_test PROPERTIES COST 180)
set_tests_properties(kernel_test PROPERTIES COST 130)  # under sanitizers; 34 without
foreach(tier IN ITEMS floor descriptors)
  set_tests_properties(tier_${tier} tier_${tier}_swiftshader PROPERTIES COST 120)
endforeach()
set_tests_properties(kernel_device_test tensor_conformance_test_limits tensor_dtypes_test PROPERTIES COST 80)
set_tests_properties(tensor_conformance_test tensor_conformance_test_swiftshader cli_test cache_test
                     test_render_spirv test_render_amdgpu_run test_render_nvptx kernel_random_test emu_profile_test portable_test
                     PROPERTIES COST 65)
foreach(tier IN ITEMS four_buffers tiny_range fences fences_legacy vulkan11 f16 i8 i16 i64 f64 storage
                      no_subgroups subgroup4 subgroup8 subgroup16 fences_swiftshader)
  set_tests_properties(tier_${tier} PROPERTIES COST 40)
endforeach()
set_tests_properties(kernel_device_test_swiftshader tensor_order_test models_checkpoint_test
                     models_generator_test_opencl python_exit tensor_order_test_swiftshader
                     tensor_scatter_test_descriptors tensor_scatter_test
                     PROPERTIES COST 30)
foreach(reader IN ITEMS safetensors shards npy npz pytorch gguf idx)
  set_tests_properties(fuzz_${reader} PROPERTIES COST 20)
endforeach()
set_tests_properties(tensor_linalg_test python_fuzz models_generator_test python_torch_layers add_op_test
                     models_generator_test_amd
                     PROPERTIES COST 15)
