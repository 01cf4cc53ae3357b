// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/sockets.hpp>
#include <oktopk/comm/time_limit.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace oktopk {

/// A place where ranks that do not know each other's addresses leave them: two callbacks over a store that all ranks
/// reach, such as one of torch, or a folder (`in_folder`).
///
/// Values are bytes, and keys are letters, digits, '.', '_' and what the program's own key has. What a callback throws is
/// an `error` of the rendezvous.
struct rendezvous_store {
  std::function<void(std::string const& key, std::string const& bytes)> set;
  std::function<std::string(std::string const& key)> get;  ///< waits until some rank has set the key
  std::function<void(std::string const& key)> forget = {}; ///< a key that nobody needs any more; may be empty

  /// A folder that exists and that all ranks see, by their own paths, over NFS too. A value is a file; when all ranks are
  /// connected, no file is left. An `error` of `set` (bad_file) if there is such a file already, of ranks that came
  /// before, and of `get` (timed_out) if none comes within the limit; zero stands for none.
  static rendezvous_store in_folder(std::filesystem::path const& folder,
                                    std::chrono::nanoseconds limit = usual_time_limit);
};

inline rendezvous_store rendezvous_store::in_folder(std::filesystem::path const& folder,
                                                    std::chrono::nanoseconds limit) {
  auto const set = [folder](std::string const& key, std::string const& bytes) {
    auto const path = folder / key;
    if (exists(path)) {
      throw error(fault::bad_file,
                  path.string() + " is there already, of ranks that came before: take another key or folder");
    }
    auto const part = folder / (key + ".part");
    std::ofstream(part, std::ios::binary) << bytes << std::flush;
    if (std::error_code none; file_size(part, none) != bytes.size()) {
      throw error(fault::bad_file, "cannot write " + part.string());
    }
    rename(part, path); // nobody reads half of it
  };
  auto const get = [folder, limit = detail::checked_time_limit(limit)](std::string const& key) {
    auto const begun = std::chrono::steady_clock::now();
    while (!exists(folder / key)) {
      if (limit.count() > 0 && std::chrono::steady_clock::now() - begun > limit) {
        throw error(fault::timed_out, (folder / key).string() + " has not come within " + detail::duration_text(limit) +
                                          ", the time limit");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::ifstream file(folder / key, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {set, get, [folder](std::string const& key) { std::filesystem::remove(folder / key); }};
}

namespace detail {

/// The connections of a rank to all others, one for each link. Collective. Throws what `tcp_communicator::rendezvous`
/// says.
class rendezvous {
public:
  /// What a rank leaves in the store, under the key with its number behind: the first line says how many ranks and links it
  /// knows, or that it has failed; then come a token and an address for each link.
  rendezvous(rendezvous_store const& store, std::string const& key, int rank, int size, std::chrono::nanoseconds limit,
             std::vector<std::string> const& links)
      : rank_(rank), size_(size), limit_(limit) {
    std::vector<listener> listeners;
    std::string const token = new_token();
    std::string mine;
    try {
      listeners = listen_at_all(links);
      mine = facts(listeners.size()) + "\n" + token + "\n";
      for (listener const& each : listeners) {
        mine += each.address.text() + "\n";
      }
    } catch (error const& caught) {
      mine = "! " + caught.sentence() + "\n";
    }
    links_ = listeners.size();
    std::vector<std::vector<std::string>> all(static_cast<std::size_t>(size_));
    all[static_cast<std::size_t>(rank_)] = lines_of(mine);
    call_store(rank_, [&] { store.set(key + std::to_string(rank_), mine); });
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        call_store(peer,
                   [&] { all[static_cast<std::size_t>(peer)] = lines_of(store.get(key + std::to_string(peer))); });
      }
    }
    for (int peer = 0; peer < size_; ++peer) { // all ranks throw the same
      if (std::string const& first = all[static_cast<std::size_t>(peer)].front(); first.starts_with("! ")) {
        throw error(fault::communication, "rank " + std::to_string(peer) + ": " + first.substr(2));
      }
    }
    for (int peer = 0; peer < size_; ++peer) {
      auto const& theirs = all[static_cast<std::size_t>(peer)];
      if (theirs.front() != facts(links_) || theirs.size() != 2 + links_) {
        throw error(fault::ranks_disagree, "the ranks disagree: rank " + std::to_string(rank_) + " has come with " +
                                               facts(links_) + ", rank " + std::to_string(peer) + " with " +
                                               theirs.front());
      }
    }
    files_.resize(static_cast<std::size_t>(size_) * links_);
    deadline const end(limit_);
    connect_to_later(all, listeners, end);
    accept_earlier(token, listeners, end);
    // Who has welcomed this rank has read its address.
    for (int peer = rank_ + 1; peer < size_; ++peer) {
      for (std::size_t link = 0; link < links_; ++link) {
        owned_file const& made = file(peer, link);
        char welcome = 0;
        if (!wait_for_events(made, POLLIN, end) || ::recv(made.get(), &welcome, 1, 0) != 1) {
          throw cannot_connect(peer, end.is_over() ? system_text(ETIMEDOUT) : "it was closed");
        }
      }
    }
    if (store.forget) {
      call_store(rank_, [&] { store.forget(key + std::to_string(rank_)); });
    }
  }

  std::size_t links() const { return links_; }

  /// A connection, which is given away.
  owned_file take(int peer, std::size_t link) { return std::move(file(peer, link)); }

private:
  /// What a rank says on a new connection. A listener knows its peers by the token, which the store has.
  struct greeting {
    std::array<char, 32> token{};
    std::int32_t rank = -1;
    std::int32_t link = -1;
  };

  owned_file& file(int peer, std::size_t link) { return files_[static_cast<std::size_t>(peer) * links_ + link]; }

  void connect_to_later(std::vector<std::vector<std::string>> const& all, std::vector<listener> const& listeners,
                        deadline const& end) {
    for (int peer = rank_ + 1; peer < size_; ++peer) {
      auto const& theirs = all[static_cast<std::size_t>(peer)];
      for (std::size_t link = 0; link < links_; ++link) {
        std::string const& address = theirs[2 + link];
        std::size_t const between = address.find(' ');
        auto const found =
            addresses_of_host(address.substr(0, between), address.substr(between + 1), AI_NUMERICHOST | AI_NUMERICSERV);
        if (found.empty()) {
          throw cannot_connect(peer, "'" + address + "' is no address");
        }
        try {
          owned_file made = connect_to(found.front(), listeners[link].address, end);
          greeting hello{.rank = rank_, .link = static_cast<std::int32_t>(link)};
          std::copy_n(theirs[1].begin(), std::min(theirs[1].size(), hello.token.size()), hello.token.begin());
          if (::send(made.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(hello))) {
            throw std::system_error(errno, std::generic_category(), address);
          }
          file(peer, link) = std::move(made);
        } catch (std::system_error const& caught) {
          throw cannot_connect(peer,
                               caught.what() + std::string("; links, or GLOO_SOCKET_IFNAME on the ranks, name the "
                                                           "network interfaces"));
        }
      }
    }
  }

  /// Whoever does not know the token is no rank, and keeps nobody waiting.
  void accept_earlier(std::string const& token, std::vector<listener> const& listeners, deadline const& end) {
    struct stranger {
      owned_file file;
      greeting said{};
      std::size_t bytes = 0;
    };
    std::vector<stranger> strangers;
    std::size_t missing = static_cast<std::size_t>(rank_) * links_;
    while (missing > 0) {
      std::vector<pollfd> polls;
      for (listener const& each : listeners) {
        polls.push_back({each.file.get(), POLLIN, 0});
      }
      for (stranger const& each : strangers) {
        polls.push_back({each.file.get(), POLLIN, 0});
      }
      ::poll(polls.data(), static_cast<nfds_t>(polls.size()), end.milliseconds_left());
      for (std::size_t i = strangers.size(); i-- > 0;) {
        stranger& each = strangers[i];
        auto const came = ::recv(each.file.get(), reinterpret_cast<char*>(&each.said) + each.bytes,
                                 sizeof(each.said) - each.bytes, 0);
        each.bytes += came > 0 ? static_cast<std::size_t>(came) : 0;
        bool const is_whole = each.bytes == sizeof(each.said);
        if (is_whole && is_expected(each.said, token)) {
          send_at_once(each.file);
          static_cast<void>(::send(each.file.get(), "", 1, MSG_NOSIGNAL));
          file(each.said.rank, static_cast<std::size_t>(each.said.link)) = std::move(each.file);
          missing -= 1;
        }
        if (is_whole || came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
          strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      for (listener const& each : listeners) {
        int made = 0;
        while ((made = ::accept(each.file.get(), nullptr, nullptr)) >= 0) {
          strangers.push_back({owned_file(made)});
        }
        if (errno == EMFILE || errno == ENFILE) {
          throw error(fault::communication,
                      "rank " + std::to_string(rank_) + " cannot take more connections: " + system_text(errno));
        }
      }
      if (missing > 0 && end.is_over()) {
        int peer = 0;
        while (std::all_of(&file(peer, 0), &file(peer, 0) + links_,
                           [](owned_file const& each) { return each.get() >= 0; })) {
          ++peer;
        }
        throw error(fault::timed_out, "rank " + std::to_string(rank_) + ", at the rendezvous with rank " +
                                          std::to_string(peer) + ": it has not connected within " +
                                          duration_text(limit_) + ", the time limit");
      }
    }
  }

  bool is_expected(greeting const& said, std::string const& token) {
    return std::equal(token.begin(), token.end(), said.token.begin(), said.token.end()) && said.rank >= 0 &&
           said.rank < rank_ && said.link >= 0 && static_cast<std::size_t>(said.link) < links_ &&
           file(said.rank, static_cast<std::size_t>(said.link)).get() < 0;
  }

  /// As many characters as a greeting has, which nobody guesses.
  static std::string new_token() {
    std::random_device random;
    std::string token(std::tuple_size_v<decltype(greeting::token)>, ' ');
    std::generate(token.begin(), token.end(), [&] { return "0123456789abcdef"[random() % 16]; });
    return token;
  }

  static std::vector<std::string> lines_of(std::string const& text) {
    std::vector<std::string> result;
    std::istringstream from(text);
    for (std::string line; std::getline(from, line);) {
      result.push_back(line);
    }
    result.resize(std::max<std::size_t>(result.size(), 1));
    return result;
  }

  error cannot_connect(int peer, std::string const& why) const {
    return {fault::communication,
            "rank " + std::to_string(rank_) + " cannot connect to rank " + std::to_string(peer) + ": " + why};
  }

  std::string facts(std::size_t links) const {
    return std::to_string(size_) + " ranks and " + std::to_string(links) + " links";
  }

  template <class Call>
  void call_store(int of, Call const& call) const {
    std::string const where =
        "rank " + std::to_string(rank_) + ", at the rendezvous with rank " + std::to_string(of) + ": ";
    try {
      call();
    } catch (error const& caught) {
      throw error(caught.code(), where + caught.sentence());
    } catch (std::exception const& caught) {
      throw error(fault::communication, where + caught.what());
    }
  }

  int rank_;
  int size_;
  std::chrono::nanoseconds limit_;
  std::size_t links_ = 0;
  std::vector<owned_file> files_; // by peer, then by link
};

} // namespace detail

} // namespace oktopk
