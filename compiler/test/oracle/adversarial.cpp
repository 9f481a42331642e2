// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions written against the analysis: each could lose a log entry by one plausible mistake, and
// says by which. With ORACLE_FRAMES without those that preserve they do not say how many bytes.
#include "oracle.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <variant>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using oracle::at;

namespace {

template <class T> void fill(T* values, int count, long seed) {
    for (int i = 0; i < count; ++i) values[i] = T(seed + 7 * i + i * i);
}

struct node {
    node* next;
    long value;
};

void make_list(std::size_t head, std::size_t nodes, int count) {
    *at<node*>(head) = at<node>(nodes);
    for (int i = 0; i < count; ++i)
        at<node>(nodes)[i] = {i + 1 < count ? at<node>(nodes) + i + 1 : nullptr, 100 + 3 * i};
}

} // namespace

// --- One store, one input ------------------------------------------------------------------------

HF_TXFUNC void increment(long* p) noexcept { *p += 1; }
SCENARIO(increment, [] { *at<long>(0) = 41; }, [] { increment(at<long>(0)); })

HF_TXFUNC void exchange(long* a, long* b) noexcept {
    long t = *a;
    *a = *b;
    *b = t;
}
SCENARIO(exchange, [] { fill(at<long>(0), 2, 5); }, [] { exchange(at<long>(0), at<long>(8)); })

struct list {
    node* head;
    long count;
};
HF_TXFUNC bool list_push(list* l, long value) noexcept {
    auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
    if (n == nullptr) return false;
    n->next = l->head;
    n->value = value;
    l->head = n;
    l->count++;
    return true;
}
SCENARIO(list_push, [] { at<list>(0)->count = 9; }, [] { list_push(at<list>(0), 4); })

// --- Must-alias is per loop iteration ------------------------------------------------------------

HF_TXFUNC void shift_down(long* a, int n) noexcept {
    for (int i = 1; i < n; ++i) a[i - 1] = 3 * a[i] + 1;
}
SCENARIO(shift_down, [] { fill(at<long>(0), 13, 2); }, [] { shift_down(at<long>(0), 13); })

HF_TXFUNC void shift_up(long* a, int n) noexcept {
    for (int i = n - 1; i > 0; --i) a[i] = 3 * a[i - 1] + 1;
}
SCENARIO(shift_up, [] { fill(at<long>(0), 13, 2); }, [] { shift_up(at<long>(0), 13); })

HF_TXFUNC void prefix_sums(long* a, int n) noexcept {
    for (int i = 1; i < n; ++i) a[i] += a[i - 1];
}
SCENARIO(prefix_sums, [] { fill(at<long>(0), 9, 2); }, [] { prefix_sums(at<long>(0), 9); })

HF_TXFUNC void far_carry(int* a, int n) noexcept {
    for (int i = 4; i < n; ++i) a[i - 4] = a[i] * 5 + a[i - 2];
}
SCENARIO(far_carry, [] { fill(at<int>(0), 21, 2); }, [] { far_carry(at<int>(0), 21); })

// The store to n->value dominates the next iteration's read of it, but of another node.
HF_TXFUNC void pull_values(node* n) noexcept {
    for (; n->next != nullptr; n = n->next) {
        n->value = 0;
        long pulled = n->next->value;
        n->value = pulled * 2 + 1;
    }
}
SCENARIO(pull_values, [] { make_list(0, 64, 6); }, [] { pull_values(*at<node*>(0)); })

// The same SSA address covers the later store, but the read lies between two of its instances.
HF_TXFUNC void read_ahead(long** slots, int n) noexcept {
    long carried = 0;
    for (int i = 0; i < n; ++i) {
        long* p = slots[i];
        long* q = slots[(i + 1) % n];
        *p = carried;
        carried += *q;
        *p = carried;
    }
}
SCENARIO(
    read_ahead,
    [] {
        fill(at<long>(512), 5, 3);
        for (int i = 0; i < 5; ++i) at<long*>(0)[i] = at<long>(512) + (i * 2) % 5;
    },
    [] { read_ahead(at<long*>(0), 5); })

// A store to *total may hit an element that was read and skipped: the store to a[i] covers the
// read's SSA address and dominates, but hit another element.
HF_TXFUNC void skip_some(long* a, int n, long* total) noexcept {
    long sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += a[i];
        if (sum & 1) continue;
        a[i] = 0;
        *total = sum;
    }
}
SCENARIO(
    skip_some_apart, [] { fill(at<long>(0), 8, 3); },
    [] { skip_some(at<long>(0), 8, at<long>(96)); })
SCENARIO(
    skip_some_inside, [] { fill(at<long>(0), 8, 3); },
    [] { skip_some(at<long>(0), 8, at<long>(0)); })

// The store of zero dominates the reading ahead and covers both stores of its iteration, but what is
// read is stored to in the next one.
HF_TXFUNC void clear_behind(node* n, const node* ahead) noexcept {
    long carried = 1, sum = 0;
    for (; ahead != nullptr; n = n->next, ahead = ahead->next) {
        if (carried & 1) n->value = carried;
        sum += n->value;
        n->value = 0;
        carried = ahead->value;
    }
    n->value += sum;
}
SCENARIO(
    clear_behind, [] { make_list(0, 64, 6); },
    [] { clear_behind(*at<node*>(0), (*at<node*>(0))->next); })

// The same without links, whose reading would have the stores logged anyway.
HF_TXFUNC void clear_before(long* a, int n) noexcept {
    long carried = 3;
    for (int i = 0; i < n; ++i) {
        long* p = a + i;
        *p = 0;
        long ahead = p[1];
        if (ahead & 1) *p = carried;
        carried = ahead;
    }
}
SCENARIO(clear_before, [] { fill(at<long>(0), 9, 4); }, [] { clear_before(at<long>(0), 8); })
HF_TXFUNC void pull_by_stride(char* bytes, long stride, int n) noexcept {
    long carried = 3;
    for (int i = 0; i < n; ++i, bytes += stride) {
        auto* p = reinterpret_cast<long*>(bytes);
        *p = carried;
        long ahead = *reinterpret_cast<long*>(bytes + stride);
        *p = ahead * 3 + 1;
        carried += ahead;
    }
}
SCENARIO(
    pull_by_stride, [] { fill(at<long>(0), 20, 4); }, [] { pull_by_stride(at<char>(0), 16, 8); })

// The last word is cleared by the address that all were read by.
HF_TXFUNC void clear_last(long* p, long most, long* out) noexcept {
    long sum = 0;
    long* last;
    do {
        sum += *p;
        last = p++;
    } while (sum < most);
    *last = 0;
    *out = sum;
}
SCENARIO(
    clear_last, [] { fill(at<long>(0), 9, 4); }, [] { clear_last(at<long>(0), 60, at<long>(0)); })

// A caller that does not use a result calls all the same.
HF_TXFUNC long unused_result(const long* p, long* q) noexcept {
    long local = *p;
    return local + *q;
}
SCENARIO(unused_result, [] { *at<long>(0) = 3; }, [] { unused_result(at<long>(0), at<long>(8)); })

// --- Every path; covers its bytes ----------------------------------------------------------------

struct pair {
    long a, b;
};
HF_TXFUNC void sometimes_written(pair* p) noexcept {
    if (p->a & 1) p->b = 7;
    long x = p->b;
    p->b = 3 * x + 1;
}
SCENARIO(
    sometimes_written_no, [] { *at<pair>(0) = {2, 5}; }, [] { sometimes_written(at<pair>(0)); })
