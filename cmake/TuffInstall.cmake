# The installed package: every room up to onnx as a static library, include/tuff, and find_package(tuff) with
# the target tuff::tuff. The packages that a consumer has to find are read off the rooms' link lists.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TUFF_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tuff)
get_property(TUFF_ROOM_TARGETS GLOBAL PROPERTY TUFF_ROOM_TARGETS)

# Name of the package that provides an imported target.
function(tuff_package_of target out)
  set(rows fmt::fmt=fmt Threads::Threads=Threads SQLite::SQLite3=SQLite3 ZLIB::ZLIB=ZLIB
           nlohmann_json::nlohmann_json=nlohmann_json CLI11::CLI11=CLI11 spdlog::spdlog=spdlog
           Vulkan::Headers=Vulkan Vulkan::Vulkan=Vulkan
           PkgConfig::XXHASH=PkgConfig:libxxhash)
  foreach(row IN LISTS rows)
    if(row MATCHES "^${target}=(.+)$")
      set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
  message(WARNING "A room links ${target}: name its package in cmake/TuffInstall.cmake, or "
                      "wrap it in $<BUILD_INTERFACE:...> if consumers do not need it")
endfunction()

set(TUFF_PACKAGES Threads fmt)
foreach(room IN LISTS TUFF_ROOM_TARGETS)
  string(REGEX REPLACE "^tuff_" "" name ${room})
  set_target_properties(${room} PROPERTIES EXPORT_NAME ${name})
  get_target_property(type ${room} TYPE)
  get_target_property(libraries ${room} INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(library MATCHES "BUILD_INTERFACE")
      continue()
    endif()
    if(library MATCHES "([A-Za-z0-9_]+::[A-Za-z0-9_]+)")
      tuff_package_of(${CMAKE_MATCH_1} package)
      list(APPEND TUFF_PACKAGES ${package})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES TUFF_PACKAGES)

# Target "tuff" may be the program; the library of these rooms is exported as tuff::tuff.
add_library(tuff_package INTERFACE)
add_library(tuff::tuff ALIAS tuff_package)
set_target_properties(tuff_package PROPERTIES EXPORT_NAME tuff)
set(TUFF_LIBRARY_ROOMS ${TUFF_ROOM_TARGETS})
list(REMOVE_ITEM TUFF_LIBRARY_ROOMS tuff_emu tuff_aco tuff_models tuff_serve tuff_check tuff_bench tuff_gpu tuff_docs tuff_cli)
target_link_libraries(tuff_package INTERFACE ${TUFF_LIBRARY_ROOMS})

install(TARGETS tuff_settings tuff_package ${TUFF_LIBRARY_ROOMS} EXPORT tuff_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tuff_targets NAMESPACE tuff:: FILE tuffTargets.cmake DESTINATION ${TUFF_PACKAGE_DIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tuff DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS tuff_fork_server LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tuff)
if(TARGET tuff_emulator)
  install(TARGETS tuff_emulator LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tuff)
endif()
if(TARGET tuff_http)
  install(TARGETS tuff_http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tuff)
endif()
if(TARGET tuff_aco_program)
  install(TARGETS tuff_aco_program RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/tuff)
endif()
foreach(program IN ITEMS tuff tuff_program)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# "package", or "PkgConfig:module" for a target PkgConfig::NAME of the module "libname".
set(TUFF_FIND_DEPENDENCIES "")
foreach(package IN LISTS TUFF_PACKAGES)
  if(package MATCHES "^PkgConfig:lib(.+)$")
    string(TOUPPER ${CMAKE_MATCH_1} name)
    string(APPEND TUFF_FIND_DEPENDENCIES "find_dependency(PkgConfig)\n"
           "pkg_check_modules(${name} REQUIRED IMPORTED_TARGET lib${CMAKE_MATCH_1})\n")
  else()
    string(APPEND TUFF_FIND_DEPENDENCIES "find_dependency(${package})\n")
  endif()
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tuffConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tuffConfig.cmake INSTALL_DESTINATION ${TUFF_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuffConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuffConfig.cmake ${PROJECT_BINARY_DIR}/tuffConfigVersion.cmake
        DESTINATION ${TUFF_PACKAGE_DIR})
