/* What a training step exchanges with other processes: a part of explain's page. */
#ifndef CORNU_EXAMPLES_EXPLAIN_EXCHANGES_H
#define CORNU_EXAMPLES_EXPLAIN_EXCHANGES_H

#include <stdio.h>

#include <cornu/cornu.h>

#include <jansson.h>

typedef struct {
    int                        processes, rank;
    int                        own, shards;    /* this process' shards, of all */
    const CornuExecutableStep *steps;
    const CornuExchangeEvent  *exchanges;      /* of a run */
    int                        count;
} Exchanges;

/* Of an executable that has run. */
Exchanges explain_exchanges(CornuExecutable *executable);

/* One sentence; empty for one process. */
void explain_exchanges_line(const Exchanges *exchanges, char text[400]);

/* A row for each exchange, at most 120 columns; nothing for one process. */
void explain_exchanges_print(const Exchanges *exchanges, FILE *to);

/* [{"name", "begin_step", "end_step", …}]; NULL without memory. */
json_t *explain_exchanges_json(const Exchanges *exchanges);

#endif
