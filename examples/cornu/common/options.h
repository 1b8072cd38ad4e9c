/*
 * Command lines of cornu's commands: --flag value or --flag=value, with the same flags and the same
 * words everywhere.
 *
 *     Options options = { .epochs = 12, .batch_size = 128 };
 *     const Program program = {
 *         .name = "cornu train", .purpose = "Trains a model.",
 *         .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING,
 *     };
 *     int status = options_parse(&options, &program, argc, argv);
 *     if (status >= 0) return status;
 */
#ifndef CORNU_EXAMPLES_OPTIONS_H
#define CORNU_EXAMPLES_OPTIONS_H

#include <cornu/cornu.h>

#include "refuse.h"

enum { OPTION_MAX_TEXTS = 64 };

/* Of a flag that may be given several times. */
typedef struct {
    const char *text[OPTION_MAX_TEXTS];
    int         count;
} OptionTexts;

/* The values of the common flags. What a program fills in before parsing is the default that --help
 * shows; 0, 0.0 or NULL means that the program decides. */
typedef struct {
    const char *device;            /* cpu unless set; a program without --device sets it */
    const char *policy;            /* NULL: the device decides */
    const char *precision;         /* NULL: the device's default */
    const char *transport;         /* NULL: the best between the processes */
    double      rank_timeout;      /* seconds; 0: the library's */
    int64_t     shards, threads;   /* threads 0: as many as there are processors */
    const char *mesh;              /* of the shards, see mesh_flags.h; NULL: none */
    const char *pipeline;          /* stages and microbatches, likewise; NULL: none */
    OptionTexts layout;
    bool        fully_sharded;
    const char *model;
    int64_t     epochs, batch_size, steps_per_epoch, steps_per_execution, limit, seed;
    double      learning_rate, price_per_hour;
    int64_t     backup_freq, profile_batch;
    const char *data;              /* what, see data.h; NULL: the program decides */
    const char *data_dir;          /* where sets lie; NULL: found as datasets/fetching says */
    const char *save, *load, *history, *trace, *tensorboard, *labels, *plots, *report,
               *backup;
    const char *dashboard;         /* the port, "0" for a free one; NULL: none */
    const char *dashboard_address;
    bool         gradient_norm, debug_nans;
    CornuVerbose verbose;

    const char *const *arguments;  /* everything that is not a flag */
    int                argument_count;
    char               command[1024]; /* the whole line, for records; cut where it is longer */
} Options;

/* The common flags that a program has, which are those that it uses. --model comes with
 * Program.models; every program has --help and --version. */
enum {
    OPTIONS_DEVICE   = 1,          /* --device */
    OPTIONS_NUMERICS = 2,          /* --policy --precision --shards */
    OPTIONS_THREADS  = 4,          /* --threads */
    OPTIONS_PROCESSES = 256,       /* --transport --rank-timeout */
    OPTIONS_MACHINE  = OPTIONS_DEVICE | OPTIONS_NUMERICS | OPTIONS_THREADS | OPTIONS_PROCESSES,
    OPTIONS_DATA     = 8,          /* --data --data-dir --limit, and --seed */
    OPTIONS_TRAINING = 16,         /* --epochs --batch-size --learning-rate */
    OPTIONS_FIT      = 32,         /* --steps-per-epoch --steps-per-execution --save --load
                                      --history --trace --tensorboard --profile-batch --plots
                                      --report --price-per-hour --dashboard --dashboard-address
                                      --backup --backup-freq --gradient-norm --debug-nans
                                      --verbose */
    OPTIONS_ALL      = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING | OPTIONS_FIT,
    OPTIONS_CLASSES  = 64,         /* --labels */
    OPTIONS_SEED     = 128,        /* --seed, without the data */
    OPTIONS_MESH     = 512,        /* --mesh --layout --fully-sharded */
    OPTIONS_PIPELINE = 1024,       /* --pipeline */
};

/* OPTION_TEXTS: a string that may be given several times. OPTION_MAYBE: a whole number, as text,
 * that may be left out, then it is 0; without "=" the next argument is its value if that is one.
 * OPTION_FLAG: as a switch, or --name=false
 * and --noname, as in TensorFlow's programs. */
typedef enum {
    OPTION_TEXT, OPTION_TEXTS, OPTION_WHOLE, OPTION_MAYBE, OPTION_NUMBER, OPTION_CHOICE,
    OPTION_SWITCH, OPTION_FLAG
} OptionKind;

/* One flag. */
typedef struct {
    const char        *name;       /* without the dashes */
    OptionKind         kind;
    void              *to;         /* const char **, OptionTexts *, int64_t *, const char **,
                                      double *, const char **, bool *, bool * */
    const char        *value;      /* "N", "FILE.json": the word for the value in --help */
    const char        *help;
    double             least, most;
    const char *const *choices;    /* for OPTION_CHOICE, up to NULL; "pjrt:..." is any that begins
                                      so */
} Option;

/* The end of a list of them. */
#define OPTION_END { NULL, OPTION_TEXT, NULL, NULL, NULL, 0, 0, NULL }

typedef struct {
    const char        *name, *purpose;
    unsigned           groups;
    const char *const *models;     /* what --model may be, up to NULL */
    const char        *data;       /* the help of --data, where it may be more than sets */
    bool               data_no_sets;      /* --data is nothing that lies in --data-dir */
    bool               epochs_may_be_0;   /* --epochs 0 is taken; then its default is not 0 */
    const Option      *extra;      /* flags of this program alone, up to a NULL name */
    const char        *arguments;  /* "MODEL IMAGE...", or NULL if it takes none; with dots there
                                      may be more than least_arguments */
    int                least_arguments;
} Program;

/* -1 to continue, else the status to exit with: 0 after --help or --version, or after --complete,
 * which lists the flags for a shell; 2 after a message on what was expected and what came. Messages
 * call the program as argv[0] does. Values point into argv. */
int options_parse(Options *options, const Program *program, int argc, char **argv);

/* Translates a message of the library, which names fields of configs, to the program's flags: if
 * the program has that flag, ".batch_size is 0" becomes "--batch-size is 0", and ".data =
 * \"synthetic\"" becomes "--data synthetic". A note that the error is still pending, which is for
 * callers of the library, is left out. Valid until the next call. */
const char *options_translate(const char *message);

#endif
