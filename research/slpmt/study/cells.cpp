// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <research/slpmt/study/cells.hpp>

namespace hf::slpmt {
namespace {

constexpr technique ede_touched = [] {
    technique how = ede;
    how.name = "EDE, once per word";
    how.log = logging::touched;
    return how;
}();

class cell_list {
public:
    explicit cell_list(std::uint64_t seed) : seed_(seed) {}

    void add(std::string figure, std::string_view workload, const technique& how,
             std::uint64_t value_bytes = 256, const sim::memory_parameters& memory = {},
             std::uint32_t cores = 1, std::uint64_t instructions_between = 0) {
        cell one{.figure = std::move(figure), .what = {.workload = workload, .how = how}};
        one.what.value_bytes = value_bytes;
        one.what.parts.memory = memory;
        one.what.parts.cores = cores;
        one.what.instructions_between = instructions_between;
        one.what.seed = seed_;
        list.push_back(one);
    }
    std::vector<cell> list;

private:
    std::uint64_t seed_;
};

/// Queue depth, banks and interleaving, which the paper leaves open, and the cases that depend most
/// on them.
void add_memories(cell_list& to) {
    for (const char* workload : {"hashtable", "rbtree"})
        for (std::uint32_t queue : {8U, 16U, 32U, 64U})
            for (std::uint32_t banks : {8U, 16U, 32U})
                for (std::uint32_t interleave : {64U, 256U})
                    for (const technique& how : {fg, fg_lz, slpmt}) {
                        sim::memory_parameters memory;
                        memory.queue_lines = queue;
                        memory.banks = banks;
                        memory.interleave_bytes = interleave;
                        to.add("memory", workload, how, 256, memory);
                    }
}

/// Fig. 12: insertions back to back, and with a caller that takes 0.5, 1 and 2 us between them.
void add_latencies(cell_list& to, std::string_view workload) {
    for (std::uint64_t between : {0U, 2000U, 4000U, 8000U})
        for (std::uint32_t write_ns : {500U, 600U, 1000U, 1500U, 2300U})
            for (const technique& how :
                 {fg, fg_lg, fg_lz, fg_lz_unwritten, slpmt, slpmt_unwritten}) {
                sim::memory_parameters memory;
                memory.write_ns = write_ns;
                to.add("12", workload, how, 256, memory, 1, between);
            }
}

/// Cases beyond the paper: slow memory of several shapes, caches that persist, several cores.
void add_beyond(cell_list& to) {
    for (const char* workload : {"hashtable", "rbtree"})
        for (std::uint32_t write_ns : {600U, 1000U, 1500U, 2300U})
            for (std::uint32_t queue : {8U, 32U})
                for (std::uint32_t banks : {8U, 16U, 32U})
                    for (const technique& how : {fg, slpmt}) {
                        sim::memory_parameters memory;
                        memory.write_ns = write_ns;
                        memory.queue_lines = queue;
                        memory.banks = banks;
                        to.add("latency", workload, how, 256, memory);
                    }
    for (const char* workload : kernel_names)
        for (const technique& how : {fg, slpmt}) {
            sim::memory_parameters eadr;
            eadr.caches_persist = true;
            to.add("eADR", workload, how, 256, eadr);
            for (std::uint32_t cores : {1U, 2U, 4U}) to.add("cores", workload, how, 256, {}, cores);
        }
}

} // namespace

std::vector<cell> cells(std::uint64_t seed) {
    cell_list all{seed};
    const technique slpmt_redo = with_redo(slpmt, "SLPMT, redo"),
                    fg_redo = with_redo(fg, "FG, redo");
    for (const char* workload : kernel_names) {
        for (const technique& how : {fg, fg_lg, fg_lz, slpmt, atom, ede})
            all.add("8", workload, how);
        for (const technique& how : {fg, fg_lines, slpmt_lines}) all.add("9", workload, how);
        for (std::uint64_t bytes : {16U, 32U, 64U, 128U, 256U})
            for (const technique& how : {fg, slpmt}) all.add("10", workload, how, bytes);
        add_latencies(all, workload);
        for (const technique& how : {fg, fg_lg, fg_lz, slpmt, atom, ede}) // a caller of 0.5 us
            all.add("8, with a caller", workload, how, 256, {}, 1, 2000);
        for (const technique& how : {fg, slpmt, fg_redo, slpmt_redo, ede, ede_touched})
            all.add("redo", workload, how);
    }
    for (std::uint64_t bytes : {256U, 16U})
        for (const char* workload : kv_names)
            for (const technique& how : {fg, slpmt, atom, ede}) all.add("14", workload, how, bytes);
    sim::memory_parameters fine; // the other interleaving, for the figures that depend on it
    fine.interleave_bytes = 64;
    for (const char* workload : kernel_names) {
        for (const technique& how : {fg, fg_lg, fg_lz, slpmt, atom, ede})
            all.add("8, 64 B", workload, how, 256, fine);
        for (std::uint64_t bytes : {16U, 32U, 64U, 128U, 256U})
            for (const technique& how : {fg, slpmt})
                all.add("10, 64 B", workload, how, bytes, fine);
    }
    for (const char* workload : kv_names)
        for (const technique& how : {fg, slpmt}) all.add("14, 64 B", workload, how, 16, fine);
    add_memories(all);
    add_beyond(all);
    return all.list;
}

} // namespace hf::slpmt
