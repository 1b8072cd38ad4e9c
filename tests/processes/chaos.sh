#!/usr/bin/env bash
# tests/processes/chaos.sh BUILD COUNT SEED: trainings of several processes with COUNT disturbances
# at random moments, each started again until it is done, with numbers of ranks drawn anew: every one
# must end with the bytes of an undisturbed training; half of them are of weights that a mesh cuts.
# Prints counts, and fails if any differs.
#
# Under cornu run, over shared memory or TCP:
#     kill         a rank is killed
#     stop         a rank is stopped for good
#     cut          a connection between two ranks is reset (ss -K, as root)
#     term         cornu run is to end
#     supervisor   cornu run is killed
# On two hosts, which are network namespaces (as root), each rank started on its own: kill, stop, and
#     link         the cable between the hosts is pulled
#
# A folder for backups may stay, empty: where rank 0 is killed between making and marking it, it is
# not known to be a backup's. SEED repeats what is drawn; when exactly it strikes is the machine's.
set -u
build=$(realpath "$1") wanted=$2 seed=$3
here=$(mktemp -d) || exit 1
cd "$here" || exit 1
RANDOM=$((seed & 0x7fffffff))
timeout_s=3
unset CORNU_RANK CORNU_WORKERS CORNU_LISTEN_FD TF_CONFIG
export CORNU_RANK_TIMEOUT=$timeout_s CORNU_KEY=$(head -c 24 /dev/urandom | base64)
train=("$build/cornu" train mnist_cnn --data synthetic --limit 4000 --batch-size 80 --epochs 2 --device tpu
       --threads 1 --verbose 2)
layouts=("--shards 8" "--mesh batch=4,model=2")

