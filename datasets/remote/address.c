#include "address_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../device/memory_internal.h"
#include "../../device/system/clock_internal.h"
#include "../../device/system/environment_internal.h"
#include "../fetching/program_internal.h"

/* ---- Strings of an address ---- */

static const struct { const char *scheme; CornuStore store; } schemes[] = {
    { "https://", CORNU__WEB }, { "http://", CORNU__WEB },
    { "gs://", CORNU__GS }, { "s3://", CORNU__S3 },
};
enum { SCHEMES = sizeof schemes / sizeof *schemes };

static int scheme_of(const char *path)
{
    for (int i = 0; i < SCHEMES; i++)
        if (!strncasecmp(path, schemes[i].scheme, strlen(schemes[i].scheme))) return i;
    return -1;
}

bool cornu__is_remote(const char *path) { return scheme_of(path) >= 0; }

void cornu__remote_shown(const char *address, char shown[CORNU__SHOWN])
{
    const int    scheme = scheme_of(address);
    const size_t start = scheme < 0 ? 0 : strlen(schemes[scheme].scheme);
    const char  *host = address + start;
    size_t       length = strlen(host);
    if (scheme >= 0 && schemes[scheme].store == CORNU__WEB) {
        length = strcspn(host, "?#");
        const size_t authority = strcspn(host, "/?#");
        for (size_t i = authority; i > 0; i--)
            if (host[i - 1] == '@') {
                host += i;
                length -= i;
                break;
            }
    }
    snprintf(shown, CORNU__SHOWN, "%.*s%.*s", (int)start, address,
             length < CORNU__SHOWN ? (int)length : CORNU__SHOWN, host);
    for (char *at = shown; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7F) *at = '?';
}

/* first + second, of which the bytes are as they are, or percent-encoded but for unreserved ones
 * and those of `also`: RFC 3986, section 2.3. NULL with CORNU_ERR_MEMORY. */
static char *append(char *first, const char *second, const char *also)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";
    if (!first) return NULL;
    const size_t before = strlen(first);
    char        *made = cornu__allocate(before + 3 * strlen(second) + 1, 1);
    if (made) memcpy(made, first, before);
    cornu__release(first);
    for (char *to = made ? made + before : NULL; to && *second; second++) {
        if (!also || strchr(plain, *second) || strchr(also, *second)) {
            *to++ = *second;
        } else {
            *to++ = '%';
            *to++ = hex[(unsigned char)*second >> 4];
            *to++ = hex[(unsigned char)*second & 15];
        }
    }
    return made;
}

char *cornu__address_bucket(const char *given, const char **name)
{
    const char  *bucket = strstr(given, "://") + 3;
    const size_t length = strcspn(bucket, "/");
    *name = bucket + length + (bucket[length] == '/');
    char *made = length ? cornu__allocate(length + 1, 1) : NULL;
    if (made) memcpy(made, bucket, length);
    return made;
}

/* ---- Servers of buckets ---- */

/* An endpoint of the environment, without a slash at its end, or `usual`; STORAGE_EMULATOR_HOST may
 * lack the scheme. */
static char *endpoint(const char *variable, const char *usual)
{
    const char *named = cornu__environment(variable), *host = named ? named : usual;
    char       *made = cornu__copy_text(cornu__is_remote(host) ? "" : "http://");
    made = append(made, host, NULL);
    for (size_t end = made ? strlen(made) : 0; end && made[end - 1] == '/'; end--)
        made[end - 1] = '\0';
    return made;
}

/* "https://BUCKET.s3.amazonaws.com", which any region's bucket has, or ENDPOINT/BUCKET: the
 * certificates of the former are for names without dots. */
static char *server_of_s3(const char *bucket)
{
    if (cornu__environment("AWS_ENDPOINT_URL") || strchr(bucket, '.')) {
        char *made = endpoint("AWS_ENDPOINT_URL", "https://s3.amazonaws.com");
        return append(append(made, "/", NULL), bucket, "");
    }
    return append(append(cornu__copy_text("https://"), bucket, ""), ".s3.amazonaws.com", NULL);
}

static char *server_of_gs(void)
{
    return endpoint("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com");
}

char *cornu__address_list(CornuStore store, const char *bucket, const char *prefix,
                          const char *token)
{
    const bool gs = store == CORNU__GS;
    char      *url = gs ? append(append(append(server_of_gs(), "/storage/v1/b/", NULL), bucket, ""),
                                 "/o?fields=items(name),nextPageToken&prefix=", NULL)
                        : append(server_of_s3(bucket), "/?list-type=2&prefix=", NULL);
    url = append(url, prefix, "");
    if (!token) return url;
    return append(append(url, gs ? "&pageToken=" : "&continuation-token=", NULL), token, "");
}

/* ---- Addresses ---- */