SCENARIO(
    sometimes_written_yes, [] { *at<pair>(0) = {3, 5}; }, [] { sometimes_written(at<pair>(0)); })

HF_TXFUNC void either_side(pair* p) noexcept {
    if (p->a > p->b)
        p->b = p->a + p->b;
    else
        p->a = p->a + 2 * p->b;
    p->a -= p->b;
}
SCENARIO(either_side_a, [] { *at<pair>(0) = {9, 5}; }, [] { either_side(at<pair>(0)); })
SCENARIO(either_side_b, [] { *at<pair>(0) = {4, 5}; }, [] { either_side(at<pair>(0)); })

HF_TXFUNC void half_covered(char* p) noexcept {
    std::uint32_t low = 0x01020304;
    std::memcpy(p, &low, 4);
    std::uint64_t all;
    std::memcpy(&all, p, 8);
    all = all * 3 + 1;
    std::memcpy(p, &all, 8);
}
SCENARIO(half_covered, [] { fill(at<char>(0), 16, 60); }, [] { half_covered(at<char>(0)); })

HF_TXFUNC void byte_in_word(std::uint64_t* word, unsigned char* bytes) noexcept {
    std::uint64_t seen = *word;
    bytes[3] = static_cast<unsigned char>(seen >> 8);
    bytes[4] += bytes[3];
    *word += seen;
}
SCENARIO(
    byte_in_word, [] { *at<std::uint64_t>(0) = 0x1122334455667788; },
    [] { byte_in_word(at<std::uint64_t>(0), at<unsigned char>(0)); })

HF_TXFUNC void unaligned_overlap(char* p) noexcept {
    std::uint64_t a, b;
    std::memcpy(&a, p + 1, 8);
    a ^= a << 5;
    std::memcpy(p + 4, &a, 8);
    std::memcpy(&b, p + 6, 8);
    b += 11;
    std::memcpy(p + 3, &b, 8);
}
SCENARIO(
    unaligned_overlap, [] { fill(at<char>(0), 32, 60); }, [] { unaligned_overlap(at<char>(0)); })

// One base, other bytes: nothing is said about those that the read and the write share.
HF_TXFUNC void other_half_before(pair* p, const long* q) noexcept {
    p->a = 5;
    long x = *q;
    p->b = x + 1;
}
SCENARIO(
    other_half_before, [] { *at<pair>(0) = {3, 4}; },
    [] { other_half_before(at<pair>(0), at<long>(8)); })
HF_TXFUNC void other_half_between(pair* p, long* q) noexcept {
    long x = p->b;
    p->a = x;
    *q = x + 1;
}
SCENARIO(
    other_half_between, [] { *at<pair>(0) = {3, 4}; },
    [] { other_half_between(at<pair>(0), at<long>(8)); })

// --- May alias, and does -------------------------------------------------------------------------

HF_TXFUNC void through_both(long* p, long* q) noexcept {
    *p = 5;
    long x = *q;
    *p = x + 1;
    *q = x * 2 + *p;
}
SCENARIO(
    through_both_apart, [] { fill(at<long>(0), 2, 8); },
    [] { through_both(at<long>(0), at<long>(8)); })
SCENARIO(
    through_both_same, [] { fill(at<long>(0), 2, 8); },
    [] { through_both(at<long>(0), at<long>(0)); })

HF_TXFUNC void shadow_may(long* p, long* q) noexcept {
    long x = *p;
    *q = x + 1;
    *p = x * 3;
    *q += *p;
}
SCENARIO(
    shadow_may_apart, [] { fill(at<long>(0), 2, 8); }, [] { shadow_may(at<long>(0), at<long>(8)); })
SCENARIO(
    shadow_may_same, [] { fill(at<long>(0), 2, 8); }, [] { shadow_may(at<long>(0), at<long>(0)); })

struct wide {
    long x[5];
};
// Copying an object onto itself changes nothing, so it is no first write to rely on.
HF_TXFUNC void copy_then_touch(wide* a, const wide* b) noexcept {
    *a = *b;
    a->x[2] += 5;
    a->x[4] = a->x[2] + b->x[3];
}
SCENARIO(
    copy_then_touch_apart, [] { fill(at<long>(0), 10, 1); },
    [] { copy_then_touch(at<wide>(0), at<wide>(40)); })
SCENARIO(
    copy_then_touch_self, [] { fill(at<long>(0), 10, 1); },
    [] { copy_then_touch(at<wide>(0), at<wide>(0)); })

HF_TXFUNC void rotate_structs(wide* a, wide* b, wide* c) noexcept {
    wide t = *a;
    *a = *b;
    *b = *c;
    *c = t;
    c->x[0] += a->x[1];
}
SCENARIO(
    rotate_structs, [] { fill(at<long>(0), 15, 1); },
    [] { rotate_structs(at<wide>(0), at<wide>(40), at<wide>(80)); })

HF_TXFUNC void add_arrays(long* a, const long* b, int n) noexcept {
    for (int i = 0; i < n; ++i) a[i] += b[i];
}
SCENARIO(
    add_arrays_apart, [] { fill(at<long>(0), 40, 1); },
    [] { add_arrays(at<long>(0), at<long>(160), 17); })
SCENARIO(
    add_arrays_overlap, [] { fill(at<long>(0), 40, 1); },
    [] { add_arrays(at<long>(8), at<long>(0), 17); })

// --- Facts that hold only per instance -----------------------------------------------------------

static inline void scaled(long* __restrict to, const long* __restrict from) { *to = *from * 3 + 1; }
HF_TXFUNC void restrict_in_loop(long* a, int n) noexcept {
    for (int i = 1; i < n; ++i) scaled(&a[i - 1], &a[i]);
}
SCENARIO(
    restrict_in_loop, [] { fill(at<long>(0), 9, 2); }, [] { restrict_in_loop(at<long>(0), 9); })

HF_TXFUNC void restrict_twice(long* a, long* b) noexcept {
    scaled(a, b);
    scaled(b, a);
    scaled(a, b);
}
SCENARIO(
    restrict_twice, [] { fill(at<long>(0), 2, 2); },
    [] { restrict_twice(at<long>(0), at<long>(8)); })

// --- Types change in place -----------------------------------------------------------------------

HF_TXFUNC void change_alternative(std::variant<long, double>* v) noexcept {
    long x = *std::get_if<long>(v);
    v->emplace<double>(double(x) * 1.5 + 1);
}
SCENARIO(
    change_alternative, [] { new (oracle::pool) std::variant<long, double>(42L); },
    [] { change_alternative(at<std::variant<long, double>>(0)); })

HF_TXFUNC void reuse_storage(long* p) noexcept {
    long x = *p;
    auto* d = new (p) double(double(x) / 4);
    d[0] += double(x);
}
SCENARIO(reuse_storage, [] { *at<long>(0) = 99; }, [] { reuse_storage(at<long>(0)); })

HF_TXFUNC void reuse_through(const long* p, void* where) noexcept {
    long x = *p;
    new (where) double(double(x) / 4);
}
SCENARIO(reuse_through, [] { *at<long>(0) = 99; }, [] { reuse_through(at<long>(0), oracle::pool); })

