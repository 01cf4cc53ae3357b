# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# awk -f table.awk FILE: from the CSV file of run.sh, how far the selections of each scheme are from k.

BEGIN { FS = "," }

NR == 1 {
  for (i = 1; i <= NF; i++) column[$i] = i
  next
}

function away(count, k) {
  return count > k ? (count - k) / k : (k - count) / k
}

{
  name = $column["algorithm"]
  k = $column["k"]
  if (!(name in rows)) {
    names[++schemes] = name
    least[name] = $column["local_min"]
  }
  rows[name]++
  local[name] += away($column["local_mean"], k)
  global[name] += away($column["global"], k)
  local_sum[name] += $column["local_mean"] / k
  global_sum[name] += $column["global"] / k
  if ($column["local_min"] + 0 < least[name] + 0) least[name] = $column["local_min"]
  if ($column["local_max"] + 0 > most[name] + 0) most[name] = $column["local_max"]
}

END {
  line = "| %-14s | %10s | %12s | %15s | %15s | %11s | %13s |\n"
  printf line, "scheme", "iterations", "local/k mean", "local deviation", "local/k extreme", "result/k", "its deviation"
  printf line, "--------------", "---------:", "-----------:", "--------------:", "--------------:", "----------:", \
    "------------:"
  for (i = 1; i <= schemes; i++) {
    name = names[i]
    of = rows[name]
    printf line, name, of, sprintf("%.3f", local_sum[name] / of), sprintf("%.1f %%", 100 * local[name] / of), \
      sprintf("%.2f..%.2f", least[name] / k, most[name] / k), sprintf("%.3f", global_sum[name] / of), \
      sprintf("%.1f %%", 100 * global[name] / of)
  }
  print ""
  print "Deviation: the mean over iterations of |selected - k| / k; local: of the mean of the ranks. A scheme without a"
  print "global selection (gaussian_k) gives the union of the ranks' selections."
}
