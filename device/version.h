/* Cornu's version: major, minor, patch. */
#ifndef CORNU_DEVICE_VERSION_H
#define CORNU_DEVICE_VERSION_H

#define CORNU_VERSION "0.1.0"

#endif
