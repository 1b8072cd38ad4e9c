/* Who takes part in a collective; the ops are described in collective.c. */
#ifndef CORNU_DEVICE_OPS_COLLECTIVE_H
#define CORNU_DEVICE_OPS_COLLECTIVE_H

#include "op_internal.h"

/* A shard's group: its members' numbers in ascending order, and the shard's own place there. */
typedef struct {
    int size, rank;
    int member[CORNU_MAX_SHARDS];
} CornuMembers;

CornuMembers cornu__members(const CornuAttributes *attributes, int shards, int shard);

bool cornu__is_collective(CornuOpId id);

/* Whether shards read each other's operands. */
bool cornu__crosses(CornuOpId id);

/* CORNU_ERR_ARGUMENT where a collective was recorded for another number of shards. */
CornuStatus cornu__collective_fits(const CornuOpCall *call, int shards);

#endif
