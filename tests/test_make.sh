# make: where something is missing, one line says so before anything is compiled; it builds in
# parallel, unless told otherwise, and numbers what it does.
# tests/run: in check
root=$(pwd)
. tests/checks.sh
unset MAKEFLAGS MAKELEVEL MFLAGS T
mkdir tree && cp -R "$root"/{Makefile,.packages.mk,.packaging,device,tensor,nn,datasets,models,examples} tree &&
    mkdir tree/tests && cp -R "$root"/tests/{*.mk,fuzz} tree/tests || exit 1

says_what_is_missing() { # says_what_is_missing PACKAGE ARGUMENT...
    ! make -C tree "${@:2}" >out 2>err && ! grep -q '^ *\[\|  cc  ' out &&
        [ "$(grep -c '^Cornu needs' err)" = 1 ] &&
        grep -q "^Cornu needs.* $1.*: run .make deps., which installs them$" err
}
check "no compiler" says_what_is_missing gcc CC=no-such-compiler
sed 's,jansson.h:libjansson-dev,no-such/header.h:libno-such-dev,' "$root/.packages.mk" >tree/.packages.mk
check "no header" says_what_is_missing libno-such-dev
cp "$root/.packages.mk" tree/.packages.mk
no_blis() {
    ! make -C tree BLIS=no/libblis.a >out 2>err && grep -q '^Cornu needs blis-serial/libblis.a' err
}
check "no BLIS" no_blis

# Two targets, of which one waits for the other to begin.
cat >tree/GNUmakefile <<'END'
include Makefile
three: ; $(again) one two
one:
	$(call say,try,$@)true
two: one
	$(call say,try,$@)true
meet: waits comes
waits: ; @for i in $$(seq 50); do [ ! -e met ] || exit 0; sleep 0.1; done; exit 1
comes: ; @touch met
END
numbered() {
    make -s -C tree "$@" three >out 2>err &&
        printf '[1/2]  try  one\n[2/2]  try  two\n' | cmp -s - out
}
check "commands are numbered" numbered
check "also one at a time" numbered -j1
some_shown() {
    make -s -C tree EVERY=2 three >out 2>err && echo '[2/2]  try  two' | cmp -s - out
}
check "EVERY=2 shows each second one" some_shown
if [ "$(nproc)" -gt 1 ]; then
    meets() { rm -f tree/met; make -C tree "$@" meet >out 2>err; }
    check "make builds in parallel" meets
    apart() { ! meets -j1; }
    check "but not under -j1" apart
else
    skip 2 "processors: two or more"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
