# SPDX-License-Identifier: Apache-2.0
#
# find_package(Cornu) defines Cornu::cornu: libcornu.so, or libcornu.a after
# set(Cornu_USE_STATIC_LIBS ON). Cornu::shared and Cornu::static are always one of them.
#
# CMake writes the path of libcornu.so.0 into programs that stay where it builds them. A program
# that `cmake --install` copies elsewhere keeps it only with
#     set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# which a prefix that the run-time linker does not search needs.
get_filename_component(Cornu_LIBRARY_DIR "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(Cornu_prefix "${Cornu_LIBRARY_DIR}/")
string(REGEX REPLACE "/@LIBDIR@/$" "" Cornu_prefix "${Cornu_prefix}")
set(Cornu_INCLUDE_DIRS "${Cornu_prefix}/include")
unset(Cornu_prefix)

foreach(kind shared static)
    if(NOT TARGET Cornu::${kind})
        if(kind STREQUAL "shared")
            add_library(Cornu::shared SHARED IMPORTED)
            set_target_properties(Cornu::shared PROPERTIES
                IMPORTED_LOCATION "${Cornu_LIBRARY_DIR}/libcornu.so.0"
                IMPORTED_SONAME libcornu.so.0
                INTERFACE_LINK_LIBRARIES m)
        else()
            add_library(Cornu::static STATIC IMPORTED)
            set_target_properties(Cornu::static PROPERTIES
                IMPORTED_LOCATION "${Cornu_LIBRARY_DIR}/libcornu.a"
                INTERFACE_LINK_LIBRARIES "@LIBRARIES@")
        endif()
        set_target_properties(Cornu::${kind} PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${Cornu_INCLUDE_DIRS}")
    endif()
endforeach()

if(NOT TARGET Cornu::cornu)
    add_library(Cornu::cornu INTERFACE IMPORTED)
    if(Cornu_USE_STATIC_LIBS)
        set_target_properties(Cornu::cornu PROPERTIES INTERFACE_LINK_LIBRARIES Cornu::static)
    else()
        set_target_properties(Cornu::cornu PROPERTIES INTERFACE_LINK_LIBRARIES Cornu::shared)
    endif()
endif()
