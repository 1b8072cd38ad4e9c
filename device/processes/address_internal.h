/* "host:port": the addresses of ranks. */
#ifndef CORNU_DEVICE_ADDRESS_INTERNAL_H
#define CORNU_DEVICE_ADDRESS_INTERNAL_H

#include <stddef.h>

#include "../status_internal.h"

struct addrinfo;

typedef struct { char host[256], port[32]; } CornuAddress;

/* CORNU_ERR_ARGUMENT, naming the rank, if it has not that form. */
CornuStatus cornu__address_parse(CornuAddress *address, const char *text, int rank);

/* Every way to reach it, to be freed by freeaddrinfo; NULL, and `why` says what is wrong. */
struct addrinfo *cornu__address_resolve(const CornuAddress *address, bool to_listen, char *why,
                                        size_t size);

/* "127.0.0.1:5000", the other side of a connection. */
void cornu__address_of_peer(int socket, char *text, size_t size);

#endif
