// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C API's functions by overload: what is written once for six structures, and for a structure
// and its snapshot, calls these.
#pragma once

#include <holdfast/mod.h>

namespace hf_python {

#define HF_CALLS(kind)                                                                             \
    struct kind##_calls {                                                                          \
        using handle = hf_mod_##kind;                                                              \
        using snapshot = hf_mod_##kind##_snapshot;                                                 \
        static hf_status open(hf_pool* pool, const char* name, handle** to) {                      \
            return hf_mod_##kind##_open(pool, name, to);                                           \
        }                                                                                          \
        static hf_status open_in(hf_mod_transaction* transaction, const char* name, handle** to) { \
            return hf_mod_##kind##_open_in(transaction, name, to);                                 \
        }                                                                                          \
        static void close(handle* of) { hf_mod_##kind##_close(of); }                               \
        static void close(snapshot* of) { hf_mod_##kind##_snapshot_close(of); }                    \
        static void set_durability(handle* of, hf_mod_durability wanted) {                         \
            hf_mod_##kind##_set_durability(of, wanted);                                            \
        }                                                                                          \
        static hf_status clear(handle* of) { return hf_mod_##kind##_clear(of); }                   \
        static hf_status take(const handle* of, snapshot** to) {                                   \
            return hf_mod_##kind##_snapshot_take(of, to);                                          \
        }                                                                                          \
        static uint64_t count(const handle* of) { return hf_mod_##kind##_count(of); }              \
        static uint64_t count(const snapshot* of) { return hf_mod_##kind##_snapshot_count(of); }   \
        static hf_status iterate(const handle* of, hf_mod_cursor** to) {                           \
            return hf_mod_##kind##_iterate(of, to);                                                \
        }                                                                                          \
        static hf_status iterate(const snapshot* of, hf_mod_cursor** to) {                         \
            return hf_mod_##kind##_snapshot_iterate(of, to);                                       \
        }                                                                                          \
    };
HF_CALLS(map)
HF_CALLS(ordered_map)
HF_CALLS(set)
HF_CALLS(vector)
HF_CALLS(stack)
HF_CALLS(queue)
#undef HF_CALLS

#define HF_MAP_CALLS(kind)                                                                         \
    inline hf_status get(const hf_mod_##kind* of, hf_bytes key, hf_bytes* value) {                 \
        return hf_mod_##kind##_get(of, key, value);                                                \
    }                                                                                              \
    inline hf_status get(const hf_mod_##kind##_snapshot* of, hf_bytes key, hf_bytes* value) {      \
        return hf_mod_##kind##_snapshot_get(of, key, value);                                       \
    }                                                                                              \
    inline hf_status put(hf_mod_##kind* to, hf_bytes key, hf_bytes value) {                        \
        return hf_mod_##kind##_put(to, key, value, nullptr);                                       \
    }                                                                                              \
    inline hf_status take(hf_mod_##kind* from, hf_bytes key) {                                     \
        return hf_mod_##kind##_take(from, key, nullptr);                                           \
    }                                                                                              \
    inline hf_status update(hf_mod_##kind* to, const hf_mod_map_step* steps, size_t step_count) {  \
        return hf_mod_##kind##_update(to, steps, step_count);                                      \
    }
HF_MAP_CALLS(map)
HF_MAP_CALLS(ordered_map)
#undef HF_MAP_CALLS
inline hf_status range(const hf_mod_ordered_map* of, const hf_bytes* from, const hf_bytes* upto,
                       bool backwards, hf_mod_cursor** to) {
    return hf_mod_ordered_map_range(of, from, upto, backwards, to);
}
inline hf_status range(const hf_mod_ordered_map_snapshot* of, const hf_bytes* from,
                       const hf_bytes* upto, bool backwards, hf_mod_cursor** to) {
    return hf_mod_ordered_map_snapshot_range(of, from, upto, backwards, to);
}

inline hf_status find(const hf_mod_set* of, hf_bytes element) {
    return hf_mod_set_find(of, element);
}
inline hf_status find(const hf_mod_set_snapshot* of, hf_bytes element) {
    return hf_mod_set_snapshot_find(of, element);
}
inline hf_status get(const hf_mod_vector* of, uint64_t index, hf_bytes* element) {
    return hf_mod_vector_get(of, index, element);
}
inline hf_status get(const hf_mod_vector_snapshot* of, uint64_t index, hf_bytes* element) {
    return hf_mod_vector_snapshot_get(of, index, element);
}
inline hf_status peek(const hf_mod_stack* of, hf_bytes* element) {
    return hf_mod_stack_peek(of, element);
}
inline hf_status peek(const hf_mod_stack_snapshot* of, hf_bytes* element) {
    return hf_mod_stack_snapshot_peek(of, element);
}
inline hf_status peek(const hf_mod_queue* of, hf_bytes* element) {
    return hf_mod_queue_peek(of, element);
}
inline hf_status peek(const hf_mod_queue_snapshot* of, hf_bytes* element) {
    return hf_mod_queue_snapshot_peek(of, element);
}
inline hf_status pop(hf_mod_stack* of, hf_bytes* element) { return hf_mod_stack_pop(of, element); }
inline hf_status pop(hf_mod_queue* of, hf_bytes* element) { return hf_mod_queue_pop(of, element); }
inline hf_status push(hf_mod_stack* of, hf_bytes element) { return hf_mod_stack_push(of, element); }
inline hf_status push(hf_mod_queue* of, hf_bytes element) { return hf_mod_queue_push(of, element); }
inline hf_status push_all(hf_mod_stack* of, const hf_bytes* elements, size_t count) {
    return hf_mod_stack_push_all(of, elements, count);
}
inline hf_status push_all(hf_mod_queue* of, const hf_bytes* elements, size_t count) {
    return hf_mod_queue_push_all(of, elements, count);
}

} // namespace hf_python
