# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Debian packages, by CPack: 'make packages'. The libraries are static, so that there is no package of them to run
# with. Whoever writes programs installs holdfast-clang, which brings libholdfast-dev; operators holdfast-tools and
# holdfast-kv.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Holdfast authors <holdfast@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ordinary C++ objects in a file, whole after every kill")
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON) # of the unit's and the conffile's absolute places
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL dev compiler tools server doc)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libholdfast-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libfmt-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libzstd-dev, libhiredis-dev") # holdfast/simpo/zstd.hpp, redis.hpp
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "pkg-config, holdfast-doc")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and static libraries of Holdfast, its crash checker, and what CMake and
 pkg-config ask for. The containers of MOD need no more; failure-atomic functions need holdfast-clang.")
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME holdfast-clang)
set(CPACK_DEBIAN_COMPILER_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS "clang-${HOLDFAST_LLVM}, libholdfast-dev (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_COMPILER_DESCRIPTION "Holdfast's plugin for clang ${HOLDFAST_LLVM}, which makes functions failure-atomic, the
 wrappers holdfast-clang and holdfast-clang++, and holdfast-classify, which says what of a persistent class is deferrable.")
set(CPACK_DEBIAN_COMPILER_PACKAGE_RECOMMENDS holdfast-doc)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME holdfast-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS holdfast-doc)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "gdb") # holdfast print
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command holdfast: looks into pools, verifies, copies, repairs and watches
 them, and fails programs at every store.")
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME holdfast-kv)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS holdfast-doc)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/conffiles)
set(CPACK_COMPONENT_SERVER_DESCRIPTION "A memcached-protocol server whose items survive kill -9 and, with --mode
 power, a power cut.")
set(CPACK_DEBIAN_DOC_PACKAGE_NAME holdfast-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_DOC_DESCRIPTION "The guide of Holdfast as pages for a browser, which need no network, and the
 examples: /usr/share/doc/holdfast.")
include(CPack)