draw() { drawn=$((RANDOM % $1)); }   # 0 to $1 - 1, not in a subshell
pick() { draw $#; shift "$drawn"; picked=$1; }
now_ms() { local t=$EPOCHREALTIME; t=${t/[.,]/}; echo $((t / 1000)); }

# running PROCESS...: whether any is, which zombies are not.
running() {
    local p stat
    for p in "$@"; do
        read -r stat 2>/dev/null <"/proc/$p/stat" || continue
        [[ ${stat##*) } == [ZX]* ]] || return 0
    done
    return 1
}
# until_ms LIMIT CONDITION...: whether it becomes true.
until_ms() {
    local end=$(($(now_ms) + $1))
    shift
    until "$@"; do (($(now_ms) < end)) || return 1; sleep 0.01; done
}
ended() { ! running "$@"; }
children_of() {
    local stat line fields
    children=()
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" || continue
        read -ra fields <<<"${line##*) }"
        [[ ${fields[1]} == "$1" && ${fields[0]} != Z ]] || continue
        stat=${stat%/stat}
        children+=("${stat##*/}")
    done
}

# ---- What this machine can do ----

declare -A done_of=()
for kind in kill stop cut term supervisor link; do done_of[$kind]=0; done
a=cornu-a-$$ b=cornu-b-$$
leave() {
    local p
    for p in $(jobs -p); do kill -KILL "$p"; done
    ip netns del $a
    ip netns del $b
} 2>/dev/null
trap leave EXIT
make_hosts() {
    ip netns add $a && ip netns add $b &&
        ip link add ca$$ netns $a type veth peer name cb$$ netns $b &&
        ip -n $a address add 10.98.7.1/24 dev ca$$ && ip -n $b address add 10.98.7.2/24 dev cb$$ &&
        ip -n $a link set lo up && ip -n $b link set lo up &&
        ip -n $a link set ca$$ up && ip -n $b link set cb$$ up
} 2>hosts.err
hosts='' cuts=cut
make_hosts && hosts=1 || echo "no link: $(tail -n 1 hosts.err)"
[[ $(id -u) == 0 ]] && command -v ss >/dev/null || { cuts='' && echo "no cut: ss -K needs root"; }

# ---- Disturbances ----

# A connection of one of these processes.
cut_one() {
    local p lines=() fields
    for p in "$@"; do
        mapfile -t -O ${#lines[@]} lines < <(ss -Htnp state established | grep "pid=$p,")
    done
    ((${#lines[@]} > 0)) || return 1
    draw ${#lines[@]}
    read -ra fields <<<"${lines[drawn]}"
    ss -K src "${fields[2]}" dst "${fields[3]}" >/dev/null 2>&1
    ! ss -Htn state established src "${fields[2]}" dst "${fields[3]}" | grep -q .
}

count() { done_of[$1]=$((done_of[$1] + 1)) total=$((total + 1)) budget=$((budget - 1)); }

# strike KIND RANK...: disturbs one of these processes, and counts it; $supervisor is theirs.
strike() {
    local kind=$1
    shift
    (($# > 0)) || return 1
    draw $#
    local rank=${*:drawn + 1:1}
    case $kind in
    kill) kill -KILL "$rank" ;;
    stop) kill -STOP "$rank" ;;
    cut) cut_one "$@" ;;
    term) kill -TERM $supervisor ;;
    supervisor) kill -KILL $supervisor ;;
    esac 2>/dev/null || return 1
    echo "-- $kind (of $# ranks, $rank)" >>log
    count "$kind"
}

fail() {
    failures=$((failures + 1))
    echo "FAILED: trial $trial: $*"
    sed 's/^/    /' log | tail -n 40
    cp -r . "$build/chaos-$seed-$trial"
    echo "    kept in $build/chaos-$seed-$trial"
}

# ---- Under cornu run ----

noticed() { (($(grep -c '^cornu run:' err) > said)) || ended $supervisor; }

# 0: the training is done; 1: it has to be started again; 2: it hangs; 3: a rank crashed by itself.
on_one_host() {
    local ranks min restarts transport kind status
    draw 6; ranks=$((drawn + 1))
    draw $ranks; min=$((drawn + 1))
    draw 4; restarts=$drawn
    pick auto tcp; transport=$picked
    echo "== cornu run -n $ranks --restarts $restarts --min-ranks $min, $transport, $layout" >>log
    : >err
    "$build/cornu" run -n $ranks --restarts $restarts --min-ranks $min "${train[@]}" $layout \
        --transport $transport --backup kept --backup-freq 3 --save cut.safetensors >out 2>err &
    supervisor=$!
    while ((budget > 0)); do
        draw 1600
        until_ms "$drawn" ended $supervisor && break
        pick kill kill kill kill kill kill stop stop stop stop $cuts $cuts $cuts $cuts term supervisor
        kind=$picked
        children_of $supervisor
        ((${#children[@]} > 1)) || [[ $kind == [tk]* ]] || kind=kill
        said=$(grep -c '^cornu run:' err)
        strike "$kind" "${children[@]}" || continue
        [[ $kind == supervisor ]] && { until_ms 5000 ended "${children[@]}" || return 2; }
        until_ms 40000 noticed || return 2
    done
    until_ms 120000 ended $supervisor || return 2
    wait $supervisor 2>/dev/null
    status=$?
    grep -hv '^Try' err >>log
    echo "   status $status" >>log
    crashed=$(grep -cE '^cornu run:.*(killed by signal ([0-8]|[1-9][0-9])( |,|;|$)|died, too)' err)
    ((crashed == 0)) || return 3
    [[ $status == 0 ]] || grep -q 'after rank 0 was done$' err
}

# ---- On two hosts ----

on_two_hosts() {
    local ranks split workers='' rank ns processes=() statuses=() kind lasting
    draw 3; ranks=$((drawn + 2))
    draw $((ranks - 1)); split=$((drawn + 1))
    for ((rank = 0; rank < ranks; rank++)); do
        workers+=${workers:+,}10.98.7.$((rank < split ? 1 : 2)):$((20000 + rank))
    done
    echo "== two hosts, $split and $((ranks - split)) ranks, $layout" >>log
    : >err
    for ((rank = 0; rank < ranks; rank++)); do
        ns=$a
        ((rank < split)) || ns=$b
        CORNU_RANK=$rank CORNU_WORKERS=$workers ip netns exec $ns "${train[@]}" $layout --transport tcp \
            --backup kept --backup-freq 3 --save cut.safetensors >"out.$rank" 2>>err &
        processes+=($!)
    done
    if ((budget > 0)); then
        draw 1800
        until_ms "$drawn" ended "${processes[@]}"
        pick link link link kill stop; kind=$picked
        if running "${processes[@]}"; then
            case $kind in
            link) ip -n $a link set ca$$ down && echo "-- link" >>log && count link ;;
            *) strike $kind "${processes[@]}" ;;
            esac
        fi
    fi
    # The others end by themselves; a stopped rank is killed then.
    only_stopped() {
        local p stat
        for p in "${processes[@]}"; do
            read -r stat 2>/dev/null <"/proc/$p/stat" || continue
            [[ ${stat##*) } == [ZXT]* ]] || return 1
        done
    }
    until_ms 60000 only_stopped
    lasting=$?
    kill -KILL "${processes[@]}" 2>/dev/null
    for rank in "${!processes[@]}"; do wait "${processes[rank]}" 2>/dev/null; statuses+=($?); done
    ip -n $a link set ca$$ up
    cat err >>log
    echo "   statuses ${statuses[*]}" >>log
    ((lasting == 0)) || return 2
    for rank in "${statuses[@]}"; do ((rank <= 128 || rank == 137)) || return 3; done
    [[ ${statuses[0]} == 0 ]]
}

# ---- Trials ----

echo "seed $seed: $wanted disturbances of trainings of 1 to 6 ranks"
declare -A whole
for layout in "${layouts[@]}"; do
    "${train[@]}" $layout --save whole.safetensors >out 2>err || { cat err; exit 1; }
    whole[$layout]=$(sha256sum <whole.safetensors)
done
shared() { find /dev/shm -maxdepth 1 -name 'cornu-*' ! -name 'cornu-fuzz*' | sort; }
shared_before=$(shared)
trial=0 total=0 failures=0 starts=0 begin=$(now_ms)
while ((total < wanted)); do
    trial=$((trial + 1))
    rm -rf kept cut.safetensors out.*
    : >log
    pick "${layouts[@]}"; layout=$picked
    draw 4; budget=$((drawn + 1))
    ((budget <= wanted - total)) || budget=$((wanted - total))
    where=on_one_host
    [[ $hosts ]] && { draw 4; ((drawn)) || where=on_two_hosts; }
    for ((tries = 1; tries <= 40; tries++)); do
        starts=$((starts + 1))
        $where 2>/dev/null   # where the shell reports which of its children were killed
        result=$?
        ((result == 1)) || break
    done
    if ((result == 3)); then fail "a rank crashed"
    elif ((result)); then fail "did not end"
    elif [[ ! -e cut.safetensors ]]; then fail "saved nothing"
    elif [[ $(sha256sum <cut.safetensors) != "${whole[$layout]}" ]]; then fail "the result differs"
    elif [[ $(find kept -type f -size +0 2>/dev/null) ]]; then fail "the backup is still there"
    fi
    if ((trial % 20 == 0)); then echo "$total disturbances, $trial trainings, $failures failures"; fi
done
if [[ $(shared) != "$shared_before" ]]; then
    echo "FAILED: left in /dev/shm:" $(shared)
    failures=$((failures + 1))
fi
for kind in kill stop cut term supervisor link; do printf '%-12s %4d\n' $kind "${done_of[$kind]}"; done
echo "seed $seed: $total disturbances of $trial trainings, $starts starts," \
     "$((($(now_ms) - begin) / 1000)) s: $failures failures"
cd / && rm -rf "$here"
((failures == 0))
