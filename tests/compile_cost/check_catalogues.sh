# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# check_catalogues.sh NM FOLDER MOST: fails if more than MOST object files of a build have the catalogue's algorithms compiled.
# An object has them if it defines what makes gtopk; to read the names of all others takes long.
objects=$(find "$2" -name '*.o' -exec grep -q 5gtopkI {} \; -exec sh -c '"$0" -C "$1" 2>/dev/null |
  grep -q " [TWu] .*any_allreduce<.*::holder<oktopk::gtopk<.*oktopk::gap16<.*>::call(" && echo "$1"' "$1" {} \;)
echo "$objects"
count=$(echo "$objects" | grep -c .)
[ "$count" -ge 1 ] && [ "$count" -le "$3" ]
