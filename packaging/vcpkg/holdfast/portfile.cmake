# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Holdfast's libraries for vcpkg, from the checkout that this file lies in:
#
#     vcpkg install holdfast --overlay-ports=packaging/vcpkg              {fmt} and xxHash from vcpkg
#     vcpkg install 'holdfast[core]' --overlay-ports=packaging/vcpkg      … from Debian's packages
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." REALPATH)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DHOLDFAST_COMPILER=OFF -DHOLDFAST_TESTS=OFF -DHOLDFAST_PROGRAMS=OFF -DHOLDFAST_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
