# Moeyard. SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` makes, in the shape that programs for CANN expect of ASCEND_HOME_PATH:
#
#   include/ lib64/ bin/ set_env.sh     and latest, cann -> . as some link lines go through them
#   atb/set_env.sh atb/cxx_abi_{0,1}    ATB for programs of either C++ ABI; lib64/libatb.so is the second
#   share/cmake/Moeyard lib64/pkgconfig     packages: CMake does not look into lib64 on Debian
#   opp/vendors/moeyard_transformer     the operators once more, where projects look for custom packages
#
# The tree may be moved: nothing in it holds its own place.

# CANN has them, link lines name them, and nothing that they would hold is needed here.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.c "/* This library holds nothing: it exists because link lines name it. */\n")
add_library(c_sec SHARED ${CMAKE_CURRENT_BINARY_DIR}/empty.c)
add_library(op_common SHARED ${CMAKE_CURRENT_BINARY_DIR}/empty.c)

set(installed moeyard moeyard_ucx ascendcl nnopbase hccl opapi c_sec op_common)
set_target_properties(${installed} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${installed} LIBRARY DESTINATION lib64)
install(DIRECTORY include/ DESTINATION include PATTERN atb_backend.h EXCLUDE)
install(FILES cmake/install/set_env.sh DESTINATION .)
install(FILES cmake/install/setenv.bash DESTINATION bin)
install(FILES LICENSE DESTINATION share/doc/moeyard)

# Further names of the same library, as older and newer releases have them.
function(moeyard_install_link target link)
  install(CODE "
    set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${link}\")
    get_filename_component(folder \"\${link}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    file(CREATE_LINK ${target} \"\${link}\" SYMBOLIC)")
endfunction()
foreach(link runtime:ascendcl acl_rt:ascendcl hccl_fwk:hccl hcomm:hccl opapi_transformer:opapi opapi_math:opapi
             opapi_nn:opapi opapi_cv:opapi)
  string(REPLACE ":" ";" link ${link})
  list(GET link 0 name)
  list(GET link 1 library)
  moeyard_install_link(lib${library}.so lib64/lib${name}.so)
endforeach()
moeyard_install_link(. latest)
moeyard_install_link(. cann)

# libatb lies three folders below lib64, or in it.
set(atb_libraries atb)
if(TARGET atb_cxx_abi_0)
  list(APPEND atb_libraries atb_cxx_abi_0)
  install(TARGETS atb_cxx_abi_0 LIBRARY DESTINATION atb/cxx_abi_0/lib)
endif()
set_target_properties(${atb_libraries} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../../lib64")
install(TARGETS atb LIBRARY DESTINATION lib64)
moeyard_install_link(../../../lib64/libatb.so atb/cxx_abi_1/lib/libatb.so)
foreach(abi 0 1)
  moeyard_install_link(../../../include/atb atb/cxx_abi_${abi}/include/atb)
  moeyard_install_link(libatb.so atb/cxx_abi_${abi}/lib/liblcal.so)
endforeach()
install(FILES cmake/install/atb_set_env.sh DESTINATION atb RENAME set_env.sh)
# What scripts/build needs, without the tests.
add_custom_target(moeyard_installed DEPENDS ${installed} ${atb_libraries} moeyard_cli)

set(vendor opp/vendors/moeyard_transformer/op_api)
moeyard_install_link(../../../../../lib64/libopapi.so ${vendor}/lib/libcust_opapi.so)
moeyard_install_link(../../../../../include/aclnnop ${vendor}/include/aclnnop)
file(GLOB operator_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include/aclnnop include/aclnnop/*.h)
foreach(header ${operator_headers})
  moeyard_install_link(aclnnop/${header} ${vendor}/include/${header})
endforeach()

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/MoeyardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/install/MoeyardConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/MoeyardConfigVersion.cmake
  DESTINATION share/cmake/Moeyard)
foreach(package
    "ascendcl:devices, memory, streams and events:"
    "nnopbase:tensors and executors of aclnn operators:moeyard-ascendcl"
    "hccl:communicators and collectives:moeyard-ascendcl"
    "opapi:aclnn operators:moeyard-nnopbase moeyard-ascendcl"
    "atb:operations, graphs and plugins of ATB:moeyard-opapi moeyard-nnopbase moeyard-ascendcl")
  string(REGEX MATCH "^([^:]*):([^:]*):(.*)$" matched ${package})
  set(library ${CMAKE_MATCH_1})
  set(description "Moeyard: ${CMAKE_MATCH_2}")
  string(REPLACE " " ", " requires "${CMAKE_MATCH_3}")
  configure_file(cmake/install/package.pc.in ${CMAKE_CURRENT_BINARY_DIR}/pkgconfig/moeyard-${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pkgconfig/moeyard-${library}.pc DESTINATION lib64/pkgconfig)
endforeach()
