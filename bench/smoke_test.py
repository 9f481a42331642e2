#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every benchmark runs with every engine, and says what scripts rely on (docs/internals/design.md, the benchmark's face).

usage: smoke_test.py PATH-OF-HOLDFAST [PEER...]     the peers that this build was left without
"""
import json
import subprocess
import sys
import unittest

HOLDFAST = "holdfast"
LEFT_OUT = ()
OPS = 2000
STRUCTURES = ["hashmap", "bptree", "skiplist", "rbtree", "avl"]
OURS = ["none", "undo", "selective", "clobber", "redo", "auto", "justdo", "ido", "vlog-only", "clobberlog-only",
        "clobber-unrefined"]
PEERS = ["pmdk", "lmdb", "lmdb-writemap-nosync", "rocksdb", "rocksdb-nosync", "sqlite",
         "sqlite-normal", "bdb", "bdb-nosync", "volatile"]
HASHED = ["pmdk-outside", "pmdk-actions", "bdb-hash", "bdb-hash-nosync", "floor-1f", "floor-2f"]
CONTAINERS = {"map": ["mod", "pmdk", "pmdk-actions", "lmdb", "lmdb-writemap-nosync", "floor-1f", "floor-2f",
                      "volatile"],
              "stack": ["mod", "pmdk", "pmdk-actions", "floor-1f", "floor-2f", "volatile"]}
CONTAINERS |= {"set": CONTAINERS["map"], "queue": CONTAINERS["stack"], "vector": CONTAINERS["stack"],
               "vecswap": CONTAINERS["stack"]}
SECTIONS = ["by-hand", "none", "auto", "redo", "undo", "clobber", "selective", "justdo", "ido", "pmdk"]
LOCK_BASED = ["jd-queue", "jd-stack", "jd-priority", "jd-map", "jd-vector"]
LOCKING = ["none", "undo", "redo", "justdo", "ido"]
COUNTS = ["fences_per_op", "flushes_per_op", "ordering_points_per_op", "log_entries_per_op",
          "log_bytes_per_op", "pm_bytes_per_op"]


def bench(*arguments):
    done = subprocess.run([HOLDFAST, "bench", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def run(name, engine, *more):
    code, out, err = bench(name, "--engine", engine, "--ops", OPS, "--json", "--no-prefault", *more)
    assert code == 0, f"{name} {engine} {more}: {err}"
    return json.loads(out)


def there(*engines):
    return [engine for engine in engines if engine.split("-")[0] not in LEFT_OUT]


def engines_of(structure):
    return there(*OURS, *PEERS, *(HASHED if structure == "hashmap" else []))


class Benchmarks(unittest.TestCase):
    def check_face(self, found, name, structure, engine, mode, threads):
        wanted = {"name": name, "engine": engine, "mode": mode, "threads": threads, "ops": OPS,
                  "structure": structure}
        self.assertEqual({key: found[key] for key in wanted}, wanted)
        self.assertGreater(found["ops_per_second"], 0)
        for key in COUNTS:
            if engine in OURS:
                self.assertIsInstance(found[key], float, key)
            self.assertIn(key, found)

    def test_every_structure_is_filled_by_every_engine(self):
        for structure in STRUCTURES:
            for engine in engines_of(structure):
                with self.subTest(structure=structure, engine=engine):
                    found = run(structure, engine, "--mode", "pmem")
                    self.check_face(found, structure, structure, engine, "pmem", 1)

    def test_every_container_runs_with_every_engine(self):
        for container, engines in CONTAINERS.items():
            for engine in there(*engines):
                for mode in ("pmem", "process"):
                    with self.subTest(container=container, engine=engine, mode=mode):
                        found = run(container, engine, "--mode", mode, "--records", 1000)
                        self.check_face(found, container, container, engine, mode, 1)
                        self.assertEqual(found["records"], 1000)

    def test_structures_with_locks_of_their_own_are_shared_by_threads(self):
        for name in LOCK_BASED:
            for engine in LOCKING:
                for mode in ("pmem", "process"):
                    with self.subTest(name=name, engine=engine, mode=mode):
                        found = run(name, engine, "--mode", mode, "--records", 100, "--threads", 2)
                        self.check_face(found, name, name, engine, mode, 2)
                        self.assertEqual(found["records"], 100)
        for size in (1, 1000):
            self.assertEqual(run("jd-map", "justdo", "--records", 100, "--value-bytes", size)["value_bytes"], size)

    def sections(self, mode, *more):
        code, out, err = bench("section", "--mode", mode, "--ops", OPS, "--rounds", 1, "--no-prefault", "--json", *more)
        self.assertEqual(code, 0, err)
        return {row["engine"]: row["cases"] for row in json.loads(out)["rows"]}

    def test_every_engine_s_sections_make_what_plain_code_makes(self):  # or the command fails
        for mode, engines in (("process", SECTIONS), ("pmem", ["by-hand", "by-hand-1f", *SECTIONS[1:]])):
            with self.subTest(mode=mode):
                found = self.sections(mode)
                self.assertEqual(list(found), engines)
                for name, each in found["by-hand"].items():
                    self.assertEqual(each["ratio_to_first"], 1, name)
                    for engine in engines:
                        self.assertGreater(found[engine][name]["ns"], 0, (engine, name))

    def test_sections_by_hand_fence_as_often_as_their_mode_needs(self):
        fences = {"nothing stored": 0, "one store": 1, "four stores": 1, "64 stores": 1, "64 to one word": 1, "a node": 2,
                  "one, 2 threads": 1}
        for mode, engine, each in (("process", "by-hand", 0), ("pmem", "by-hand", 2), ("pmem", "by-hand-1f", 1)):
            with self.subTest(mode=mode, engine=engine):
                found = self.sections(mode, "--engines", engine)[engine]
                self.assertEqual({name: case["fences"] for name, case in found.items()},
                                 {name: each * count for name, count in fences.items()})
        self.assertIn("no such engine for sections in mode process", bench("section", "--engines", "by-hand-1f")[2])

    def test_instructions_of_sections_are_counted_one_by_one(self):
        found = self.sections("process", "--engines", "by-hand,none,redo", "--instructions")
        for name in ("one store", "four stores", "64 stores"):
            none, by_hand, redo = (found[engine][name]["instructions"] for engine in ("none", "by-hand", "redo"))
            self.assertLess(0, none)
            self.assertLess(none, by_hand)
            self.assertLess(by_hand, redo)
        self.assertIsNone(found["redo"]["one, 2 threads"]["instructions"])

    def test_plain_code_has_the_floor_of_its_mode(self):
        small = ["--only", "search", "--ops", 100, "--records", 100, "--rounds", 1]
        code, out, err = bench("plain", *small, "--mode", "process", "--json")
        self.assertEqual(code, 0, err)
        self.assertGreater(json.loads(out)["rows"][0]["by-hand"]["ops_per_second"], 0)
        self.assertIn("no such build in mode pmem", bench("plain", *small, "--engines", "by-hand")[2])

    def test_persistent_objects_wait_as_often_as_they_commit(self):
        for name in ("allinc", "rowinc"):
            for threads in (1, 2):
                with self.subTest(name=name, threads=threads):
                    code, out, err = bench(name, "--engine", "none", "--ops", OPS, "--threads", threads, "--json")
                    self.assertEqual(code, 0, err)
                    self.assertGreater(json.loads(out)["ops_per_second"], 0)
                    code, out, err = bench(name, "--engine", "simpo", "--ops", OPS, "--threads", threads, "--mode",
                                           "pmem", "--calls-a-sync", 10, "--log-bytes", 1 << 20, "--json")
                    self.assertEqual(code, 0, err)
                    found = json.loads(out)
                    for key in COUNTS:
                        self.assertIsInstance(found[key], float, key)
                    self.assertLessEqual(found["ordering_points_per_op"], 0.11)
                    self.assertGreaterEqual(found["log_entries_per_op"], 1)

    def test_variants_of_persistent_objects_keep_every_call(self):
        for engine in ("simpo-all", "nvram", "hybrid", "double", "kamino", "cow", "ssd"):
            for name in ("allinc", "rowinc"):
                with self.subTest(engine=engine, name=name):
                    code, out, err = bench(name, "--engine", engine, "--ops", 20 if engine == "ssd" else OPS, "--threads",
                                           2, "--mode", "pmem", "--calls-a-checkpoint", 7, "--latency", "pcm", "--json")
                    self.assertEqual(code, 0, err)  # the sum is checked there
                    self.assertGreater(json.loads(out)["ops_per_second"], 0)

    def test_a_persistent_object_is_opened_again_behind_a_crash(self):
        code, out, err = bench("allinc", "--engine", "simpo", "--ops", OPS, "--threads", 2, "--crash", "--json")
        self.assertEqual(code, 0, err)
        self.assertGreater(json.loads(out)["recovery"]["seconds"], 0)

    def test_a_batch_of_no_operations_is_refused_in_words(self):
        code, _, err = bench("map", "--mode", "power", "--batch", 0)
        self.assertNotEqual(code, 0)
        self.assertIn("--batch: Value 0 not in range 1 to 4294967296", err)

    def test_peers_make_a_batch_durable_together_and_read_it_before(self):
        for engine in there("sqlite", "lmdb", "rocksdb"):
            with self.subTest(engine=engine):
                code, out, err = bench("ycsb-a", "--engine", engine, "--mode", "power", "--batch", 7, "--threads", 2, "--ops",
                                       OPS, "--records", OPS, "--json")
                self.assertEqual(code, 0, err)
                result = json.loads(out)
                self.assertGreater(result["written_bytes_per_op"], 0)
                self.assertGreaterEqual(result["batch_ms_max"], result["batch_ms_p999"])

    def test_batches_in_mode_power_are_found_behind_a_kill(self):
        code, out, err = bench("restart", "--engine", "redo", "--mode", "power", "--batch", 16, "--items", OPS, "--kills", 1)
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.assertTrue(result["sound"])
        self.assertEqual(result["lost"], 0)

    def test_the_parts_of_an_opening_add_up(self):
        code, out, err = bench("restart", "--engine", "clobber", "--mode", "pmem", "--items", OPS, "--kills", 5)
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        parts = result["open_parts_ms"]
        self.assertEqual(list(parts), ["map", "check", "restore", "re_execute", "sections"])
        self.assertGreater(parts["map"], 0)
        self.assertLess(parts["map"] + parts["check"], max(result["open_ms_each"]))
        if min(result["sections_pending_each"]) > 0:    # most kills meet a section
            self.assertGreater(parts["re_execute"], 0)
        if "pmdk" not in LEFT_OUT:
            self.assertIsNone(json.loads(bench("restart", "--engine", "pmdk", "--mode", "pmem", "--items", OPS, "--kills", 1)[1])["open_parts_ms"])

    def test_containers_of_ours_fence_as_often_as_their_durability_says(self):
        share = {"map": 0.5, "set": 0.5}        # the other half looks up
        once = ("vecswap",)                     # durable on return by its record
        for container in CONTAINERS:
            for durability, points in (("next", 1), ("return", 2)):
                with self.subTest(container=container, durability=durability):
                    found = run(container, "mod", "--mode", "pmem", "--records", 1000, "--durability",
                                durability)
                    self.assertEqual(found["durability"], durability)
                    # New memory is taken now and then, and an insertion may find its key.
                    if container in once:
                        points = 1
                    self.assertAlmostEqual(found["fences_per_op"], points * share.get(container, 1),
                                           delta=0.05)
                    self.assertGreater(found["bytes_per_element"], 0)

    def test_floors_fence_as_often_as_their_names_say(self):
        share = {"map": 0.5, "set": 0.5}
        for container in CONTAINERS:
            for engine, fences in (("floor-1f", 1), ("floor-2f", 2)):
                with self.subTest(container=container, engine=engine):
                    found = run(container, engine, "--mode", "pmem", "--records", 1000)
                    self.assertAlmostEqual(found["fences_per_op"], fences * share.get(container, 1),
                                           delta=0.05)

    def test_containers_of_libpmemobj_are_counted(self):
        for container in CONTAINERS:
            with self.subTest(container=container):
                found = run(container, "pmdk", "--mode", "pmem", "--records", 1000, "--count-peers")
                self.assertGreater(found["fences_per_op"], 2)
                self.assertGreater(found["bytes_per_element"], 8)

    def check_mix(self, mix, engine, structure, *more):
        with self.subTest(mix=mix, engine=engine, structure=structure):
            found = run(mix, engine, "--records", 1000, "--threads", 2, "--structure", structure, *more)
            self.check_face(found, mix, structure, engine, "process", 2)

    def test_every_mix_runs(self):
        for engine in engines_of("hashmap"):    # A and D have all that E and the others lack
            self.check_mix("ycsb-a", engine, "hashmap")
            self.check_mix("ycsb-d", engine, "hashmap")
        for engine in engines_of("bptree"):
            self.check_mix("ycsb-e", engine, "bptree", "--distribution", "uniform")
        for mix in ("ycsb-b", "ycsb-c", "ycsb-f"):
            for engine in there("clobber", "pmdk", "lmdb"):
                self.check_mix(mix, engine, "hashmap")
        found = run("ycsb-load", "clobber", "--structure", "avl")
        self.check_face(found, "ycsb-load", "avl", "clobber", "process", 1)
        for structure in ("skiplist", "rbtree", "avl"):
            for engine in ("clobber", "pmdk", "volatile"):
                self.check_mix("ycsb-e", engine, structure)

    def test_engines_differ_in_what_they_log(self):
        counts = {engine: run("rbtree", engine, "--mode", "pmem") for engine in OURS}
        self.assertEqual(counts["none"]["log_bytes_per_op"], 0)
        self.assertAlmostEqual(counts["redo"]["fences_per_op"], 1, delta=0.01)  # and a lane begun
        self.assertGreater(counts["undo"]["fences_per_op"], counts["clobber"]["fences_per_op"])
        # A red-black tree's parents, colours and count are lazy: they wait for nothing and are not logged.
        self.assertLess(counts["selective"]["fences_per_op"], 0.7 * counts["undo"]["fences_per_op"])
        self.assertLess(counts["selective"]["log_entries_per_op"], 0.7 * counts["undo"]["log_entries_per_op"])
        self.assertGreater(counts["clobber"]["log_bytes_per_op"],
                           counts["clobberlog-only"]["log_bytes_per_op"])
        # Every word that an insertion overwrites is an input here: without a v_log it is undo's log.
        for each in ("log_entries_per_op", "log_bytes_per_op"):
            self.assertAlmostEqual(counts["clobberlog-only"][each], counts["undo"][each], delta=0.01)

    def test_a_latency_model_slows_fences_and_not_their_number(self):
        for engine in ["clobber", "pmdk"]:
            with self.subTest(engine=engine):
                here = run("hashmap", engine, "--mode", "pmem", "--count-peers")
                far = run("hashmap", engine, "--mode", "pmem", "--count-peers", "--latency", "cxl-far")
                self.assertAlmostEqual(here["fences_per_op"], far["fences_per_op"], delta=0.01)
                self.assertGreaterEqual(here["fences_per_op"], 2)
                # Each fence now takes 2300 ns or more.
                self.assertLess(far["ops_per_second"], 1e9 / 2300 / far["fences_per_op"])
        self.assertNotEqual(bench("hashmap", "--latency", "cxl", "--ops", 10)[0], 0)

    def test_what_does_not_exist_is_refused(self):
        self.assertNotEqual(bench("hashmap", "--engine", "nosuch")[0], 0)
        self.assertNotEqual(bench("bptree", "--engine", "pmdk-actions", "--ops", 10)[0], 0)
        self.assertNotEqual(bench("stack", "--engine", "lmdb", "--ops", 10)[0], 0)
        self.assertNotEqual(bench("hashmap", "--engine", "mod", "--ops", 10)[0], 0)
        self.assertNotEqual(bench("queue", "--engine", "volatile", "--threads", 2, "--ops", 10)[0], 0)
        code, _, err = bench("ycsb-e", "--structure", "hashmap", "--ops", 10, "--records", 10)
        self.assertNotEqual(code, 0)
        self.assertIn("ordered", err)

    def test_compare_takes_containers(self):
        for name in ("set", "queue"):
            code, out, err = bench("compare", name, "--engines", "mod,pmdk", "--rounds", 1, "--ops", OPS,
                                   "--records", 1000, "--mode", "pmem", "--durability", "return", "--json")
            self.assertEqual(code, 0, err)
            ours, peer = json.loads(out)["runs"]
            self.assertEqual((ours["durability"], peer["durability"]), ("return", None))
            self.assertEqual(ours["records"], 1000)

    def test_compare_takes_mixes(self):
        for name in ("ycsb-load", "ycsb-e"):
            code, out, err = bench("compare", name, "--structure", "rbtree", "--engines", "clobber",
                                   "--rounds", 1, "--ops", OPS)
            self.assertEqual(code, 0, err)
            self.assertIn(f"{name} (rbtree)", out)

    def test_compare_gives_medians_of_interleaved_rounds(self):
        engines = there("clobber", "undo", "lmdb")
        code, out, err = bench("compare", "skiplist", "--engines", ",".join(engines), "--rounds", 3, "--ops", OPS, "--json")
        self.assertEqual(code, 0, err)
        runs = json.loads(out)["runs"]
        self.assertEqual([each["engine"] for each in runs], engines)
        for each in runs:
            self.assertEqual(sorted(each["ops_per_second_of_rounds"])[1], each["ops_per_second"])


if __name__ == "__main__":
    HOLDFAST, *LEFT_OUT = sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
