# Sourced, after checks.sh, by scripts that run what pages show. Each block of code of a page, and each
# command in a table of README.md, is run, or is listed here with where it is run, or why it is not;
# any other block fails.
#
# A page's reader has the tree, after `make`: here a copy whose build/ holds what was built, and the
# files that commands name (tests/page_files.py). What would train long is shortened by flags that
# are appended, the last of equal flags being taken: see `shorter`.
root=$OLDPWD
case $BUILD in
*sanitize-thread) extra=-fsanitize=thread ;;
*sanitize*) extra=-fsanitize=address,undefined ;;
*) extra= ;;
esac

tree=$folder/tree
mkdir -p "$tree/build" blocks bin
ln -s "$root"/{examples,nn,tests,README.md} "$tree/"
ln -s "$programs"/* "$tree/build/"
ln -sfn "$root/build/include" "$tree/build/include"
for script in examples/little_data.py page_files.py; do
    python3 "$root/tests/$script" "$tree" >out 2>err || { cat err; exit 1; }
done
export CORNU_DATA=$tree

# A cc that makes warnings errors.
cat >bin/cc <<END
#!/bin/sh
PATH='$PATH'
exec ${CC:-$(command -v cc)} -std=c11 -Wall -Wextra -Wpedantic -Werror $extra "\$@"
END
chmod +x bin/cc
PATH=$folder/bin:$PATH

in_tree() { (cd "$tree" && eval "$1") >out 2>err </dev/null; }

# Saved models that pages take for granted.
prepare() {
    in_tree 'build/own_model && build/cornu convert rings.safetensors my.keras &&
             build/cornu convert rings.safetensors my.onnx &&
             build/cornu train mnist_convnet --limit 100 --epochs 1 --save digits.safetensors &&
             build/cornu convert digits.safetensors digits.keras &&
             build/cornu train char_gpt --sequence-length 20 --epochs 1 --steps-per-epoch 2 \
                 --batch-size 8 --save writer.keras' && return
    grep -q libhdf5 err && skip_all 1 "libhdf5: make deps-test, then make"
    return 1
}

# ---- What is in a page ----

# blocks_of PAGE: blocks/NNN, without their indentation, named by the line that each begins in.
blocks_of() {
    rm -f blocks/*
    awk '!/^    / && NF { inside = 0 }
         /^    / && (inside || before == "") { if (!inside) name = sprintf("blocks/%04d", NR)
                                               inside = 1; sub(/^    /, ""); print > name; before = "x"; next }
         { before = $0 }
         inside && !NF { print > name }' "$root/$1"
}

kind_of() {
    case $(head -n 1 "$1") in
    '#include'* | '/*'* | 'Cornu'* | 'x = cornu_call'*) echo c ;;
    'import '*) echo python ;;
    'find_package'*) echo cmake ;;
    'Keras '*' of' | 'extern const'* | 'void digits'* | 'executor, fit, ...'* | 'pipeline: 4 stages'* | 'nn/training/step.c '*) echo picture ;;
    *) echo shell ;;
    esac
}

# ---- C ----

ours='build/libcornu.a -lz -ljansson -lpthread -lm'
compiles_and_runs() {
    in_tree "cc page.c -Ibuild/include $ours -o page && ./page"
}

# A line or two in a program around them.
around() {
    case $(head -n 1 "$1") in
    'x = cornu_call'*)
        echo 'CornuSymbol *in = cornu_input(.shape = { 10, 16 }), *x = in;'
        cat "$1"
        echo 'CornuModel *model = cornu_model(.inputs = { in }, .outputs = { x });'
        echo 'const bool right = cornu_model_layer_count(model) == 3;'
        echo 'cornu_model_free(model);' ;;
    'CornuPredictor *predictor'*)
        echo 'CornuModel *model = cornu_model_load("rings.safetensors");'
        echo 'float in[2] = { 0.1f, 0.2f }, out[3] = { 0 };'
        echo 'CornuArray x = cornu_array(in, CORNU_F32, 1, 2), y = cornu_array(out, CORNU_F32, 1, 3);'
        cat "$1"
        echo 'const bool right = out[0] + out[1] + out[2] > 0.99f;'
        echo 'cornu_predictor_free(predictor), cornu_model_free(model);' ;;
    'CornuTokenGenerator *generator'*)
        echo 'CornuModel *model = cornu_sequential(.input_shape = { 8 });'
        echo 'cornu_model_add(model, cornu_embedding(9, 4));'
        echo 'cornu_model_add(model, cornu_gru(4, .return_sequences = true));'
        echo 'cornu_model_add(model, cornu_dense(9, .activation = CORNU_SOFTMAX));'
        echo 'uint8_t first[2] = { 3, 5 };'
        echo 'float   out[9] = { 0 };'
        echo 'const CornuArray prime = cornu_array(first, CORNU_U8, 2);'
        echo 'const CornuArray token = cornu_array(first, CORNU_U8, 1);'
        echo 'const CornuArray p = cornu_array(out, CORNU_F32, 1, 9);'
        cat "$1"
        echo 'const bool right = out[0] > 0.0f && out[0] < 1.0f;'
        echo 'cornu_generator_free(generator), cornu_model_free(model);' ;;
    'CornuStrategy *workers'*)   # of one process, when the program is started alone
        cat "$1"
        echo 'const bool right = cornu_process_count(cornu_strategy_processes(workers)) == 1;'
        echo 'cornu_strategy_free(workers);' ;;
    'CornuStrategy *sharded'*)
        echo 'CornuModel *model = cornu_sequential(.input_shape = { 64 });'
        echo 'cornu_model_add(model, cornu_dense(32));'
        cat "$1"
        echo 'const bool right = cornu_device_shards(cornu_strategy_device(sharded)) == 8;'
        echo 'cornu_model_free(model), cornu_strategy_free(sharded);' ;;
    'CornuStrategy *parallel'*)
        echo 'CornuModel *model = cornu_sequential(.input_shape = { 16 });'
        echo 'cornu_model_add(model, cornu_dense(32, .name = "up"));'
        echo 'cornu_model_add(model, cornu_dense(8, .name = "down"));'
        cat "$1"
        echo 'const bool right = cornu_device_shards(cornu_strategy_device(parallel)) == 2;'
        echo 'cornu_model_free(model), cornu_strategy_free(parallel);' ;;
    'CornuStrategy *both'*)
        cat "$1"
        echo 'const bool right = cornu_device_shards(cornu_strategy_device(both)) == 2;'
        echo 'cornu_strategy_free(both);' ;;
    'CornuStrategy *pipeline'*)
        echo 'CornuModel *model = cornu_resnet20();'
        cat "$1"
        echo 'const bool right = cornu_device_shards(cornu_strategy_device(pipeline)) == 1;'
        echo 'cornu_model_free(model), cornu_strategy_free(pipeline);' ;;
    *) return 1 ;;
    esac
}

# For a TPU the last line goes to the end of own_model.c, the others after cornu_compile.
moved_to_tpu() {
    sed '$d' "$1" >begin && tail -n 1 "$1" >end && [ "$(wc -l <"$1")" -ge 3 ] &&
        sed -e "/CORNU_ACCURACY });/r begin" -e "/cornu_model_free/r end" \
            "$root/examples/own_model.c" >"$tree/page.c" &&
        [ "$(grep -c strategy "$tree/page.c")" = 3 ] && compiles_and_runs
}

run_c() {
    if grep -q 'int main' "$1"; then
        cp "$1" "$tree/page.c" && compiles_and_runs
    elif grep -q 'cornu_keras_to_tpu_model' "$1"; then
        moved_to_tpu "$1"
    else
        { printf '#include <stdio.h>\n#include <cornu/cornu.h>\nint main(void) {\n'
          around "$1" || { cat "$1" >&3; return 1; }
          printf 'return !right; }\n'; } >"$tree/page.c" && compiles_and_runs
    fi
}

# ---- Commands ----

# elsewhere LINE: where it is run, or why it is not.
elsewhere() {
    case $1 in
    '(command -v make'* | 'make deb' | 'apt install ./build/deb'* | apt-get* | 'make wheel &&'* | \
        '~/cornu-python/bin/pip'*) echo tests/packages/check_readme.sh ;;
    'make test'* | 'make check') echo "it runs this script" ;;
    *mnist_convnet.c*) echo tests/examples/test_examples.sh ;;
    'make install'* | 'export PKG_CONFIG_PATH'* | 'cc -std=c11 '*pkg-config*) echo tests/test_install.sh ;;
    'make inference' | 'cc examples/infer.c'*) echo tests/nn/prediction/test_inference.sh ;;
    'make deps-pjrt'*) echo "downloads: .ci/run" ;;
    'build/bench '* | tests/bench/peers/*) echo "measures, for minutes, an idle machine" ;;
    *'--device pjrt:cuda'* | *'--device pjrt:tpu'*) echo "an accelerator, or its plugin: make check-gpu" ;;
    *scp* | 'export CORNU_WORKERS'* | CORNU_RANK=*) echo "two machines" ;;
    mpirun*) echo tests/device/processes/test_launchers.sh ;;
    srun*) echo "a cluster" ;;
    *from_torch.py*STATE.pt*) echo tests/examples/test_from_torch.sh ;;
    *to_keras.py*) echo tests/examples/test_to_keras.c ;;
    KERAS_BACKEND*) echo "Keras, with the versions of each folder" ;;
    *) return 1 ;;
    esac
}

# shorter LINE: the flags that shorten it. A step of a full batch takes minutes under a sanitizer.
images=200 less=
[ -z "$extra" ] || images=24 less='--batch-size 8'
shorter() {
    case $1 in
    *' help'* | *.keras\ --x* | *' --text '*) ;;
    *'cornu train char_gpt'* | *'cornu train shakespeare'*)
        echo "--text README.md --sequence-length 20 --epochs 1 --steps-per-epoch 5 $less" ;;
    *'cornu compare'*--scaling*) echo "--data synthetic --limit 256 --epochs 2 --batch-size 32" ;;
    *'cornu train'* | *'cornu compare'*) echo "--data synthetic --limit $images --epochs 1 $less" ;;
    *'cornu recommend'*--data*) echo "--epochs 1" ;;
    *'cornu recommend'*) echo "--limit 2000 --epochs 1" ;;
    *'cornu demo'* | *'cornu quantize'*) echo "--data synthetic --limit 256" ;;
    *'cornu evaluate'*) echo "--data synthetic --limit 256" ;;
    *'cornu translate'*--load*) ;;
    *'cornu translate'*) echo "--pairs 200 --epochs 1" ;;
    *'cornu image_folder'* | *'cornu table'*--save*) echo "--epochs 1" ;;
    *'cornu explain'*) echo "$less" ;;
    *'cornu estimator'*'steps 0'*) echo "--data_dir synthetic --limit 64" ;;
    *'cornu estimator'*) echo "--data_dir synthetic --limit 64 --batch_size 8 --train_steps 2" ;;
    *'cornu cartpole'*) echo "--episodes 20" ;;
    esac
}

# Whether Python has NumPy, and may load the library: not one with a sanitizer.
python_runs() {
    [ -z "$extra" ] || { skip 1 "sanitizer: a build without SANITIZE"; return 1; }
    python3 -c 'import numpy' 2>/dev/null || { skip 1 "numpy: make deps-test"; return 1; }
}

# The server of the last `cornu serve`, at a free port, starts, answers the request, if there is one,
# and ends.
serves() {
    local server url i
    (cd "$tree" && exec $served --port 0) >address 2>err &
    server=$!
    for i in $(seq 1500); do
        grep -q . address || ! kill -0 $server 2>/dev/null || { sleep 0.02; continue; }
        break
    done
    url=$(sed -n 's/^listening on //p' address)
    [ "$url" ] && { [ -z "$1" ] || { eval "${1/http:\/\/localhost:8501/$url} -s" >out &&
        grep -q '"predictions": \[\[' out; }; } && kill $server && wait $server
}

# run_line PAGE LINE
run_line() {
    local line=$2 where
    case $line in 'build/cornu serve'*) served=$line ;; esac
    if where=$(elsewhere "$line"); then
        echo "    not here ($where): $line" >&3
        case $where in tests/*) check "$1: $where exists" [ -f "$root/$where" ] ;; esac
        return
    fi
    case $line in
    curl* | 'build/cornu serve'*)
        if in_tree 'build/cornu serve --model x=x' || grep -q 'without libmicrohttpd' err; then
            skip 1 "libmicrohttpd: make deps-serve, then make"
        else
            check "$1: $line" serves "${line##build*}"
        fi
        return ;;
    *'--device pjrt'*)
        in_tree 'build/cornu devices'
        grep -q '^ *pjrt:cpu' out || { skip 1 "pjrt: make deps-pjrt"; return; } ;;
    python3* | PYTHONPATH=*)
        python_runs || return ;;
    build/* | [A-Z]*=*' build/'* | cc\ *) ;;
    *) check "$1: a rule of tests/pages.sh for: $line" false; return ;;
    esac
    check "$1: $line" in_tree "$line $(shorter "$line")"
}

# run_page PAGE: all blocks. Those of C in tensor/README.md have a test of their own.
run_page() {
    local block line
    blocks_of "$1"
    for block in blocks/*; do
        [ -f "$block" ] || continue
        case $(kind_of "$block") in
        c) check "$1:$((10#${block#*/})): C" run_c "$block" ;;
        python)
            python_runs || continue
            cp "$block" "$tree/digits.py"
            check "$1:$((10#${block#*/})): Python" in_tree 'PYTHONPATH=nn/python python3 digits.py' ;;
        cmake) check "$1: tests/test_install.sh has CMake" grep -q find_package "$root/tests/test_install.sh" ;;
        shell) while read -r line; do [ -z "$line" ] || run_line "$1" "$line"; done <"$block" ;;
        esac
    done
}
