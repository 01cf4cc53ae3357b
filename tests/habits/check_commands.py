# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Habits of users that are commands: each row of a table here is run in a scratch folder, and what it says is compared.

    check_commands.py list                        the rows, each with its tier and the programs of ours that it runs
    check_commands.py run NAME [VARIABLE=VALUE]...  runs a row; status 77 where something that it needs is missing

A row of commands.toml, [[row]]:
    name           of the test, habits.<name>
    source         who met it, public
    tier           "quick" (below a second) or "full"
    needs          programs in PATH, optional
    program        text of app.cpp, optional; files: a table of other files and their texts
    run            lines of sh, which stop at the first that fails, in the scratch folder
    status         of the last command: 0 unless given, or "not 0"
    says, does_not_say   texts in what the row prints; one with status "not 0" has `says`, or a misspelt command would do
A row that ends with 77 has found something missing itself.
A line of `run` knows the variables that CMakeLists.txt gives: OKTOPK (the sources), BUILD, CXX, FLAGS and LIBS (of a program
with the headers in OKTOPK), MPICXX, MPIRUN, BENCH, ADVISE, CATALOGUE. A row that has one that is not given does not run.
`install [OPTION...]` configures oktopk and installs it in the folder prefix: PC names its oktopk.pc then.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib

TABLE = pathlib.Path(__file__).with_name("commands.toml")
SECONDS = 2 * int(os.environ.get("OKTOPK_TEST_SECONDS", "120"))  # of a row
# CMake's own choice is make, which a machine that has what README names need not have.
GENERATOR = {"CMAKE_GENERATOR": "Ninja"} if shutil.which("ninja") else {}
MISSING = 77
KEYS = {"name": str, "source": str, "tier": str, "needs": list, "program": str, "files": dict, "run": str,
        "status": (int, str), "says": list, "does_not_say": list}
GIVEN = ("OKTOPK", "BUILD", "CXX", "FLAGS", "LIBS", "MPICXX", "MPIRUN", "BENCH", "ADVISE", "CATALOGUE")
PRELUDE = """
install() {
  cmake -S "$OKTOPK" -B built -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_INSTALL_PREFIX="$PWD/prefix" "$@" >install.log 2>&1 &&
    cmake --install built >>install.log 2>&1 || { cat install.log; exit 1; }
  PC=$(find "$PWD/prefix" -name oktopk.pc)
}
"""


def fault_of(row):
    """What is wrong with a row itself, or nothing."""
    unknown = [key for key in row if key not in KEYS or not isinstance(row[key], KEYS[key])]
    if unknown:
        return f"has no key {', '.join(unknown)} of that type"
    missing = [key for key in ("name", "source", "tier", "run") if not row.get(key)]
    if missing:
        return f"lacks {', '.join(missing)}"
    if not re.fullmatch("[a-z0-9_]+", row["name"]):
        return "has a name that is not of small letters, digits and underscores"
    if row["tier"] not in ("quick", "full"):
        return 'has a tier that is neither "quick" nor "full"'
    if not (isinstance(row.get("status", 0), int) or row["status"] == "not 0"):
        return 'has a status that is neither a number nor "not 0"'
    if row.get("status") == "not 0" and not row.get("says"):
        return 'fails, and does not say how: status "not 0" wants `says`'
    return ""


def rows():
    """All rows by name; ends the program where one is at fault."""
    found = {}
    for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]:
        fault = fault_of(row) or ("is there twice" if row["name"] in found else "")
        if fault:
            sys.exit(f"{TABLE.name}: {row.get('name', row)}: {fault}")
        found[row["name"]] = row
    return found


def variables_of(row):
    """The variables that a row wants to be given."""
    text = row["run"] + (PRELUDE if re.search(r"^\s*install\b", row["run"], re.M) else "")
    return [name for name in GIVEN if re.search(rf"\$\{{?{name}\b", text)]


def run(row, given):
    """Runs a row; gives its faults and what it printed."""
    with tempfile.TemporaryDirectory(prefix="oktopk_habit.") as folder:
        files = {**row.get("files", {}), **({"app.cpp": row["program"]} if "program" in row else {})}
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        with subprocess.Popen(["sh", "-ec", PRELUDE + row["run"]], cwd=folder,
                              env={**GENERATOR, **os.environ, "LC_ALL": "C", **given}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as shell:
            try:
                printed, late = shell.communicate(timeout=SECONDS)[0], ""
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                printed, late = shell.communicate()[0], f"took more than {SECONDS} s"
    if shell.returncode == MISSING:
        print(f"{printed}not run")
        sys.exit(MISSING)
    wanted = row.get("status", 0)
    right = shell.returncode != 0 if wanted == "not 0" else shell.returncode == wanted
    faults = [late] if late else [] if right else [f"status {shell.returncode}, and {wanted} is right"]
    faults += [f"does not say: {text}" for text in row.get("says", []) if text not in printed]
    faults += [f"says: {text}" for text in row.get("does_not_say", []) if text in printed]
    return faults, printed


def main():
    what, *rest = sys.argv[1:]
    known = rows()
    if what == "list":
        for row in known.values():
            print(row["name"], row["tier"], *variables_of(row))
        return
    row = known[rest[0]]
    given = {name: value for name, _, value in (text.partition("=") for text in rest[1:]) if value}
    missing = [name for name in variables_of(row) if name not in given]
    missing += [need for need in row.get("needs", []) if shutil.which(need) is None]
    if missing:
        print(f"not run for want of {', '.join(missing)}")
        sys.exit(MISSING)
    faults, printed = run(row, given)
    if faults:
        sys.exit(f"{printed}\n{row['name']} ({row['source']}):\n" + "\n".join(faults))


main()
