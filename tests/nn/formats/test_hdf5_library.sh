# libhdf5 is loaded when the first HDF5 file is opened: nothing is linked with it, and if it is
# missing, broken or of another version, the error says what to install.
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
CC=${CC:-cc}
root=$(pwd)
. tests/checks.sh
saved=$root/tests/golden/files/images.h5

cat >load.c <<'END'
#include <cornu/cornu.h>
#include <stdio.h>

/* Twice: loading is retried after a failure. */
int main(int count, char **names)
{
    for (int i = 0; i < 2; i++) {
        CornuModel *model = count > 1 ? cornu_model_load(names[1]) : NULL;
        printf("%s\n", model ? "loaded" : cornu_error_message());
        if (!model) cornu_error_take();
        cornu_model_free(model);
    }
}
END

# compiles NAME FLAG...
compiles() {
    $CC -std=c11 -Wall -Wextra "${@:2}" load.c -o "$1" -I"$root/build/include" \
        "$programs/libcornu.a" -lz -ljansson -lpthread -lm >out 2>err
}

not_linked() { ! readelf -d load "$programs/libcornu.so" | grep hdf5 >out; }

# says TEXT PROGRAM: both times.
says() {
    "./$2" "$saved" >out 2>err && [ ! -s err ] && [ "$(grep -cF -- "$1" out)" = 2 ]
}

# without TEXT: with the library in ./lib instead of libhdf5.
without() { LD_LIBRARY_PATH=$folder/lib says "$1" load; }

check "a program links without libhdf5" compiles load
check "no libhdf5 is linked" not_linked
check "a static program links without libhdf5" compiles load-static -static

if ./load "$saved" | grep -q "was built without"; then
    skip 8 "libhdf5: make deps-test"
else
    name=$(sed -n 's/.*CORNU_HDF5=\([^ ]*\).*/\1/p' "$programs/hdf5")
    check "loads $name" says loaded load
    check "a static program loads it too" says loaded load-static

    # A group that libhdf5 cannot close again, and would speak of at the end.
    cp "$saved" damaged.h5
    chmod u+w damaged.h5
    printf '\377' | dd of=damaged.h5 bs=1 seek=1170 conv=notrunc 2>/dev/null
    saved=damaged.h5 check "it never prints" says "cannot be opened" load

    mkdir lib
    echo "no library" | tee "lib/$name" >lib/libhdf5.so
    check "a file that is not a library" without "$name: "
    check "says what to install" without "install libhdf5-dev"
    refuses_early() { # a training whose model could not be saved does not begin
        ! LD_LIBRARY_PATH=$folder/lib "$programs/cornu" train mnist_cnn --data synthetic --limit 100 \
            --epochs 1 --save model.keras >out 2>err && ! grep -q Model: out &&
            grep -q '^cornu train: model.keras: .*install libhdf5-dev' err
    }
    check "says so before a training" refuses_early

    echo 'int H5open(void) { return 0; }' | $CC -shared -fPIC -x c - -o "lib/$name"
    check "a library without its functions" without "has no H5"

    awk '/^#define CORNU__HDF5_MAP/, /^typedef/' "$root/nn/formats/hdf5_library_internal.h" |
        grep -o 'X([A-Za-z_0-9]*)' | sed -n 's/X(\(.*\))/int H5\1(void) { return 0; }/p' >other.c
    sed -i 's/^int H5get_libversion.*/int H5get_libversion(unsigned *major, unsigned *minor)\
        { *major = 3; *minor = 7; return 0; }/' other.c
    $CC -shared -fPIC other.c -o "lib/$name"
    check "a library of another version" without "found is 3.7"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
