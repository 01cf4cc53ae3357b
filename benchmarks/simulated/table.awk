# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# From the CSV file of run.sh: one row per scheme, one column per number of ranks.
NR > 1 {
  if (!($1 in row)) {
    row[$1] = ++rows
    name[rows] = $1
  }
  if (!($2 in column)) {
    column[$2] = ++columns
    ranks[columns] = $2
  }
  time[$1, $2] = $6
}
END {
  printf "| %-20s |", "P"
  for (c = 1; c <= columns; c++) printf " %9d |", ranks[c]
  printf "\n| %-20s |", "---"
  for (c = 1; c <= columns; c++) printf " %9s |", "---:"
  printf "\n"
  for (r = 1; r <= rows; r++) {
    printf "| %-20s |", name[r]
    for (c = 1; c <= columns; c++) {
      value = time[name[r], ranks[c]]
      printf " %9s |", value == "" ? "" : sprintf(value < 100 ? "%.2f" : "%.0f", value)
    }
    printf "\n"
  }
}
