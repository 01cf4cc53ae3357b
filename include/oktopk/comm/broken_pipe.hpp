// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <signal.h> // POSIX: what <csignal> has cannot ask

namespace oktopk::detail {

/// Ignores SIGPIPE in this process, unless the program has set another action for it.
///
/// Gloo writes to its connections without MSG_NOSIGNAL (gloo/transport/tcp/pair.cc), from the caller's thread and from
/// its own. Where the peer has left, the signal would end the program; ignored, it is an error of the call. Python
/// ignores it too. A signal mask would not help: Gloo's thread keeps the mask that it began with.
inline void ignore_broken_pipe() {
#ifdef SIGPIPE // not on Windows
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
#endif
}

} // namespace oktopk::detail
