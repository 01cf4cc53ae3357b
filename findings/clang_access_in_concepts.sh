#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/clang_access_in_concepts.sh: whether a concept takes a private member type as the argument of another one.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need clang-23 1:23.1.4-2
cat >"$scratch/access.cpp" <<'EOF'
#include <concepts>
#include <cstdio>

struct open_policy {
  struct options {};
  open_policy() = default;
  explicit open_policy(options) {}
};

class closed_policy : public open_policy {
public:
  using open_policy::open_policy;

private:
  using options = open_policy::options;
};

template <class Policy>
concept named_as_argument = std::constructible_from<Policy, typename Policy::options const&>;

template <class Policy>
concept named_in_requirement = requires { typename Policy::options; } && named_as_argument<Policy>;

int main() {
  std::printf("%d %d, %d %d", named_as_argument<open_policy>, named_in_requirement<open_policy>,
              named_as_argument<closed_policy>, named_in_requirement<closed_policy>);
}
EOF
clang++-23 -std=c++20 "$scratch/access.cpp" -o "$scratch/access"
verdict "concepts that name a member type as an argument and in a requirement: true if it is public, false if private (1 1, 0 0)" \
  "1 1, 1 0" "$("$scratch/access")"
