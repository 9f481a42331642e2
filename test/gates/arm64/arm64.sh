#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# arm64.sh build|core SOURCE BUILD PLUGIN CTEST: builds the core for ARM64 in BUILD, or runs its tests there; 77: something
# that it needs is not installed.
set -eu
part=$1 source=$2 build=$3 plugin=$4 ctest=$5
missing=
for package in $(sed -n '/^\[arm64\]/,/^$/{/^\[/d;p}' "$source/packages.txt"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "arm64: skipped, because these packages are not installed:$missing; 'make arm64' installs them"
    exit 77
fi
if [ "$part" = core ]; then
    exec "$ctest" --test-dir "$build" --output-on-failure --no-tests=error -j 2 -L '^(cross|kill)$'
fi
exec "$ctest" --build-and-test "$source" "$build" --build-generator Ninja \
    --build-options -DCMAKE_TOOLCHAIN_FILE="$source/cmake/arm64.cmake" -DHOLDFAST_HOST_PLUGIN="$plugin" \
    -DHOLDFAST_PROGRAMS=OFF -DHOLDFAST_INSTALL=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -gline-tables-only -DNDEBUG" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG" \
    --build-target core_tests
