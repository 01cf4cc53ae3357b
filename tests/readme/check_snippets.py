# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every snippet and every command of the documentation works as it stands there.

    check_snippets.py cpp SOURCE COMPILER [FLAG...]  compiles every piece of C++
    check_snippets.py commands SOURCE BUILD      runs every command line, as commands.toml says
    check_snippets.py install SOURCE COMPILER    follows README.md to a program that runs, and docs/install.md from the clone
    check_snippets.py pages SOURCE               follows all links, and compares what pages and packages say of ok_topk

A piece of C++ passes if a source file of ours has it word for word, or if it compiles: a program with `main` by itself,
any other inside prelude.hpp. A command line that commands.toml does not know is a fault.
"""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).parent
SECONDS = 2 * int(os.environ.get("OKTOPK_TEST_SECONDS", "120"))  # of a command


class Block:
    """A piece of code between fences."""

    def __init__(self, page, line, language, text):
        self.page, self.line, self.language, self.text = page, line, language, text

    def __str__(self):
        return f"{self.page}:{self.line}"


def pages(source):
    """The documentation, without what was built."""
    found = [*source.glob("*.md")]
    for folder in ("docs", "examples", "benchmarks", "findings", "packaging"):
        found += (source / folder).rglob("*.md")
    return sorted(path.relative_to(source) for path in found)


def blocks_of(source, page):
    """The pieces of code of a page."""
    found, opened = [], None
    for number, line in enumerate((source / page).read_text().splitlines(), 1):
        fence = re.match(r"\s*```(\w*)\s*$", line)
        if fence and opened is None:
            opened = Block(page, number + 1, fence.group(1), "")
        elif fence:
            found.append(opened)
            opened = None
        elif opened is not None:
            opened.text += line + "\n"
    if opened is not None:
        sys.exit(f"{opened}: the piece of code has no end")
    return found


def all_blocks(source, *languages):
    """The pieces of all pages in these languages."""
    return [block for page in pages(source) for block in blocks_of(source, page) if block.language in languages]


# C++


def squeezed(text):
    """Code without the differences that a page may have: indentation and empty lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def our_sources(source):
    """All sources that are compiled elsewhere, squeezed."""
    found = []
    for folder in ("include", "examples", "tests"):
        for path in (source / folder).rglob("*.[ch]pp"):
            found.append(squeezed(path.read_text()))
    return found


def wrapped(block, number):
    """A piece as a part of a file: inside a function, unless it defines things itself."""
    includes = "".join(line + "\n" for line in block.text.splitlines() if line.startswith("#include"))
    body = "".join("\n" if line.startswith("#include") else line + "\n" for line in block.text.splitlines())
    place = f'#line {block.line} "{block.page}"\n'
    defines = re.search(r"^(?:(?:class|struct|template|namespace|TEST_CASE)\b|[\w:]+ \w+\(.*\) \{$)", body, re.M)
    if defines:
        return includes, f"namespace piece_{number} {{\n{place}{body}}}\n"
    return includes, f"inline void piece_{number}() {{\n{place}{body}}}\n"


