#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/clang_concept_of_decltype.sh: whether a concept with a decltype for an argument is asked anew for each type.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need clang-22 1:22.1.8-1~deb13u5
cat >"$scratch/concept.cpp" <<'EOF'
#include <concepts>
#include <cstdio>
#include <type_traits>

template <class Transport>
concept says_by_type = std::same_as<decltype(Transport::ordered), bool const>;
template <class Transport>
concept says_by_trait = std::is_same_v<decltype(Transport::ordered), bool const>;

template <class Owner>
concept owner_by_type = says_by_type<typename Owner::transport>;
template <class Owner>
concept owner_by_trait = says_by_trait<typename Owner::transport>;

struct of_function {
  struct transport {
    bool ordered() const;
  };
};

struct of_constant {
  struct transport {
    static constexpr bool ordered = true;
  };
};

int main() {
  std::printf("%d %d, ", owner_by_type<of_function>, owner_by_trait<of_function>);
  std::printf("%d %d, ", owner_by_type<of_constant>, owner_by_trait<of_constant>);
  std::printf("%d %d", says_by_type<of_constant::transport>, says_by_trait<of_constant::transport>);
}
EOF
clang++-22 -std=c++20 "$scratch/concept.cpp" -o "$scratch/concept"
verdict "by std::same_as and by std::is_same_v: false of a function, true of a constant, through its owner and without (0 0, 1 1, 1 1)" \
  "0 0, 0 1, 1 1" "$("$scratch/concept")"
