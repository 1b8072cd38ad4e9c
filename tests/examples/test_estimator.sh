# cornu estimator: killed at any time the same command goes on from the newest checkpoint and ends
# with the same one; another process evaluates meanwhile; TensorFlow's flags and files.
# tests/run: in check
. tests/checks.sh
small="--data_dir synthetic --limit 640 --batch_size 32 --threads 1 --save_checkpoints_steps 6"
runs() { "$programs/cornu" estimator $small "$@" >out 2>err; }

# killed COUNT ARGUMENT...: starts it, and kills it as soon as it has written so many checkpoints.
# Its messages are read from a pipe: looking at a file now and then would let a fast training end.
mkfifo messages
killed() {
    local wanted=$1 process line count=0
    shift
    "$programs/cornu" estimator $small "$@" >out 2>messages &
    process=$!
    while read -r line; do
        echo "$line"
        [[ $line == "info: wrote "*"/model.ckpt-"* ]] && [ $((++count)) = "$wanted" ] &&
            kill -KILL $process
    done <messages >err
    wait $process
    [ $? = 137 ]
}

# goes_on ARGUMENT...: killed twice, then run again, it ends with the checkpoint of whole/.
goes_on() {
    rm -rf cut
    killed 2 --model_dir cut "$@" || return 1
    killed 2 --model_dir cut "$@" || return 1
    runs --model_dir cut "$@" && grep -q '^info: Restoring parameters from cut/model.ckpt-' err &&
        cmp whole/model.ckpt-40.safetensors cut/model.ckpt-40.safetensors &&
        [ "$(head -n 1 cut/checkpoint)" = 'model_checkpoint_path: "model.ckpt-40"' ]
}
cpu="--nouse_tpu --train_steps 40 --noenable_predict"
check "an estimator on a cpu" runs --model_dir whole $cpu
check "goes on after SIGKILL" goes_on $cpu
rm -rf whole
tpu="--use_tpu --num_shards 4 --iterations 5 --train_steps 40 --noenable_predict"
check "an estimator on a tpu" runs --model_dir whole $tpu
check "goes on after SIGKILL on a tpu" goes_on $tpu

files() {
    [ "$(ls whole | sed 's/tfevents.*/tfevents/')" = "checkpoint
events.out.tfevents
model.ckpt-15.safetensors
model.ckpt-20.safetensors
model.ckpt-25.safetensors
model.ckpt-30.safetensors
model.ckpt-40.safetensors" ]
}
check "files of model_dir" files

nothing_left() {
    runs --model_dir whole $tpu && grep -q 'Skipping training since max_steps has already saved' err
}
check "nothing is left to do" nothing_left

# Another process evaluates the newest checkpoint while this one trains.
evaluates_meanwhile() {
    rm -rf cut
    "$programs/cornu" estimator $small --nouse_tpu --train_steps 100000 --model_dir cut \
        >/dev/null 2>training &
    local process=$! first second
    for ((i = 0; i < 3000; i++)); do [ -e cut/model.ckpt-6.safetensors ] && break; sleep 0.02; done
    runs --nouse_tpu --train_steps 0 --eval_steps 20 --model_dir cut && first=$(head -n 2 out | tail -n 1)
    sleep 1
    runs --nouse_tpu --train_steps 0 --eval_steps 20 --model_dir cut && second=$(head -n 2 out | tail -n 1)
    runs --nouse_tpu --train_steps 5 --model_dir cut; local trained=$?
    kill -0 $process || return 1
    kill -KILL $process
    wait $process
    cat training >>err
    [[ $first == "Step "*"accuracy on synthetic test digits 0."* ]] && [ "$first" != "$second" ] &&
        [ -n "$second" ] && [ $trained = 0 ] && compgen -G 'cut/eval/events.out.tfevents.*' >/dev/null
}
check "another process evaluates meanwhile" evaluates_meanwhile

both_train() {
    rm -rf cut
    "$programs/cornu" estimator $small --nouse_tpu --train_steps 100000 --model_dir cut \
        >/dev/null 2>training &
    local process=$! status
    for ((i = 0; i < 3000; i++)); do [ -e cut/model.ckpt-6.safetensors ] && break; sleep 0.02; done
    runs --nouse_tpu --train_steps 100000 --model_dir cut
    status=$?
    kill -KILL $process
    wait $process
    [ $status = 1 ] && grep -q 'cut: another process trains here' err
}
check "only one process trains" both_train

predicts() {
    runs --model_dir whole --nouse_tpu --train_steps 40 --export new/digits.onnx &&
        [ "$(grep -c '^Prediction is "[0-9]" ([0-9.]*%)\.$' out)" = 10 ] && [ -s new/digits.onnx ]
}
check "predicts and exports" predicts

refuses() { # refuses STATUS MESSAGE ARGUMENT...
    local status=$1 message=$2
    shift 2
    runs "$@"
    [ $? = "$status" ] && grep -q -- "$message" err
}
check "a wrong value of a flag" refuses 2 '--use_tpu is "yes", expected true or false' --use_tpu=yes
check "an unknown flag" refuses 2 'unknown flag --nobatch_size' --nobatch_size
check "rows that do not fit the shards" refuses 1 \
    'train_batch_size is 32, expected a multiple of the 5 replicas' --num_shards 5 --model_dir cut
check "False as TensorFlow writes it" runs --use_tpu=False --train_steps 0 --enable_predict=false \
    --model_dir cut

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
