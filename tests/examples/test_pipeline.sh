# --pipeline of cornu train: what is trained, printed, resumed and refused.
# tests/run: in check
. tests/checks.sh
small="mnist_cnn --data synthetic --limit 320 --batch-size 32 --epochs 1 --verbose 2 --threads 1"

train() { "$programs/cornu" train "$@" >out 2>err; }
ranks() { # ranks N ARGUMENT...
    local count=$1
    shift
    "$programs/cornu" run -n "$count" "$programs/cornu" train "$@" >out 2>err
}
says() { grep -qE -- "$1" out; }
refuses() { # refuses TEXT ARGUMENT...
    local text=$1
    shift
    ! train "$@" && grep -qF -- "$text" err
}

trains() { # trains NETWORK STAGES COUNT...
    local network=$1 stages=$2
    shift 2
    train $network --pipeline "$stages" --save whole.safetensors || return 1
    for count in "$@"; do
        ranks "$count" $network --pipeline "$stages" --save ranks.safetensors &&
            cmp whole.safetensors ranks.safetensors || return 1
    done
}
text="char_gpt --data synthetic --limit 4000 --batch-size 8 --sequence-length 16 --validation-split 0
      --epochs 1 --steps-per-epoch 3 --verbose 2"
check "3 stages, in 1, 2 and 3 processes" trains "$small" 3,8 2 3
check "where the stages are" says '^stage 2 on rank 2: max_pooling2d_1 … dense_1 '
check "and how long they idle" says '^bubble: 20.0 % of the slots, \(p - 1\) / \(m \+ p - 1\) is 20.0 %$'
cp whole.safetensors first.safetensors
other() { train $small --pipeline 2,8,gpipe --save other.safetensors && cmp first.safetensors other.safetensors; }
check "the bits of other stages and the other schedule" other
check "says the schedule" says '^pipeline: 2 stages, 8 microbatches of 4 rows, gpipe: 18 slots$'
check "char_gpt, in 1 and 2 processes" trains "$text" 4,8 2

# ---- Shards of a stage ----

meshes() {
    trains "$small --mesh batch=2,model=2" 2,4 2 4 && says '^Mesh \(batch=2, model=2\): ' &&
        trains "$small --shards 2 --fully-sharded" 2,4 4
}
check "stages on a mesh, in 1, 2 and 4 processes" meshes
check "char_gpt, cut by its heads as well" trains "$text --mesh batch=1,model=2" 2,4 4
replicas() { trains "$small --shards 2" 2,4 2 4; }
check "replicas of stages" replicas

# ---- Files ----

loads() {
    train $small --load first.safetensors --save plain.safetensors &&
        trains "$small --load first.safetensors" 2,4 2
}
check "files go from one to the other" loads
if "$programs/cornu" convert first.safetensors plain.keras >out 2>err; then
    check "a file of Keras, compiled" train $small --save plain.keras
    own="plain.keras --data synthetic --limit 320 --batch-size 32 --epochs 1 --verbose 2 --threads 1"
    check "is trained in stages as well" trains "$own" 3,4 2
else
    skip 2 "HDF5: apt-get install libhdf5-103-1"
fi

# ---- Kills ----

long="mnist_cnn --data synthetic --limit 960 --batch-size 32 --epochs 1 --verbose 2 --threads 1"
killed() {
    local process
    train $long --pipeline 3,4 --save whole.safetensors || return 1
    "$programs/cornu" run -n 3 "$programs/cornu" train $long --pipeline 3,4 --backup kept \
        --backup-freq 1 >out 2>err &
    process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.02
    done
    kill -KILL $process
    wait $process 2>/dev/null
    ranks 2 $long --pipeline 4,4 --backup kept --save cut.safetensors && says 'Resuming from kept' &&
        cmp whole.safetensors cut.safetensors && [ ! -e kept ]
}
check "3 processes that are killed resume as 2, to the same bytes" killed

# ---- Refused ----

few() { ! ranks 3 $small --pipeline 2 && grep -qF '3 processes for 2 stages' err; }
check "more processes than stages" few
check "no stages" refuses '--pipeline x: expected 1 to 32 stages' $small --pipeline x
check "a schedule that is none" refuses 'such as 4,8' $small --pipeline 2,4,zigzag
odd() { ! ranks 5 $small --pipeline 2 --shards 2 && grep -qF '5 processes for 2 stages of 2 shards' err; }
check "processes that stages and shards cannot be dealt to" odd
check "slices without shards" refuses '--pipeline and --fully-sharded' $small --pipeline 2 --fully-sharded
check "more stages than layers" refuses '.stages is 9, expected at most' $small --pipeline 9,8
check "more microbatches than rows" refuses 'a batch of 32 rows for 64 microbatches' $small --pipeline 2,64

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