def compile_pieces(source, compiler):
    """Compiles all pieces of C++ that no source of ours has."""
    ours = our_sources(source)
    blocks = [block for block in all_blocks(source, "cpp") if not any(squeezed(block.text) in text for text in ours)]
    with tempfile.TemporaryDirectory() as scratch:
        programs = [block for block in blocks if "int main(" in block.text]
        pieces = [wrapped(block, number) for number, block in enumerate(blocks) if block not in programs]
        files = [f'#line {block.line} "{block.page}"\n{block.text}' for block in programs]
        files.append('#include "prelude.hpp"\n' + "".join(sorted({head for head, _ in pieces})) +
                     "#include \"context.hpp\"\n" + "".join(body for _, body in pieces))
        for name in re.findall(r"#include <(oktopk/.*)>", "".join(block.text for block in blocks)):
            if not (source / "include" / name).exists():  # a page adds it to the library
                (pathlib.Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
                defines = re.compile(rf"^(struct|class) {pathlib.Path(name).stem}\b", re.M)
                (pathlib.Path(scratch) / name).write_text(next(each.text for each in blocks if defines.search(each.text)))
        for number, text in enumerate(files):
            path = pathlib.Path(scratch) / f"piece_{number}.cpp"
            path.write_text(text)
            done = subprocess.run([*compiler, "-fsyntax-only", f"-I{HERE}", f"-I{scratch}", str(path)], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                sys.exit(done.stderr)
    print(f"{len(all_blocks(source, 'cpp'))} pieces of C++: {len(blocks)} compiled here, the others are parts of our sources")


# Commands


def command_lines(block):
    """The commands of a piece of shell, without comments and with single blanks; a backslash joins lines."""
    for line in block.text.replace("\\\n", " ").splitlines():
        command = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
        if command:
            yield command


def impossible(source, command):
    """What a command names that is not there; for those that are not run."""
    options = " ".join(path.read_text() for path in [source / "CMakeLists.txt", *(source / "cmake").glob("*.cmake")])
    faults = [f"there is no option {name}" for name in re.findall(r"-D(OKTOPK_\w+)", command)
              if not re.search(rf"\b{name}\b", options)]
    for path in re.findall(r"(?<![\w/])(?:benchmarks|cmake|docs|examples|packaging|tests)/[\w./-]+", command):
        if not (source / path).exists():
            faults.append(f"there is no {path}")
    return faults


def write(path, text):
    """A program of the scratch folder."""
    path.write_text(text)
    path.chmod(0o755)


def npy_of(values):
    """A file of NumPy with a vector of float32."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values) // 4},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values


def stage(scratch, source, build):
    """A folder in which commands find what they name: the sources, a build folder, gradients, stand-ins for sudo and srun."""
    for entry in source.iterdir():
        if entry.name not in ("build", ".git"):
            (scratch / entry.name).symlink_to(entry)
    (scratch / "build").mkdir()
    for entry in build.iterdir():
        (scratch / "build" / entry.name).symlink_to(entry)
    tools = scratch / "tools"
    tools.mkdir()
    write(tools / "sudo", '#!/bin/sh\nexec "$@"\n')
    write(tools / "srun", '#!/bin/sh\nexec mpirun "$@"\n')
    (scratch / "grads").mkdir()
    for rank in range(8):
        draw = random.Random(rank)
        for name in (f"gradient.{rank}", f"grads/step0.{rank}", f"grads/step1.{rank}", "gradient"):
            values = struct.pack("<3000f", *(draw.gauss(0, 1) for _ in range(3000)))
            (scratch / f"{name}.f32").write_bytes(values)
            (scratch / f"{name}.npy").write_bytes(npy_of(values))
    return tools


def has(need):
    """Whether this machine has what a command needs."""
    if need == "root":
        return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"],
                                                    capture_output=True, check=False).returncode == 0
    if need.startswith("build/"):
        return pathlib.Path(need).exists()
    return shutil.which(need) is not None


def run_commands(source, build):
    """Runs every command of the documentation, as commands.toml says."""
    known = tomllib.loads((HERE / "commands.toml").read_text())
    unused = set(known["run"]) | set(known["instead"])
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        environment = {**os.environ, "PATH": f"{stage(scratch, source, build)}:{build}/benchmarks:{os.environ['PATH']}"}
        os.chdir(scratch)
        done = set()
        for block in all_blocks(source, "sh"):
            for command in command_lines(block):
                unused -= {command, str(block.page)}
                how = known["run"].get(command)
                if how is None:
                    if command not in known["instead"] and str(block.page) not in known["instead"]:
                        faults.append(f"{block}: commands.toml does not know: {command}")
                    faults += [f"{block}: {fault}: {command}" for fault in impossible(source, command)]
                elif command not in done:
                    done.add(command)
                    faults += run_command(block, command, how, environment)
    faults += [f"commands.toml has what no page has: {text}" for text in sorted(unused)]
    if faults:
        sys.exit("\n".join(faults))


def run_command(block, command, how, environment):
    """Runs a command, shortened as commands.toml says; gives its faults."""
    missing = [need for need in how.get("needs", []) if not has(need)]
    if missing:
        print(f"{block}: not run for want of {', '.join(missing)}: {command}", flush=True)
        return []
    for old, new in how.get("replace", {}).items():
        if old not in command:
            return [f"{block}: has no {old}: {command}"]
        command = command.replace(old, new)
    command += " " + how.get("add", "")
    print(f"{block}: {command}", flush=True)
    done = subprocess.run(["sh", "-ec", command], env=environment, capture_output=True, text=True, check=False,
                          timeout=SECONDS)
    return [] if done.returncode == 0 else [f"{block}: {command}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"]


# Install


def copy_sources(source, target):
    """What a clone holds."""
    shutil.copytree(source, target, symlinks=True,
                    ignore=lambda folder, names: [name for name in names if name in ("build", ".git", "__pycache__")])


def follow_install(source, compiler):
    """The commands of README.md and docs/install.md up to a program that runs, and their ways to name the library."""
    blocks = blocks_of(source, pathlib.Path("README.md"))
    guide = blocks_of(source, pathlib.Path("docs/install.md"))
    first = next(block for block in blocks if block.language == "sh" and "./first" in block.text)
    start = next(block for block in blocks if block.language == "sh" and "./app" in block.text)
    program = next(block for block in blocks if "int main(" in block.text)
    output = next(block for block in blocks if block.language == "text")
    install = next(block for block in guide if block.language == "sh" and "git clone" in block.text)
    known = [*command_lines(install), *command_lines(start)]
    for block in (block for block in guide if block.language == "sh"):
        for command in command_lines(block):
            if command not in known:
                sys.exit(f"{block}: README.md has another command: {command}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        tools = scratch / "tools"
        tools.mkdir()
        write(tools / "git", f'#!/bin/sh\n[ "$1" = clone ] && cp -r "{scratch}/published" "$3"\n')
        write(tools / "sudo", '#!/bin/sh\nexec "$@"\n')
        write(tools / "apt-get", '#!/bin/sh\n[ "$1" = install ]\n')
        for name in ("mpicxx", "mpirun"):  # the page installs Open MPI; here may be others, too
            if shutil.which(f"{name}.openmpi"):
                (tools / name).symlink_to(shutil.which(f"{name}.openmpi"))
        copy_sources(source, scratch / "published")
        environment = {**os.environ, "HOME": str(scratch / "home"), "CXX": compiler,
                       "PATH": f"{tools}:{os.environ['PATH']}"}

        if shutil.which("make") is None:
            environment["CMAKE_GENERATOR"] = "Ninja"  # the page takes the default of CMake

        def run(line, where):
            print(f"+ {line}", flush=True)
            done = subprocess.run(["sh", "-ec", line], cwd=where, env=environment, capture_output=True, text=True,
                                  check=False, timeout=SECONDS)
            if done.returncode != 0:
                sys.exit(f"{line}\n{done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        def expect_output(printed, block):
            if output.text not in printed:
                sys.exit(f"{block}: the program printed {printed}, not {output.text}")

        copy_sources(source, scratch / "clone")
        said = re.search(r"^\./first # (.*)$", first.text, re.M)[1]
        if said not in run(first.text, scratch / "clone"):
            sys.exit(f"{first}: the program does not print {said}")
        (scratch / "app.cpp").write_text(program.text)
        expect_output(run(start.text, scratch), start)
        shutil.rmtree(scratch / "home")
        run(install.text, scratch)
        for number, use in enumerate(block for block in blocks + guide if block.language == "cmake"):
            app = scratch / f"app_{number}"
            app.mkdir()
            (app / "oktopk").symlink_to(scratch / "published")
            (app / "app.cpp").write_text(program.text)
            (app / "CMakeLists.txt").write_text(use.text)
            configured = run('cmake -S . -B . -DCMAKE_PREFIX_PATH="$HOME/.local" -DCMAKE_BUILD_TYPE=Release', app)
            if "Warning" in configured:
                sys.exit(f"{use}: CMake warns: {configured}")
            run("cmake --build .", app)
            expect_output(run(list(command_lines(start))[-1], app), use)


# Pages

LINES = 150  # of README.md at most
CLAIM = "each rank selects its k largest gradient entries, and every rank gets the k largest sums of the selected entries"
CLAIMANTS = ("README.md", "docs/main_page.md", "docs/algorithms.md", "include/oktopk/algorithm/ok_topk.hpp", "CMakeLists.txt",
             "CITATION.cff", "packaging/conan/conanfile.py", "packaging/vcpkg/oktopk/vcpkg.json",
             "packaging/spack/packages/oktopk/package.py")
# What ok_topk does not give: entries that no rank selects are in no sum.
WRONG_CLAIM = re.compile(r"gets? the (k largest|largest k) (entries|values) of the (sum|gradient)")


def plain(text):
    """Words alone: without marks of comments, of strings and of Markdown, in small letters."""
    return " ".join(re.sub(r'["\\*]|^\s*(///|#)', " ", text, flags=re.M).lower().split())


def anchors(path):
    """The names that a host of repositories gives to the headings of a page."""
    names = set()
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        number = 0
        while (numbered := f"{name}-{number}" if number else name) in names:
            number += 1
        names.add(numbered)
    return names


def broken_links(source, page):
    """What a page names that is not there."""
    text = re.sub(r"```.*?```", "", (source / page).read_text(), flags=re.S)
    for name in re.findall(r"\[([^\[\]]*\n[^\[\]]*)\]\([^:()\s]*\)", text):
        yield f"{page}: a link goes over two lines, and the reference would lose it: {name}"
    for target, anchor in re.findall(r"\]\(([^()\s#]*)(?:#([^()\s]*))?\)", text):
        path = ((source / page).parent / target).resolve() if target else source / page
        if re.match(r"[a-z]+:", target) or source not in path.parents:
            continue  # another site, or the host's own pages
        if not path.exists():
            yield f"{page}: there is no {target}"
        elif anchor and anchor not in anchors(path):
            yield f"{page}: {target} has no #{anchor}"


def check_pages(source):
    """All links lead somewhere, README.md is short and leads to every page, and what ok_topk gives is said alike."""
    faults = [fault for page in pages(source) for fault in broken_links(source, page)]
    readme = (source / "README.md").read_text()
    if readme.count("\n") > LINES:
        faults.append(f"README.md has {readme.count(chr(10))} lines, more than {LINES}")
    faults += [f"README.md does not lead to {page}" for page in pages(source)
               if page.parts[0] == "docs" and page.name != "main_page.md" and f"]({page}" not in readme]
    faults += [f"{name} does not say: {CLAIM}" for name in CLAIMANTS if CLAIM not in plain((source / name).read_text())]
    faults += [f"{page} says wrongly: {wrong[0]}" for page in pages(source)
               if (wrong := WRONG_CLAIM.search(plain((source / page).read_text())))]
    if faults:
        sys.exit("\n".join(faults))


def main():
    what, source, *rest = sys.argv[1:]
    source = pathlib.Path(source).resolve()
    if what == "cpp":
        compile_pieces(source, rest)
    elif what == "commands":
        run_commands(source, pathlib.Path(rest[0]).resolve())
    elif what == "pages":
        check_pages(source)
    else:
        follow_install(source, rest[0])


main()
