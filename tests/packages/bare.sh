# Sourced by scripts that try things in a bare root of this Debian, $bare, after checks.sh. Needs
# root, debootstrap and a mirror.
finish() {
    umount "$bare/proc" 2>/dev/null
    [ -n "$KEEP" ] || rm -rf --one-file-system "$bare"
    rm -rf "$folder"
}
trap finish EXIT

# Where pip needs other certificates here, it does there.
in_root() { chroot "$bare" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive CORNU_DATA=/root/data ${PIP_CERT:+PIP_CERT=/root/pip.pem} \
    "$@" >out 2>err </dev/null; }
script() { in_root bash -ec "$1"; }

# A root as debootstrap calls it minimal, with the digits in /root/data.
bare_make() {
    local VERSION_CODENAME mirror
    . /etc/os-release
    mirror=$(sed -n 's,^\(deb\|URIs:\) *\(http[^ ]*/debian\)/*\( .*\)*$,\2,p' /etc/apt/sources.list \
        /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
    umount "$bare/proc" 2>/dev/null
    rm -rf --one-file-system "$bare"
    debootstrap --variant=minbase "$VERSION_CODENAME" "$bare" \
        "${mirror:-http://deb.debian.org/debian}" >out 2>err &&
        cp /etc/resolv.conf /etc/hosts "$bare/etc/" && mount -t proc proc "$bare/proc" &&
        mkdir -p "$bare/root/data" && cp -R "$CORNU_DATA/mnist" "$bare/root/data/" &&
        { [ -z "$PIP_CERT" ] || cp "$PIP_CERT" "$bare/root/pip.pem"; }
}
