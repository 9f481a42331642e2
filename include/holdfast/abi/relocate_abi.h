/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What code built relocatable (plugin option -holdfast-relocatable) asks the runtime. A relocated
 * pool is mapped in a part of the address space where nothing else is, so an access of one is known
 * by its address alone: everywhere else no call is made.
 *
 * 1. In the file an address has its canonical form, whatever the pool's mapping; everywhere else it
 *    has the form in which it can be followed.
 * 2. Bytes move between the two as pointers (load, store, copy_pointers), or are shown to hold no
 *    address of the pool (raw_load, raw_store, copy). What can be neither ends the process, naming
 *    the source line, before the bytes are used or stored.
 */
#ifndef HOLDFAST_ABI_RELOCATE_H
#define HOLDFAST_ABI_RELOCATE_H

#include <stdint.h>

/* An address is in the space of relocated pools exactly if its bits above the shift are this. */
#define HF_RELOCATED_SHIFT 42u
#define HF_RELOCATED_BITS 0x17u
/* Where canonical addresses lie: the first, and behind the last. */
#define HF_CANONICAL_LOW 0x570000000000u
#define HF_CANONICAL_HIGH 0x5a0000000000u

/* Set in hf_txfunc::abi_version of functions built relocatable. */
#define HF_ABI_RELOCATABLE 0x80000000u

#ifdef __cplusplus
extern "C" {
#endif

/* 'value', loaded from 'address' in a relocated pool, in the form to follow. */
void* hf_relocated_load(const void* address, void* value, const char* where);
/* 'value' in the form to store at 'address' in a relocated pool. */
void* hf_relocated_store(const void* address, void* value, const char* where);
/* Before bytes at 'address' in a relocated pool are read as anything but pointers. */
void hf_relocated_raw_load(const void* address, uint64_t bytes, const char* where);
/* Before an integer is stored at 'address' in a relocated pool. */
void hf_relocated_store_word(const void* address, uint64_t value, const char* where);
/* Before the bytes at 'from' are written to 'address' in a relocated pool. */
void hf_relocated_raw_store(const void* address, const void* from, uint64_t bytes,
                            const char* where);
/* Before bytes of unknown type are copied, from or to a relocated pool. */
void hf_relocated_copy(void* to, const void* from, uint64_t bytes, const char* where);
/* memmove of pointers, from or to a relocated pool. */
void hf_relocated_copy_pointers(void* to, const void* from, uint64_t bytes, const char* where);

/* In sections of engine redo: the same of bytes as the section sees them, which may wait in its
 * buffer. What the last one stores waits there as well. */
void hf_redo_relocated_raw_load(const void* address, uint64_t bytes, const char* where);
void hf_redo_relocated_copy(void* to, const void* from, uint64_t bytes, const char* where);
void hf_redo_relocated_copy_pointers(void* to, const void* from, uint64_t bytes, const char* where);

#ifdef __cplusplus
}
#endif
#endif
