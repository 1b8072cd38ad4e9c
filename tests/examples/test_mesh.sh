# --mesh and --layout of cornu train and compare: what is trained, written, resumed and refused.
# tests/run: in check
. tests/checks.sh
small="mnist_cnn --data synthetic --limit 320 --batch-size 32 --epochs 1 --verbose 2 --threads 1"

train() { "$programs/cornu" train "$@" >out 2>err; }
ranks() { # ranks N ARGUMENT...
    local count=$1
    shift
    "$programs/cornu" run -n "$count" "$programs/cornu" train "$@" >out 2>err
}
says() { grep -qF -- "$1" out; }
refuses() { # refuses TEXT ARGUMENT...: with the status of a wrong flag
    local text=$1
    shift
    train "$@"
    [ $? = 2 ] && grep -qF -- "$text" err
}

# ---- Training ----

trains() { # trains MESH LAYOUTS
    train $small --mesh "$1" --save whole.safetensors && says "Mesh $2 for the 10 weights" || return 1
    for count in 2 4; do
        ranks $count $small --mesh "$1" --save ranks.safetensors &&
            cmp whole.safetensors ranks.safetensors || return 1
    done
}
check "2 x 4, in 1, 2 and 4 processes" trains batch=2,model=4 "(batch=2, model=4): 6 layouts"
check "1 x 8, in 1, 2 and 4 processes" trains batch=1,model=8 "(batch=1, model=8): 6 layouts"
check "8 x 1, in 1, 2 and 4 processes" trains batch=8,model=1 "(batch=8, model=1): 0 layouts"
plain() { train $small --shards 8 --save plain.safetensors && cmp whole.safetensors plain.safetensors; }
check "8 x 1 is data parallelism" plain
check "4 x 2, in 1, 2 and 4 processes" trains batch=4,model=2 "(batch=4, model=2): 8 layouts"
by_hand() {
    train $small --mesh batch=2,model=2 --layout 'dense/kernel=,model' --layout '^conv.*/kernel$=,,,model' &&
        says "Mesh (batch=2, model=2): 2 layouts"
}
check "layouts by hand" by_hand
sharded() {
    train $small --shards 8 --fully-sharded --save sharded.safetensors &&
        says "Mesh (batch=8): 0 layouts for the 10 weights of mnist_cnn, fully sharded" &&
        cmp plain.safetensors sharded.safetensors &&
        ranks 4 $small --shards 8 --fully-sharded --save ranks.safetensors &&
        cmp plain.safetensors ranks.safetensors
}
check "fully sharded, in 1 and 4 processes: the bits of data parallelism" sharded
both() {
    train $small --mesh batch=2,model=2 --fully-sharded && says "8 layouts" && says ", fully sharded"
}
check "fully sharded, over a mesh of more axes" both
check "an axis by two of the mesh, and of any name" \
    train $small --mesh x=2,y=2 --layout 'dense/kernel=x+y' --device tpu
text="char_gpt --data synthetic --limit 4000 --batch-size 8 --sequence-length 16 --validation-split 0
      --epochs 1 --steps-per-epoch 3 --verbose 2"
gpt() {
    train $text --mesh batch=2,model=4 --save whole.safetensors &&
        ranks 2 $text --mesh batch=2,model=4 --save ranks.safetensors &&
        cmp whole.safetensors ranks.safetensors
}
check "char_gpt, in 1 and 2 processes" gpt

# ---- Files ----

check "a model without a mesh" train $small --save plain.safetensors
# What its file holds is loaded over a mesh, trained and saved; and that file without one.
loads() {
    train $small --load plain.safetensors --mesh batch=1,model=4 --save over.safetensors &&
        train $small --load over.safetensors && train $small --load over.safetensors --mesh batch=4,model=2
}
check "files go from one to the other" loads
if "$programs/cornu" convert plain.safetensors plain.keras >out 2>err; then
    check "a file of Keras, compiled" train $small --save plain.keras
    own="plain.keras --data synthetic --limit 320 --batch-size 32 --epochs 1 --verbose 2"
    as_saved() { train $own --mesh batch=2,model=2 && says "(batch=2, model=2): 8 layouts"; }
    check "is trained over a mesh" as_saved
    check "where layouts are for its weights" \
        refuses 'the layout map'"'"'s "missing" is for none of its 10 weights' \
        $own --mesh batch=2,model=2 --layout missing=model
else
    skip 3 "HDF5: apt-get install libhdf5-103-1"
fi

# ---- Backups ----

# A training over 2 x 2 is stopped somewhere in its epoch; resumed over this mesh it ends with the
# same bytes, over any other and without near the same loss: within 1 %, as rounding may move an
# activation across a kink of ReLU or of a maximum, from which on thirty steps differ.
# test_meshes.c bounds that of ten.
long="mnist_cnn --data synthetic --limit 960 --batch-size 32 --epochs 1 --verbose 2"
stopped() { # stopped SIGNAL COMMAND...
    local signal=$1 process
    shift
    rm -rf kept cut.safetensors
    "$@" --backup kept --backup-freq 1 --save cut.safetensors >out 2>err &
    process=$!
    for ((i = 0; i < 3000; i++)); do
        compgen -G 'kept/backup-*' >/dev/null && break
        sleep 0.02
    done
    kill "-$signal" $process
    wait $process 2>/dev/null
    [ ! -e cut.safetensors ] && compgen -G 'kept/backup-*' >/dev/null
}
resumed() { # resumed EXPECTED ARGUMENT...: with the same bytes, or near
    local expected=$1
    shift
    rm -rf kept
    cp -r first kept
    train $long "$@" --backup kept --save cut.safetensors --history cut.json && says 'Resuming from kept' &&
        [ ! -e kept ] || return 1
    [ "$expected" = near ] || { cmp whole.safetensors cut.safetensors; return; }
    awk -v a="$(loss_in whole.json)" -v b="$(loss_in cut.json)" \
        'BEGIN { d = a - b; exit !((d < 0 ? -d : d) < 0.01 * a) }'
}
loss_in() { sed -n 's/.*"loss": \([0-9][0-9.]*\).*/\1/p' "$1" | head -n 1; }
check "undisturbed" train $long --mesh batch=2,model=2 --save whole.safetensors --history whole.json
check "stopped" stopped TERM "$programs/cornu" train $long --mesh batch=2,model=2
rm -rf first
cp -r kept first
check "resumed over the same mesh" resumed same --mesh batch=2,model=2
check "resumed over 1 x 4" resumed near --mesh batch=1,model=4
check "resumed over 4 x 2" resumed near --mesh batch=4,model=2
check "resumed without a mesh" resumed near

