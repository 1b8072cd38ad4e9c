#include "topology.h"

#include <stddef.h>
#include <string.h>

#include "../text/nearest.h"
#include "../text/print.h"
#include "../status_internal.h"

#define GIB  1.073741824   /* in GB */
#define V(x) { (x), 'V' }
#define P(x) { (x), 'P' }
#define D(x) { (x), 'D' }
#define F(x) { (x), 'F' }
#define U(x) { (x), '?' }
#define T(x) { (x), 'T' }
#define N(x) { (x), '-' }

/* Each profile is one column of the table. */
static const CornuTpuProfile profiles[] = {
    { .name = "v2-8", .slice = "2x2",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v2,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v3-8", .slice = "2x2",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v3,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v4-8", .slice = "2x2x1",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v4,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v5e-8", .slice = "2x4",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v5e,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v5p-8", .slice = "2x2x1",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v5p,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v6e-8", .slice = "2x4",
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v6e,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
};
enum { PROFILE_COUNT = sizeof profiles / sizeof *profiles };

/* Pods, which have more of the same chips: the counts are theirs, the rest is in the columns above.
 * By default only as many shards are emulated as a board has. */
static const CornuTpuProfile pods[] = {
    { .name = "v2-512", .slice = "16x16",
      .chips = V(256), .cores = V(512), .replicas = V(512), .shards = D(8),
#define CORNU_TPU_COUNT(field, unit, what, v2, v3, v4, v5e, v5p, v6e)
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v2,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
    { .name = "v3-2048", .slice = "32x32",
      .chips = V(1024), .cores = V(2048), .replicas = V(2048), .shards = D(8),
#define CORNU_TPU_COUNT(field, unit, what, v2, v3, v4, v5e, v5p, v6e)
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) .field = v3,
#include "profiles.def"
#undef CORNU_TPU_FIGURE
    },
};
enum { POD_COUNT = sizeof pods / sizeof *pods };

const CornuTpuProfile *cornu_tpu_profile_at(int i)
{
    return i >= 0 && i < PROFILE_COUNT ? &profiles[i] : NULL;
}

static const CornuTpuProfile *fail_unknown(const char *name)
{
    char        list[256];
    const char *known[PROFILE_COUNT + POD_COUNT];
    for (int i = 0; i < PROFILE_COUNT; i++) known[i] = profiles[i].name;
    for (int i = 0; i < POD_COUNT; i++) known[PROFILE_COUNT + i] = pods[i].name;
    return cornu__fail_null(CORNU_ERR_DEVICE, "TPU profile \"%s\" is unknown, expected %s", name,
                            cornu_nearest_first(list, sizeof list, name, known,
                                                PROFILE_COUNT + POD_COUNT));
}

const CornuTpuProfile *cornu_tpu_profile(const char *name)
{
    if (!name) return &profiles[0];
    for (int i = 0; i < PROFILE_COUNT; i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    for (int i = 0; i < POD_COUNT; i++)
        if (strcmp(pods[i].name, name) == 0) return &pods[i];
    return fail_unknown(name);
}

/* ---- Derived figures ---- */

int64_t cornu_tpu_replica_mxus(const CornuTpuProfile *profile)
{
    return (int64_t)(profile->mxus.value * profile->cores.value / profile->replicas.value);
}

double cornu_tpu_chip_flops(const CornuTpuProfile *profile)
{
    return profile->cores.value / profile->chips.value * profile->mxus.value *
           profile->mxu_rows.value * profile->mxu_columns.value * 2.0 *
           profile->clock_mhz.value * 1e6;
}

static double replicas_per_chip(const CornuTpuProfile *profile)
{
    return profile->replicas.value / profile->chips.value;
}

double cornu_tpu_replica_hbm(const CornuTpuProfile *profile)
{
    return profile->hbm_gb.value * 1e9 / replicas_per_chip(profile);
}

double cornu_tpu_replica_hbm_rate(const CornuTpuProfile *profile)
{
    return profile->hbm_gbps.value * 1e9 / replicas_per_chip(profile);
}

/* ---- Printing ---- */

static const struct { const char *what, *unit; size_t offset; } rows[] = {
#define CORNU_TPU_FIGURE(field, unit, what, v2, v3, v4, v5e, v5p, v6e) \
    { what, unit, offsetof(CornuTpuProfile, field) },
#include "profiles.def"
#undef CORNU_TPU_FIGURE
};

static const CornuTpuFigure *figure_at(const CornuTpuProfile *profile, size_t offset)
{
    return (const CornuTpuFigure *)((const char *)profile + offset);
}

void cornu_tpu_profiles_print(FILE *to)
{
    fprintf(to, "%-28s %-8s", "", "");
    for (int p = 0; p < PROFILE_COUNT; p++) fprintf(to, "%7s  ", profiles[p].name);
    fprintf(to, "\n%-28s %-8s", "slice", "");
    for (int p = 0; p < PROFILE_COUNT; p++) fprintf(to, "%7s  ", profiles[p].slice);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        fprintf(to, "\n%-28s %-8s", rows[r].what, rows[r].unit);
        for (int p = 0; p < PROFILE_COUNT; p++) {
            const CornuTpuFigure *figure = figure_at(&profiles[p], rows[r].offset);
            if (figure->mark == '-') fprintf(to, "%7s  ", "-");
            else cornu__print(to, "%7.4g %c", figure->value, figure->mark);
        }
    }
    fputc('\n', to);
}

void cornu_tpu_legend_print(FILE *to)
{
    for (int i = 0; i < POD_COUNT; i++)
        fprintf(to, "%s is %s chips with the figures of %.2s-8; %.0f shards are emulated unless "
                "told.\n", pods[i].name, pods[i].slice, pods[i].name, pods[i].shards.value);
    fputs("V vendor's or maintainers' pages   P paper on that generation   T third parties only\n"
          "D derived from other figures       F fitted to a published run   ? not published: "
          "assumed\n"
          "- not published\n"
          "v6e has no published clock: its MXU clock is the effective one, peak / (2 x 256 x 256 "
          "x MXUs).\n"
          "Dispatch is fitted to one published run on a v2-8: MNIST CNN, 60 steps per epoch, 43 "
          "to 46 ms each.\n", to);
}
