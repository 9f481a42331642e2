#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# arm64.sh SOURCE BUILD PLUGIN CTEST: builds the core for ARM64 in BUILD and runs its tests; 77: something that it needs
# is not installed.
set -eu
source=$1 build=$2 plugin=$3 ctest=$4
missing=
for package in $(sed -n '/^\[arm64\]/,/^$/{/^\[/d;p}' "$source/packages.txt"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "arm64: skipped, because these packages are not installed:$missing; 'make arm64' installs them"
    exit 77
fi
exec "$ctest" --build-and-test "$source" "$build" --build-generator Ninja \
    --build-options -DCMAKE_TOOLCHAIN_FILE="$source/cmake/arm64.cmake" -DHOLDFAST_HOST_PLUGIN="$plugin" \
    -DHOLDFAST_PROGRAMS=OFF -DHOLDFAST_INSTALL=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -gline-tables-only -DNDEBUG" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG" \
    --build-target core_tests \
    --test-command "$ctest" --output-on-failure -j 2 -E "$(cat "$source/test/gates/arm64/left_out")"
