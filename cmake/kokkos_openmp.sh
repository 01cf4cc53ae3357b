# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# Sourced after setup.sh by tests/run.sh, in the root of the project. POSIX sh. Debian and Ubuntu package Kokkos for
# Serial alone; this fetches the source package that they make it of, and builds the same release with OpenMP.

# source_entries PACKAGE FOLDER: writes to FOLDER the entries of apt's configuration that PACKAGE comes from, as ones of
# source packages, with all else they say (keys, components). Nothing is written to the configuration itself.
source_entries() {
  address=$(apt-cache policy "$1" | sed -n 's/^ *[0-9]* \([a-z+]*:[^ ]*\) .* Packages$/\1/p' | head -n 1)
  [ -n "$address" ] || fail "apt knows no address that $1 comes from; is its list of packages up to date?"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    ! grep -qs "$address" "$file" ||
      sed -n "\|$address|s/^ *deb /deb-src /p" "$file" >"$2/$(basename "$file" .list).list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    ! grep -qs "$address" "$file" || sed 's/^Types:.*/Types: deb-src/' "$file" >"$2/$(basename "$file")"
  done
}

# kokkos_source FOLDER: unpacks the distribution's own source of Kokkos to FOLDER/kokkos.
kokkos_source() {
  [ ! -e "$1/kokkos/CMakeLists.txt" ] || return 0
  command -v apt-get >/dev/null 2>&1 || fail "this needs apt-get; install a Kokkos for that backend and name it with --kokkos"
  say "Fetching the source of the packaged Kokkos (the package trilinos, 166 MB)"
  rm -rf "$1/apt" "$1/kokkos"
  mkdir -p "$1/apt/entries" "$1/apt/lists/partial"
  source_entries libtrilinos-kokkos-dev "$1/apt/entries"
  here=$(cd "$1" && pwd)
  apt_options="-q -o Acquire::Retries=3 -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$here/apt/entries"
  apt_options="$apt_options -o Dir::State::lists=$here/apt/lists -o APT::Sandbox::User=$(id -un)"
  # shellcheck disable=SC2086
  (cd "$1" && apt-get $apt_options update && apt-get $apt_options source --download-only trilinos) \
    >"$1/apt/log" 2>&1 || {
    tail -n 20 "$1/apt/log" >&2
    fail "apt-get could not fetch the source package trilinos (all it said is in $1/apt/log)"
  }
  mkdir -p "$1/unpacked"
  tar -xf "$1"/trilinos_*.orig.tar.* -C "$1/unpacked" --strip-components=2 --wildcards '*/packages/kokkos/*'
  mv "$1/unpacked/kokkos" "$1/kokkos"
  rm -rf "$1"/trilinos_* "$1/unpacked"
}

# kokkos_openmp FOLDER SOURCES: Kokkos for OpenMP and Serial, installed in FOLDER/installed; at once where it is there
# already. SOURCES is where kokkos_source() unpacks it.
kokkos_openmp() {
  [ ! -e "$1/installed/lib/cmake/Kokkos/KokkosConfig.cmake" ] || return 0
  mkdir -p "$1"
  kokkos_source "$2"
  say "Building Kokkos for OpenMP and Serial"
  {
    cmake -S "$2/kokkos" -B "$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 \
      -DCMAKE_CXX_EXTENSIONS=OFF -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON -DCMAKE_INSTALL_LIBDIR=lib \
      -DCMAKE_INSTALL_PREFIX="$(cd "$1" && pwd)/installed" &&
      cmake --build "$1/build" --parallel "$(nproc)" --target install
  } >"$1/log" 2>&1 || {
    tail -n 20 "$1/log" >&2
    fail "Kokkos could not be built (all it said is in $1/log)"
  }
}
