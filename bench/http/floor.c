// A server of one connection that does nothing but make each request with a body durable, and answers: what no
// table service can be below on a machine. floor PORT FILE caller|ring: who writes and flushes, the thread
// itself, blocked in it, or a ring, as a server must that has more than one connection.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kPage = 4096, kPiece = 1 << 20, kFile = 64 << 20 };

static struct io_uring ring;
static bool by_ring;

// Waits for `count` completions; the result of the last.
static int await(int count) {
  int result = 0;
  for (; count > 0; --count) {
    struct io_uring_cqe* cqe;
    if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_peek_cqe(&ring, &cqe) != 0) errx(1, "the ring failed");
    result = cqe->res;
    io_uring_cqe_seen(&ring, cqe);
  }
  return result;
}

static int receive(int connection, char* into, size_t room) {
  if (!by_ring) return (int)recv(connection, into, room, 0);
  io_uring_prep_recv(io_uring_get_sqe(&ring), connection, into, room, 0);
  return await(1);
}

static void make_durable(int file, const void* page, off_t at) {
  if (by_ring) {
    struct io_uring_sqe* write = io_uring_get_sqe(&ring);
    io_uring_prep_write(write, file, page, kPage, (uint64_t)at);
    write->flags |= IOSQE_IO_LINK;
    io_uring_prep_fsync(io_uring_get_sqe(&ring), file, IORING_FSYNC_DATASYNC);
    if (await(2) < 0) errx(1, "the disk failed");
  } else if (pwrite(file, page, kPage, at) != kPage || fdatasync(file) != 0) {
    err(1, "write");
  }
}

static void serve(int connection, int file, const void* page) {
  static const char answer[] = "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
  static off_t at = 0;
  char request[1 << 16];
  size_t have = 0;
  while (have < sizeof request - 1) {
    const int got = receive(connection, request + have, sizeof request - 1 - have);
    if (got <= 0) return;
    have += (size_t)got;
    request[have] = 0;
    const char* end = strstr(request, "\r\n\r\n");
    if (end == NULL) continue;
    const char* length = strcasestr(request, "content-length: ");
    const size_t body = length == NULL ? 0 : strtoul(length + 16, NULL, 10);
    if (have < (size_t)(end + 4 - request) + body) continue;
    have = 0;
    if (body > 0) make_durable(file, page, at);
    at = (at + kPage) % kFile;
    if (send(connection, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) return;
  }
}

int main(int argc, char** argv) {
  if (argc != 4) errx(2, "usage: floor PORT FILE caller|ring");
  by_ring = strcmp(argv[3], "ring") == 0;
  const int file = open(argv[2], O_RDWR | O_CREAT | O_DIRECT, 0600);
  void* page;
  if (file < 0 || posix_memalign(&page, kPage, kPiece) != 0) err(1, "%s", argv[2]);
  memset(page, 0, kPiece);
  for (off_t at = 0; at < kFile; at += kPiece) {
    if (pwrite(file, page, kPiece, at) != kPiece) err(1, "%s", argv[2]);
  }
  if (fsync(file) != 0) err(1, "%s", argv[2]);
  struct io_uring_params how = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
  if (by_ring && io_uring_queue_init_params(8, &ring, &how) != 0) errx(1, "no ring here");
  const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)atoi(argv[1])),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (const void*)&address, sizeof address) != 0 || listen(listener, 8) != 0) err(1, "port %s", argv[1]);
  while (true) {
    const int connection = accept(listener, NULL, NULL);
    if (connection < 0) err(1, "accept");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    serve(connection, file, page);
    close(connection);
  }
}
