/* Counters of energy, in a folder made here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/system/energy.h"

static char root[] = "/tmp/cornu-energy-XXXXXX";

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void write_zone(const char *zone, const char *name, const char *energy, const char *range)
{
    char folder[64];
    snprintf(folder, sizeof folder, "powercap/%s", zone);
    write_file(folder, "name", name);
    write_file(folder, "energy_uj", energy);
    if (range) write_file(folder, "max_energy_range_uj", range);
}

static int make_root(void **state)
{
    char path[64];
    (void)state;
    if (!mkdtemp(root)) return -1;
    snprintf(path, sizeof path, "%s/powercap", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/hwmon", root);
    return mkdir(path, 0755);
}

static int remove_root(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* Packages and memory; not the parts of a package, the platform, nor other drivers. */
static void counters_are_read(void **state)
{
    (void)state;
    CornuEnergyMeter meter;
    cornu_energy_open(&meter, root);
    assert_int_equal(meter.count, 0);
    assert_true(isnan(cornu_energy_joules(&meter)));
    assert_non_null(strstr(meter.why, "/powercap"));

    write_file("hwmon/hwmon0", "name", "k10temp");
    write_file("hwmon/hwmon0", "energy1_label", "Esocket0");
    write_file("hwmon/hwmon0", "energy1_input", "5");
    write_file("hwmon/hwmon1", "name", "amd_energy");
    write_file("hwmon/hwmon1", "energy1_label", "Ecore000");
    write_file("hwmon/hwmon1", "energy1_input", "7");
    write_file("hwmon/hwmon1", "energy2_label", "Esocket0");
    write_file("hwmon/hwmon1", "energy2_input", "1000000");
    cornu_energy_open(&meter, root);
    assert_int_equal(meter.count, 1);
    write_file("hwmon/hwmon1", "energy2_input", "3500000");
    assert_float_equal(cornu_energy_joules(&meter), 2.5, 1e-9);

    write_zone("intel-rapl:0", "package-0", "900000000", "1000000000");
    write_zone("intel-rapl:1", "package-1", "0", "1000000000");
    write_zone("intel-rapl:0:0", "core", "0", "1000000000");
    write_zone("intel-rapl:0:1", "dram", "10", "1000");
    write_zone("intel-rapl:2", "psys", "0", "1000000000");
    write_zone("intel-rapl-mmio:0", "package-0", "0", "1000000000");
    cornu_energy_open(&meter, root);
    assert_int_equal(meter.count, 3);
    assert_float_equal(cornu_energy_joules(&meter), 0.0, 0.0);
    write_zone("intel-rapl:0", "package-0", "950000000", NULL);
    write_zone("intel-rapl:1", "package-1", "2000000", NULL);
    write_zone("intel-rapl:0:0", "core", "77000000", NULL);
    assert_float_equal(cornu_energy_joules(&meter), 52.0, 1e-9);
}

/* From 950 J by 100 J to 50 J, with a range of 1000 J; and again. */
static void counters_wrap_around(void **state)
{
    (void)state;
    CornuEnergyMeter meter;
    write_zone("intel-rapl:1", "package-1", "0", "1000000000");
    write_zone("intel-rapl:0", "package-0", "950000000", "1000000000");
    write_zone("intel-rapl:0:1", "dram", "10", "1000");
    cornu_energy_open(&meter, root);
    write_zone("intel-rapl:0", "package-0", "50000000", NULL);
    assert_float_equal(cornu_energy_joules(&meter), 100.0, 1e-9);
    write_zone("intel-rapl:0", "package-0", "40000000", NULL);
    assert_float_equal(cornu_energy_joules(&meter), 1090.0, 1e-9);
    write_zone("intel-rapl:0", "package-0", "none", NULL);
    assert_true(isnan(cornu_energy_joules(&meter)));
    cornu_energy_open(&meter, root);
    assert_int_equal(meter.count, 2);   /* without that one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_read),
        cmocka_unit_test(counters_wrap_around),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