// The second object begins inside the first: fields at different offsets, the same bytes.
struct halves {
    double first, second;
};
HF_TXFUNC void shifted_type(pair* p) noexcept {
    long x = p->b;
    auto* h = new (&p->b) halves;
    h->first = double(x) * 2 + 1;
}
SCENARIO(shifted_type, [] { *at<pair>(0) = {4, 9}; }, [] { shifted_type(at<pair>(0)); })
HF_TXFUNC void shifted_object(pair* p) noexcept {
    long x = p->b;
    auto* later = new (&p->b) pair;
    later->a = x * 2 + 1;
}
SCENARIO(shifted_object, [] { *at<pair>(0) = {4, 9}; }, [] { shifted_object(at<pair>(0)); })

// An access to a bit-field touches its whole unit, and its type names the byte it begins in.
struct bits {
    unsigned low : 7, middle : 18, high : 7;
};
HF_TXFUNC void bit_fields(bits* p, bits* q) noexcept {
    unsigned x = p->middle;
    q->high = x;
    q->low = x >> 7;
}
SCENARIO(
    bit_fields_same, [] { *at<bits>(0) = {3, 70000, 5}; },
    [] { bit_fields(at<bits>(0), at<bits>(0)); })

// Compaction in place: only when it runs is it known that the second begins inside the first.
HF_TXFUNC void rebuild_over(char* bytes, std::size_t from, std::size_t to) noexcept {
    long x = reinterpret_cast<pair*>(bytes + from)->b;
    auto* later = new (bytes + to) pair;
    later->a = x * 2 + 1;
}
SCENARIO(rebuild_over, [] { fill(at<long>(0), 5, 4); }, [] { rebuild_over(at<char>(0), 0, 8); })
HF_TXFUNC void move_down(const pair* from, void* to, int count) noexcept {
    auto* bytes = static_cast<char*>(to);
    for (int i = 0; i < count; ++i, bytes += sizeof(long)) {
        long x = from[i].a;
        (new (bytes) pair)->b = x * 3 + i;
    }
}
SCENARIO(
    move_down, [] { fill(at<long>(0), 12, 4); }, [] { move_down(at<pair>(8), at<long>(0), 5); })

// --- Copies, moves, strings ----------------------------------------------------------------------

HF_TXFUNC void open_gap(long* a, int n, int where, long value) noexcept {
    std::memmove(a + where + 1, a + where, sizeof(long) * std::size_t(n - where));
    a[where] = value;
}
SCENARIO(open_gap, [] { fill(at<long>(0), 8, 1); }, [] { open_gap(at<long>(0), 8, 3, 77); })

HF_TXFUNC void close_gap(long* a, int n, int where) noexcept {
    std::memmove(a + where, a + where + 1, sizeof(long) * std::size_t(n - where - 1));
    a[n - 1] = a[where];
}
SCENARIO(close_gap, [] { fill(at<long>(0), 8, 1); }, [] { close_gap(at<long>(0), 8, 3); })

HF_TXFUNC void move_fixed(char* p) noexcept { std::memmove(p + 3, p, 29); }
SCENARIO(move_fixed, [] { fill(at<char>(0), 40, 33); }, [] { move_fixed(at<char>(0)); })

// Two lengths: the first may cover less than the second reads.
HF_TXFUNC void two_lengths(char* p, char* q, std::size_t few, std::size_t many) noexcept {
    std::memset(p, 'x', few);
    char local[32] = {};
    std::memcpy(local, p, many);
    std::memcpy(q, local, 32);
    std::memset(p, local[20], many);
}
SCENARIO(
    two_lengths, [] { fill(at<char>(0), 100, 60); },
    [] { two_lengths(at<char>(0), at<char>(64), 5, 24); })

HF_TXFUNC void copy_string(char* to, const char* from, char* length) noexcept {
    *length = char(std::strlen(from));
    std::strcpy(to, from);
    to[*length] = '!';
}
SCENARIO(
    copy_string,
    [] {
        std::strcpy(at<char>(0), "persistent");
        std::strcpy(at<char>(64), "old");
    },
    [] { copy_string(at<char>(64), at<char>(0), at<char>(128)); })

HF_TXFUNC void string_over_itself(char* s, int n) noexcept {
    std::size_t before = std::strlen(s);
    std::memset(s + 1, 0, std::size_t(n));
    s[0] = char(s[0] + char(before));
}
SCENARIO(
    string_over_itself, [] { std::strcpy(at<char>(0), "abcdefgh"); },
    [] { string_over_itself(at<char>(0), 5); })

// --- Helpers, recursion, nested sections ---------------------------------------------------------

__attribute__((noinline)) static long read_of(const long* p) { return *p; }
__attribute__((noinline)) static void write_of(long* p, long v) { *p = v; }
__attribute__((noinline)) static void write_twice(long* p, long v) {
    *p = v;
    if (v & 1) *p += 3;
}
HF_TXFUNC void helper_reads(long* p) noexcept {
    long x = read_of(p);
    *p = x + 1;
}
SCENARIO(helper_reads, [] { *at<long>(0) = 5; }, [] { helper_reads(at<long>(0)); })
HF_TXFUNC void helper_writes(long* p) noexcept {
    long x = *p;
    write_of(p, x + 1);
    write_twice(p, *p + x);
}
SCENARIO(helper_writes, [] { *at<long>(0) = 5; }, [] { helper_writes(at<long>(0)); })

struct tree {
    tree *left, *right;
    long key, sum;
};
__attribute__((noinline)) static long add_up(tree* t) {
    if (t == nullptr) return 0;
    t->sum = t->sum + add_up(t->left) + add_up(t->right) + t->key;
    t->key += t->sum & 3;
    return t->sum;
}
HF_TXFUNC void sum_tree(tree* t) noexcept { add_up(t); }
SCENARIO(
    sum_tree,
    [] {
        tree* t = at<tree>(0);
        for (int i = 0; i < 7; ++i)
            t[i] = {i < 3 ? &t[2 * i + 1] : nullptr, i < 3 ? &t[2 * i + 2] : nullptr, i, i * 5};
    },
    [] { sum_tree(at<tree>(0)); })

HF_TXFUNC void count_down(long* a, int n) noexcept {
    if (n == 0) return;
    a[n] += a[n - 1];
    count_down(a, n - 1);
    a[n - 1] += a[n];
}
SCENARIO(count_down, [] { fill(at<long>(0), 7, 1); }, [] { count_down(at<long>(0), 6); })

HF_TXFUNC void nested(list* l, long* total) noexcept {
    *total += l->count;
    list_push(l, *total);
    increment(total);
    list_push(l, *total + l->head->value);
}
SCENARIO(
    nested,
    [] {
        at<list>(0)->count = 3;
        *at<long>(64) = 10;
    },
    [] { nested(at<list>(0), at<long>(64)); })

__attribute__((noinline)) static void sort_local(long* values, int n) {
    std::sort(values, values + n);
}
HF_TXFUNC void local_array(long* p) noexcept {
    long local[6];
    for (int i = 0; i < 6; ++i) local[i] = p[i] ^ 5;
    sort_local(local, 6);
    for (int i = 0; i < 6; ++i) p[i] += local[i];
}
SCENARIO(local_array, [] { fill(at<long>(0), 6, 9); }, [] { local_array(at<long>(0)); })

// --- Allocation ----------------------------------------------------------------------------------

