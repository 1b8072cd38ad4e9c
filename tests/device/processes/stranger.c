#include "stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO = 48, CODE = 32 };

/* The rank may not listen yet. */
static int connect_to(const char *address)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    const char        *colon = strrchr(address, ':');
    at.sin_port = htons((uint16_t)atoi(colon ? colon + 1 : "0"));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 500; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0) return -1;
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
        close(fd);
        poll(NULL, 0, 10);
    }
    return -1;
}

static bool says(int fd, const void *bytes, size_t size)
{
    return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Bytes that came until the other side left, at most `size`; -1 if it stays for 10 s. */
static int hears(int fd, unsigned char *bytes, int size)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    int           got = 0;
    while (got < size && poll(&one, 1, 10000) > 0) {
        const ssize_t n = recv(fd, bytes + got, (size_t)(size - got), 0);
        if (n <= 0) return got;
        got += (int)n;
    }
    return got == size ? got : -1;
}

/* Magic, protocol, rank, count, a nonce. */
static void spell(unsigned char hello[HELLO], uint32_t protocol, int32_t rank, int32_t count)
{
    const uint32_t words[] = { 0x436f726e, protocol, (uint32_t)rank, (uint32_t)count };
    memset(hello, 0x55, HELLO);
    memcpy(hello, words, sizeof words);
}

/* A whole hello gets one in return; after the code, none and the end. */
static bool claims(int fd, int rank, int count, bool mirrors)
{
    unsigned char hello[HELLO], answer[HELLO + 1], code[CODE] = { 0 };
    spell(hello, 2, rank, count);
    if (!says(fd, hello, sizeof hello) || hears(fd, answer, HELLO) != HELLO) return false;
    if (memcmp(answer, hello, 8) != 0) return false;
    if (mirrors) memcpy(code, answer + 16, sizeof code);
    return says(fd, code, sizeof code) && hears(fd, answer, 1) == 0;
}

bool stranger_knocks(StrangerKind kind, const char *address, int rank, int count)
{
    unsigned char hello[HELLO], answer[HELLO];
    const char    http[] = "GET / HTTP/1.0\r\n\r\n";
    const int     fd = connect_to(address);
    if (fd < 0) return false;
    spell(hello, kind == STRANGER_OLD ? 1 : 2, rank, count);
    switch (kind) {
    case STRANGER_LEAVES:  return close(fd) == 0;
    case STRANGER_BROWSES: return says(fd, http, strlen(http)) && hears(fd, answer, HELLO) == 0;
    case STRANGER_HALF:    return says(fd, hello, HELLO / 2);
    case STRANGER_OLD:     return says(fd, hello, 16) && hears(fd, answer, HELLO) == 0;
    case STRANGER_CLAIMS:  return claims(fd, rank, count, false);
    case STRANGER_MIRRORS: return claims(fd, rank, count, true);
    default:               return true;
    }
}

bool stranger_poses(int listener, int count, bool mirrors)
{
    unsigned char hello[HELLO], heard[HELLO + CODE], code[CODE] = { 0 };
    struct pollfd one = { .fd = listener, .events = POLLIN };
    const int     fd = poll(&one, 1, 10000) > 0 ? accept(listener, NULL, NULL) : -1;
    spell(hello, 2, 0, count);
    if (fd < 0 || hears(fd, heard, HELLO) != HELLO || !says(fd, hello, sizeof hello) ||
        hears(fd, heard + HELLO, CODE) != CODE)
        return false;
    if (mirrors) memcpy(code, heard + HELLO, sizeof code);
    const bool left = says(fd, code, sizeof code) && hears(fd, heard, 1) == 0;
    close(fd);
    return left;
}
