#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_licence.sh ROOT: every file names the licence on top, but the licence itself and what has no comments: JSON,
# tables and pictures.
set -eu
export LC_ALL=C
cd "$1"
if [ -e .git ] && command -v git >/dev/null; then
  git -c safe.directory='*' ls-files --cached --others --exclude-standard
else
  find . -path ./build -prune -o -type f -print
fi | grep -vE '(LICENSE|\.json|\.csv|\.png)$' | sed 's,^,./,' | tr '\n' '\0' | xargs -0 awk '
  FNR <= 4 && /SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception/ { named[FILENAME] }
  END {
    for (i = 1; i < ARGC; i++) if (!(ARGV[i] in named)) { print "no SPDX lines: " ARGV[i]; bare = 1 }
    exit bare
  }'
