/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A durable map from C: no plugin, any C compiler. */
#include <holdfast/mod.h>

#include <stdio.h>

int main(int argc, char** argv) {
    const struct hf_open_options options = {.layout = "prices/1"};
    hf_pool* pool;
    hf_mod_map* map;
    hf_bytes price;
    if (argc != 2 || hf_pool_open(argv[1], &options, &pool) != HF_OK ||
        hf_mod_map_open(pool, "prices", &map) != HF_OK ||
        hf_mod_map_put(map, hf_text("apple"), hf_text("1.20"), NULL) != HF_OK ||
        hf_mod_map_get(map, hf_text("apple"), &price) != HF_OK)
        return puts(hf_error_text()), 1;
    printf("%.*s\n", (int)price.bytes, (const char*)price.data);
    hf_mod_map_close(map);
    hf_pool_close(pool);
    return 0;
}
