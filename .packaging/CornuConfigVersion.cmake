# SPDX-License-Identifier: Apache-2.0
#
# Before version 1 another minor version may differ in its interface; 0.1.2 does where 0.1 is asked
# for.
set(PACKAGE_VERSION "@VERSION@")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8 AND NOT CMAKE_SIZEOF_VOID_P STREQUAL "")
    set(PACKAGE_VERSION "${PACKAGE_VERSION} (64 bits)")
    set(PACKAGE_VERSION_UNSUITABLE TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    set(PACKAGE_VERSION_EXACT TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_LESS PACKAGE_VERSION)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" Cornu_asked
           "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}")
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" Cornu_there "${PACKAGE_VERSION}")
    if(Cornu_asked STREQUAL Cornu_there OR NOT PACKAGE_FIND_VERSION)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    endif()
    unset(Cornu_asked)
    unset(Cornu_there)
endif()
