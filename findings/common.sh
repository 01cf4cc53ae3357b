# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# What the scripts beside it share: the version that a finding is of, a scratch folder that goes, and the verdict.
set -eu
export LC_ALL=C
scratch=$(mktemp -d /tmp/finding.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# need PACKAGE VERSION...: ends with 77 where a Debian package is not installed in this version; prints what is.
need() {
  while [ $# -gt 0 ]; do
    version=$(dpkg-query -W -f '${Version}' "$1" 2>/dev/null) || version=
    if [ "$version" != "$2" ]; then
      echo "This is about $1 $2 of Debian (apt-get install $1); here is ${version:-none}."
      exit 77
    fi
    echo "version:  $1 $version"
    shift 2
  done
}

# need_of_pypi PACKAGE==VERSION...: installs them from PyPI in $scratch/venv; ends with 77 where that fails.
need_of_pypi() {
  if ! { python3 -m venv "$scratch/venv" && "$scratch/venv/bin/pip" install --no-cache-dir "$@"; } >"$scratch/log" 2>&1; then
    echo "This is about $* of PyPI, which cannot be installed here: $(tail -n 1 "$scratch/log")"
    exit 77
  fi
  echo "version:  $*"
}

# verdict EXPECTED SEEN TEXT: exits 0 while TEXT, what the program printed, is SEEN; 1 where the behaviour has changed.
verdict() {
  echo "expected: $1"
  echo "seen:     $3"
  [ "$3" = "$2" ] || { echo "changed:  it was $2"; exit 1; }
}
