/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sections in C. Their scenarios are in language_c_scenarios.cpp. */
#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <string.h>

struct item {
    struct item* next;
    unsigned length : 12, flags : 4;
    char text[];
};
struct shelf {
    struct item* first;
    long count;
    union {
        long as_long;
        double as_double;
    } last;
};

HF_TXFUNC bool shelf_add(struct shelf* s, const char* text, size_t length) {
    const char* kept = hf_vlog_preserve(text, length);
    struct item* made = hf_alloc(sizeof(struct item) + length + 1);
    if (!made) return false;
    made->next = s->first;
    made->length = length & 0xfff;
    made->flags = 3;
    memcpy(made->text, kept, length);
    made->text[length] = 0;
    s->first = made;
    ++s->count;
    s->last.as_double = (double)s->last.as_long / 2;
    return true;
}

HF_TXFUNC void shelf_drop(struct shelf* s) {
    struct item* gone = s->first;
    if (!gone) return;
    s->first = gone->next;
    --s->count;
    hf_free(gone);
}

/* Bit-fields share a word: the store of one is a read of the others. */
HF_TXFUNC void item_flag(struct item* i, unsigned flag) { i->flags |= flag; }

struct matrix {
    int n;
    double cell[16];
};
HF_TXFUNC void matrix_scale(struct matrix* restrict m, struct matrix by, int shift) {
    double row[m->n]; /* as long as an input says */
    for (int i = 0; i < m->n; ++i) {
        for (int j = 0; j < m->n; ++j) row[j] = m->cell[i * m->n + j] * by.cell[j];
        for (int j = 0; j < m->n; ++j) m->cell[i * m->n + (j + shift) % m->n] = row[j];
    }
}

static int by_last_digit(long a, long b) { return (int)(a % 10 - b % 10); }
static void sort(long* a, int n, int (*order)(long, long)) {
    for (int i = 1; i < n; ++i)
        for (int j = i; j > 0 && order(a[j - 1], a[j]) > 0; --j) {
            long t = a[j];
            a[j] = a[j - 1];
            a[j - 1] = t;
        }
}
#if !defined(UNRESOLVED) /* by -O0 */
HF_TXFUNC void sort_by_digit(long* a, int n) { sort(a, n, by_last_digit); }
#else
HF_TXFUNC void sort_by_digit(long* a, int n) {
    for (int i = 1; i < n; ++i)
        for (int j = i; j > 0 && by_last_digit(a[j - 1], a[j]) > 0; --j) {
            long t = a[j];
            a[j] = a[j - 1];
            a[j - 1] = t;
        }
}
#endif

enum state { idle, busy, done };
HF_TXFUNC enum state step(enum state* s, long* work) {
again:
    switch (*s) {
    case idle: *s = busy; goto again;
    case busy:
        if (--*work > 0) goto again;
        *s = done;
        /* fall through */
    case done: *work = *work * 10 + (long)*s; break;
    }
    return *s;
}

HF_TXFUNC void text_edit(char* text, size_t length) {
    char* dot = memchr(text, '.', length);
    if (dot) memmove(dot + 1, dot, strlen(dot) + 1);
    strncpy(text + 1, text + 12, 5);
    text[0] ^= ' ';
}
