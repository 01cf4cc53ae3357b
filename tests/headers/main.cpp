// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The test is that every header has been compiled alone and twice over, and that all of them link together.
int main() {
  return 0;
}
