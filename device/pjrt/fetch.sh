#!/usr/bin/env bash
# device/pjrt/fetch.sh: downloads PJRT plugins for CPUs from the Python package index into the
# user's cache, ${XDG_CACHE_HOME:-~/.cache}/cornu/pjrt, where the device pjrt finds them. `make
# deps-pjrt` runs it. A plugin that is there is left alone.
#
# They are the newest and the oldest known to work, API 0.115 and 0.81. For processors other
# than x86-64 there are none, which is not an error: the tests that need them are skipped.
set -u

# NAME-VERSION, the wheel's SHA-256, the library in it, the wheel's address.
index=https://files.pythonhosted.org/packages
wheels="
lammps-jax-pjrt-cpu-0.11.2
1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1
lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
$index/e5/90/f04e5ea9e56f01965b4cd56bc3cf4801a563cd47b74d4ded5780f19c3a7c/lammps_jax_pjrt_cpu-0.11.2-py3-none-manylinux_2_27_x86_64.whl

xla-cpu-pjrt-0.0.1
55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc
xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
$index/5d/ca/5487881b30d07396c168749ead36f57dbc4538cafdc535943afc81b3e5a2/xla_cpu_pjrt-0.0.1-py3-none-manylinux_2_27_x86_64.whl"

fail() { echo "deps-pjrt: $*" >&2; exit 1; }

download() { # download ADDRESS FILE
    if command -v curl >/dev/null; then
        curl -fsSL --retry 2 --connect-timeout 20 --speed-limit 1000 --speed-time 60 -o "$2" "$1"
    else
        wget -q --tries=3 --timeout=60 -O "$2" "$1"
    fi
}

unpack() { # unpack WHEEL MEMBER FOLDER
    if command -v unzip >/dev/null; then
        unzip -q "$1" "$2" -d "$3"
    else
        python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(*sys.argv[2:])' "$@"
    fi
}

# A plugin appears under its name when it is complete.
get() { # get NAME-VERSION SHA256 LIBRARY ADDRESS
    [ -e "$folder/$1/$3" ] && return
    echo "downloading the PJRT plugin $1 (63 MB) into $folder"
    new=$(mktemp -d "$folder/.$1.XXXXXX") || fail "cannot write to $folder"
    download "$4" "$new/wheel" ||
        fail "cannot download $4; without it, the tests that need a plugin are skipped"
    echo "$2  $new/wheel" | sha256sum --check --status ||
        fail "$4 does not have the SHA-256 $2; it is not used"
    unpack "$new/wheel" "$3" "$new/unpacked" && [ -s "$new/unpacked/$3" ] ||
        fail "cannot unpack $3 from $4"
    chmod -R u=rwX,go=rX "$new/unpacked"
    # Another process may have been faster.
    mv -T "$new/unpacked" "$folder/$1" 2>/dev/null || [ -e "$folder/$1/$3" ] ||
        fail "cannot write $folder/$1"
    rm -rf "$new"
}

processor=$(uname -sm)
if [ "$processor" != "Linux x86_64" ]; then
    echo "deps-pjrt: there is no PJRT plugin for CPUs on $processor, only on Linux x86_64"
    exit
fi
case ${XDG_CACHE_HOME:-} in
/*) folder=$XDG_CACHE_HOME/cornu/pjrt ;;
*) case ${HOME:-} in
   /*) folder=$HOME/.cache/cornu/pjrt ;;
   *) fail "no folder for plugins: neither XDG_CACHE_HOME nor HOME is set" ;;
   esac ;;
esac
mkdir -p "$folder" 2>/dev/null || fail "cannot create $folder; set XDG_CACHE_HOME to another folder"

new=
trap '[ -z "$new" ] || rm -rf "$new"' EXIT
trap 'exit 130' INT TERM HUP
while read -r name; do
    [ "$name" ] || continue
    read -r hash && read -r library && read -r address && get "$name" "$hash" "$library" "$address"
done <<<"$wheels"
