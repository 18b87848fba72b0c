// How fast payloads come to the disk that no codec makes smaller: Deja's log beside a file that is
// written with O_DIRECT after fallocate, and one that is written with write(2), in turns. Each
// begins with nothing and ends when the disk has all.
//
//   payload_write [FOLDER [MEGABYTES [ROUNDS]]]
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "format/log/rank_log.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;
constexpr size_t kPage = 4096;

// Noise, at an address and of a size that O_DIRECT takes.
class Noise {
 public:
  Noise() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPage, kBytes))) {
    std::mt19937_64 random(1);
    for (size_t at = 0; at < kBytes; at += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::memcpy(bytes_ + at, &word, sizeof word);
    }
  }
  ~Noise() { std::free(bytes_); }
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  [[nodiscard]] std::span<const std::byte> Block(size_t number) const {
    return {bytes_ + number * kBlock % kBytes, kBlock};
  }

 private:
  static constexpr size_t kBytes = 64 << 20;
  std::byte* bytes_;
};

bool WriteAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool WriteFile(const std::string& path, int flags, const Noise& noise, size_t blocks) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0644);
  if (fd < 0) return false;
  bool good =
      (flags & O_DIRECT) == 0 || fallocate(fd, 0, 0, static_cast<off_t>(blocks * kBlock)) == 0;
  for (size_t i = 0; i < blocks && good; ++i) good = WriteAll(fd, noise.Block(i));
  good = good && fdatasync(fd) == 0;
  close(fd);
  return good;
}

bool WriteLog(const std::string& folder, const Noise& noise, size_t blocks) {
  RankLogOptions options;
  options.trace_dir = folder;
  auto log = RankLog::Create(options);
  if (!log || !(*log)->BecomeRank({})) return false;
  for (size_t i = 0; i < blocks; ++i) {
    // A payload of its own: its bytes were hashed by who digested them.
    Hash128 hash;
    const uint64_t name = i + 1;
    std::memcpy(hash.bytes.data(), &name, sizeof name);
    if (!(*log)->PutPayload(hash, noise.Block(i), 4).kept) return false;
  }
  (*log)->Finish();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = open(entry.path().c_str(), O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && fdatasync(fd) == 0;
    close(fd);
    if (!good) return false;
  }
  return true;
}

double Processor() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Way {
  const char* name;
  std::function<bool(const std::string& folder)> run;
  std::vector<double> speeds;  // GB/s
  std::vector<double> costs;   // processor seconds a GB
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Measure(const std::string& where, size_t blocks, int rounds) {
  const Noise noise;
  Way ways[] = {
      {"O_DIRECT, fallocate",
       [&](const std::string& folder) { return WriteFile(folder + "/f", O_DIRECT, noise, blocks); },
       {},
       {}},
      {"write(2)",
       [&](const std::string& folder) { return WriteFile(folder + "/f", 0, noise, blocks); },
       {},
       {}},
      {"Deja", [&](const std::string& folder) { return WriteLog(folder, noise, blocks); }, {}, {}},
  };
  const double gigabytes = static_cast<double>(blocks * kBlock) * 1e-9;
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      std::string folder = where + "/payload_write-XXXXXX";
      if (mkdtemp(folder.data()) == nullptr) return std::perror(where.c_str()), 1;
      const double begin = Now();
      const double processor = Processor();
      const bool good = way.run(folder);
      way.costs.push_back((Processor() - processor) / gigabytes);
      way.speeds.push_back(gigabytes / (Now() - begin));
      fs::remove_all(folder);
      if (!good) return std::fprintf(stderr, "%s failed in %s\n", way.name, where.c_str()), 1;
    }
  }
  for (const Way& way : ways)
    std::printf(
        "%-20s %5.2f GB/s (%.2f to %.2f), %.2f of O_DIRECT; %.3f s of processor time a GB\n",
        way.name, Median(way.speeds), *std::min_element(way.speeds.begin(), way.speeds.end()),
        *std::max_element(way.speeds.begin(), way.speeds.end()),
        Median(way.speeds) / Median(ways[0].speeds), Median(way.costs));
  return 0;
}

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : ".";
  const size_t megabytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  if (megabytes == 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: payload_write [FOLDER [MEGABYTES [ROUNDS]]]\n");
    return 2;
  }
  return deja::format::Measure(where, megabytes, rounds);
}
