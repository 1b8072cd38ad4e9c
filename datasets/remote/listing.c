/* The objects of a bucket that a pattern stands for. */
#define _XOPEN_SOURCE 700    /* fnmatch */

#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "transfer_internal.h"

/* Pages of a listing have at most 1000 names of at most 1024 bytes. */
enum { MOST_PAGE = 1 << 23, MOST_NAMES = 1 << 20 };

typedef struct {
    const char *pattern;     /* of the names */
    char      **names;       /* owned, as each of them is */
    int         count, space;
    char       *token;       /* owned: of the next page; NULL: there is none */
    char       *page;        /* owned: what has come of it, MOST_PAGE bytes and a NUL */
    size_t      size;
} Listing;

static CornuStatus add_name(Listing *listing, const char *name)
{
    if (fnmatch(listing->pattern, name, FNM_PATHNAME | FNM_PERIOD)) return CORNU_OK;
    if (listing->count == MOST_NAMES)
        return cornu__fail(CORNU_ERR_DATA, "more than %d objects match, expected fewer: name "
                           "a part of them", MOST_NAMES);
    return cornu__add_text(&listing->names, &listing->space, &listing->count, name);
}

/* A server that names the same page again would do so for ever. */
static CornuStatus set_token(Listing *listing, const char *token)
{
    char *copy = token ? cornu__copy_text(token) : NULL;
    if (token && !copy) return CORNU_ERR_MEMORY;
    const bool again = token && listing->token && !strcmp(token, listing->token);
    cornu__release(listing->token);
    listing->token = copy;
    return again ? cornu__fail(CORNU_ERR_FORMAT, "the server's listing does not end") : CORNU_OK;
}

/* ---- Pages ---- */

/* { "items": [ { "name": "a" }, … ], "nextPageToken": "…" } */
static CornuStatus read_json(Listing *listing)
{
    json_error_t error;
    json_t      *page = json_loadb(listing->page, listing->size, JSON_REJECT_DUPLICATES, &error);
    const json_t *items = json_object_get(page, "items");
    CornuStatus   status = CORNU_OK;
    if (!json_is_object(page) || (items && !json_is_array(items)))
        status = cornu__fail(CORNU_ERR_FORMAT, "the server's listing is not that of a bucket");
    for (size_t i = 0; i < json_array_size(items) && !status; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(items, i), "name"));
        if (name) status = add_name(listing, name);
    }
    if (!status)
        status = set_token(listing, json_string_value(json_object_get(page, "nextPageToken")));
    json_decref(page);
    return status;
}

/* Replaces what XML writes for & < > " and ', and characters by their number, in place: a string
 * never becomes longer. Source: Extensible Markup Language 1.0, sections 2.4 and 4.1. */
