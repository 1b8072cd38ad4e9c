#define _GNU_SOURCE    /* memmem */

#include "client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 20 };

int client_connect(const char *url)
{
    const char        *colon = strrchr(url, ':');
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval     patience = { .tv_sec = PATIENCE_S };
    const int          fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd;
}

const char *client_token(const char *url) { return strstr(url, "token=") + strlen("token="); }

static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

/* Whether the answer is whole, by its Content-Length. */
static bool is_whole(const char *text, size_t size)
{
    const char *body = memmem(text, size, "\r\n\r\n", 4), *length;
    if (!body) return false;
    length = strcasestr(text, "Content-Length: ");
    return length && length < body &&
           size - (size_t)(body + 4 - text) >= (size_t)atoll(length + strlen("Content-Length: "));
}

int client_ask(const char *url, const char *request, char *answer)
{
    char     *text = answer ? answer : malloc(CLIENT_TEXT);
    const int fd = client_connect(url);
    size_t    size = 0;
    int       status = 0;
    *text = '\0';
    if (fd >= 0) send_all(fd, request, strlen(request));   /* may be cut off by the answer */
    while (fd >= 0 && size + 1 < CLIENT_TEXT && !is_whole(text, size)) {
        const ssize_t n = recv(fd, text + size, CLIENT_TEXT - 1 - size, 0);
        if (n <= 0) break;
        text[size += (size_t)n] = '\0';
    }
    sscanf(text, "HTTP/1.1 %d", &status);
    if (fd >= 0) close(fd);
    if (!answer) free(text);
    return status;
}

int client_command(const char *url, const char *json)
{
    char request[600];
    snprintf(request, sizeof request, "POST /control HTTP/1.1\r\nHost: 127.0.0.1\r\n"
             "Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
             "Content-Length: %zu\r\n\r\n%s", client_token(url), strlen(json), json);
    return client_ask(url, request, NULL);
}

int client_listen(const char *url)
{
    char      request[300];
    const int fd = client_connect(url);
    snprintf(request, sizeof request, "GET /events?token=%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
             client_token(url));
    if (fd >= 0) send_all(fd, request, strlen(request));
    return fd;
}

/* Looks for it in what has come since the last call, as the first bytes of text may be old. */
bool client_hears(int fd, const char *part, char *text)
{
    size_t       size = 0;
    const time_t until = time(NULL) + PATIENCE_S;
    *text = '\0';
    while (time(NULL) < until && size + 1 < CLIENT_TEXT) {
        const ssize_t n = recv(fd, text + size, CLIENT_TEXT - 1 - size, 0);
        if (n <= 0) return false;
        text[size += (size_t)n] = '\0';
        if (memmem(text, size, part, strlen(part))) return true;
    }
    return false;
}

bool client_is_dropped(int fd, int seconds)
{
    char          bytes[4096];
    const time_t  until = time(NULL) + seconds;
    struct pollfd one = { .fd = fd, .events = POLLIN };
    while (time(NULL) < until)
        if (poll(&one, 1, 200) > 0 && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return true;
    return false;
}