struct array {
    long* data;
    long size, capacity;
};
HF_TXFUNC void append_growing(array* a, long value) noexcept {
    if (a->size == a->capacity) {
        long bigger = a->capacity * 2;
        auto* data = static_cast<long*>(hf_alloc(std::size_t(bigger) * sizeof(long)));
        if (data == nullptr) return;
        std::memcpy(data, a->data, std::size_t(a->size) * sizeof(long));
        hf_free(a->data);
        a->data = data;
        a->capacity = bigger;
    }
    a->data[a->size++] = value;
}
SCENARIO(
    append_growing,
    [] {
        *at<array>(0) = {at<long>(64), 3, 3};
        fill(at<long>(64), 3, 1);
    },
    [] { append_growing(at<array>(0), 8); })
SCENARIO(
    append_in_place,
    [] {
        *at<array>(0) = {at<long>(64), 2, 3};
        fill(at<long>(64), 3, 1);
    },
    [] { append_growing(at<array>(0), 8); })

// An application's free list: its 'malloc' attribute is a promise about aliases, none about inputs.
__attribute__((noinline, malloc)) static node* take(node** free_list) {
    node* n = *free_list;
    *free_list = n->next;
    return n;
}
HF_TXFUNC void own_free_list(node** free_list, node** head, long value) noexcept {
    node* n = take(free_list);
    n->next = *head;
    n->value = value;
    *head = n;
}
SCENARIO(
    own_free_list,
    [] {
        make_list(0, 64, 3);
        make_list(8, 256, 2);
    },
    [] { own_free_list(at<node*>(0), at<node*>(8), 5); })

// A branch decides whether the memory is fresh.
HF_TXFUNC void fresh_or_not(pair* p, long which) noexcept {
    auto* made = static_cast<pair*>(hf_alloc(sizeof(pair)));
    if (made == nullptr) return;
    *made = {1, 2};
    pair* to = which & 1 ? p : made;
    to->b = to->b * 3 + p->b;
    made->a = to->b;
}
SCENARIO(fresh_or_not_pm, [] { *at<pair>(0) = {4, 9}; }, [] { fresh_or_not(at<pair>(0), 1); })
SCENARIO(fresh_or_not_fresh, [] { *at<pair>(0) = {4, 9}; }, [] { fresh_or_not(at<pair>(0), 2); })

__attribute__((noinline)) static pair* find_or_make(pair* p) {
    if (p->a & 1) return p;
    return static_cast<pair*>(hf_alloc(sizeof(pair)));
}
HF_TXFUNC void sometimes_fresh(pair* p) noexcept {
    pair* found = find_or_make(p);
    if (found == nullptr) return;
    found->a = p->a * 5;
    p->b += found->a;
}
SCENARIO(sometimes_fresh_pm, [] { *at<pair>(0) = {3, 9}; }, [] { sometimes_fresh(at<pair>(0)); })
SCENARIO(sometimes_fresh_new, [] { *at<pair>(0) = {4, 9}; }, [] { sometimes_fresh(at<pair>(0)); })

// What is noted before the runtime is called may be written back by it: the second store wants its own.
HF_TXFUNC void call_between(pair* p, pair** link) noexcept {
    p->a = 5;
    auto* made = static_cast<pair*>(hf_alloc(sizeof(pair)));
    p->b = 6;
    if (made != nullptr) *made = {7, 8};
    *link = made;
}
SCENARIO(call_between, [] {}, [] { call_between(at<pair>(0), at<pair*>(64)); })

// What a called function promises to read is what it can reach from its arguments, on both sides of
// them; what is stored elsewhere overwrites nothing of it.
__attribute__((noinline)) long first_of(const long* p) noexcept { return p[0] * 3 + p[1]; }
HF_TXFUNC void after_reader(long* a, long* b) noexcept {
    const long x = first_of(a);
    *b = x;
    a[1] += x;
}
SCENARIO(
    after_reader_apart, [] { fill(at<long>(0), 6, 1); },
    [] { after_reader(at<long>(0), at<long>(32)); })
SCENARIO(
    after_reader_same, [] { fill(at<long>(0), 6, 1); },
    [] { after_reader(at<long>(0), at<long>(0)); })
HF_TXFUNC void readers_in_a_loop(long* a, int n) noexcept {
    for (int i = 0; i < n; ++i) a[i] = first_of(a + i + 1);
}
SCENARIO(
    readers_in_a_loop, [] { fill(at<long>(0), 9, 1); }, [] { readers_in_a_loop(at<long>(0), 6); })
__attribute__((noinline)) long two_before(const long* p) noexcept { return p[-2] * 5 + p[-1]; }
HF_TXFUNC void after_reading_before(long* a) noexcept {
    const long x = two_before(a + 2);
    a[0] = x;
    a[1] = 3 * x;
}
SCENARIO(
    after_reading_before, [] { fill(at<long>(0), 6, 1); },
    [] { after_reading_before(at<long>(0)); })
// Reads a local, which is no input, and stores to what it does not read.
__attribute__((noinline)) void put_sum(long* to, const long* from, int n) noexcept {
    long sum = 0;
    for (int i = 0; i < n; ++i) sum = sum * 3 + from[i];
    *to = sum;
}
HF_TXFUNC void after_writer(long* a, long by) noexcept {
    const long local[4] = {by, by * 2, by - 7, 9};
    put_sum(a + 4, local, 4);
    a[0] = by;
    put_sum(a + 2, a, 2);
    a[1] = by;
}
SCENARIO(after_writer, [] { fill(at<long>(0), 6, 1); }, [] { after_writer(at<long>(0), 5); })

// --- Self-relative pointers ----------------------------------------------------------------------

// The address of a fresh block, or of a local, plus what was stored there: an address in neither.
// Each function that reaches one through what it points from is worth a log entry.
template <class T> struct from_here {
    std::ptrdiff_t bytes = 0;
    from_here() = default;
    from_here(T* to) { *this = to; }
    from_here(const from_here& other) { *this = other.get(); }
    from_here& operator=(const from_here& other) { return *this = other.get(); }
    from_here& operator=(T* to) {
        bytes = to == nullptr ? 0 : reinterpret_cast<char*>(to) - reinterpret_cast<char*>(this);
        return *this;
    }
    T* get() const {
        auto* here = reinterpret_cast<char*>(const_cast<from_here*>(this));
        return bytes == 0 ? nullptr : reinterpret_cast<T*>(here + bytes);
    }
    T* operator->() const { return get(); }
    T& operator*() const { return *get(); }
    explicit operator bool() const { return bytes != 0; }
};
struct near_node {
    from_here<near_node> next;
    long value;
};
struct near_list {
    from_here<near_node> head;
    long count;
};
static void make_near_list(int count) {
    auto* nodes = at<near_node>(64);
    for (int i = 0; i < count; ++i) {
        nodes[i].value = 100 + 3 * i;
        nodes[i].next = i + 1 < count ? nodes + i + 1 : nullptr;
    }
    at<near_list>(0)->head = nodes;
    at<near_list>(0)->count = count;
}