static void unescape(char *text)
{
    static const struct { const char *name; char character; } named[] = {
        { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' },
    };
    char *to = text;
    while (*text) {
        char *end = NULL;
        for (size_t i = 0; i < sizeof named / sizeof *named && !end; i++)
            if (!strncmp(text, named[i].name, strlen(named[i].name))) {
                *to++ = named[i].character;
                end = text + strlen(named[i].name);
            }
        if (!end && !strncmp(text, "&#", 2)) {   /* control characters alone are written so */
            const bool hex = text[2] == 'x';
            const long value = strtol(text + 2 + hex, &end, hex ? 16 : 10);
            if (*end == ';' && value > 0 && value < 128) *to++ = (char)value, end++;
            else end = NULL;
        }
        if (!end) *to++ = *text;
        text = end ? end : text + 1;
    }
    *to = '\0';
}

/* The next <NAME>…</NAME> from `at` on, unescaped in place and terminated; NULL: there is none. */
static char *next_element(char *at, const char *name, char **after)
{
    char open[40], close[40];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    char *begin = at ? strstr(at, open) : NULL;
    char *end = begin ? strstr(begin, close) : NULL;
    if (!end) return NULL;
    begin += strlen(open);
    *end = '\0';
    *after = end + strlen(close);
    unescape(begin);
    return begin;
}

/* <ListBucketResult> … <NextContinuationToken>…</…> <Contents><Key>a</Key>… </Contents>… */
static CornuStatus read_xml(Listing *listing)
{
    static const char token[] = "NextContinuationToken";
    char             *after = NULL, *copy = cornu__copy_text(listing->page);
    if (!copy) return CORNU_ERR_MEMORY;
    CornuStatus status = strstr(copy, "<ListBucketResult")
        ? set_token(listing, next_element(copy, token, &after))
        : cornu__fail(CORNU_ERR_FORMAT, "the server's listing is not that of a bucket");
    cornu__release(copy);
    char *at = listing->page;
    for (char *name; !status && (name = next_element(at, "Key", &at));)
        status = add_name(listing, name);
    return status;
}

static CornuStatus take(void *context, const CornuAnswer *answer, int64_t at,
                        const unsigned char *bytes, size_t size, bool *enough)
{
    Listing *listing = context;
    (void)answer, (void)enough;
    if (at == 0) listing->size = 0;
    if (size > MOST_PAGE - listing->size)
        return cornu__fail(CORNU_ERR_FORMAT, "the server's listing has more than %d bytes",
                           MOST_PAGE);
    if (size) memcpy(listing->page + listing->size, bytes, size);
    listing->size += size;
    listing->page[listing->size] = '\0';
    return CORNU_OK;
}

static CornuStatus read_page(Listing *listing, CornuAddress *address, const char *bucket,
                             const char *prefix)
{
    CornuAnswer answer;
    char       *url = cornu__address_list(address->store, bucket, prefix, listing->token);
    if (!url) return CORNU_ERR_MEMORY;
    CornuRequest request = { .address = address, .url = url, .first = -1 };
    CornuStatus  status = cornu__transfer_patiently(&request, &answer, take, listing);
    cornu__release(url);
    if (!status && answer.code != 200)
        status = cornu__fail(CORNU_ERR_FILE, "the server answered %d for a listing", answer.code);
    if (status) return status;
    return address->store == CORNU__GS ? read_json(listing) : read_xml(listing);
}

/* ---- Buckets ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CornuStatus add_all(const Listing *listing, const char *scheme, const char *bucket,
                           CornuStatus (*add)(void *context, const char *address), void *context)
{
    if (listing->count)
        qsort(listing->names, (size_t)listing->count, sizeof *listing->names, by_text);
    for (int i = 0; i < listing->count; i++) {
        const size_t size = strlen(scheme) + strlen(bucket) + strlen(listing->names[i]) + 2;
        char        *path = cornu__allocate(size, 1);
        if (!path) return CORNU_ERR_MEMORY;
        snprintf(path, size, "%s%s/%s", scheme, bucket, listing->names[i]);
        const CornuStatus status = add(context, path);
        cornu__release(path);
        if (status) return status;
    }
    if (listing->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "%s%s/%s: no object matches this pattern", scheme, bucket,
                       listing->pattern);
}

CornuStatus cornu__remote_match(const char *pattern,
                                CornuStatus (*add)(void *context, const char *address),
                                void *context)
{
    CornuAddress address;
    Listing      listing = { .page = cornu__allocate(MOST_PAGE + 1, 1) };
    char        *bucket = cornu__address_bucket(pattern, &listing.pattern), *prefix = NULL;
    CornuStatus  status = cornu__address_open(&address, pattern);
    if (!status && listing.page && bucket) prefix = cornu__copy_text(listing.pattern);
    if (prefix) prefix[strcspn(prefix, "*?[")] = '\0';
    if (!status && !prefix) status = CORNU_ERR_MEMORY;
    bool more = !status;
    for (; more && !status; more = listing.token != NULL)
        status = read_page(&listing, &address, bucket, prefix);
    status = cornu__fail_prefix(status, pattern);
    if (!status) status = add_all(&listing, address.store == CORNU__GS ? "gs://" : "s3://", bucket,
                                  add, context);
    for (int i = 0; i < listing.count; i++) cornu__release(listing.names[i]);
    cornu__release(listing.names);
    cornu__release(listing.token);
    cornu__release(listing.page);
    cornu__release(bucket);
    cornu__release(prefix);
    cornu__address_close(&address);
    return status;
}
