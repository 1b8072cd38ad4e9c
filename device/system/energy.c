#include "energy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a file, without its end. */
static bool read_line(const char *path, char line[64])
{
    FILE *file = fopen(path, "r");
    bool  read = file && fgets(line, 64, file);
    if (file) fclose(file);
    if (read) line[strcspn(line, "\n")] = '\0';
    return read;
}

static bool read_number(const char *path, uint64_t *number)
{
    char line[64], *end;
    if (!read_line(path, line) || !isdigit((unsigned char)line[0])) return false;
    errno = 0;
    *number = strtoull(line, &end, 10);
    return !*end && errno == 0;
}

/* Adds the counter if it can be read. */
static void add(CornuEnergyMeter *meter, const char *path, double range)
{
    CornuEnergyCounter *counter = &meter->counters[meter->count];
    if (meter->count == CORNU_ENERGY_COUNTERS) return;
    snprintf(counter->path, sizeof counter->path, "%s", path);
    counter->range = range;
    if (read_number(path, &counter->last)) meter->count++;
    else snprintf(meter->why, sizeof meter->why, "the counter %.60s cannot be read: %.30s", path,
                  strerror(errno));
}

/* intel-rapl:0 is a package; its parts, intel-rapl:0:1, are in it but for its memory. The platform,
 * "psys", contains packages. */
static void add_zone(CornuEnergyMeter *meter, const char *folder, const char *zone)
{
    char     path[CORNU_ENERGY_PATH], name[64];
    uint64_t range = 0;
    if (strncmp(zone, "intel-rapl:", 11) != 0) return;
    snprintf(path, sizeof path, "%.300s/%.100s/name", folder, zone);
    if (!read_line(path, name)) return;
    if (strncmp(name, "package", 7) != 0 && strcmp(name, "dram") != 0) return;
    snprintf(path, sizeof path, "%.300s/%.100s/max_energy_range_uj", folder, zone);
    if (!read_number(path, &range)) range = 0;
    snprintf(path, sizeof path, "%.300s/%.100s/energy_uj", folder, zone);
    add(meter, path, (double)range);
}

/* Of amd_energy, the counters that are labelled as a socket's. */
static void add_monitor(CornuEnergyMeter *meter, const char *folder, const char *monitor)
{
    char path[CORNU_ENERGY_PATH], line[64];
    snprintf(path, sizeof path, "%.300s/%.100s/name", folder, monitor);
    if (!read_line(path, line) || strcmp(line, "amd_energy") != 0) return;
    for (int i = 1; i <= 1024; i++) {
        snprintf(path, sizeof path, "%.300s/%.100s/energy%d_label", folder, monitor, i);
        if (!read_line(path, line)) return;
        snprintf(path, sizeof path, "%.300s/%.100s/energy%d_input", folder, monitor, i);
        if (!strncmp(line, "Esocket", 7)) add(meter, path, 0.0);
    }
}

static void search(CornuEnergyMeter *meter, const char *root, const char *name,
                   void (*take)(CornuEnergyMeter *meter, const char *folder, const char *entry))
{
    char folder[CORNU_ENERGY_PATH];
    snprintf(folder, sizeof folder, "%.300s/%s", root, name);
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) take(meter, folder, entry->d_name);
    if (open) closedir(open);
}

void cornu_energy_open(CornuEnergyMeter *meter, const char *root)
{
    if (!root) root = "/sys/class";
    *meter = (CornuEnergyMeter){ .count = 0 };
    snprintf(meter->why, sizeof meter->why, "no counters in %.60s/powercap", root);
    search(meter, root, "powercap", add_zone);
    if (meter->count == 0) search(meter, root, "hwmon", add_monitor);
}

/* From `before` to `now`, around the end of its range. */
static double passed(const CornuEnergyCounter *counter, uint64_t now)
{
    const double range = counter->range > 0.0 ? counter->range : 0x1p64;
    return now >= counter->last ? (double)(now - counter->last)
                                : range - (double)counter->last + (double)now;
}

double cornu_energy_joules(CornuEnergyMeter *meter)
{
    for (int i = 0; i < meter->count; i++) {
        uint64_t now;
        if (!read_number(meter->counters[i].path, &now)) return NAN;
        meter->microjoules += passed(&meter->counters[i], now);
        meter->counters[i].last = now;
    }
    return meter->count > 0 ? 1e-6 * meter->microjoules : NAN;
}
