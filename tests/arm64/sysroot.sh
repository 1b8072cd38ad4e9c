#!/usr/bin/env bash
# sysroot.sh FOLDER PACKAGE...: unpacks Debian's packages for arm64, and all they depend on, into
# FOLDER/sysroot, unless the same versions are there. Uses its own lists, cache and state of apt, in
# FOLDER/apt, so that the machine's are neither read nor changed; needs no root.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ "$(cat "$folder/sysroot/packages" 2>/dev/null)" = "$*" ] && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
    echo "the libraries for arm64 come from Debian, but there is no apt-get here; unpack these" \
         "packages and what they depend on in $folder/sysroot: $*"
    exit 1
}
echo "unpacking for arm64 in $folder/sysroot: $*"
apt=$folder/apt
rm -rf "$folder/sysroot" "$apt"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$folder/sysroot"
: >"$apt/status"
get() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt/state" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Debug::NoLocking=1 -o APT::Sandbox::User= "$@" >>"$apt/log" 2>&1 || {
        tail -n 20 "$apt/log"
        echo "could not download; all of it is in $apt/log"
        exit 1
    }
}
get update
get install --download-only -y --no-install-recommends "$@"
for package in "$apt"/cache/archives/*.deb; do dpkg -x "$package" "$folder/sysroot"; done
rm -rf "$apt"
echo "$*" >"$folder/sysroot/packages"
