#include "accelerators.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool any(const char *pattern)
{
    glob_t     found;
    const bool some = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return some;
}

/* The hexadecimal number in a file of a PCI device; `absent` if it cannot be read. */
static unsigned long pci_number(const char *device, const char *name, unsigned long absent)
{
    char          path[512];
    unsigned long number = absent;
    snprintf(path, sizeof path, "%s/%s", device, name);
    FILE *file = fopen(path, "r");
    if (!file) return absent;
    if (fscanf(file, "%lx", &number) != 1) number = absent;
    fclose(file);
    return number;
}

/* Google's other devices, in every machine of its cloud, are networks and disks. New TPUs get new
 * device numbers, so it is these that are excluded. */
static bool may_be_tpu(const char *device)
{
    enum { GOOGLE = 0x1ae0, STORAGE = 1, NETWORK = 2 };
    const unsigned long class = pci_number(device, "class", 0) >> 16;
    return pci_number(device, "vendor", 0) == GOOGLE && class != STORAGE && class != NETWORK;
}

bool cornu__has_tpu(void)
{
    glob_t devices;
    bool   found = false;
    if (glob("/sys/bus/pci/devices/*", GLOB_NOSORT, NULL, &devices) == 0)
        for (size_t i = 0; i < devices.gl_pathc; i++)
            found = found || may_be_tpu(devices.gl_pathv[i]);
    else
        found = any("/dev/accel*") || any("/dev/vfio/[0-9]*");
    globfree(&devices);
    return found;
}

/* The last one is that of Linux in Windows. */
bool cornu__has_gpu(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 ||
           access("/dev/dxg", F_OK) == 0;
}
