#include "preload/meet/connection_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace deja::preload {
namespace {

constexpr char kToRead[] = " to read";
constexpr char kToWrite[] = " to write";
constexpr char kToReadAndWrite[] = " to read and write";
constexpr char kFrom[] = " from ";
constexpr std::string_view kConnect = "connect ";
constexpr std::string_view kInherited = "inherited ";

std::string_view WithoutInherited(std::string_view connection) {
  while (connection.starts_with(kInherited)) connection.remove_prefix(kInherited.size());
  return connection;
}

template <typename T>
T As(const SocketAddress& address) {
  T value{};
  std::memcpy(&value, address.bytes, std::min<size_t>(sizeof value, address.size));
  return value;
}

bool IsAny(const SocketAddress& address) {
  if (address.family() == AF_INET) return As<sockaddr_in>(address).sin_addr.s_addr == INADDR_ANY;
  static constexpr in6_addr kAny{};
  const auto in6 = As<sockaddr_in6>(address);
  return address.family() == AF_INET6 && std::memcmp(&in6.sin6_addr, &kAny, sizeof kAny) == 0;
}

// IPv4 addresses compare equal in both notations.
void Canonical(const SocketAddress& address, unsigned char (&out)[16]) {
  if (address.family() == AF_INET6) {
    const auto in6 = As<sockaddr_in6>(address);
    std::memcpy(out, &in6.sin6_addr, sizeof out);
    return;
  }
  const auto in = As<sockaddr_in>(address);
  std::memset(out, 0, sizeof out);
  out[10] = out[11] = 0xff;
  std::memcpy(out + 12, &in.sin_addr, 4);
}

}  // namespace

void SocketAddress::Set(const void* address, size_t length) {
  size = static_cast<socklen_t>(address == nullptr ? 0 : std::min(length, sizeof bytes));
  if (size != 0) std::memcpy(bytes, address, size);
}

int SocketAddress::family() const {
  sa_family_t family = AF_UNSPEC;
  if (size >= sizeof family) std::memcpy(&family, bytes, sizeof family);
  return family;
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(As<sockaddr_in>(*this).sin_port);
  return family() == AF_INET6 ? ntohs(As<sockaddr_in6>(*this).sin6_port) : 0;
}

void SocketAddress::CopyTo(sockaddr* address, socklen_t* length) const {
  if (length == nullptr) return;
  if (address != nullptr) std::memcpy(address, bytes, std::min(size, *length));
  *length = size;
}

AddressText::AddressText(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.family() == AF_INET && address.size >= sizeof(sockaddr_in)) {
    const auto in = As<sockaddr_in>(address);
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
    snprintf(text, sizeof text, "%s:%u", host, ntohs(in.sin_port));
  } else if (address.family() == AF_INET6 && address.size >= sizeof(sockaddr_in6) - 4) {
    const auto in6 = As<sockaddr_in6>(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
    snprintf(text, sizeof text, "[%s]:%u", host, ntohs(in6.sin6_port));
  } else if (address.family() == AF_UNIX) {
    const auto un = As<sockaddr_un>(address);
    const bool is_abstract = address.size > sizeof(sa_family_t) && un.sun_path[0] == '\0';
    snprintf(text, sizeof text, "unix %s%.107s", is_abstract ? "@" : "",
             un.sun_path + (is_abstract ? 1 : 0));
  } else {
    snprintf(text, sizeof text, "no address");
  }
}

std::string_view WithoutEndingZeros(std::string_view address) {
  while (address.size() > sizeof(sa_family_t) + 1 && address.back() == '\0')
    address.remove_suffix(1);
  return address;
}

bool Reaches(const SocketAddress& target, const SocketAddress& bound) {
  if (bound.size == 0) return false;
  if (target.family() == AF_UNIX) return target.view() == bound.view();
  if (target.port() == 0 || target.port() != bound.port()) return false;
  if (IsAny(bound) || IsAny(target)) return true;
  unsigned char a[16];
  unsigned char b[16];
  Canonical(target, a);
  Canonical(bound, b);
  return std::memcmp(a, b, sizeof a) == 0;
}

ConnectionName ConnectionName::Inherited(int fd) {
  ConnectionName name;
  if (fd == 0)
    snprintf(name.text, sizeof name.text, "stdin");
  else
    snprintf(name.text, sizeof name.text, "fd %d", fd);
  return name;
}

ConnectionName ConnectionName::Connect(const SocketAddress& address, uint32_t number,
                                       const char* thread) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "%s%s #%u of thread %.100s", kConnect.data(),
           AddressText(address).text, number, thread);
  return name;
}

ConnectionName ConnectionName::Accept(const SocketAddress& local, uint32_t number) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "accept %s #%u", AddressText(local).text, number);
  return name;
}

ConnectionName ConnectionName::Bind(uint32_t number, const char* thread) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "bind #%u of thread %.100s", number, thread);
  return name;
}

ConnectionName ConnectionName::Datagrams(uint32_t number, const char* thread) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "datagrams #%u of thread %.100s", number, thread);
  return name;
}

ConnectionName ConnectionName::Open(std::string_view path, int flags, uint32_t number,
                                    const char* thread) {
  const int access = flags & O_ACCMODE;
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "open %.*s%s #%u of thread %.70s",
           static_cast<int>(path.size()), path.data(),
           access == O_RDONLY   ? kToRead
           : access == O_WRONLY ? kToWrite
                                : kToReadAndWrite,
           number, thread);
  return name;
}

ConnectionName ConnectionName::InheritedFifo(int fd, std::string_view path) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "%.40s%s%.*s", Inherited(fd).text, kFrom,
           static_cast<int>(path.size()), path.data());
  return name;
}

bool IsNameOfClient(std::string_view connection) {
  return WithoutInherited(connection).starts_with(kConnect);
}

FifoName::FifoName(std::string_view connection) {
  connection = WithoutInherited(connection);
  constexpr std::string_view kOpen = "open ";
  if (connection.substr(0, kOpen.size()) != kOpen) {
    const bool is_descriptor =
        connection.substr(0, 3) == "fd " || connection.substr(0, 5) == "stdin";
    const size_t from = is_descriptor ? connection.find(kFrom) : std::string_view::npos;
    if (from != std::string_view::npos) path = connection.substr(from + std::strlen(kFrom));
    return;
  }
  connection = connection.substr(kOpen.size(), connection.rfind(" #") - kOpen.size());
  for (const char* way : {kToReadAndWrite, kToRead, kToWrite}) {
    if (!connection.ends_with(way)) continue;
    opened = true;
    reads = way != kToWrite;
    writes = way != kToRead;
    path = connection.substr(0, connection.size() - std::strlen(way));
    return;
  }
}

ConnectionName ConnectionName::OfParent(const ConnectionName& parents) {
  ConnectionName name;
  snprintf(name.text, sizeof name.text, "%s%.300s", kInherited.data(), parents.text);
  return name;
}

}  // namespace deja::preload
