#include "greeting_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "../status_internal.h"

enum { MAGIC = 0x436f726e, REVERSED = 0x6e726f43, PROTOCOL = 2 };

static CornuGreetingState stranger(CornuWhy *why, const char *text)
{
    snprintf(why->text, sizeof why->text, "%s", text);
    return CORNU_GREETING_STRANGER;
}

/* The first words of a connection always have room. */
static CornuGreetingState say(const CornuGreeting *greeting, const void *bytes, size_t size,
                              CornuWhy *why)
{
    if (send(greeting->socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size)
        return CORNU_GREETING_PENDING;
    return stranger(why, "it takes nothing");
}

/* The code that the side that connects, or accepts, shows. */
static void make_code(const CornuGreeting *greeting, bool connects,
                      unsigned char code[CORNU_HMAC_SIZE])
{
    const char          role = connects ? 'c' : 'a';
    const CornuHmacPart parts[] = {
        { &role, 1 },
        { greeting->connects ? &greeting->own : &greeting->other, sizeof(CornuHello) },
        { greeting->connects ? &greeting->other : &greeting->own, sizeof(CornuHello) },
    };
    cornu__hmac(greeting->key->bytes, sizeof greeting->key->bytes, parts, 3, code);
}

static CornuGreetingState show_code(const CornuGreeting *greeting, CornuWhy *why)
{
    unsigned char code[CORNU_HMAC_SIZE];
    make_code(greeting, greeting->connects, code);
    return say(greeting, code, sizeof code, why);
}

CornuGreetingState cornu__greeting_begin(CornuGreeting *greeting, const CornuKey *key, int socket,
                                         bool connects, int rank, int count, CornuWhy *why)
{
    greeting->key = key;
    greeting->connects = connects;
    greeting->socket = socket;
    greeting->got = 0;
    greeting->own = (CornuHello){ MAGIC, PROTOCOL, rank, count, { 0 } };
    if (cornu__random_bytes(greeting->own.nonce, sizeof greeting->own.nonce))
        return stranger(why, "there are no random bytes for an answer");
    return connects ? say(greeting, &greeting->own, sizeof greeting->own, why)
                    : CORNU_GREETING_PENDING;
}

/* As soon as so much of the hello is there. */
static CornuGreetingState check_words(const CornuGreeting *greeting, CornuWhy *why)
{
    const CornuHello *hello = &greeting->other;
    if (greeting->got >= sizeof hello->magic && hello->magic != MAGIC && hello->magic != REVERSED)
        return stranger(why, "it is not of Cornu");
    const uint32_t protocol = hello->magic == MAGIC ? hello->protocol
                                                    : __builtin_bswap32(hello->protocol);
    if (greeting->got < sizeof hello->magic + sizeof hello->protocol || protocol == PROTOCOL)
        return CORNU_GREETING_PENDING;
    snprintf(why->text, sizeof why->text, "it is of another version of Cornu: its protocol is %u, "
             "not %d", (unsigned)protocol, PROTOCOL);
    return CORNU_GREETING_STRANGER;
}

/* The hello is there, or the code after it. */
static CornuGreetingState answer(CornuGreeting *greeting, CornuWhy *why)
{
    unsigned char expected[CORNU_HMAC_SIZE];
    if (greeting->got == sizeof greeting->other)
        return greeting->connects ? show_code(greeting, why)
                                  : say(greeting, &greeting->own, sizeof greeting->own, why);
    make_code(greeting, !greeting->connects, expected);
    if (!cornu__hmac_equal(expected, greeting->code))
        return stranger(why, "it does not have the key of this job");
    if (!greeting->connects && show_code(greeting, why)) return CORNU_GREETING_STRANGER;
    return CORNU_GREETING_KNOWN;
}

CornuGreetingState cornu__greeting_go_on(CornuGreeting *greeting, CornuWhy *why)
{
    const size_t       hello = sizeof greeting->other, all = hello + sizeof greeting->code;
    CornuGreetingState state = CORNU_GREETING_PENDING;
    while (state == CORNU_GREETING_PENDING && greeting->got < all) {
        const bool    first = greeting->got < hello;
        char         *to = first ? (char *)&greeting->other + greeting->got
                                 : (char *)greeting->code + (greeting->got - hello);
        const ssize_t n = recv(greeting->socket, to, (first ? hello : all) - greeting->got, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return state;
        if (n <= 0)
            return stranger(why, !greeting->connects || first ? "it has left before it was known"
                            : "it has left when it saw this rank's key; is the key the same on "
                              "both?");
        greeting->got += (size_t)n;
        if (first) state = check_words(greeting, why);
        if (state == CORNU_GREETING_PENDING && (greeting->got == hello || greeting->got == all))
            state = answer(greeting, why);
    }
    return state;
}

CornuStatus cornu__greeting_check(const CornuGreeting *greeting)
{
    const CornuHello *own = &greeting->own, *other = &greeting->other;
    if (other->magic == REVERSED)
        return cornu__fail(CORNU_ERR_PROCESS, "another rank orders bytes otherwise than rank %d: "
                           "all processors must be little-endian, or all big-endian",
                           (int)own->rank);
    if (other->count != own->count)
        return cornu__fail(CORNU_ERR_PROCESS, "the number of processes is %d on rank %d and %d on "
                           "rank %d", (int)other->count, (int)other->rank, (int)own->count,
                           (int)own->rank);
    return CORNU_OK;
}
