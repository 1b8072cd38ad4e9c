# tests/prototypes.awk finds public functions without a comment of their own, and no others.
script=$(pwd)/tests/prototypes.awk
. tests/checks.sh

# finds "NAME ...": of a header read from standard input these functions have no comment.
finds() {
    cat >header.h
    awk -f "$script" header.h >out
    [ $? = "$([ -n "$1" ] && echo 1 || echo 0)" ] || return 1
    [ "$(awk '{ print $2 }' out | xargs)" = "$1" ]
}

check "a comment above or behind" finds "" <<'END'
/* The sum. */
int cornu_add(int a, int b);
const char *cornu_name(void);   /* "cornu" */
/* A long one
 * of two lines. */
CornuStatus cornu_run(const char *path,
                      int count);
int cornu_next(int i);    /* the next
                             one */
END

check "a comment of another function, a heading, none" finds "cornu_b cornu_c cornu_d" <<'END'
/* Both. */
int cornu_a(void);
int cornu_b(void);

/* ---- Others ---- */

int cornu_c(void);

/* A remark on what follows. */

double cornu_d(int first,
               int second);
END

check "a constructor is described by its config or its macro" finds "cornu_pool_from" <<'END'
/* A layer. */
typedef struct {
    char unset;
} CornuDenseConfig;

CornuLayer *cornu_dense_from(const CornuDenseConfig *config);
#define cornu_dense(...) cornu_dense_from(&(CornuDenseConfig){ .unset = 0, __VA_ARGS__ })

/* Another, of the same arguments. */
typedef CornuDenseConfig CornuWideConfig;

CornuLayer *cornu_wide_from(const CornuWideConfig *config);

/* Loads. */
#define cornu_load(...) \
    cornu_load_from(&(CornuLoadConfig){ .unset = 0, __VA_ARGS__ })
CornuModel *cornu_load_from(const CornuLoadConfig *config);

typedef struct {
    int size;
} CornuPoolConfig;

CornuLayer *cornu_pool_from(const CornuPoolConfig *config);
END

check "types, inline functions and macros are no prototypes" finds "" <<'END'
typedef int cornu_function(int i);
static inline int cornu_inline(int i) { return i; }
#define cornu_macro(x) (x)
extern const int cornu_number;
END

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
