// Asks who it is and what machine this is in every way that runtimes know, and prints the answers.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

extern char** environ;

namespace {

volatile sig_atomic_t g_signals = 0;

void Cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::printf("sched_getaffinity %d", sched_getaffinity(0, sizeof set, &set));
  std::printf(" %d\n", CPU_COUNT(&set));
  CPU_ZERO(&set);
  std::printf("of the own pid %d", sched_getaffinity(getpid(), sizeof set, &set));
  std::printf(" %d\n", CPU_COUNT(&set));
  CPU_ZERO(&set);
  std::printf("pthread_getaffinity_np %d",
              pthread_getaffinity_np(pthread_self(), sizeof set, &set));
  std::printf(" %d\n", CPU_COUNT(&set));
  unsigned long tiny = 0;
  std::printf("too small %d\n", sched_getaffinity(0, 1, reinterpret_cast<cpu_set_t*>(&tiny)));
  std::thread([] {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    std::printf("of a thread %d", sched_getaffinity(gettid(), sizeof mine, &mine));
    std::printf(" %d\n", CPU_COUNT(&mine));
  }).join();
  std::printf("sysconf %ld %ld %ld %ld %ld\n", sysconf(_SC_NPROCESSORS_ONLN),
              sysconf(_SC_NPROCESSORS_CONF), sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE),
              sysconf(_SC_LEVEL3_CACHE_SIZE));
  std::printf("get_nprocs %d %d\n", get_nprocs(), get_nprocs_conf());
  std::printf("hardware_concurrency %u\n", std::thread::hardware_concurrency());
  // Down to the last CPU, and what is left of it.
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(static_cast<unsigned>(last), &set)) --last;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(last), &set);
  std::printf("pinned to %d: %d\n", last, sched_setaffinity(0, sizeof set, &set));
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::printf("afterwards %d\n", CPU_COUNT(&set));
}

void Machine() {
  struct sysinfo info {};
  std::printf("sysinfo %d %lu %lu\n", sysinfo(&info), info.totalram, info.freeram);
  std::printf("pages %ld %ld\n", get_phys_pages(), get_avphys_pages());
  char name[256] = {};
  std::printf("gethostname %d %s\n", gethostname(name, sizeof name), name);
  std::printf("getdomainname %d %s\n", getdomainname(name, sizeof name), name);
  utsname names{};
  uname(&names);
  std::printf("uname %s %s %s\n", names.nodename, names.release, names.machine);
  std::printf("gethostid %ld\n", gethostid());
  double load[3] = {};
  std::printf("getloadavg %d %f\n", getloadavg(load, 3), load[0]);
}

void Process(int argc, char** argv) {
  std::printf("pid %d %d %s\n", getpid(), getppid(), getpid() == gettid() ? "main thread" : "?");
  std::printf("ids %u %u %u %u %d\n", getuid(), geteuid(), getgid(), getegid(),
              getgroups(0, nullptr));
  const passwd* user = getpwuid(getuid());
  std::printf("user %s %s %s\n", user != nullptr ? user->pw_name : "none",
              user != nullptr ? user->pw_dir : "", user != nullptr ? user->pw_shell : "");
  user = getpwnam("daemon");
  std::printf("daemon %u\n", user != nullptr ? user->pw_uid : 0);
  std::printf("nobody by that name: %s\n", getpwnam("no such user") == nullptr ? "right" : "wrong");
  const char* login = getlogin();
  std::printf("login %s\n", login != nullptr ? login : "none");
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::printf("descriptors %lu, open max %ld\n", limit.rlim_cur, sysconf(_SC_OPEN_MAX));
  std::printf("terminal %d %d\n", isatty(0), isatty(1));
  const mode_t mask = umask(0);
  umask(mask);
  std::printf("umask %o\n", mask);
  char folder[4096];
  std::printf("cwd %s\n", getcwd(folder, sizeof folder));
  for (int i = 0; i < argc; ++i) std::printf("argv %s\n", argv[i]);
  std::set<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.insert(*entry);
  for (const std::string& entry : variables)
    if (entry.rfind("DEJA_", 0) != 0 && entry.rfind("LD_", 0) != 0)
      std::printf("env %s\n", entry.c_str());
  std::printf("locale %s\n", setlocale(LC_ALL, ""));
  std::printf("main is at %p\n", reinterpret_cast<void*>(&Process));
  signal(SIGUSR1, [](int) { g_signals = g_signals + 1; });
  kill(getpid(), SIGUSR1);
  raise(SIGUSR1);
  tgkill(getpid(), gettid(), SIGUSR1);
  std::printf("signals to itself %d\n", static_cast<int>(g_signals));
}

void ShowFile(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  size_t lines = 0;
  if (!in) std::printf("%s: %s\n", path.c_str(), std::strerror(errno));
  for (; std::getline(in, line); ++lines)
    if (lines < 12) std::printf("%s: %s\n", path.c_str(), line.c_str());
  std::printf("%s: %zu lines\n", path.c_str(), lines);
}

void Files() {
  for (const char* path :
       {"/proc/cpuinfo", "/proc/version", "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible",
        "/sys/devices/system/cpu/present", "/sys/devices/system/cpu/cpu1/topology/core_id",
        "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "/sys/fs/cgroup/cpuset.cpus.effective", "/proc/self/cgroup", "/etc/hostname",
        "/sys/devices/system/nothing"})
    ShowFile(path);
  // Only the parts of these that stay the same from one moment to the next.
  for (const char* path : {"/proc/self/status", "/proc/meminfo", "/proc/stat"}) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
      for (const char* want : {"Pid:", "PPid:", "Uid:", "Cpus_allowed", "MemTotal", "cpu", "btime"})
        if (line.rfind(want, 0) == 0)
          std::printf("%s: %s\n", path, line.substr(0, line.rfind("cpu", 0) == 0 ? 4 : 60).c_str());
  }
  std::ifstream own("/proc/" + std::to_string(getpid()) + "/status");
  std::string line;
  std::getline(own, line);
  std::printf("by number: %s\n", line.c_str());
  std::set<std::string> entries;
  DIR* folder = opendir("/sys/devices/system/cpu");
  while (const dirent* entry = folder != nullptr ? readdir(folder) : nullptr)
    entries.insert(entry->d_name);
  for (const std::string& entry : entries) std::printf("entry %s\n", entry.c_str());
  if (folder != nullptr) {
    const int fd = openat(dirfd(folder), "cpu1/topology/core_id", O_RDONLY);
    char text[16] = {};
    std::printf("relative %zd %s\n", read(fd, text, sizeof text - 1), text);
    closedir(folder);
  }
  struct stat info;
  std::printf("there %d %d\n", stat("/sys/devices/system/cpu/cpu1", &info),
              access("/sys/devices/system/cpu/cpu4000", F_OK));
  FILE* stream = std::fopen("/proc/cpuinfo", "r");
  char first[64] = {};
  std::printf("stdio %s", std::fgets(first, sizeof first, stream));
  std::fclose(stream);
}

}  // namespace

int main(int argc, char** argv) {
  Process(argc, argv);
  Machine();
  Files();
  Cpus();
}
