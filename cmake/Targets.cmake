# How Deja's targets are made. A new library, test or example is one line in its folder's CMakeLists.txt.

# GCC frees memory of its own from 128 MiB on, again and again for sources that are compiled together. An eighth of
# its time goes there; each process has 1.1 GB at most instead of 0.9.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)

# GCC 12 warns at -O3 about overlapping copies inside std::string that cannot happen (PR 105651).
add_library(deja_warnings INTERFACE)
target_compile_options(deja_warnings INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${DEJA_WERROR}>:-Werror>)
if(CMAKE_UNITY_BUILD)
  # Sources of a target are compiled together (docs/TESTING.md). None of them is the main file, and GCC takes what is
  # in its anonymous namespace for something of a header.
  target_compile_options(deja_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

add_library(deja_sanitize INTERFACE)
if(DEJA_SANITIZE STREQUAL "address")
  # vptr checks need RTTI, which in-process libraries do not have. Enumerations of NCCL's are C's: programs
  # pass any number, and the libraries say what is wrong with it.
  target_compile_options(deja_sanitize INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr,enum
    -fno-omit-frame-pointer
    -fno-sanitize-recover=undefined)
  target_link_options(deja_sanitize INTERFACE -fsanitize=address,undefined)
elseif(DEJA_SANITIZE STREQUAL "thread")
  # It does not model fences, and gcc warns of each.
  target_compile_options(deja_sanitize INTERFACE -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(deja_sanitize INTERFACE -fsanitize=thread)
elseif(NOT DEJA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "DEJA_SANITIZE is '${DEJA_SANITIZE}'; it must be address, thread or empty")
endif()

function(_deja_common target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE deja_warnings PUBLIC deja_sanitize)
endfunction()

# A program pays for each instruction of what runs in its process, and hashing at -O3 takes two thirds of the time.
set(DEJA_INPROCESS_OPTIMIZATION -O3 CACHE STRING "Optimisation of the libraries for the user's process, or empty")
function(_deja_inprocess_options target)
  target_compile_options(${target} PRIVATE -fvisibility=hidden -ftls-model=initial-exec ${DEJA_INPROCESS_OPTIMIZATION}
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fvisibility-inlines-hidden>)
endfunction()

# deja_plain_under_sanitizers(): a folder's sources are not optimised under a sanitizer, which halves their time with
# clang. For what only runs for moments; what hashes and compresses is optimised.
macro(deja_plain_under_sanitizers)
  if(NOT DEJA_SANITIZE STREQUAL "")
    add_compile_options(-O0)
  endif()
endmacro()

# deja_apart(target …): their sources are compiled one by one, also in a unity build. What each defines in its
# anonymous namespace has the same name on purpose.
function(deja_apart)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD OFF)
endfunction()

# deja_library(NAME SOURCES … [DEPS …] [INPROCESS]): a static library. INPROCESS: it ends up inside the user's
# process, so no exceptions, no RTTI, everything hidden (recorder/README.md).
function(deja_library name)
  cmake_parse_arguments(ARG "INPROCESS" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  _deja_common(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(ARG_INPROCESS)
    _deja_inprocess_options(${name})
  endif()
endfunction()

# deja_library_group(NAME part …): one name for libraries that are used together.
function(deja_library_group name)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${ARGN})
  set_target_properties(${name} PROPERTIES DEJA_PARTS "${ARGN}")
endfunction()

# deja_library_circle(part …): libraries whose sources need each other's; a linker that goes through archives in their
# order sees them several times.
function(deja_library_circle)
  foreach(part IN LISTS ARGN)
    set_target_properties(${part} PROPERTIES LINK_INTERFACE_MULTIPLICITY 3)
    set(others ${ARGN})
    list(REMOVE_ITEM others ${part})
    target_link_libraries(${part} PUBLIC ${others})
  endforeach()
endfunction()

# deja_preload_library(NAME [SAME_SHAPE] SOURCES … [WHOLE target …] DEPS … EXPORTS file [SONAME name]): a shared
# library for the user's process. Exports exactly what the anonymous version script EXPORTS lists (cmake/Exports.cmake
# writes it); static libstdc++, zstd and unwinder are hidden; libgcc_s stays shared so that _Unwind_* are the process's
# own. WHOLE: static libraries of ours of which every object goes in, referenced or not (deja_preload, with the hooks).
# Objects and not --whole-archive: --exclude-libs hides what comes from archives, hooks included. SAME_SHAPE: takes as
# much thread-local storage as the others that have this option.
function(deja_preload_library name)
  cmake_parse_arguments(ARG "NO_INSTALL;SAME_SHAPE" "EXPORTS;SONAME" "SOURCES;DEPS;WHOLE" ${ARGN})
  add_library(${name} SHARED ${ARG_SOURCES})
  _deja_common(${name})
  foreach(whole IN LISTS ARG_WHOLE)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${whole}>)
  endforeach()
  # A sanitizer's runtime wants to see all allocations.
  if(DEJA_SANITIZE STREQUAL "")
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:deja_own_malloc>)
  endif()
  _deja_inprocess_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_WHOLE} ${ARG_DEPS})
  # clang's sanitizers are in the program: a library does not define what it needs of them.
  target_link_options(${name} PRIVATE -Wl,--version-script=${ARG_EXPORTS} -Wl,--exclude-libs,ALL
    $<$<STREQUAL:"${DEJA_SANITIZE}","">:LINKER:-z,defs> -static-libstdc++ -Wl,--no-as-needed -lgcc_s -Wl,--as-needed)
  set(scripts ${PROJECT_SOURCE_DIR}/cmake/span.ld)
  if(ARG_SAME_SHAPE)
    list(APPEND scripts ${PROJECT_SOURCE_DIR}/cmake/thread_locals.ld)
  endif()
  foreach(script IN LISTS scripts)
    target_link_options(${name} PRIVATE -Wl,-T,${script})
  endforeach()
  # A hook may have the name of something in the static libstdc++, such as std::random_device's source of values.
  # Another function of that archive member brings it in: the first definition is ours.
  target_link_options(${name} PRIVATE -Wl,-z,muldefs)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS "${ARG_EXPORTS};${scripts}")
  if(ARG_SONAME)
    set_target_properties(${name} PROPERTIES NO_SONAME ON)
    target_link_options(${name} PRIVATE -Wl,-soname,${ARG_SONAME})
  endif()
  if(ARG_WHOLE)
    deja_portable_library(${name} HOOKS)
  else()
    deja_portable_library(${name})
  endif()
  if(NOT ARG_NO_INSTALL)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/deja)
  endif()
