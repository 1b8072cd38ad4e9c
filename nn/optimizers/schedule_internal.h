/* Schedules, for files. */
#ifndef CORNU_NN_SCHEDULE_INTERNAL_H
#define CORNU_NN_SCHEDULE_INTERNAL_H

#include "../formats/json_internal.h"
#include "schedule.h"

/* One struct for all schedules: each uses its own numbers. */
typedef struct {
    CornuSchedule base;
    double rate, steps;                 /* initial_learning_rate, decay_steps */
    double decay_rate;
    double end, power;
    double alpha, warmup_target, warmup_steps;
    double t_mul, m_mul;
    bool   staircase, cycle;
    double *boundaries, *values;
    int64_t count;
} CornuScheduleNumbers;

/* The numbers of a built-in schedule; NULL for a custom one. */
const CornuScheduleNumbers *cornu__schedule_numbers(const CornuSchedule *schedule);

/* Keras' JSON of a built-in schedule, NULL without memory; and back, NULL with a pending error. */
json_t        *cornu__schedule_to_json(const CornuScheduleNumbers *schedule);
CornuSchedule *cornu__schedule_from_json(const json_t *value);

#endif
