# cornu cartpole: both ways to learn learn, the same seed gives the same bytes, errors are named.
. tests/checks.sh

balance() { timeout "${CORNU_TEST_TIMEOUT:-300}" "$programs/cornu" cartpole "$@" >out 2>err </dev/null; }

mean() { sed -n 's/.*mean return \([0-9.]*\) of.*/\1/p' out; }

learns() { # learns MEAN ARGUMENT...
    local wanted=$1
    shift
    balance "$@" && awk -v m="$(mean)" -v w="$wanted" 'BEGIN { exit !(m >= w) }'
}
check "a policy gradient learns" learns 60 --algorithm ppo --episodes 150
check "values of actions are learned" learns 60 --algorithm dqn --episodes 250

same_bytes() { # same_bytes ALGORITHM
    local short="--algorithm $1 --episodes 60"
    balance $short --seed 5 --save a.safetensors && mv out first &&
        balance $short --seed 5 --save b.safetensors && cmp out first &&
        cmp a.safetensors b.safetensors &&
        balance $short --seed 5 --threads 2 && tail -n 2 out | cmp - <(tail -n 2 first) &&
        balance $short --seed 6 && ! cmp -s out first
}
check "the policy gradient: the same seed, the same bytes" same_bytes ppo
check "values of actions: the same seed, the same bytes" same_bytes dqn

other_device() { balance --device tpu --episodes 5 && grep -q '^Not solved after 5' out; }
check "another device" other_device

says() { # says MESSAGE ARGUMENT...
    local message=$1
    shift
    ! balance "$@" && grep -q -- "$message" err && ! grep -q 'mean return' out
}
check "an unknown algorithm is named" says '--algorithm is "a2c", expected ppo, dqn' \
    --algorithm a2c
check "no episodes are refused" says '--episodes is "0", expected a whole number from 1' \
    --episodes 0
check "a file that cannot be written is named first" says 'no/m.safetensors: cannot be written' \
    --save no/m.safetensors

diverges() { says 'not finite: a smaller --learning-rate' "$@" --learning-rate 1e38; }
check "a policy that diverges ends the training" diverges --algorithm ppo
check "values that diverge end the training" diverges --algorithm dqn

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
