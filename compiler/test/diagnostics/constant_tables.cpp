// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A struct that is copied to the pool from a constant holds addresses of this process wherever the constant does: at
// an index or by a pointer known when it runs, through locals, helpers and choices. Parts that hold none pass.
// RUN: not %hf_clangxx -O0 -ferror-limit=0 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O1 -ferror-limit=0 -c %s -o %t.o 2>&1 | FileCheck %s
// Sections that never run again may keep one there for a while: a warning.
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=redo -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %hf_clangxx -O3 -march=native -mllvm -holdfast-engine=undo -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %hf_clangxx -DACCEPTED -O0 -c %s -o %t.o
// RUN: %hf_clangxx -DACCEPTED -Werror -O1 -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -DACCEPTED -O2 -c %s -o %t.o
#include <holdfast/txfunc.hpp>
#include <array>
#include <cstring>
#include <string_view>
struct kind { const char* name; long cost; };
struct pod { long a, b, c; };
struct wide { pod first; const char* name; kind more[2]; pod last; };
static const kind kinds[] = {{"wood", 1}, {"stone", 2}, {"gold", 9}};
static const wide wides[] = {{{1, 2, 3}, "a", {{"x", 1}, {"y", 2}}, {7, 8, 9}}, {{1, 2, 3}, "b", {{"x", 1}, {"z", 2}}, {7, 8, 9}}};
static const char* const names[] = {"one", "two", "three"};
struct one { const char* name; };
static const one ones[] = {{"p"}, {"q"}};
struct ops { long (*add)(long); long (*sub)(long); };
static long add(long x) { return x + 1; }
static long sub(long x) { return x - 1; }
static const ops tables[] = {{add, sub}, {sub, add}};
struct root { kind what; pod p; wide w; one o; ops t; const char* name; long n; kind ks[8]; std::string_view sv; };

#ifndef ACCEPTED

// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_index(root*, unsigned int)'
HF_TXFUNC void by_index(root* r, unsigned k) noexcept { r->what = kinds[k % 3]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_one_word(root*, unsigned int)'
HF_TXFUNC void of_one_word(root* r, unsigned k) noexcept { r->o = ones[k % 2]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_several(root*, unsigned int)'
HF_TXFUNC void of_several(root* r, unsigned k) noexcept { r->w = wides[k % 2]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_an_array_inside(root*, unsigned int)'
HF_TXFUNC void of_an_array_inside(root* r, unsigned k) noexcept { r->what = wides[k % 2].more[(k >> 1) & 1]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_functions(root*, unsigned int)'
HF_TXFUNC void of_functions(root* r, unsigned k) noexcept { r->t = tables[k % 2]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'through_a_local(root*, unsigned int)'
HF_TXFUNC void through_a_local(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; c.cost += r->n; r->what = c; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_either(root*, unsigned int)'
HF_TXFUNC void of_either(root* r, unsigned k) noexcept { const kind* q = k & 1 ? &kinds[k % 3] : &wides[k % 2].more[1]; r->what = *q; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_any_length(root*, unsigned int)'
HF_TXFUNC void of_any_length(root* r, unsigned k) noexcept { std::memcpy(r->ks, kinds, k * sizeof(kind)); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'pointer_alone(root*, unsigned int)'
HF_TXFUNC void pointer_alone(root* r, unsigned k) noexcept { r->name = names[k % 3]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'one_by_one(root*, unsigned int)'
HF_TXFUNC void one_by_one(root* r, unsigned k) noexcept { for (unsigned i = 0; i < k; i++) r->ks[i] = kinds[i]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_pointer(root*, unsigned int)'
HF_TXFUNC void by_pointer(root* r, unsigned k) noexcept { for (const kind* q = kinds; q != kinds + 3; q++) if (q->cost > long(k)) r->what = *q; }
__attribute__((noinline)) static kind pick(unsigned k) { return kinds[k % 3]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'returned(root*, unsigned int)'
HF_TXFUNC void returned(root* r, unsigned k) noexcept { r->what = pick(k); }
__attribute__((noinline)) static wide pick_wide(unsigned k) { return wides[k % 2]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'returned_in_memory(root*, unsigned int)'
HF_TXFUNC void returned_in_memory(root* r, unsigned k) noexcept { wide w = pick_wide(k); w.last.a += r->n; r->w = w; }
__attribute__((noinline)) static void put(root* r, const kind* q) { r->what = *q; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_a_helper(root*, unsigned int)'
HF_TXFUNC void by_a_helper(root* r, unsigned k) noexcept { put(r, &kinds[k % 3]); }
__attribute__((noinline)) static void put_name(root* r, const kind* q) { r->name = q->name; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'member_by_a_helper(root*, unsigned int)'
HF_TXFUNC void member_by_a_helper(root* r, unsigned k) noexcept { put_name(r, &kinds[k % 3]); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'or_of_the_pool(root*, unsigned int)'
HF_TXFUNC void or_of_the_pool(root* r, unsigned k) noexcept { const kind* q = k ? &r->ks[0] : &kinds[1]; r->what = *q; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'literal_or_pools(root*, unsigned int)'
HF_TXFUNC void literal_or_pools(root* r, unsigned k) noexcept { r->name = k ? r->ks[0].name : "none"; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'views(root*, unsigned int)'
HF_TXFUNC void views(root* r, unsigned k) noexcept { r->sv = k ? std::string_view("abc") : std::string_view("de"); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'two_members(root*, unsigned int)'
HF_TXFUNC void two_members(root* r, unsigned k) noexcept { r->ks[0].name = kinds[k % 3].name; r->ks[1].name = names[k % 3]; }
__attribute__((noinline)) static const kind* find(unsigned k) { return &kinds[k % 3]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'found_by_a_helper(root*, unsigned int)'
HF_TXFUNC void found_by_a_helper(root* r, unsigned k) noexcept { r->what = *find(k); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'array_of_them(root*, unsigned int)'
HF_TXFUNC void array_of_them(root* r, unsigned k) noexcept { kind both[2] = {kinds[k % 3], kinds[0]}; std::memcpy(r->ks, both, sizeof both); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'on_one_path(root*, unsigned int)'
HF_TXFUNC void on_one_path(root* r, unsigned k) noexcept { kind c; if (k & 1) c = kinds[k % 3]; else c = r->ks[0]; r->what = c; }
__attribute__((noinline)) static const kind* found_next(unsigned k) { return find(k + 1); }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'found_by_helpers(root*, unsigned int)'
HF_TXFUNC void found_by_helpers(root* r, unsigned k) noexcept { r->what = *found_next(k); }
static constexpr std::array<kind, 3> in_array{{{"wood", 1}, {"stone", 2}, {"gold", 9}}};
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'of_std_array(root*, unsigned int)'
HF_TXFUNC void of_std_array(root* r, unsigned k) noexcept { r->what = in_array[k % 3]; }
template <int N> __attribute__((noinline)) static void put_deeply(root* r, const kind* q) {
    if constexpr (N == 0) r->what = *q; else put_deeply<N - 1>(r, q);
}
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_twenty_helpers(root*, unsigned int)'
HF_TXFUNC void by_twenty_helpers(root* r, unsigned k) noexcept { put_deeply<20>(r, &kinds[k % 3]); }
static const kind* const rows[] = {&kinds[2], &kinds[0]};
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_a_table_of_pointers(root*, unsigned int)'
HF_TXFUNC void by_a_table_of_pointers(root* r, unsigned k) noexcept { r->what = *rows[k % 2]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_pointers_of_a_local(root*, unsigned int)'
HF_TXFUNC void by_pointers_of_a_local(root* r, unsigned k) noexcept { const kind* local[2] = {&kinds[2], &kinds[0]}; r->what = *local[k % 2]; }
static const kind* of_price(unsigned k) { switch (k) { case 1: return &kinds[2]; case 3: return &kinds[0]; case 4: return &kinds[1]; case 5: return &kinds[0]; case 7: return &kinds[2]; } return &kinds[1]; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'by_a_switch(root*, unsigned int)'
HF_TXFUNC void by_a_switch(root* r, unsigned k) noexcept { r->what = *of_price(k); }

__attribute__((noinline)) static void raise_cost(kind* q) { q->cost++; }
// CHECK-DAG: {{error|warning}}: address of {{.*}}is stored to the pool{{.*}}failure-atomic function 'changed_beside_it(root*, unsigned int)'
HF_TXFUNC void changed_beside_it(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; raise_cost(&c); r->what = c; }

#else

HF_TXFUNC void part_without(root* r, unsigned k) noexcept { r->p = wides[k % 2].first; }
HF_TXFUNC void last_part_without(root* r, unsigned k) noexcept { r->p = wides[k % 2].last; }
HF_TXFUNC void number_beside(root* r, unsigned k) noexcept { r->n = kinds[k % 3].cost; }
HF_TXFUNC void replaced(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; c.name = r->name; r->what = c; }
HF_TXFUNC void number_inside(root* r, unsigned k) noexcept { r->n += wides[k % 2].more[k & 1].cost; }
__attribute__((noinline)) static kind pick(unsigned k) { return kinds[k % 3]; }
HF_TXFUNC void number_returned(root* r, unsigned k) noexcept { r->n = pick(k).cost; }
__attribute__((noinline)) static void put(root* r, const pod* q) { r->p = *q; }
HF_TXFUNC void part_by_a_helper(root* r, unsigned k) noexcept { put(r, &wides[k % 2].last); }
__attribute__((noinline)) static void put_cost(root* r, const kind* q) { r->n = q->cost; }
HF_TXFUNC void number_by_a_helper(root* r, unsigned k) noexcept { put_cost(r, &kinds[k % 3]); }
HF_TXFUNC void never_the_literal(root* r, unsigned k) noexcept { const char* s = ""; if (k) s = r->ks[0].name; else s = r->name; r->o.name = s; }
__attribute__((noinline)) static const kind* find(unsigned k) { return &kinds[k % 3]; }
HF_TXFUNC void number_found(root* r, unsigned k) noexcept { r->n = find(k)->cost; }
__attribute__((noinline)) static wide pick_wide(unsigned k) { return wides[k % 2]; }
HF_TXFUNC void part_returned(root* r, unsigned k) noexcept { wide w = pick_wide(k); r->p = w.last; r->n = long(std::strlen(w.name)); }
HF_TXFUNC void part_by_pointer(root* r, unsigned k) noexcept { for (const wide* q = wides; q != wides + 2; q++) if (q->last.a > long(k)) r->p = q->last; }
HF_TXFUNC void only_read(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; r->n = c.cost + long(std::strlen(c.name)); }
HF_TXFUNC void called(root* r, unsigned k) noexcept { r->n = tables[k % 2].add(r->n); }
HF_TXFUNC void replaced_on_all_paths(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; if (k > 5) c.name = r->name; else c.name = nullptr; r->what = c; }
static const long primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
HF_TXFUNC void table_of_numbers(root* r, unsigned k) noexcept { std::memcpy(&r->p, primes + k % 4, sizeof r->p); for (unsigned i = 0; i < k; i++) r->ks[i].cost = primes[i]; }
__attribute__((noinline)) static const kind* found_next(unsigned k) { return find(k + 1); }
HF_TXFUNC void number_found_by_helpers(root* r, unsigned k) noexcept { r->n = found_next(k)->cost; }
static const kind* const rows[] = {&kinds[2], &kinds[0]};
HF_TXFUNC void number_by_a_table_of_pointers(root* r, unsigned k) noexcept { r->n = rows[k % 2]->cost; }
HF_TXFUNC void number_by_pointers_of_a_local(root* r, unsigned k) noexcept { const kind* local[2] = {&kinds[2], &kinds[0]}; r->n = local[k % 2]->cost; }
static const kind* of_price(unsigned k) { switch (k) { case 1: return &kinds[2]; case 3: return &kinds[0]; case 4: return &kinds[1]; case 5: return &kinds[0]; case 7: return &kinds[2]; } return &kinds[1]; }
HF_TXFUNC void number_by_a_switch(root* r, unsigned k) noexcept { r->n = of_price(k)->cost + long(std::strlen(of_price(k)->name)); }
__attribute__((noinline)) static void name_it(kind* q, const char* name) { q->name = name; }
HF_TXFUNC void replaced_by_a_helper(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; name_it(&c, r->name); r->what = c; }
__attribute__((noinline)) static void unname(kind* q) { q->name = nullptr; }
__attribute__((noinline)) static void unname_too(kind* q) { unname(q); }
HF_TXFUNC void cleared_by_helpers(root* r, unsigned k) noexcept { kind c = kinds[k % 3]; unname_too(&c); r->what = c; }
struct length { long n; const char* s; };
static constexpr std::array<std::pair<int, length>, 4> lengths{{{1, {1, "x"}}, {2, {2, "yy"}}, {5, {3, "zzz"}}, {9, {1, "w"}}}};
HF_TXFUNC void by_a_table_of_offsets(root* r, int k) noexcept { for (auto& l : lengths) if (l.first == k) { r->n = l.second.n; std::memcpy(&r->p, l.second.s, unsigned(l.second.n)); break; } }
struct priced { const char* name; long price; };
static const priced goods[] = {{"salt", 3}, {"silk", 80}};
__attribute__((noinline)) static long renamed(priced* q) { q->name = goods[0].name; return q->price; }
HF_TXFUNC void number_beside_an_address(root* r, unsigned k) noexcept { priced both[2] = {goods[1], goods[k % 2]}; r->n = renamed(&both[k & 1]); }
HF_TXFUNC void lowest_bits(root* r, unsigned k) noexcept { r->n = long(reinterpret_cast<unsigned long>(&goods[k % 2]) % 8); }

#endif