// Such a pointer that is a local computes with numbers. `this` plus a distance out of the local is undefined: clang
// takes what is stored there for stores to the local, which nobody reads, and at -O1 drops the call of a section that
// does nothing else, with an engine or without.
template <class T> struct from_local {
    std::uintptr_t bytes = 0;
    from_local(T* to) { *this = to; }
    from_local(const from_local&) = delete;
    from_local& operator=(const from_local&) = delete;
    from_local& operator=(T* to) {
        bytes = to == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(to) - here();
        return *this;
    }
    T* operator->() const { return reinterpret_cast<T*>(here() + bytes); }
    explicit operator bool() const { return bytes != 0; }
    std::uintptr_t here() const { return reinterpret_cast<std::uintptr_t>(this); }
};
__attribute__((noinline)) static void go_on(from_local<near_node>* n) { *n = (*n)->next.get(); }
HF_TXFUNC void near_walk(near_list* l) noexcept {
    from_local<near_node> n = l->head.get();
    for (; n; go_on(&n)) n->value = n->value * 2 + 1;
}
SCENARIO(near_walk, [] { make_near_list(5); }, [] { near_walk(at<near_list>(0)); })
HF_TXFUNC void near_push(near_list* l, long value) noexcept {
    auto* n = static_cast<near_node*>(hf_alloc(sizeof(near_node)));
    if (n == nullptr) return;
    n->next = l->head;
    n->value = value;
    if (n->next) n->next->value += value;
    l->head = n;
    l->count++;
}
SCENARIO(near_push, [] { make_near_list(3); }, [] { near_push(at<near_list>(0), 7); })
HF_TXFUNC void near_cut(near_list* l, long most) noexcept {
    auto* n = static_cast<near_node*>(hf_alloc(sizeof(near_node)));
    if (n == nullptr) return;
    n->next = l->head;
    l->head = n;
    for (long i = 0; i < most && n->next; ++i) {
        n->next->value = 2 * n->next->value + 1;
        n->next = n->next->next;
    }
    l->count++;
}
SCENARIO(near_cut, [] { make_near_list(5); }, [] { near_cut(at<near_list>(0), 3); })

__attribute__((noinline)) static void aim(from_here<long>* p, long* values, long i) {
    *p = values + i;
}
HF_TXFUNC void aimed_local(long* a) noexcept {
    from_here<long> p;
    aim(&p, a, 2);
    *p = *p * 2 + a[1];
    aim(&p, a, a[2] & 1);
    a[5] = *p;
    *p += 7;
}
SCENARIO(aimed_local, [] { fill(at<long>(0), 6, 1); }, [] { aimed_local(at<long>(0)); })
HF_TXFUNC void aimed_fresh(long* a, from_here<long>* kept) noexcept {
    auto* p = static_cast<from_here<long>*>(hf_alloc(sizeof(from_here<long>)));
    if (p == nullptr) return;
    aim(p, a, 2);
    **p = **p * 2 + a[1];
    aim(p, a, a[2] & 1);
    a[5] = **p;
    **p += 7;
    *kept = *p;
}
SCENARIO(
    aimed_fresh, [] { fill(at<long>(0), 6, 1); },
    [] { aimed_fresh(at<long>(0), at<from_here<long>>(128)); })

// What the called function reads lies in the block that it is given, and wherever that leads.
__attribute__((noinline)) long aimed_at(const from_here<long>* p) noexcept { return **p * 3; }
HF_TXFUNC void after_aimed_reader(long* a) noexcept {
    auto* p = static_cast<from_here<long>*>(hf_alloc(sizeof(from_here<long>)));
    if (p == nullptr) return;
    aim(p, a, 2);
    a[2] = aimed_at(p) + 1;
}
SCENARIO(
    after_aimed_reader, [] { fill(at<long>(0), 6, 1); }, [] { after_aimed_reader(at<long>(0)); })

// Read by what is computed from the block, written by what is computed from the argument.
HF_TXFUNC void sum_from_here(long* a, int n) noexcept {
    auto* p = static_cast<from_here<long>*>(hf_alloc(sizeof(from_here<long>)));
    if (p == nullptr) return;
    *p = a + 2;
    long sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += **p;
        p->bytes += std::ptrdiff_t(sizeof(long));
    }
    a[2] = sum;
}
SCENARIO(sum_from_here, [] { fill(at<long>(0), 6, 1); }, [] { sum_from_here(at<long>(0), 3); })

// Counted in nodes, the address is an element of an array that begins at the fresh node.
struct step_node {
    long steps, value;
    step_node* to() { return this + steps; }
};
HF_TXFUNC void near_steps(step_node* a) noexcept {
    auto* n = static_cast<step_node*>(hf_alloc(sizeof(step_node)));
    if (n == nullptr) return;
    n->steps = a - n;
    n->value = 5;
    a[1].steps = n - (a + 1);
    std::memcpy(a + 3, a + 1, sizeof(long));
    n->to()->value = n->to()->value * 2 + n->value;
    a[1].steps = a[3].steps;
    n->value = n->to()->value;
}
SCENARIO(near_steps, [] { fill(at<long>(0), 12, 1); }, [] { near_steps(at<step_node>(0)); })

// A local that is read on the way to where it is written: run again, the reading finds what was written.
HF_TXFUNC void reread_local(long* p, int n) noexcept {
    long box[4];
    for (int i = 0; i < 4; ++i) box[i] = p[(i + n) & 3];
    p[4] = 1;
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += box[i & 3];
    box[n & 3] = sum;
    p[5] = box[(n + 1) & 3];
    p[6] = box[n & 3];
}
SCENARIO(reread_local, [] { fill(at<long>(0), 8, 3); }, [] { reread_local(at<long>(0), 7); })

// Words that lie in two lines.
HF_TXFUNC void across_lines(char* p) noexcept {
    long word;
    std::memcpy(&word, p + 60, sizeof word);
    word = word * 3 + 1;
    std::memcpy(p + 60, &word, sizeof word);
    p[0] += char(word);
}
SCENARIO(across_lines, [] { fill(at<long>(0), 12, 3); }, [] { across_lines(at<char>(0)); })

// Steps that find nothing to do, between registers that the loop sets again.
struct triple {
    long x[3];
};
HF_TXFUNC void idle_steps(triple* from, triple* to, int n, int length) noexcept {
    long sum = 1;
    for (int i = 0; i < n; ++i) {
        *to = *from; // the same object
        sum = sum * 3 + to->x[i % 3];
        std::memset(to->x + 3, 0, std::size_t(length));
        to->x[i % 3] += sum;
        sum ^= i;
        std::memmove(from->x + 6, to->x + 3, std::size_t(length));
    }
    to->x[2] += sum;
}
SCENARIO(
    idle_steps, [] { fill(at<long>(0), 12, 1); },
    [] { idle_steps(at<triple>(0), at<triple>(0), 5, 0); })

// --- Linked structures ---------------------------------------------------------------------------

HF_TXFUNC void reverse(node** head) noexcept {
    node* previous = nullptr;
    for (node* n = *head; n != nullptr;) {
        node* next = n->next;
        n->next = previous;
        previous = n;
        n = next;
    }
    *head = previous;
}
SCENARIO(reverse, [] { make_list(0, 64, 6); }, [] { reverse(at<node*>(0)); })

HF_TXFUNC void remove_odd(node** link) noexcept {
    while (*link != nullptr) {
        node* n = *link;
        if (n->value & 1) {
            *link = n->next;
            hf_free(n);
        } else {
            n->value /= 2;
            link = &n->next;
        }
    }
}
SCENARIO(remove_odd, [] { make_list(0, 64, 7); }, [] { remove_odd(at<node*>(0)); })

