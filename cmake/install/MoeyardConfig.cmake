# Moeyard. SPDX-License-Identifier: Apache-2.0
#
# find_package(Moeyard) defines, with their include directories:
#
#   Moeyard::ascendcl   devices, memory, streams, events
#   Moeyard::nnopbase   tensors and executors of aclnn operators
#   Moeyard::hccl       communicators and collectives
#   Moeyard::opapi      aclnn operators, with Moeyard::nnopbase and Moeyard::ascendcl
#   Moeyard::atb        ATB for the usual C++ ABI, with Moeyard::opapi
get_filename_component(_moeyard_root "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)

foreach(_moeyard_name ascendcl nnopbase hccl opapi atb)
  if(NOT TARGET Moeyard::${_moeyard_name})
    add_library(Moeyard::${_moeyard_name} SHARED IMPORTED)
    set_target_properties(Moeyard::${_moeyard_name} PROPERTIES
      IMPORTED_LOCATION "${_moeyard_root}/lib64/lib${_moeyard_name}.so"
      IMPORTED_SONAME "lib${_moeyard_name}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_moeyard_root}/include;${_moeyard_root}/include/aclnnop")
  endif()
endforeach()
set_property(TARGET Moeyard::nnopbase Moeyard::hccl PROPERTY INTERFACE_LINK_LIBRARIES Moeyard::ascendcl)
set_property(TARGET Moeyard::opapi PROPERTY INTERFACE_LINK_LIBRARIES Moeyard::nnopbase Moeyard::ascendcl)
set_property(TARGET Moeyard::atb PROPERTY INTERFACE_LINK_LIBRARIES Moeyard::opapi)

unset(_moeyard_name)
unset(_moeyard_root)
