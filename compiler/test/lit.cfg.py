# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import lit.formats

config.name = "holdfast-compiler"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ll", ".cpp", ".c", ".test"]
config.excludes = ["Inputs", "oracle.cpp", "adversarial.cpp", "language.cpp", "standard_containers.cpp",
                   "justdo_oracle.cpp", "language_c.c", "language_c_scenarios.cpp", "library.cpp", "buffered.cpp", "indirect.cpp", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join(
    [config.llvm_tools, config.bin_dir, os.environ["PATH"]])

# Mutants of the plugin are judged by the same tests, each in a place of its own (test/attacks/soundness/analysis_mutants.py).
plugin = lit_config.params.get("plugin", config.plugin)
config.test_exec_root = lit_config.params.get("exec_root", config.test_exec_root)
config.substitutions += [
    # The passes alone, on IR.
    ("%hf_opt", f"opt -load {plugin} -load-pass-plugin={plugin} -S"),
    # The whole compiler; add -mllvm -holdfast-engine=undo and the like.
    ("%hf_clangxx", f"clang++ -std=c++20 -I{config.include_dir} -gline-tables-only "
                    f"-fplugin={plugin} -fpass-plugin={plugin}"),
    ("%hf_clang", f"clang -I{config.include_dir} -gline-tables-only "
                  f"-fplugin={plugin} -fpass-plugin={plugin}"),
    ("%clangxx", f"clang++ -std=c++20 -I{config.include_dir}"),
    # The oracles, compiled once, as %clangxx -O1 does.
    ("%oracle", config.oracle),
    ("%justdo_oracle", config.justdo_oracle),
    ("%llvm", config.llvm),
    ("%lld", f"lld-{config.llvm}"),
    ("%plugin", plugin),
    ("%cmake", config.cmake),
    ("%source_dir", config.source_dir),
    ("%include", config.include_dir),
    ("%python", sys.executable),
]
