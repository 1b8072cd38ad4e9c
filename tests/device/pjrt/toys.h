/* Plugins that tests compile from *.toy. */
#ifndef CORNU_TESTS_DEVICE_PJRT_TOYS_H
#define CORNU_TESTS_DEVICE_PJRT_TOYS_H

/* The path of a library, `name` in the temporary folder, that is compiled with these options from
 * `source` in this folder. Skips the test if there is no compiler, or the test is emulated. */
const char *toy_compiled(const char *source, const char *name, const char *options);

/* A variable of a plugin that is loaded. */
void *toy_variable(const char *path, const char *name);

#endif
