# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# Shared by the commands under benchmarks/, which source it. POSIX sh; what sources it has a function `fail TEXT...`.

# value NAME VALUE...: the value that must follow an option.
value() {
  [ $# -ge 2 ] || fail "$1 needs a value"
  printf '%s\n' "$2"
}

# whole NAME VALUE: VALUE must be a whole number of at least 1.
whole() {
  case $2 in
    '' | *[!0-9]* | 0*) fail "$1 must be a whole number of at least 1, not \"$2\"" ;;
  esac
}

# writable FILE: FILE can be written. Told at once, not after minutes of measuring.
writable() {
  { [ -d "$(dirname "$1")" ] && [ -w "$(dirname "$1")" ] && [ ! -d "$1" ]; } || fail "cannot write a file \"$1\""
}

# rate NAME VALUE: VALUE must be the rate of a link as in 100mbit or 2.5gbit.
rate() {
  number=${2%[kmg]bit}
  case $number in
    "$2" | '' | *[!0-9.]* | *.*.* | . | 0) fail "$1 must be a rate such as 100mbit, 1gbit or 10gbit, not \"$2\"" ;;
  esac
}

# paths NAME VALUE...: the value that must follow an option, as paths seen from here. They are separated by commas, and
# relative to the folder of the caller, $caller. "none" stays what it is.
paths() {
  value "$@" >/dev/null
  # shellcheck disable=SC2154
  printf '%s\n' "$2" | awk -v RS='[,\n]' -v caller="$caller" '
    $0 != "" { printf "%s%s", (NR > 1 ? "," : ""), ($0 ~ /^\// || $0 == "none" ? $0 : caller "/" $0) }'
}

# outputs FOLDER NAME: the files $csv and $plot can be written; where the caller did not name them they are
# FOLDER/NAME.csv and .png.
outputs() {
  if [ -z "$csv" ] || [ -z "$plot" ]; then
    mkdir -p "$1"
  fi
  csv=${csv:-$1/$2.csv}
  plot=${plot:-$1/$2.png}
  writable "$csv"
  [ "$plot" = none ] || writable "$plot"
}

# make_scratch: a folder $scratch, which goes whatever ends the command.
make_scratch() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# need_matplotlib PICTURE: for `packages`, unless PICTURE is "none".
need_matplotlib() {
  if [ "$1" != none ] && [ -z "$(python_with_matplotlib)" ]; then
    need python3-matplotlib '/usr/lib/python3/dist-packages/matplotlib/__init__.py'
  fi
}

# python_with_matplotlib: its name, or nothing. The python that comes first may be another than the one that packages
# are installed for.
python_with_matplotlib() {
  for each in python3 /usr/bin/python3; do
    if "$each" -c 'import matplotlib' 2>/dev/null; then
      printf '%s\n' "$each"
      return 0
    fi
  done
}

# without LIST NAME...: LIST, whose parts are separated by commas, without these.
without() {
  printf '%s\n' "$1" | tr , '\n' | awk -v all="$*" '
    BEGIN { for (i = split(all, name, " "); i > 1; i--) drop[name[i]] }
    $0 != "" && !($0 in drop) { printf "%s%s", (n++ ? "," : ""), $0 }'
}

# schemes_of BENCH: all that the program knows, which it names when it is asked for what it does not know.
schemes_of() {
  "$1" --in-process 1 --algorithm '?' --length 1 --k 1 2>&1 | sed -n 's/.*it knows //p' | tr -d ' '
}
