/*
 * The models by name and version: which are served, in which state each version is, and what is
 * loaded and dropped when files come and go. A new version is loaded before an old one goes.
 */
#ifndef CORNU_SERVE_LIBRARY_H
#define CORNU_SERVE_LIBRARY_H

#include "served.h"

typedef struct Library Library;

/* Which version a request wants: that of a number or a label, else the latest. */
typedef struct {
    int64_t     version;               /* -1: none given */
    const char *label;                 /* or NULL */
} Choice;

/* NULL when memory runs out. `settings` must outlive it. */
Library *library_create(const Settings *settings);
void     library_free(Library *library);

/* Looks at the files once: loads what is new, then drops what is no longer wanted, where all of a
 * folder could be read. A version that failed to load is tried again when its file changes; one
 * that failed for memory, threads or a file that could not be read also after a while, which
 * doubles; with `all` each one at once. Prints each change on stderr. False if a model of --model
 * has no version that loads, or the folder of --models cannot be read. One thread at a time. */
bool library_update(Library *library, bool all);

/* A model, which the caller releases; NULL with a problem if there is none. Thread-safe, as the
 * next. */
Served *library_find(Library *library, const char *name, const Choice *choice, Problem *problem);

/* Adds a GetModelStatusResponse in JSON: the states of all versions, the latest first, or of
 * one. */
bool library_status(Library *library, const char *name, const Choice *choice, Text *to,
                    Problem *problem);

#endif
