# Installs the build into a temporary prefix and builds and runs tests/consumer against it.
# Called by ctest with -DBUILD_DIR, -DSOURCE_DIR, -DWORK_DIR, -DCONFIG, -DCXX.
function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nfailed with ${code}:\n${out}")
  endif()
  set(step_output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
step(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix --config ${CONFIG})
step(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer -B ${WORK_DIR}/build
     -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX}
     -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_EXE_LINKER_FLAGS=${FLAGS})
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/consumer)
if(NOT step_output STREQUAL "32 float32\n")
  message(FATAL_ERROR "the consumer printed '${step_output}'")
endif()

# The installed package must not point back into the tree it was built from.
file(GLOB_RECURSE files ${WORK_DIR}/prefix/*.cmake)
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(FIND "${text}" "${SOURCE_DIR}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} names the source folder")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK_DIR})
