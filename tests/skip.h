/*
 * Tests that cannot run here say what they lack, and after a colon what would bring it:
 *
 *     if (!has_hdf5()) SKIP_FOR("libhdf5: make deps-test");
 *
 * tests/run counts them by reason. To be included after cmocka.h, in place of whose skip() it is.
 */
#ifndef CORNU_TESTS_SKIP_H
#define CORNU_TESTS_SKIP_H

#define SKIP_FOR(reason)                                \
    do {                                                \
        print_message("[  BECAUSE ] %s\n", (reason));   \
        skip();                                         \
    } while (0)

/* The reasons that are everywhere. */
#define SKIP_SANITIZER  "sanitizer: a build without SANITIZE"
#define SKIP_EMULATOR   "emulator: this processor's own"
#define SKIP_HDF5       "libhdf5: make deps-test"
#define SKIP_CURL       "curl: make deps"
#define SKIP_PARQUET    "libparquet-glib: the packages of arrow.apache.org/install"
#define SKIP_DATA       "data sets: CORNU_DATA=FOLDER with the published files"
#define SKIP_KERAS      "Keras: CORNU_PYTHON=an interpreter with keras"
#define SKIP_ISA        "instruction set: a processor that has it"
#define SKIP_PJRT       "pjrt: make deps-pjrt"
#define SKIP_PROCESSORS "processors: two or more"
#define SKIP_LOCALE     "locale with a decimal comma: apt-get install locales"

#endif