HF_TXFUNC void rotate_left(tree** root) noexcept {
    tree* old = *root;
    tree* up = old->right;
    old->right = up->left;
    up->left = old;
    *root = up;
    old->sum = old->key + (old->left ? old->left->sum : 0) + (old->right ? old->right->sum : 0);
    up->sum = up->key + up->left->sum + (up->right ? up->right->sum : 0);
}
SCENARIO(
    rotate_left,
    [] {
        tree* t = at<tree>(64);
        *at<tree*>(0) = t;
        for (int i = 0; i < 7; ++i)
            t[i] = {i < 3 ? &t[2 * i + 1] : nullptr, i < 3 ? &t[2 * i + 2] : nullptr, i, i * 5};
    },
    [] { rotate_left(at<tree*>(0)); })

// --- Loops in loops ------------------------------------------------------------------------------

HF_TXFUNC void transpose(long* m, int n) noexcept {
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j) std::swap(m[i * n + j], m[j * n + i]);
}
SCENARIO(transpose, [] { fill(at<long>(0), 16, 1); }, [] { transpose(at<long>(0), 4); })

HF_TXFUNC void bubble_sort(int* a, int n) noexcept {
    for (int i = 0; i < n; ++i)
        for (int j = 1; j < n - i; ++j)
            if (a[j - 1] > a[j]) {
                int t = a[j];
                a[j] = a[j - 1];
                a[j - 1] = t;
            }
}
SCENARIO(
    bubble_sort,
    [] {
        for (int i = 0; i < 6; ++i) at<int>(0)[i] = (i * 5 + 3) % 7;
    },
    [] { bubble_sort(at<int>(0), 6); })

HF_TXFUNC void library_sort(long* a, int n) noexcept { std::sort(a, a + n); }
SCENARIO(
    library_sort,
    [] {
        for (int i = 0; i < 20; ++i) at<long>(0)[i] = (i * 13 + 3) % 23;
    },
    [] { library_sort(at<long>(0), 20); })

HF_TXFUNC void library_rotate(int* a, int n) noexcept { std::rotate(a, a + 3, a + n); }
SCENARIO(library_rotate, [] { fill(at<int>(0), 11, 4); }, [] { library_rotate(at<int>(0), 11); })

HF_TXFUNC void accumulate_into(long* total, const long* a, int n) noexcept {
    for (int i = 0; i < n; ++i) {
        *total += a[i];
        if (*total & 1) *total *= 3;
    }
}
SCENARIO(
    accumulate_into,
    [] {
        fill(at<long>(8), 9, 4);
        *at<long>(0) = 6;
    },
    [] { accumulate_into(at<long>(0), at<long>(8), 9); })
SCENARIO(
    accumulate_into_itself, [] { fill(at<long>(0), 9, 4); },
    [] { accumulate_into(at<long>(16), at<long>(0), 9); })

HF_TXFUNC int many_exits(pair* p, int which) noexcept {
    switch (which) {
    case 0: p->a = p->b; return 1;
    case 1:
        p->b += p->a;
        if (p->b > 10) return 2;
        [[fallthrough]];
    case 2: p->a += p->b; break;
    default: return 0;
    }
    p->b -= p->a;
    return 3;
}
SCENARIO(many_exits_0, [] { *at<pair>(0) = {3, 4}; }, [] { many_exits(at<pair>(0), 0); })
SCENARIO(many_exits_1, [] { *at<pair>(0) = {3, 4}; }, [] { many_exits(at<pair>(0), 1); })
SCENARIO(many_exits_2, [] { *at<pair>(0) = {30, 4}; }, [] { many_exits(at<pair>(0), 1); })

// --- Arguments -----------------------------------------------------------------------------------

struct big {
    long x[9];
    char c;
};
HF_TXFUNC big by_value(big in, long* p, bool flip, float f, __int128 h, char c) noexcept {
    *p += in.x[8] + (flip ? long(f * 2) : 0) + long(h >> 70) + c + in.c;
    in.x[0] = *p;
    return in;
}
SCENARIO(
    by_value, [] { *at<long>(0) = 7; },
    [] {
        big b{};
        fill(b.x, 9, 3);
        b.c = 5;
        by_value(b, at<long>(0), true, 2.5f, __int128(77) << 70, 'x');
    })

#if !defined(ORACLE_FRAMES)
// In a re-execution the caller's bytes are gone; only the record has them.
HF_TXFUNC void store_bytes(array* a, const char* bytes, std::size_t count) noexcept {
    const char* kept = hf::vlog_preserve(bytes, count);
    auto* copy = static_cast<char*>(hf_alloc(count));
    if (copy == nullptr) return;
    std::memcpy(copy, kept, count);
    a->data = reinterpret_cast<long*>(copy);
    a->size += long(count);
}
SCENARIO(
    store_bytes, [] { at<array>(0)->size = 2; },
    [] {
        char local[32] = "volatile bytes, soon gone";
        store_bytes(at<array>(0), local, 25);
        std::memset(local, 0, sizeof local);
    })
#endif

// Bytes that the section changes itself: what it preserved is what it reads, then as now.
HF_TXFUNC void preserve_pm(long* a, long* out) noexcept {
    const long* kept = hf::vlog_preserve(static_cast<const long*>(a), 2);
    a[0] = kept[1] * 2;
    a[1] = kept[0] + 1;
    *out += kept[0] * 100 + kept[1];
}
SCENARIO(
    preserve_pm, [] { fill(at<long>(0), 9, 4); }, [] { preserve_pm(at<long>(0), at<long>(64)); })
__attribute__((noinline)) static void next_of(long* values) {
    values[0] = values[0] * 3 + values[1];
}
HF_TXFUNC void preserve_local(long* a) noexcept {
    long local[2] = {a[0], a[1]};
    const long* kept = hf::vlog_preserve(static_cast<const long*>(local), 2);
    next_of(local);
    a[0] = kept[0] + local[0];
    a[1] += kept[1] * local[0];
}
SCENARIO(preserve_local, [] { fill(at<long>(0), 2, 4); }, [] { preserve_local(at<long>(0)); })

// --- Arguments and results in memory -------------------------------------------------------------

// The copy that the call's argument would be is elided: the call itself reads PM, and a promise that
// the function reads no memory says nothing about that.
HF_TXFUNC void pure_of_value(oracle::digested* d) noexcept { d->x[1] = oracle_digest(*d); }
SCENARIO(
    pure_of_value, [] { fill(at<unsigned long>(0), 4, 5); },
    [] { pure_of_value(at<oracle::digested>(0)); })

// Likewise the result, which is constructed where it belongs: the call itself writes PM.
HF_TXFUNC void pure_result(oracle::digested* d) noexcept {
    new (d) oracle::digested(oracle_spread(d->x[2] + d->x[0]));
}
SCENARIO(
    pure_result, [] { fill(at<unsigned long>(0), 4, 5); },
    [] { pure_result(at<oracle::digested>(0)); })

static constexpr long table[] = {3, 1, 4, 1, 5, 9, 2, 6};
HF_TXFUNC void constant_table(long* a, int n) noexcept {
    for (int i = 0; i < n; ++i) a[i] = a[i] * table[a[(i + 1) % n] & 7] + 1;
}
SCENARIO(constant_table, [] { fill(at<long>(0), 7, 4); }, [] { constant_table(at<long>(0), 7); })

// --- Members, templates, lambdas -----------------------------------------------------------------

