#!/usr/bin/env python3
"""Runs one libFuzzer program on a corpus of its own seeds, for DEJA_FUZZ_SECONDS (30).

Exits 1 where the program does not end as it should. Its own code may be that of a skipped test.

usage: run_fuzzer.py PROGRAM
"""
import os
import subprocess
import sys
import tempfile


def main():
    program, seconds = sys.argv[1], os.environ.get("DEJA_FUZZ_SECONDS", "30")
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus")
        artifacts = os.path.join(folder, "artifacts")
        os.mkdir(corpus)
        os.mkdir(artifacts)
        env = dict(os.environ, DEJA_FUZZ_SEEDS=corpus)
        result = subprocess.run(
            [program, corpus, f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=20",
             "-max_len=20000", "-print_final_stats=1", f"-artifact_prefix={artifacts}/"],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = result.stdout.decode(errors="replace")
        print("\n".join(text.splitlines()[-40:]))
        for name in os.listdir(artifacts):
            with open(os.path.join(artifacts, name), "rb") as file:
                print(f"input {name}: {file.read().hex()}")
    return 1 if result.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
