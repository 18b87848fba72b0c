# DEJA_PORTABLE: what is built here runs with any glibc from 2.31 on, and the command line carries the libraries that it
# needs. For the wheel. What a newer glibc would give is linked in (common/old_glibc/); packaging/make_portable.py
# lowers the versions of symbols that an older glibc has, too, once it is installed.
set(DEJA_OLDEST_GLIBC 2.31)
# Libraries of their own until 2.34, and empty ones since.
set(_deja_old_libraries
  "-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,-l:librt.so.1,--pop-state")

# deja_portable_library(NAME [HOOKS]): a library for the user's process. HOOKS: it defines the functions of
# common/old_glibc/files.cc itself.
function(deja_portable_library name)
  cmake_parse_arguments(ARG "HOOKS" "" "" ${ARGN})
  if(NOT DEJA_PORTABLE)
    return()
  endif()
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:deja_old_glibc_names>)
  if(NOT ARG_HOOKS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:deja_old_glibc_files>)
  endif()
  target_link_libraries(${name} PRIVATE ${_deja_old_libraries})
endfunction()

# deja_portable_program(NAME): finds the libraries that are carried along in LIBDIR/deja/carried, and they find the
# functions of common/old_glibc/files.cc in it. The old dynamic tag: what these libraries need is found there, too.
# libgcc_s is the system's: the static one wants what glibc has since 2.35.
function(deja_portable_program name)
  if(NOT DEJA_PORTABLE)
    return()
  endif()
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:deja_arc4random> $<TARGET_OBJECTS:deja_old_glibc_names>
    $<TARGET_OBJECTS:deja_old_glibc_files> $<TARGET_OBJECTS:deja_old_glibc_start>)
  target_link_libraries(${name} PRIVATE ${_deja_old_libraries})
  target_link_options(${name} PRIVATE -static-libstdc++ -Wl,--disable-new-dtags)
  foreach(function stat lstat fstat fstatat)
    target_link_options(${name} PRIVATE -Wl,--export-dynamic-symbol=${function}
      -Wl,--export-dynamic-symbol=${function}64)
  endforeach()
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/deja/carried")
endfunction()