struct account {
    long balance;
    HF_TXFUNC void deposit(long amount) noexcept { balance += amount; }
    template <class T> HF_TXFUNC void scale(T by) noexcept { balance *= by; }
};
SCENARIO(member, [] { at<account>(0)->balance = 5; }, [] { at<account>(0)->deposit(3); })
SCENARIO(member_template, [] { at<account>(0)->balance = 5; }, [] { at<account>(0)->scale(3); })

HF_TXFUNC void run_closure(pair* p, long by) noexcept {
    auto step = [&](long& x, long& y) {
        x += y * by;
        y = x - y;
    };
    step(p->a, p->b);
    step(p->b, p->a);
}
SCENARIO(run_closure, [] { *at<pair>(0) = {3, 4}; }, [] { run_closure(at<pair>(0), 6); })

// --- Vectors ---------------------------------------------------------------------------------------

// Two vectors overlap: a half of one is what was stored to the other.
using four = long __attribute__((vector_size(32)));
using two = long __attribute__((vector_size(16)));
struct __attribute__((packed, aligned(8))) half_aligned {
    two v;
};
HF_TXFUNC void vectors(four* v, half_aligned* u) noexcept {
    (*v)[1] = 9;
    *v = *v * 3 + (*v)[1];
    u->v = u->v + 1;
    *v += u->v[0];
    u[1] = u[0];
}
SCENARIO(
    vectors,
    [] {
        for (int i = 0; i < 32; ++i) at<long>(0)[i] = i;
    },
    [] { vectors(at<four>(64), at<half_aligned>(72)); })

// --- Entries made ahead of their writes ----------------------------------------------------------

// Eight entries become one. Their notes become one, too.
struct counters {
    long a, b, c, d;
    int e, f;
    long g;
};
HF_TXFUNC void count_all(counters* c) noexcept {
    ++c->a, ++c->b, ++c->c, ++c->d, ++c->e, ++c->f, ++c->g;
}
SCENARIO(count_all, [] { fill(at<long>(0), 6, 5); }, [] { count_all(at<counters>(0)); })

// The fields touch in twos, with a gap between that is nobody's to log.
struct gapped {
    long a, b, another, c, d;
};
HF_TXFUNC void count_around(gapped* g) noexcept { ++g->a, ++g->d, ++g->c, ++g->b; }
SCENARIO(count_around, [] { fill(at<long>(0), 5, 5); }, [] { count_around(at<gapped>(0)); })

// Where the second write leads depends on the first one.
HF_TXFUNC void follow_changed(node* x, node* z, node* to) noexcept {
    x->value += 1;
    x->next = to;
    z->next->value += 2;
}
SCENARIO(
    follow_changed, [] { make_list(0, 8, 4); },
    [] { follow_changed(at<node>(8), at<node>(8), at<node>(56)); })

// The same, where the store is a called function's, or the link is reached from a fresh block.
__attribute__((noinline)) void link_to(node* n, node* to) noexcept { n->next = to; }
HF_TXFUNC void follow_after_call(node* x, node* z, node* to) noexcept {
    x->value += 1;
    link_to(x, to);
    z->next->value += 2;
}
SCENARIO(
    follow_after_call, [] { make_list(0, 8, 4); },
    [] { follow_after_call(at<node>(8), at<node>(8), at<node>(56)); })
__attribute__((noinline)) static void aim_at_link(from_here<node*>* p, node** link) { *p = link; }
HF_TXFUNC void follow_aimed(node* x, node* to) noexcept {
    auto* p = static_cast<from_here<node*>*>(hf_alloc(sizeof(from_here<node*>)));
    if (p == nullptr) return;
    aim_at_link(p, &x->next);
    x->value += 1;
    x->next = to;
    (**p)->value += 2;
}
SCENARIO(follow_aimed, [] { make_list(0, 8, 4); }, [] { follow_aimed(at<node>(8), at<node>(56)); })

// Over a called function that reads, and over one that stores, also to what comes behind it.
__attribute__((noinline)) void put_two(long* to, long by) noexcept {
    to[0] = by;
    to[1] += by;
}
HF_TXFUNC void count_around_calls(counters* c, long* a) noexcept {
    ++c->a;
    const long x = first_of(a);
    c->b += x;
    put_two(a, x);
    c->c += 1;
}
SCENARIO(
    count_around_calls_apart, [] { fill(at<long>(0), 16, 5); },
    [] { count_around_calls(at<counters>(0), at<long>(64)); })
SCENARIO(
    count_around_calls_inside, [] { fill(at<long>(0), 16, 5); },
    [] { count_around_calls(at<counters>(0), at<long>(16)); })

// What every way leads to has an entry on every way.
HF_TXFUNC void join_behind(long* a, long n) noexcept {
    if (a[8] == n) a[0] += 1;
    a[2] += 1;
}
SCENARIO(join_behind_store, [] { *at<long>(64) = 7; }, [] { join_behind(at<long>(0), 7); })
SCENARIO(join_behind_none, [] { *at<long>(64) = 8; }, [] { join_behind(at<long>(0), 7); })

// And does not, by the types: the entry is made ahead, at the end of three loads.
struct owner {
    long changes;
    list* of;
};
HF_TXFUNC void follow_unchanged(owner* o) noexcept {
    o->changes += 1;
    o->of->count += 1;
    o->of->head->value += 1;
    o->of->head->next->value += o->of->count;
}
SCENARIO(
    follow_unchanged,
    [] {
        *at<owner>(0) = {3, at<list>(16)};
        make_list(16, 32, 3);
    },
    [] { follow_unchanged(at<owner>(0)); })

// The second write is not made, or not always; nor is the third where the section ends early.
HF_TXFUNC void store_sometimes(long* a, long n) noexcept {
    a[0] += 1;
    if (a[8] == n) a[2] += 1;
    if (a[9] == n) return;
    a[4] += 1;
}
SCENARIO(
    store_never,
    [] {
        fill(at<long>(0), 8, 5);
        *at<long>(72) = 7;
    },
    [] { store_sometimes(at<long>(0), 7); })
SCENARIO(
    store_all,
    [] {
        fill(at<long>(0), 8, 5);
        *at<long>(64) = 7;
    },
    [] { store_sometimes(at<long>(0), 7); })

// In each iteration the next place is computed behind the write.
HF_TXFUNC void walk_and_mark(node* n, long* steps) noexcept {
    for (; n != nullptr; n = n->next) {
        *steps += 1;
        n->value += *steps;
    }
}
SCENARIO(
    walk_and_mark, [] { make_list(0, 8, 5); }, [] { walk_and_mark(at<node>(8), at<long>(256)); })

// One write leads in the loop, another follows it behind the loop.
HF_TXFUNC void mark_the_last(node* n, long* steps) noexcept {
    node* last = n;
    do {
        *steps += n->value;
        last = n;
        n = n->next;
    } while (n != nullptr);
    last->value += 1;
}
SCENARIO(
    mark_the_last, [] { make_list(0, 8, 5); }, [] { mark_the_last(at<node>(8), at<long>(256)); })

// --- Ranges of loops -----------------------------------------------------------------------------

HF_TXFUNC void add_to_all(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) a[i] += 3;
}
SCENARIO(add_to_all, [] { fill(at<long>(64), 30, 5); }, [] { add_to_all(at<long>(64), 29); })
SCENARIO(add_to_none, [] { fill(at<long>(64), 30, 5); }, [] { add_to_all(at<long>(64), 0); })
SCENARIO(add_to_one, [] { fill(at<long>(64), 30, 5); }, [] { add_to_all(at<long>(64), 1); })

