/* The MODEL of a command: a file, or a network of models/ by its name. */
#ifndef CORNU_EXAMPLES_SUBJECT_H
#define CORNU_EXAMPLES_SUBJECT_H

#include <cornu/cornu.h>

typedef struct {
    const char                *name;       /* as it was given */
    const CornuReferenceModel *reference;  /* NULL: a file */
} Subject;

/* CORNU_ERR_FILE, naming the nearest network, if there is neither such a file nor such a
 * network. */
CornuStatus subject_find(Subject *subject, const char *name);

/* A model of it, not compiled, with the file's weights or new ones; the caller frees it. NULL on
 * failure. */
CornuModel *subject_model(const Subject *subject);

#endif
