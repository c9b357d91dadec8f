# The readers compiled apart from the rooms, with sanitizers: for the test of damaged files (by what
# compiles tuff) and for the fuzz targets (by clang).
find_package(ZLIB REQUIRED)
set(TUFF_READER_SOURCES)
foreach(file IN ITEMS bytes format gguf idx_array index npy npz onnx onnx_model onnx_tensor pickle protobuf pytorch safetensors
        zip)
  list(APPEND TUFF_READER_SOURCES ${PROJECT_SOURCE_DIR}/src/io/formats/${file}.cpp)
endforeach()
foreach(file IN ITEMS check convert dtype narrow_float scalar utf8)
  list(APPEND TUFF_READER_SOURCES ${PROJECT_SOURCE_DIR}/src/base/${file}.cpp)
endforeach()
foreach(file IN ITEMS onnx_files onnx_text sample_files)
  list(APPEND TUFF_READER_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${file}.cpp)
endforeach()
