// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the sections of language_c.c.
#include "oracle.hpp"

#include <cstring>

using oracle::at;

extern "C" {
struct item;
struct shelf {
    item* first;
    long count, last;
};
struct matrix {
    int n;
    double cell[16];
};
bool shelf_add(shelf*, const char* text, std::size_t length);
void shelf_drop(shelf*);
void item_flag(item*, unsigned flag);
void matrix_scale(matrix*, matrix by, int shift);
void sort_by_digit(long*, int n);
int step(int* state, long* work);
void text_edit(char* text, std::size_t length);
}

SCENARIO(
    c_allocates, [] { *at<shelf>(0) = {at<item>(256), 4, 7}; },
    [] {
        char text[] = "a text that is gone after the crash";
        shelf_add(at<shelf>(0), text, sizeof text);
        std::memset(text, 0, sizeof text);
    })
SCENARIO(
    c_frees,
    [] {
        *at<shelf>(0) = {at<item>(256), 4, 7};
        *at<item*>(256) = at<item>(512);
    },
    [] { shelf_drop(at<shelf>(0)); })
SCENARIO(c_bit_fields, [] { *at<long>(264) = 0x5123; }, [] { item_flag(at<item>(256), 8); })
SCENARIO(
    c_arrays,
    [] {
        at<matrix>(0)->n = 4;
        for (int i = 0; i < 16; ++i) at<matrix>(0)->cell[i] = i + 0.5;
    },
    [] {
        matrix by{};
        for (int i = 0; i < 16; ++i) by.cell[i] = 1.5 * i;
        matrix_scale(at<matrix>(0), by, 3);
    })
SCENARIO(
    c_function_pointer,
    [] {
        for (int i = 0; i < 9; ++i) at<long>(0)[i] = 97 * (9 - i);
    },
    [] { sort_by_digit(at<long>(0), 9); })
SCENARIO(c_goto, [] { *at<long>(64) = 5; }, [] { step(at<int>(0), at<long>(64)); })
SCENARIO(
    c_strings, [] { std::strcpy(at<char>(0), "half a sentence. and more"); },
    [] { text_edit(at<char>(0), 40); })