static CornuStatus check_characters(const char *given)
{
    enum { LONGEST = 8192 };
    size_t at = 0;
    for (; given[at] && at <= LONGEST; at++)
        if ((unsigned char)given[at] < ' ' || given[at] == 0x7F)
            return cornu__fail(CORNU_ERR_ARGUMENT, "the address has character %d, at byte %zu, "
                               "expected no control characters", given[at], at);
    if (at <= LONGEST) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "the address has more than %d bytes", LONGEST);
}

/* The address that is asked for, of a bucket as its server has it. */
static CornuStatus find_url(CornuAddress *address)
{
    const char *name;
    if (address->store == CORNU__WEB) {
        address->url = cornu__copy_text(address->given);
        return address->url ? CORNU_OK : CORNU_ERR_MEMORY;
    }
    char *bucket = cornu__address_bucket(address->given, &name);
    if (!bucket || !*name) {
        cornu__release(bucket);
        return cornu__fail(CORNU_ERR_ARGUMENT, "expected %s://BUCKET/NAME",
                           address->store == CORNU__GS ? "gs" : "s3");
    }
    char *url = address->store == CORNU__S3
                    ? server_of_s3(bucket)
                    : append(append(server_of_gs(), "/", NULL), bucket, "");
    address->url = append(append(url, "/", NULL), name, "/");
    cornu__release(bucket);
    return address->url ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__address_open(CornuAddress *address, const char *given)
{
    *address = (CornuAddress){ .store = CORNU__WEB };
    pthread_mutex_init(&address->lock, NULL);
    CORNU__TRY(check_characters(given));
    address->store = schemes[scheme_of(given)].store;
    address->given = cornu__copy_text(given);
    return address->given ? find_url(address) : CORNU_ERR_MEMORY;
}

void cornu__address_close(CornuAddress *address)
{
    cornu__release(address->given);
    cornu__release(address->url);
    cornu__release(address->header);
    cornu__release(address->signed_url);
    pthread_mutex_destroy(&address->lock);
}

CornuStatus cornu__address_now(CornuAddress *address, char **url, char **header)
{
    pthread_mutex_lock(&address->lock);
    *url = cornu__copy_text(address->signed_url ? address->signed_url : address->url);
    *header = address->header ? cornu__copy_text(address->header) : NULL;
    const bool whole = *url && (*header || !address->header);
    pthread_mutex_unlock(&address->lock);
    return whole ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Credentials ---- */

/* Runs a program that prints a secret, into `secret`. */
static CornuStatus ask(const char *const *arguments, char *secret, size_t size)
{
    enum { PATIENCE = 60, REASON = 160 };
    const char *program = arguments[0];
    const int   error = cornu__program_line(arguments, PATIENCE, secret, size);
    if (error == 0 && secret[0]) return CORNU_OK;
    if (error == ENOENT)
        return cornu__fail(CORNU_ERR_FILE, "needs credentials, which %s would give; it is not "
                           "installed", program);
    if (error > 0)
        return cornu__fail(CORNU_ERR_FILE, "needs credentials, and %s gives none: %s", program,
                           strerror(error));
    return cornu__fail(CORNU_ERR_FILE, "needs credentials, and %s gives none: %.*s", program,
                       REASON, error ? secret : "it printed nothing");
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text == 0x7F) return false;
    return true;
}

static CornuStatus sign(CornuAddress *address)
{
    enum { SECRET = 8192 };
    static const char bearer[] = "Authorization: Bearer ";
    const char *const token[] = { "gcloud", "auth", "print-access-token", NULL };
    const char *const presign[] = { "aws", "s3", "presign", address->given, "--expires-in", "3600",
                                    NULL };
    const bool        gs = address->store == CORNU__GS;
    char             *secret = cornu__allocate(SECRET, 1);
    if (!secret) return CORNU_ERR_MEMORY;
    CornuStatus status = ask(gs ? token : presign, secret, SECRET);
    if (!status && (!is_printable(secret) || (!gs && scheme_of(secret) < 0)))
        status = cornu__fail(CORNU_ERR_FILE, "needs credentials, and what %s prints is none",
                             gs ? token[0] : presign[0]);
    char **to = gs ? &address->header : &address->signed_url;
    if (!status) {
        cornu__release(*to);
        *to = append(cornu__copy_text(gs ? bearer : ""), secret, NULL);
        status = *to ? CORNU_OK : CORNU_ERR_MEMORY;
    }
    memset(secret, 0, SECRET);
    cornu__release(secret);
    return status;
}

CornuStatus cornu__address_sign(CornuAddress *address, double sent)
{
    CornuStatus status = CORNU_OK;
    pthread_mutex_lock(&address->lock);
    const bool is_signed = address->header || address->signed_url;
    if (!is_signed || sent >= address->since) {
        status = sign(address);
        address->since = cornu__seconds();
    }
    pthread_mutex_unlock(&address->lock);
    return status;
}
