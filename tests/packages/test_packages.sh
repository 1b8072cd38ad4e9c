# `make deb` makes packages of one version that share no file, depend on what their files load,
# name the functions that libcornu exports, and give lintian nothing to say. make check-packages
# installs and uses them.
# tests/run: takes 60 s, in check
case $BUILD in
*sanitize*) printf '%s\n' "skipping 1: sanitizer: a build without SANITIZE" "0 passed, 0 failed, 1 skipped"; exit ;;
esac
for tool in dh dh_python3 dpkg-buildpackage; do
    command -v $tool >/dev/null && continue
    printf '%s\n' "skipping 1: $tool: make deps-deb" "0 passed, 0 failed, 1 skipped"
    exit
done
root=$(pwd)
. tests/checks.sh
deb="$programs/deb"
version=$(sed -n 's/^#define CORNU_VERSION "\(.*\)"/\1/p' "$root/device/version.h")

# The debug symbols take longest to pack, and good compression.
make_deb() {
    DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1 \
        make -s -C "$root" BUILD="$BUILD" deb >out 2>err
}
check "make deb" make_deb
[ $failed = 0 ] || { cat out; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

wanted="cornu libcornu-dev libcornu0"
for file in "$programs"/libcornu_mpi_*.so; do
    [ ! -e "$file" ] || { wanted="$wanted libcornu-mpi0"; break; }
done
[ ! -d "$root/nn/python/cornu" ] || wanted="$wanted python3-cornu"

field() { dpkg-deb -f "$deb/$1"_*.deb "$2"; }

all_packages() {
    local file
    for file in "$deb"/*.deb; do dpkg-deb -f "$file" Package; done | sort >out
    [ "$(paste -sd ' ' out)" = "$(tr ' ' '\n' <<<"$wanted" | sort | paste -sd ' ')" ]
}
check "the packages are $wanted" all_packages

one_version() {
    local name
    for name in $wanted; do
        [ "$(field "$name" Version)" = "$version" ] || { echo "$name" >err; return 1; }
    done
}
check "they have the version of device/version.h" one_version

owned() {
    local name
    for name in $wanted; do dpkg-deb -c "$deb/$name"_*.deb; done >contents
    ! grep -v 'root/root' contents >out &&
        ! awk '!/\/$/ { print $6 }' contents | sort | uniq -d | grep . >out
}
check "root owns each file, which is in one package" owned

# The files of each are below its name.
for name in $wanted; do dpkg-deb -x "$deb/$name"_*.deb "$name"; done

depends() { # depends PACKAGE FIELD NAME...: the field has these packages
    local name fields
    fields=", $(field "$1" "$2"),"
    for name in "${@:3}"; do
        [[ $fields =~ [\ ]$name[\ ,] ]] || { echo "$1: $2: $fields" >err; return 1; }
    done
}
check "libcornu0 depends on what it loads" depends libcornu0 Depends libc6 libjansson4 zlib1g
check "cornu depends on libcornu0" depends cornu Depends libcornu0 libc6
if dpkg-query -S '*/libmicrohttpd.so.[0-9]*' >out 2>&1 && grep -q CORNU_MICROHTTPD "$programs/http"; then
    check "it recommends what it loads to serve" depends cornu Recommends 'libmicrohttpd[0-9a-z]+'
    check "and the library suggests it" depends libcornu0 Suggests 'libmicrohttpd[0-9a-z]+'
    loads_http() { ! field cornu Depends | grep libmicrohttpd >err; }
    check "which it needs for nothing else" loads_http
else
    skip 3 "libmicrohttpd: make deps-serve, then make"
fi
check "libcornu-dev depends on its library and on what a static program needs" \
    depends libcornu-dev Depends libcornu0 libjansson-dev zlib1g-dev
if grep -q CORNU_HDF5=libhdf5_serial "$programs/hdf5" &&
    dpkg-query -S '*/libhdf5_serial.so.[0-9]*' >out 2>&1; then
    check "libcornu0 recommends what it loads for Keras' files" \
        depends libcornu0 Recommends 'libhdf5-[0-9a-z-]+'
else
    skip 1 "libhdf5: make deps-test"
fi
one_mpi() { field libcornu-mpi0 Depends >out && grep -qE '(libopenmpi|libmpich)[^,]*,' out; }
case $wanted in
*libcornu-mpi0*) check "libcornu-mpi0 depends on a library of MPI" one_mpi ;;
esac

linked() {
    [ "$(cd cornu/usr/bin && echo *)" = cornu ] &&
        readelf -d cornu/usr/bin/cornu | grep -q 'NEEDED.*libcornu.so.0'
}
check "there is one program, cornu, which uses libcornu0" linked

described() { # a page for each command, and completion
    local name
    for name in cornu $("$programs/cornu" --complete | grep -vx help | sed 's/^/cornu-/'); do
        echo "cornu/usr/share/man/man1/$name.1.gz"
    done | sort >pages
    ls cornu/usr/share/man/man1/* | diff pages - >out &&
        [ -s cornu/usr/share/man/man7/cornu.7.gz ] &&
        [ "$(ls cornu/usr/share/bash-completion/completions)" = cornu ]
}
check "it has a page for each command, and completion" described

loaded() { # it runs with the library of the package
    LD_LIBRARY_PATH=$(echo libcornu0/usr/lib/*) cornu/usr/bin/cornu --version >out 2>err &&
        [ "$(cat out)" = "Cornu $version" ]
}
check "it runs with the library" loaded

listed() {
    nm --dynamic --defined-only libcornu0/usr/lib/*/libcornu.so.0 | awk '{ print $3 }' |
        sort >exported
    dpkg-deb -I "$deb"/libcornu0_*.deb symbols |
        sed -n 's/^ \([a-z0-9_]*\)@Base .*/\1/p' | sort >out
    [ "$(wc -l <exported)" -gt 500 ] && ! grep -v '^cornu_[a-z]' exported && cmp -s out exported
}
check "the symbols of libcornu0 are all that it exports" listed

# A program that was linked with a function that is gone would not start.
lost() {
    mkdir -p gone/debian && cp "$deb"/cornu/debian/{control,changelog} gone/debian
    { cat "$deb/cornu/debian/libcornu0.symbols"; echo " cornu_gone@Base 0.0.1"; } \
        >gone/debian/libcornu0.symbols
    (cd gone && ! dpkg-gensymbols -plibcornu0 -c1 -P"$folder/libcornu0" >../out 2>&1) &&
        grep -q '^-.* cornu_gone' out
}
check "a function that is gone is an error" lost

found() {
    grep -q '^prefix=/usr$' libcornu-dev/usr/lib/*/pkgconfig/cornu.pc &&
        ! grep -q rpath libcornu-dev/usr/lib/*/pkgconfig/cornu.pc &&
        ls libcornu-dev/usr/lib/*/cmake/Cornu/CornuConfig.cmake >out &&
        [ "$(readlink libcornu-dev/usr/lib/*/libcornu.so)" = libcornu.so.0 ]
}
check "libcornu-dev is found by pkg-config, CMake and the linker" found

if command -v lintian >/dev/null; then
    quiet() { lintian --allow-root --fail-on error,warning "$deb"/*.changes >out 2>err; }
    check "lintian has no error and no warning" quiet
else
    skip 1 "lintian: apt-get install lintian"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
