#include "race_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Prices ---- */

static Racer *find(Race *race, const char *name, size_t length)
{
    for (int i = 0; i < race->count; i++)
        if (strlen(race->racers[i].name) == length && !memcmp(race->racers[i].name, name, length))
            return &race->racers[i];
    return NULL;
}

static CornuStatus set_price(Race *race, const char *entry, size_t length)
{
    const char *equals = memchr(entry, '=', length);
    char        amount[32] = "", *end = amount;
    if (equals)
        snprintf(amount, sizeof amount, "%.*s", (int)(entry + length - equals - 1), equals + 1);
    const bool   begins = amount[0] >= '0' && amount[0] <= '9';
    const double price = begins ? strtod(amount, &end) : NAN;
    if (!begins || *end || !isfinite(price))
        return options_refuse("--price: \"%.*s\", expected "
                              "DEVICE=AMOUNT_PER_HOUR", (int)length, entry);
    Racer *racer = find(race, entry, (size_t)(equals - entry));
    if (!racer)
        return options_refuse("--price: \"%.*s\" is not one of the devices",
                              (int)(equals - entry), entry);
    racer->price = price;
    racer->has_price = true;
    return CORNU_OK;
}

CornuStatus race_price(Race *race, const char *list)
{
    CornuStatus status = CORNU_OK;
    while (list && !status) {
        const size_t length = strcspn(list, ",");
        status = set_price(race, list, length);
        list = list[length] ? list + length + 1 : NULL;
    }
    return status;
}

double race_price_of(const Racer *racer) { return racer && racer->has_price ? racer->price : NAN; }

/* ---- Sums ---- */

RaceTarget race_target(const Race *race, const Racer *racer)
{
    RaceTarget target = { .epochs = 0 };
    for (int64_t i = 0; i < race->done && race->enough > 0.0; i++) {
        target.seconds += racer->seconds[i];
        target.joules += racer->joules[i];
        if (!(racer->accuracies[i] >= race->enough)) continue;
        target.epochs = i + 1;
        return target;
    }
    return (RaceTarget){ .epochs = 0, .seconds = NAN, .joules = NAN };
}

double race_modelled_joules(const ModelledEpoch *epoch)
{
    const double watts = epoch->profile->chip_watts.value;
    return watts > 0.0 ? watts * (double)epoch->chips * epoch->total_s : NAN;
}

/* The device that emulated this profile: "tpu" is the default one. */
static const Racer *emulator(const Race *race, const CornuTpuProfile *profile)
{
    for (int i = 0; i < race->count; i++) {
        const char *name = race->racers[i].name, *colon = strchr(name, ':');
        if (strncmp(name, "tpu", 3) == 0 && cornu_tpu_profile(colon ? colon + 1 : NULL) == profile)
            return &race->racers[i];
    }
    return NULL;
}

/* ---- Tables ---- */

/* "%.4g", or "-" if it is unknown. */
static const char *shown(char text[24], double value)
{
    if (isfinite(value)) snprintf(text, 24, "%.4g", value);
    else snprintf(text, 24, "-");
    return text;
}

static double per_hour(double price, double seconds) { return price * seconds / 3600.0; }

enum { COLUMNS = 6 };

static void print_row(const char *name, const double values[COLUMNS], int64_t epochs, FILE *to)
{
    char text[COLUMNS][24], count[24] = "-";
    if (epochs > 0) snprintf(count, sizeof count, "%lld", (long long)epochs);
    for (int i = 0; i < COLUMNS; i++) shown(text[i], values[i]);
    fprintf(to, "%-9s %10s %10s %10s %10s %8s %10s %10s\n", name, text[0], text[1], text[2],
            text[3], count, text[4], text[5]);
}

static void print_head(FILE *to)
{
    fprintf(to, "%-9s %10s %10s %10s %10s %8s %10s %10s\n", "device", "price/h", "epoch s",
            "cost/epoch", "J/epoch", "epochs", "to target", "J to it");
}

static void print_measured(const Race *race, FILE *to)
{
    fprintf(to, "\nCost, measured on this machine%s\n\n",
            race->enough > 0.0 ? "; epochs until the target accuracy" : "");
    print_head(to);
    for (int i = 0; i < race->count; i++) {
        const Racer     *racer = &race->racers[i];
        const bool       emulated = strcmp(race_kind(racer), "emulated") == 0;
        const double     price = emulated ? NAN : race_price_of(racer);
        const double     seconds = race_median(race, racer);
        const RaceTarget target = race_target(race, racer);
        const double     values[COLUMNS] = { price, seconds, per_hour(price, seconds),
                                             race_joules(race, racer),
                                             per_hour(price, target.seconds), target.joules };
        print_row(racer->name, values, target.epochs, to);
    }
    if (race->energy.count > 0)
        fprintf(to, "\nJoules of an epoch and its validation, by %d counter%s of the kernel: of "
                "all that ran on this\nmachine's processors, and of their memory where it is "
                "counted.\n", race->energy.count, race->energy.count == 1 ? "" : "s");
    else fprintf(to, "\nJoules: not available, %s.\n", race->energy.why);
}

/* To the target in as many epochs as the emulation took, of the modelled length. */
static void print_modelled(const Race *race, FILE *to)
{
    fprintf(to, "\nCost, modelled: of the epochs on TPUs above; nothing ran there\n\n");
    print_head(to);
    for (int i = 0; i < race->modelled_count; i++) {
        const ModelledEpoch *row = &race->modelled[i];
        const Racer         *racer = emulator(race, row->profile);
        const int64_t        epochs = racer ? race_target(race, racer).epochs : 0;
        const double         price = race_price_of(racer), joules = race_modelled_joules(row);
        const double         once = per_hour(price, row->total_s);
        const double         times = epochs ? (double)epochs : NAN;
        const double         values[COLUMNS] = { price, row->total_s, once, joules, times * once,
                                                 times * joules };
        print_row(row->profile->name, values, epochs, to);
    }
    fputs("\nJoules of the chips alone, by the power that is published for them: cornu devices "
          "says how\ncertain it is; \"-\" where none is. The epochs to the target are those of "
          "the emulation.\n", to);
}

void race_print_cost(const Race *race, FILE *to)
{
    bool priced = false;
    for (int i = 0; i < race->count; i++) priced |= race->racers[i].has_price;
    if (!priced && race->energy.count == 0 && race->enough == 0.0) return;
    print_measured(race, to);
    if (race->modelled_count > 0) print_modelled(race, to);
}