killed() {
    stopped KILL "$programs/cornu" run -n 2 "$programs/cornu" train $long --mesh batch=2,model=2 &&
        ranks 2 $long --mesh batch=2,model=2 --backup kept --save cut.safetensors &&
        says 'Resuming from kept' && cmp whole.safetensors cut.safetensors && [ ! -e kept ]
}
check "2 processes that are killed resume to the same bytes" killed

# ---- Comparing ----

compares() {
    "$programs/cornu" compare mnist_cnn --data synthetic --limit 64 --batch-size 32 --epochs 1 \
        --mesh batch=2,model=2 --json all.json >out 2>err && says "Mesh (batch=2, model=2): 8 layouts" &&
        [ "$(grep -c '"shards": 2' all.json)" -ge 2 ]
}
check "compare trains over the mesh on each device" compares
scales() {
    "$programs/cornu" compare mnist_cnn --data synthetic --limit 192 --batch-size 32 --epochs 1 \
        --mesh batch=2,model=2 --devices cpu --scaling 1,2 >out 2>err && says 'have trained the same weights'
}
check "compare --scaling: in 1 and 2 processes the same weights" scales

# ---- What explain says ----

# The layouts that explain shows are those that are trained by: as many weights are cut.
explained() { # explained ARGUMENT...: the number of weights whose layout is not "whole"
    "$programs/cornu" explain mnist_cnn --batch-size 32 "$@" 2>err |
        sed -n '/^weight /,/^A shard has/p' | grep -c '(.*(.*model'
}
as_trained() {
    for mesh in batch=2,model=2 batch=1,model=4 model=2,batch=2; do
        train $small --mesh $mesh "$@" && says ": $(explained --mesh $mesh "$@") layout" || return 1
    done
}
check "explain shows what train does" as_trained
check "and with layouts of one's own" as_trained --layout dense/kernel=,model --layout dense/bias=model
check "by columns, and the rows of the next one" eval '[ "$(explained --mesh batch=1,model=4)" -ge 6 ]'
other_names() { train $small --mesh x=2,y=2 && says '; the rows of a batch are dealt over x'; }
check "it is said where the rows go, if no axis is called batch" other_names

# ---- Refused ----

check "a mesh that is none" refuses '--mesh: "model", expected AXIS=SHARDS, such as model=4' $small --mesh batch=2,model
check "too many shards" refuses 'AXIS=SHARDS' $small --mesh batch=2,model=4000
check "a plus joins axes" refuses 'called a+b, expected a name without +' $small --mesh batch=2,a+b=2
check "an axis called model alone cuts nothing" \
    refuses '--mesh model=2: without an axis called batch the first one, model, would share each batch' \
    $small --mesh model=2
check "an axis twice" refuses 'two axes of the mesh are called batch' $small --mesh batch=2,batch=4
check "too many axes" refuses 'more than 4 axes' $small --mesh a=1,b=1,c=1,d=1,e=1
check "other shards" \
    refuses '--mesh batch=2,model=4 has 8 shards and --shards is 4' $small --mesh batch=2,model=4 --shards 4
check "the same shards" train $small --mesh batch=2,model=2 --shards 4
check "layouts without a mesh" refuses 'expected --mesh' $small --layout dense/kernel=model
check "a layout that is none" refuses '--layout: "dense", expected PATTERN=AXIS,AXIS' \
    $small --mesh batch=2,model=2 --layout dense
check "a pattern for no weight" refuses 'the layout map'"'"'s "dens/kernel" is for none of its 10 weights' \
    $small --mesh batch=2,model=2 --layout dens/kernel=model
check "an axis that does not divide" \
    refuses 'dense/kernel: axis 1 of f32 (576, 64) does not divide into the 3 slices of its layout' \
    $small --mesh batch=2,model=3 --layout dense/kernel=,model
check "an axis that the mesh lacks" refuses 'the mesh (batch=2, model=2) has no axis "modle"' \
    $small --mesh batch=2,model=2 --layout dense/kernel=,modle
check "fully sharded: other shards" \
    refuses '--mesh batch=2 has 2 shards and --shards is 4' $small --mesh batch=2 --shards 4 --fully-sharded
check "a device of one shard" refuses 'device "reference": 4 shards, expected 1' \
    $small --mesh batch=2,model=2 --device reference
few() { ! ranks 4 $small --mesh batch=2,model=1 && grep -qF '2 shards for 4 processes' err; }
check "more processes than shards" few
advises() {
    ! "$programs/cornu" compare $small --mesh batch=2,model=2 --advise >out 2>err &&
        grep -qF -- '--advise and --mesh: expected only one' err
}
small="mnist_cnn --data synthetic --limit 64"
check "advice for a mesh" advises

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
