// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

/// Sockets of POSIX: owned ones, the addresses of this machine, and connections between them.
namespace oktopk::detail {

inline std::string system_text(int number) {
  return std::generic_category().message(number);
}

/// A file of the system, closed in the end. Its calls do not block, and programs that this one starts do not have it.
class owned_file {
public:
  owned_file() = default;
  explicit owned_file(int file) : file_(file) {
    if (file_ >= 0) {
      fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) | O_NONBLOCK);
      fcntl(file_, F_SETFD, FD_CLOEXEC);
    }
  }
  owned_file(owned_file&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  owned_file& operator=(owned_file&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~owned_file() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }

  int get() const { return file_; }

private:
  int file_ = -1;
};

/// An address of the internet, of either family, with its port.
class socket_address {
public:
  socket_address(sockaddr const* from, socklen_t length) : length_(length) { std::memcpy(&bytes_, from, length); }

  sockaddr const* get() const { return reinterpret_cast<sockaddr const*>(&bytes_); }
  socklen_t length() const { return length_; }
  int family() const { return bytes_.ss_family; }

  /// The same with any port.
  socket_address without_port() const {
    socket_address copy = *this;
    if (family() == AF_INET) {
      reinterpret_cast<sockaddr_in&>(copy.bytes_).sin_port = 0;
    } else {
      reinterpret_cast<sockaddr_in6&>(copy.bytes_).sin6_port = 0;
    }
    return copy;
  }

  /// "192.168.1.2 40123"
  std::string text() const {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    getnameinfo(get(), length_, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
    return std::string(host.data()) + " " + port.data();
  }

private:
  sockaddr_storage bytes_{};
  socklen_t length_;
};

/// The addresses of a host, or of numbers as `socket_address::text` has them; none if there is no such host.
inline std::vector<socket_address> addresses_of_host(std::string const& host, std::string const& port = {},
                                                     int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  std::vector<socket_address> all;
  if (getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &found) == 0) {
    for (addrinfo const* each = found; each != nullptr; each = each->ai_next) {
      if (each->ai_family == AF_INET || each->ai_family == AF_INET6) {
        all.emplace_back(each->ai_addr, each->ai_addrlen);
      }
    }
    freeaddrinfo(found);
  }
  return all;
}

/// The addresses of a network interface of this machine, those of IPv4 first; none if there is no such interface.
inline std::vector<socket_address> addresses_of_interface(std::string const& name) {
  ifaddrs* found = nullptr;
  std::vector<socket_address> all;
  if (getifaddrs(&found) == 0) {
    for (ifaddrs const* each = found; each != nullptr; each = each->ifa_next) {
      int const family = each->ifa_addr == nullptr ? AF_UNSPEC : each->ifa_addr->sa_family;
      if (name == each->ifa_name && (family == AF_INET || family == AF_INET6)) {
        all.emplace_back(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      }
    }
    freeifaddrs(found);
  }
  std::stable_partition(all.begin(), all.end(), [](auto const& each) { return each.family() == AF_INET; });
  return all;
}

/// A socket that other ranks can connect to.
struct listener {
  owned_file file;
  socket_address address;
};

/// At a network interface by its name, or at an address or host name of this machine, and any port. An `error`
/// (communication) that names it where there is none.
inline listener listen_at(std::string const& link) {
  auto addresses = addresses_of_interface(link);
  if (addresses.empty()) {
    addresses = addresses_of_host(link);
  }
  if (addresses.empty()) {
    throw error(fault::communication, "'" + link + "' is neither a network interface nor the name of a host");
  }
  int why = 0;
  for (auto const& each : addresses) {
    owned_file file(::socket(each.family(), SOCK_STREAM, 0));
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    auto* const at = reinterpret_cast<sockaddr*>(&bound);
    auto const any_port = each.without_port();
    if (file.get() >= 0 && ::bind(file.get(), any_port.get(), any_port.length()) == 0 &&
        ::listen(file.get(), SOMAXCONN) == 0 && ::getsockname(file.get(), at, &length) == 0) {
      return {std::move(file), socket_address(at, length)};
    }
    why = errno;
  }
  throw error(fault::communication, "cannot use '" + link + "': " + system_text(why));
}

/// Names between commas, as GLOO_SOCKET_IFNAME has them.
inline std::vector<std::string> links_of(std::string const& listed) {
  std::vector<std::string> links;
  std::istringstream names(listed);
  for (std::string name; std::getline(names, name, ',');) {
    links.push_back(name);
  }
  return links;
}

/// One for each link; without any as torch chooses.
inline std::vector<listener> listen_at_all(std::vector<std::string> links) {
  char const* const listed = std::getenv("GLOO_SOCKET_IFNAME");
  if (links.empty() && listed != nullptr) {
    links = links_of(listed);
  }
  std::vector<listener> made;
  if (links.empty()) {
    std::array<char, 256> host{};
    try {
      gethostname(host.data(), host.size() - 1);
      made.push_back(listen_at(host.data()));
    } catch (error const&) {
      made.push_back(listen_at("127.0.0.1"));
    }
  }
  std::transform(links.begin(), links.end(), std::back_inserter(made), listen_at);
  return made;
}

/// The time until which something may last; none has no end.
class deadline {
public:
  using clock = std::chrono::steady_clock;

  /// Zero stands for no limit.
  explicit deadline(std::chrono::nanoseconds limit) {
    if (limit > std::chrono::nanoseconds(0)) {
      end_ = clock::now() + limit;
    }
  }

  bool is_over() const { return end_ && clock::now() > *end_; }

  /// For `poll`: milliseconds, rounded up, -1 without an end.
  int milliseconds_left() const {
    if (!end_) {
      return -1;
    }
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
  }

private:
  std::optional<clock::time_point> end_;
};

/// Waits until the file is ready for one of the `events` of `poll`, or in error; false where the time is over.
inline bool wait_for_events(owned_file const& file, short events, deadline const& end) {
  while (true) {
    pollfd one{file.get(), events, 0};
    if (::poll(&one, 1, end.milliseconds_left()) > 0) {
      return true;
    }
    if (end.is_over()) {
      return false;
    }
  }
}

/// Small messages are sent at once.
inline void send_at_once(owned_file const& file) {
  int const yes = 1;
  ::setsockopt(file.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/// A connection from an address of this machine to a listener. Throws a text in a `std::system_error`.
inline owned_file connect_to(socket_address const& there, socket_address const& here, deadline const& end) {
  owned_file file(::socket(there.family(), SOCK_STREAM, 0));
  auto const any_port = here.without_port();
  int why = 0;
  if (file.get() < 0 || ::bind(file.get(), any_port.get(), any_port.length()) != 0) {
    why = errno;
  } else if (::connect(file.get(), there.get(), there.length()) != 0) {
    why = errno;
    if (why == EINPROGRESS || why == EINTR) {
      socklen_t length = sizeof(why);
      why = ETIMEDOUT;
      if (wait_for_events(file, POLLOUT, end)) {
        ::getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &why, &length);
      }
    }
  }
  if (why != 0) {
    throw std::system_error(why, std::generic_category(), there.text());
  }
  send_at_once(file);
  return file;
}

} // namespace oktopk::detail
