# Moeyard. SPDX-License-Identifier: Apache-2.0
# Compiler settings, dependencies and the few functions that every folder uses.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib64)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib64;$ORIGIN")

# Most of the time of compiling a file goes into reading headers of the standard library, fmt and GoogleTest, so these are
# precompiled. Precompiled headers differ from build to build, but what they are made from does not: ccache is told to
# compare that (moeyard_precompile writes it).
set(MOEYARD_CCACHE_PCH CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(MOEYARD_CCACHE ccache)
  if(MOEYARD_CCACHE)
    # Several checkouts of one machine share the cache: paths below the base are made relative.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${MOEYARD_CCACHE_PCH}
        ${MOEYARD_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()

find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(UCX REQUIRED IMPORTED_TARGET ucx)

# Settings of every target of ours: warnings are errors, and a * b + c is never contracted, as documented sums
# round after each operation.
add_library(moeyard_options INTERFACE)
target_compile_options(moeyard_options INTERFACE
  -Wall -Wextra -Werror -Wno-missing-field-initializers -ffp-contract=off -fvisibility-inlines-hidden)
target_include_directories(moeyard_options INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(moeyard_options INTERFACE Threads::Threads)
if(MOEYARD_SANITIZE)
  # A C program may pass any number where the interface has an enumeration: that is refused with a code.
  target_compile_options(moeyard_options INTERFACE
    -fsanitize=${MOEYARD_SANITIZE} -fno-sanitize=enum -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  target_link_options(moeyard_options INTERFACE -fsanitize=${MOEYARD_SANITIZE})
  target_compile_definitions(moeyard_options INTERFACE MOEYARD_SANITIZED)
  if(MOEYARD_SANITIZE MATCHES "thread")
    # TBB is opaque to the thread sanitizer: src/base/parallel.cc has a plain std::thread version.
    target_compile_definitions(moeyard_options INTERFACE MOEYARD_PLAIN_THREADS)
  endif()
endif()

# Headers of src/ and the libraries that code inside libmoeyard uses.
add_library(moeyard_internal INTERFACE)
target_include_directories(moeyard_internal INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(moeyard_internal INTERFACE ${HWY_CFLAGS_OTHER})  # equal in all that share precompiled headers
target_link_libraries(moeyard_internal INTERFACE
  moeyard_options fmt::fmt spdlog::spdlog tl::expected nlohmann_json::nlohmann_json)

function(moeyard_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # a quarter of their compile time is optimising
  if(MOEYARD_SANITIZE MATCHES "undefined")
    # Half of the time of that build went into watching the tests' own code; the libraries under test are watched.
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# moeyard_precompile(<target> <header> ...): the target's sources begin with these system headers.
function(moeyard_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  set(versions)
  foreach(package libstdc++-12-dev libfmt-dev libexpected-dev libgtest-dev libgmock-dev)
    execute_process(COMMAND dpkg-query -W -f "\${Version} " ${package} OUTPUT_VARIABLE version ERROR_QUIET)
    string(APPEND versions "${version}")
  endforeach()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum
    "${ARGN} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${MOEYARD_SANITIZE} ${versions}")
endfunction()

# moeyard_tests(<links> <file> ... LABELS <label> ...): every *_test.cc is a program and a ctest entry of its own.
function(moeyard_tests links)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS")
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(name ${file} NAME_WE)
    add_executable(${name} ${file})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
    moeyard_test_options(${name})
    file(STRINGS ${file} uses_data LIMIT_COUNT 1 REGEX MOEYARD_TEST_DATA)
    if(uses_data)  # only these: a path on every command line would keep checkouts from sharing compiled tests
      target_compile_definitions(${name} PRIVATE MOEYARD_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    endif()
    target_link_libraries(${name} PRIVATE ${links} GTest::gmock GTest::gtest_main)
    target_precompile_headers(${name} REUSE_FROM moeyard_test_headers)
    add_test(NAME ${name} COMMAND ${name})
    set(labels ${arg_LABELS})
    if(name MATCHES "_slow_test$")
      list(APPEND labels slow)
    endif()
    moeyard_test_settings(${name} ${labels})
    foreach(label ${labels})  # tests_<label> builds the tests of a label
      if(NOT TARGET tests_${label})
        add_custom_target(tests_${label})
      endif()
      add_dependencies(tests_${label} ${name})
    endforeach()
  endforeach()
endfunction()

# moeyard_test_settings(<test> <label> ...): labels, a limit of time, and an environment in which variables of the
# person who runs the tests change nothing.
function(moeyard_test_settings test)
  set(unset DEVICES SOC SOC_NAME TIMEOUT_MS STRICT_MEMORY LENIENT FILL TARGET THREADS LOG TRACE DUMP SHARED_MEMORY SECRET)
  list(TRANSFORM unset REPLACE "(.+)" "MOEYARD_\\1=unset:")
  foreach(name HCCL_EXEC_TIMEOUT HCCL_CONNECT_TIMEOUT HCCL_BUFFSIZE ASCEND_RT_VISIBLE_DEVICES RANK_TABLE_FILE)
    list(APPEND unset "${name}=unset:")
  endforeach()
  set_tests_properties(${test} PROPERTIES LABELS "${ARGN}" TIMEOUT 600 ENVIRONMENT_MODIFICATION "${unset}")
endfunction()
