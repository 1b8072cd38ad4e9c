/* Timetables: each stage has its own order of tasks, and takes the next one in the first slot in
 * which what it waits for has been done. */
#include "timetable.h"

#include "../memory_internal.h"
#include "../status_internal.h"

const char *cornu_pipeline_schedule_name(CornuPipelineSchedule schedule)
{
    return schedule == CORNU_1F1B ? "1f1b" : "gpipe";
}

double cornu_timetable_least_bubble(int stages, int microbatches)
{
    return (double)(stages - 1) / (microbatches + stages - 1);
}

/* How far each stage has come: the number of microbatches done forward and backward. */
typedef struct {
    int forward[CORNU_MAX_STAGES], backward[CORNU_MAX_STAGES];
} Progress;

/* Microbatches that a stage runs forward before the first comes back. */
static int ahead(const CornuTimetable *t, CornuPipelineSchedule schedule, int stage)
{
    const int behind = t->stages - stage;
    return schedule == CORNU_1F1B && behind < t->microbatches ? behind : t->microbatches;
}

/* Whether the stage's next task is backward; it may have to wait for it. */
static bool turns_back(const CornuTimetable *t, CornuPipelineSchedule schedule, const Progress *at,
                       int stage)
{
    const int held = at->forward[stage] - at->backward[stage];
    return at->forward[stage] == t->microbatches || held == ahead(t, schedule, stage);
}

/* Whether it can run, given what was done before this slot. */
static bool is_ready(const CornuTimetable *t, const Progress *before, int stage, bool backward)
{
    const int m = backward ? before->backward[stage] : before->forward[stage];
    if (m == t->microbatches) return false;
    if (!backward) return stage == 0 || before->forward[stage - 1] > m;
    return stage == t->stages - 1 ? before->forward[stage] > m : before->backward[stage + 1] > m;
}

static void fill(CornuTimetable *t, CornuPipelineSchedule schedule)
{
    const int all = 2 * t->stages * t->microbatches;
    Progress  at = { { 0 }, { 0 } };
    while (t->count < all) {
        const Progress before = at;
        for (int s = 0; s < t->stages; s++) {
            const bool backward = turns_back(t, schedule, &before, s);
            if (!is_ready(t, &before, s, backward)) continue;
            const int m = backward ? at.backward[s]++ : at.forward[s]++;
            t->tasks[t->count++] = (CornuPipelineTask){ t->slots, s, m, backward };
            const int held = at.forward[s] - at.backward[s];
            if (held > t->stashes[s]) t->stashes[s] = held;
        }
        t->slots++;
    }
    t->bubble = 1.0 - (double)all / ((double)t->slots * t->stages);
}

CornuStatus cornu_timetable_make(CornuTimetable *timetable, int stages, int microbatches,
                                 CornuPipelineSchedule schedule)
{
    CORNU__NEED(timetable);
    *timetable = (CornuTimetable){ .stages = stages, .microbatches = microbatches };
    if (stages < 1 || stages > CORNU_MAX_STAGES)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".stages is %d, expected 1 to %d", stages,
                           CORNU_MAX_STAGES);
    if (microbatches < 1 || microbatches > CORNU_MAX_MICROBATCHES)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".microbatches is %d, expected 1 to %d",
                           microbatches, CORNU_MAX_MICROBATCHES);
    if (schedule != CORNU_GPIPE && schedule != CORNU_1F1B)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".schedule is %d, expected CORNU_GPIPE or "
                           "CORNU_1F1B", (int)schedule);
    timetable->tasks = cornu__allocate((size_t)stages * (size_t)microbatches * 2,
                                       sizeof *timetable->tasks);
    if (!timetable->tasks) return CORNU_ERR_MEMORY;
    fill(timetable, schedule);
    return CORNU_OK;
}

void cornu_timetable_free(CornuTimetable *timetable)
{
    if (!timetable) return;
    cornu__release(timetable->tasks);
    timetable->tasks = NULL;
}
