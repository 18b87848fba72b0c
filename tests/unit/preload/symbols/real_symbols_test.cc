#include "preload/symbols/real_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace deja::preload {
namespace {

TEST(RealSymbolsTest, ANameThatNoObjectHasIsNotLookedUp) {
  dlerror();
  EXPECT_EQ(TryDlsym(RTLD_DEFAULT, "deja_no_such_function"), nullptr);
  EXPECT_EQ(OpenLoaded("libdeja_no_such_library.so"), nullptr);
  EXPECT_EQ(dlerror(), nullptr);  // the loader has made no text
  EXPECT_EQ(TryDlsym(RTLD_DEFAULT, "getpid"), reinterpret_cast<void*>(&getpid));
}

TEST(RealSymbolsTest, LibrariesWithTheOldTableOfNamesAreRead) {
  ASSERT_EQ(TryDlsym(RTLD_DEFAULT, "deja_test_old_table"), nullptr);
  void* library = dlopen(DEJA_TEST_OLD_TABLE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  void* wanted = dlsym(library, "deja_test_old_table");
  ASSERT_NE(wanted, nullptr);
  EXPECT_EQ(TryDlsym(library, "deja_test_old_table"), wanted);
  EXPECT_EQ(TryDlsym(library, "deja_test_other"), nullptr);
  void* again = OpenLoaded("libdeja_old_table.so.1");
  EXPECT_EQ(again, library);
  if (again != nullptr) dlclose(again);
  dlclose(library);
}

std::atomic<bool> g_walking{false};
std::atomic<bool> g_over{false};

// Holds the loader's list until the test is over.
int Hold(dl_phdr_info*, size_t, void*) {
  g_walking.store(true);
  while (!g_over.load()) usleep(1000);
  return 1;
}

TEST(RealSymbolsTest, AChildOfAThreadedProcessDoesNotWaitForTheLoadersList) {
  ASSERT_NE(TryDlsym(RTLD_DEFAULT, "getpid"), nullptr);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  dl_iterate_phdr(&Hold, nullptr);
                  return nullptr;
                },
                nullptr),
            0);
  while (!g_walking.load()) usleep(1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(TryDlsym(RTLD_DEFAULT, "getppid") != nullptr ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  g_over.store(true);
  pthread_join(thread, nullptr);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace deja::preload
