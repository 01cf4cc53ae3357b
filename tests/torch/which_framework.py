# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table "Frameworks" of docs/torch.md: what check_frameworks.py runs with the packages of a Python, whatever versions it has.

    python3 tests/torch/which_framework.py ~/torch-2.15/bin/python3"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOES_ON = "resume with the bits of the straight run, and on 3 ranks; forgotten residuals"
# Title, package, example, the tests, what was run, and what it cannot do and why.
ROWS = [
    ("Lightning", "lightning", "lightning_trainer.py", "lightning",
     f"automatic, manual, accumulation, bf16-mixed, two optimizers, `LearningRateFinder`; Fabric; {GOES_ON}",
     "strategies other than DDP, which have no buckets; `gradient_clip_val`: `clip_norm`"),
    ("Accelerate", "accelerate", "accelerate_loop.py", "accelerate", f"accumulation; {GOES_ON}",
     "`register_for_checkpointing(state)`, which keeps one rank's: `gathered(state)`; one process, where it makes no DDP"),
    ("Transformers", "transformers", "transformers_trainer.py", "transformers", f"SGD, AdamW, accumulation, `torch_compile`, training again; {GOES_ON}",
     "DeepSpeed and FSDP, which have no buckets; `max_grad_norm`: `clip_norm`"),
    ("torchrun, torch's distributed checkpoint", "torch", "torchrun.py", "torchrun", GOES_ON, ""),
    ("torch.compile", "torch", "torchrun.py --compile", "compiled", "`aot_eager`: losses as without",
     "`optimize_ddp=\"python_reducer\"`, which gives no buckets: an `Error`"),
    ("mpirun", "torch", "mpirun.py", "mpirun", "Open MPI, MPICH: losses as with torchrun; [MPIs of PyPI](backends.md#mpis-of-pypi)", ""),
    ("Ray Train", "ray", "ray_train.py", "ray", GOES_ON.partition(",")[0], ""),
    ("FSDP2", "torch", "fsdp2.py", "fsdp2", "between replicas, `attach(..., replicas=)`; " + GOES_ON.partition(";")[0],
     "native HSDP, which sums before it calls the hook: an `Error`; `set_requires_all_reduce`, which does not reach a hook; a forgotten state is not noticed"),
    ("torchft", "torchft-nightly", "torchft_replicas.py", "torchft",
     "2 to 4 replicas: killed between and within calls, stopped, new; steps that are not committed; healing beside the others; spares",
     "torchft's own DDP, which averages first"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="with torch, pytest and the packages")
    given = parser.parse_args()
    failed = False
    print("| framework | version | example | run on 2 ranks | what it cannot do |\n|---|---|---|---|---|", flush=True)
    for title, package, example, tests, what, cannot in ROWS:
        says = f"import importlib.metadata as m; print(m.version('{package}').partition('+')[0])"
        version = subprocess.run([given.python, "-c", says], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        ended = subprocess.run([given.python, "-m", "pytest", "-c", HERE.parent / "pytest.ini", "-k", tests, HERE / "check_frameworks.py"],
                               env={**os.environ, "OKTOPK_TEST_TORCH": given.python}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, check=False)
        counts = ", ".join(re.findall(r"\d+ (?:passed|failed|skipped|error)", ended.stdout.splitlines()[-1] if ended.stdout else ""))
        if ended.returncode or "passed" not in counts:
            failed, what = True, f"**{counts or 'not run'}**"
            print(ended.stdout, file=sys.stderr)
        name, *option = example.split()
        example = " ".join([f"[{name}](../examples/torch/{name})", *option])
        print(" | ".join([f"| {title}", version or "none", example, what, f"{cannot} |"]).replace("  |", " |"), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