endfunction()

# A night's runs of the tests repeat what they do many times.
set(DEJA_TIMEOUT_FACTOR 1 CACHE STRING "What the time limits of tests are multiplied by")

# Test programs take GoogleTest's headers and those of the standard library precompiled: to read them takes a compiler
# longer than many a test. Where each source is compiled by itself, it includes what it needs. ThreadSanitizer's tests
# are optimised, and GCC then warns of what it does not take for the system's any more.
if(CMAKE_UNITY_BUILD AND NOT DEJA_SANITIZE STREQUAL "thread")
  set(DEJA_PRECOMPILES_TESTS ON)
endif()

# deja_precompile(TARGET PRIVATE HEADERS … | REUSE_FROM OWNER)
function(deja_precompile target)
  target_precompile_headers(${target} ${ARGN})
  # Else ccache would keep nothing that takes them.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()

# What deja_test and the owner of its precompiled headers (tests/support) are compiled with.
function(deja_test_options name)
  _deja_common(${name})
  # Most of the time of a build is spent on tests. Without optimisation it is a third of that with clang and sanitizers.
  # ThreadSanitizer's tests then run for longer than they compile.
  target_compile_options(${name} PRIVATE $<IF:$<STREQUAL:${DEJA_SANITIZE},thread>,-O1,-O0> -g1)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main GTest::gmock)
endfunction()

# What builds the programs of one label's tests, so that a sanitizer's build need not build the rest.
function(_deja_label_target label name)
  if(NOT TARGET tests-${label})
    add_custom_target(tests-${label})
  endif()
  add_dependencies(tests-${label} ${name})
endfunction()

# deja_test(NAME LABEL label SOURCES … [DEPS …]): a GoogleTest program; every test in it is a ctest of its own.
function(deja_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * ${DEJA_TIMEOUT_FACTOR}")
  add_executable(${name} ${ARG_SOURCES})
  deja_test_options(${name})
  if(DEJA_PRECOMPILES_TESTS)
    deja_precompile(${name} REUSE_FROM deja_test_headers)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  _deja_label_target(${ARG_LABEL} ${name})
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_LABEL}/" DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# deja_script_test(NAME LABEL label COMMAND …): any command that exits 0 on success and 77 when it cannot run
# here (it then says why).
function(deja_script_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * ${DEJA_TIMEOUT_FACTOR}")
  add_test(NAME ${ARG_LABEL}/${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # ctest starts what costs most first; the limits tell the long tests from the short ones.
  set_tests_properties(${ARG_LABEL}/${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
    SKIP_RETURN_CODE 77 ENVIRONMENT "DEJA_BUILD_DIR=${PROJECT_BINARY_DIR}")
endfunction()

# deja_test_app(NAME SOURCES …): a small program for end-to-end tests, linked to the NCCL API only.
function(deja_test_app name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE deja_warnings deja_loopback Threads::Threads ${ARG_DEPS})
  target_compile_options(${name} PRIVATE -g)  # gdb is asked for their variables
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/apps)
endfunction()
