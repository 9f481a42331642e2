// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CLI11 without optimisation, which takes it as long as all the rest of a main.cpp: a command line
// is read once. The standard library's headers that it includes come before, with it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <locale>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma clang optimize off
#include <CLI/CLI.hpp>
#pragma clang optimize on
