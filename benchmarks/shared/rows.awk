# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the tables make of the rows of oktopk_bench's --csv; for awk -f rows.awk -f table.awk. After the heading
# column["name"] is the number of a column; of algorithm names[1 .. algorithms] there are rows[name] rows.

BEGIN { FS = "," }

FNR == 1 {
  for (i = 1; i <= NF; i++) column[$i] = i
  next
}

{
  name = $column["algorithm"]
  if (!(name in rows)) names[++algorithms] = name
  row = ++rows[name]
  seconds[name, row] = $column["seconds"]
  selection[name, row] = $column["select_seconds"]
  keep_largest(sent, name, $column["words_sent_max"])
  keep_largest(received, name, $column["words_received_max"])
  keep_largest(messages, name, $column["messages_sent_max"])
}

function keep_largest(of, name, value) {
  if (!(name in of) || value + 0 > of[name] + 0) of[name] = value
}

# The median of values[name, 1 .. rows[name]].
function median(values, name,   sorted, count, i, j, x) {
  count = rows[name]
  for (i = 1; i <= count; i++) {
    x = values[name, i] + 0
    for (j = i - 1; j >= 1 && sorted[j] > x; j--) sorted[j + 1] = sorted[j]
    sorted[j + 1] = x
  }
  return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
}

# The most words through the link of any rank in any step, whichever way.
function through(name) {
  return sent[name] + 0 > received[name] + 0 ? sent[name] + 0 : received[name] + 0
}

# RATE as in 100mbit, in bits per second.
function bits_per_second(rate) {
  return (rate + 0) * (rate ~ /k/ ? 1e3 : rate ~ /m/ ? 1e6 : 1e9)
}
