#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_licence.sh ROOT: every file names the licence on top, but the licence itself and what has no comments: JSON,
# tables and pictures.
set -eu
cd "$1"
if [ -e .git ] && command -v git >/dev/null; then
  files=$(git -c safe.directory='*' ls-files --cached --others --exclude-standard)
else
  files=$(find . -path ./build -prune -o -type f -print)
fi
bare=0
for file in $files; do
  case $file in
    *LICENSE | *.json | *.csv | *.png) continue ;;
  esac
  if ! head -n 4 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception'; then
    echo "no SPDX lines: $file"
    bare=$((bare + 1))
  fi
done
[ "$bare" -eq 0 ]
