# tuff_shader_headers(<target> <name>...): compiles shaders/<name>.comp to SPIR-V 1.5 and gives the
# target "shaders/<name>.spv.h", which defines `const uint32_t <name>_spv[]`.
find_program(TUFF_GLSLANG NAMES glslangValidator glslang)

function(tuff_shader_headers target)
  set(folder ${PROJECT_SOURCE_DIR}/shaders)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/shader_headers/shaders)
  file(MAKE_DIRECTORY ${out})
  foreach(name IN LISTS ARGN)
    add_custom_command(
      OUTPUT ${out}/${name}.spv.h
      COMMAND ${TUFF_GLSLANG} --quiet --target-env vulkan1.2 -V -I${folder}
              --vn ${name}_spv -o ${out}/${name}.spv.h ${folder}/${name}.comp
      DEPENDS ${folder}/${name}.comp ${folder}/argument_block.glsl ${folder}/row.glsl
      COMMENT "Shader ${name}.comp" VERBATIM)
    target_sources(${target} PRIVATE ${out}/${name}.spv.h)
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/shader_headers)
endfunction()
