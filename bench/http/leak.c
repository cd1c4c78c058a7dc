// A leak to be found: preloaded into a server, it takes LEAK_BYTES_A_SECOND from malloc and forgets them.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* lose(void* unused) {
  (void)unused;
  const char* text = getenv("LEAK_BYTES_A_SECOND");
  const size_t piece = text == NULL ? 0 : strtoul(text, NULL, 10) / 10;
  while (piece > 0) {
    char* lost = malloc(piece);
    if (lost != NULL) memset(lost, 1, piece);
    usleep(100000);
  }
  return NULL;
}

__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, lose, NULL) == 0) pthread_detach(thread);
}
