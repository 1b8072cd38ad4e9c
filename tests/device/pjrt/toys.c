#include "toys.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../skip.h"

const char *toy_compiled(const char *source, const char *name, const char *options)
{
    char        command[3 * FILES_PATH];
    const char *path = files_path(folder, name), *compiler = getenv("CC");
    snprintf(command, sizeof command,
             "${CC:-cc} -std=gnu11 -shared -fPIC -I. %s -x c tests/device/pjrt/%s -o '%s'", options,
             source, path);
    if (getenv("CORNU_TEST_WRAPPER") || system("command -v ${CC:-cc} >/dev/null") != 0)
        SKIP_FOR(getenv("CORNU_TEST_WRAPPER") ? SKIP_EMULATOR : "compiler: make deps");
    if (system(command) != 0) fail_msg("%s, with CC=%s", command, compiler ? compiler : "");
    return path;
}

void *toy_variable(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void *variable = library ? dlsym(library, name) : NULL;
    assert_non_null(variable);
    dlclose(library);
    return variable;
}
