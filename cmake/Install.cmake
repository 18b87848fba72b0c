# What is installed besides programs and libraries: headers, the licence, the CMake package, pkg-config files. Every
# path in it is relative to the file it stands in: the folder may be moved.
include(CMakePackageConfigHelpers)

# ".." for each folder of a path, from which it leads to the prefix.
function(_deja_way_up out path)
  string(REGEX REPLACE "[^/]+" ".." up ${path})
  set(${out} ${up} PARENT_SCOPE)
endfunction()

set(DEJA_NCCL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/deja/nccl)
install(FILES include/deja.h include/deja.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Not beside deja.h: where there is an nccl.h of NVIDIA's, that one is meant.
install(FILES include/compat/nccl.h DESTINATION ${DEJA_NCCL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(packages ${PROJECT_BINARY_DIR}/packaging)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Deja)
configure_package_config_file(packaging/DejaConfig.cmake.in ${packages}/DejaConfig.cmake INSTALL_DESTINATION ${cmake_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR DEJA_NCCL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${packages}/DejaConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${packages}/DejaConfig.cmake ${packages}/DejaConfigVersion.cmake DESTINATION ${cmake_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
_deja_way_up(DEJA_PREFIX_FROM_PKGCONFIG ${pkgconfig_dir})
foreach(name deja deja-nccl-loopback)
  configure_file(packaging/${name}.pc.in ${packages}/${name}.pc @ONLY)
  install(FILES ${packages}/${name}.pc DESTINATION ${pkgconfig_dir})
endforeach()

if(DEJA_PORTABLE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  install(CODE "
    execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/packaging/make_portable.py\"
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" --libdir ${CMAKE_INSTALL_LIBDIR} --glibc ${DEJA_OLDEST_GLIBC}
      COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB carried \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/deja/carried/*\"
      \"\${CMAKE_INSTALL_PREFIX}/share/doc/deja/carried/*\")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${carried})")
endif()