HF_TXFUNC void add_downwards(int* a, int n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int i = n; i-- > 0;) a[i] += a[i + 1];
}
SCENARIO(add_downwards, [] { fill(at<int>(64), 40, 5); }, [] { add_downwards(at<int>(64), 37); })

HF_TXFUNC void turn_round(long* a) noexcept {
    for (int i = 0, j = 63; i < j; ++i, --j) std::swap(a[i], a[j]);
}
SCENARIO(turn_round, [] { fill(at<long>(64), 64, 5); }, [] { turn_round(at<long>(64)); })

// Every second word is another's.
HF_TXFUNC void every_second(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) a[2 * i] += 3;
}
SCENARIO(every_second, [] { fill(at<long>(64), 40, 5); }, [] { every_second(at<long>(64), 17); })

// Both halves of each pair, the second one first; together they leave nothing out.
HF_TXFUNC void both_halves(pair* p, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) {
        p[i].b += p[i].a;
        p[i].a ^= p[i].b;
    }
}
SCENARIO(both_halves, [] { fill(at<long>(64), 40, 5); }, [] { both_halves(at<pair>(64), 17); })

// Some iterations store, and the last one ends halfway.
HF_TXFUNC void add_to_some(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i)
        if (a[i] & 1) a[i] += 3;
}
SCENARIO(add_to_some, [] { fill(at<long>(64), 40, 5); }, [] { add_to_some(at<long>(64), 17); })

HF_TXFUNC void add_until(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0;; ++i) {
        if (i == n) return;
        a[i] += 3;
    }
}
SCENARIO(add_until, [] { fill(at<long>(64), 40, 5); }, [] { add_until(at<long>(64), 17); })

// So much comes before its test that the optimiser leaves that in front of the first store.
HF_TXFUNC void add_behind_test(long* a, long n) noexcept {
    long sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0;; ++i) {
        for (int round = 0; round < 8; ++round) sum = (sum ^ (sum >> 7)) * 31 + (a[i] >> round);
        if (i == n) break;
        a[i] += 3;
    }
    a[n + 1] = sum;
}
SCENARIO(
    add_behind_test, [] { fill(at<long>(64), 30, 5); }, [] { add_behind_test(at<long>(64), 17); })

HF_TXFUNC void add_until_found(long* a, long sought) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < 40; ++i) {
        a[i] += 3;
        if (a[i + 1] == sought) break;
        a[i + 64] += 1;
    }
}
SCENARIO(
    add_until_found, [] { fill(at<long>(64), 120, 5); },
    [] { add_until_found(at<long>(64), 5 + 7 * 9 + 81); })

// Rows: the inner range begins elsewhere each time.
HF_TXFUNC void add_to_rows(long* a, long rows, long columns) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long r = 0; r < rows; ++r)
#pragma clang loop vectorize(disable) unroll(disable)
        for (long c = 0; c < columns; ++c) a[r * 9 + c] += r;
}
SCENARIO(add_to_rows, [] { fill(at<long>(64), 64, 5); }, [] { add_to_rows(at<long>(64), 4, 7); })

// The middle of each triple is another's.
HF_TXFUNC void outer_two(triple* t, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) {
        t[i].x[0] += t[i].x[1];
        t[i].x[2] ^= t[i].x[0];
    }
}
SCENARIO(outer_two, [] { fill(at<long>(64), 40, 5); }, [] { outer_two(at<triple>(64), 7); })

// They begin side by side and go at different speeds.
HF_TXFUNC void two_strides(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) {
        a[i] += 3;
        a[2 * i + 1] += 5;
    }
}
SCENARIO(two_strides, [] { fill(at<long>(64), 40, 5); }, [] { two_strides(at<long>(64), 9); })

// Two ranges of constant length, and a gap.
HF_TXFUNC void two_apart(long* a) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < 16; ++i) {
        a[i] += 3;
        a[i + 20] += a[i];
    }
}
SCENARIO(two_apart, [] { fill(at<long>(64), 40, 5); }, [] { two_apart(at<long>(64)); })

// The row's total moves with the outer loop, and stays where it is in the inner one.
HF_TXFUNC void totals_of_rows(long* totals, long* cells, long rows, long columns) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long r = 0; r < rows; ++r)
#pragma clang loop vectorize(disable) unroll(disable)
        for (long c = 0; c < columns; ++c) {
            totals[r] += cells[r * columns + c];
            cells[r * columns + c] = totals[r];
        }
}
SCENARIO(
    totals_of_rows, [] { fill(at<long>(64), 40, 5); },
    [] { totals_of_rows(at<long>(64), at<long>(128), 4, 5); })

// A function is called for each element: it reads, and stores to its own.
HF_TXFUNC void put_in_all(long* a, long n) noexcept {
#pragma clang loop vectorize(disable) unroll(disable)
    for (long i = 0; i < n; ++i) {
        a[2 * i] += 3;
        a[2 * i + 1] ^= first_of(a + 2 * i);
        put_two(a + 2 * i, 9);
    }
}
SCENARIO(put_in_all, [] { fill(at<long>(64), 50, 5); }, [] { put_in_all(at<long>(64), 17); })

// --- Reads and writes by indices -----------------------------------------------------------------

// The base says nothing: the addresses are in the indices.
#if defined(__x86_64__)
HF_TXFUNC __attribute__((target("avx2"))) void gathered(long* a) noexcept {
    __m256i at = _mm256_add_epi64(_mm256_set1_epi64x((long long)a), _mm256_set_epi64x(24, 16, 8, 0));
    a[0] = 5;
    __m256i found = _mm256_i64gather_epi64(static_cast<const long long*>(nullptr), at, 1);
    a[1] = _mm256_extract_epi64(found, 0) + 1;
    a[2] = _mm256_extract_epi64(found, 1) + 100;
}
SCENARIO(
    gathered, [] { fill(at<long>(0), 4, 5); },
    [] {
        if (__builtin_cpu_supports("avx2")) gathered(at<long>(0));
        else increment(at<long>(0));
    })

HF_TXFUNC __attribute__((target("avx2"))) void stored_by_mask(long* a) noexcept {
    __m256i every_other = _mm256_set_epi64x(0, -1, 0, -1);
    auto* words = reinterpret_cast<long long*>(a);
    __m256i found = _mm256_maskload_epi64(words + 1, every_other);
    _mm256_maskstore_epi64(words, every_other, found);
    a[5] = _mm256_extract_epi64(_mm256_maskload_epi64(words, every_other), 2);
}
SCENARIO(
    stored_by_mask, [] { fill(at<long>(0), 8, 5); },
    [] {
        if (__builtin_cpu_supports("avx2")) stored_by_mask(at<long>(0));
        else increment(at<long>(0));
    })
#endif

// Two addresses that are numbers.
HF_TXFUNC void by_numbers(std::uintptr_t x, std::uintptr_t y) noexcept {
    long v = *reinterpret_cast<const long*>(x);
    *reinterpret_cast<long*>(y) = v + 1;
}
SCENARIO(
    by_numbers, [] { fill(at<long>(0), 4, 5); },
    [] { by_numbers(std::uintptr_t(at<long>(0)), std::uintptr_t(at<long>(0))); })
