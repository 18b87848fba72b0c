// Destructors of thread-local objects in the libraries inside the user's process. The C library's
// own function for that allocates a little on the program's heap; this one, hidden like malloc
// (own_malloc.cc), does not.
#include <pthread.h>

#include <cstdlib>

namespace {

struct Entry {
  void (*destroy)(void*);
  void* object;
  Entry* next;
};

thread_local Entry* t_entries __attribute__((tls_model("initial-exec"))) = nullptr;

pthread_key_t g_key;
bool g_has_key = false;

void DestroyAll(void*) {
  while (Entry* entry = t_entries) {
    t_entries = entry->next;
    entry->destroy(entry->object);
    std::free(entry);
  }
}

// Made by each library at the same time, or the program's own keys would have other numbers.
__attribute__((constructor(101))) void MakeKey() {
  g_has_key = pthread_key_create(&g_key, &DestroyAll) == 0;
}

}  // namespace

extern "C" int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void*) {
  auto* entry = static_cast<Entry*>(std::malloc(sizeof(Entry)));
  if (entry == nullptr) return -1;
  *entry = {destroy, object, t_entries};
  t_entries = entry;
  if (g_has_key) pthread_setspecific(g_key, &t_entries);
  return 0;
}
