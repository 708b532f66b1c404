#!/bin/sh
# lm_files.sh BUILD: what a training leaves when it is stopped, killed or cannot write.
. "$(dirname "$0")/lm_support.sh"

fresh() { # a directory that holds a finished run of 20 steps
    rm -rf "$1" && cp -r finished "$1"
}
untouched() { # its weights are as they were, and nothing lies beside them
    cmp finished/model.safetensors "$1/model.safetensors" && cmp finished/last.safetensors "$1/last.safetensors" && no_leftovers "$1"
}
check "a run of 20 steps" call train $run --steps 20 --out finished

# -- Signals. A run of 2000 steps is stopped in its middle; the resumed one ends where the undisturbed one does.
long="$run --steps 2000 --eval-interval 200 --quiet"
check "an undisturbed run" call train $long --out whole
stop_by() { # a signal, when a file is there; lm is in front: a script has what it runs in the background ignore INT
    rm -f pid
    (wait_for "$2" && wait_for pid && kill -s "$1" "$(cat pid)") &
    shift 2
    sh -c 'echo $$ > pid.new && mv pid.new pid && exec "$0" "$@"' "$lm" "$@" > out 2> err
}
signals="INT:130 TERM:143"
trap : INT # a bash would end with a child that INT has ended
[ -z "$(sh -c 'kill -s INT $$; echo ignored')" ] || signals=TERM:143 # these tests are in the background themselves
for signal in $signals; do
    stop_by ${signal%:*} stopped/state.safetensors train $long --out stopped
    status=$?
    check "status of ${signal%:*}" [ "$status" = ${signal#*:} ]
    check "a stopped run says nothing" [ ! -s err ]
    check "a stopped run is saved" call info --model stopped/last.safetensors
    check "a stopped run can be sampled" call sample --model stopped --bytes 10
    check "a stopped run goes on" call train --resume stopped --quiet
    check "to the same end" same whole stopped
    rm -rf stopped
done
trap - INT

"$lm" train $run --steps 300 --out ignoring --quiet > out 2> err & # which the shell has ignore INT
wait_for ignoring/state.safetensors
kill -s INT $! 2> /dev/null
wait $!
status=$?
check "an ignored signal stays so" eval '[ $status = 0 ] && lines 301 ignoring/log.tsv'
rm -rf ignoring

# A signal while a sample is written: the step that is done is saved; one that comes with the report ends nothing.
wait_for_text() { # in a file, up to ten seconds
    tries=0
    while ! grep -q -e "$1" "$2" 2> /dev/null && [ $tries -lt 1000 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
}
samples="$run --steps 200 --eval-interval 200 --sample-interval 7"
check "an undisturbed run with samples" call train $samples --out whole --bytes 20
rm -f out
"$lm" train $samples --out sampling --bytes 30000 > out 2> err &
wait_for_text "^--- step 7" out
kill -s TERM $!
wait $!
check "status of TERM in a sample" [ $? = 143 ]
check "it says where it stopped" says "^stopped after step 7;" err
check "and has saved that step" [ -e sampling/state.safetensors ]
check "which the run goes on from" eval 'call train --resume sampling --bytes 20; says "^goes on with step 8" err'
check "to the same end, too" same whole sampling
rm -f out
"$lm" train $run --steps 2 --out reported --bytes 30000 > out 2> err &
wait_for_text "^bigram loss" out
kill -s TERM $!
wait $!
check "status of TERM in the report" [ $? = 143 ]
check "a run that is done does not go on" eval '! says "goes on" err'
rm -rf whole sampling reported
"$lm" train $long --steps 100000 --out two > out 2> err2 &
wait_for two/state.safetensors
check "a second training in the directory" fails 1 "two: another training writes into it" train $run --steps 2 --out two
kill -s TERM $!
wait $!
check "the first is as it was" [ ! -s err2 ]
rm -rf two

"$lm" train $run --steps 2 --accumulation 65536 --out slow --quiet > out 2> err & # a step takes half a minute
wait_for slow/log.tsv
sleep 0.1
kill -s TERM $!
sleep 0.1
kill -s TERM $!
sleep 1
check "the first signal waits for the step, and so does another within a second" kill -0 $!
kill -s TERM $!
wait $!
check "a later one does not" [ $? = 143 ]

# -- Killed at random times, until it is done
killed="$run --steps 6000 --eval-interval 120 --quiet"
"$lm" train $killed --out killed > out 2> err &
wait_for killed/config.txt
times=0
while [ $times -lt "${KILLS:-20}" ]; do
    times=$((times + 1))
    sleep "0.0$(awk -v n=$times 'BEGIN { srand(n); printf "%02d", 100 * rand() }')"
    kill -s KILL $! 2> /dev/null
    wait $! 2> /dev/null
    for file in model last; do
        [ ! -e killed/$file.safetensors ] || check "after kill $times" call info --model killed/$file.safetensors
    done
    "$lm" train --resume killed --quiet > out 2> err &
    sleep 0.01
done
kill -s KILL $! 2> /dev/null
wait $! 2> /dev/null
check "a killed run goes on" call train --resume killed
# A run that replaces an older one and is killed before its first save leaves nothing of that one to go on with.
cp -r killed anew
"$lm" train $run --out anew --steps 3000 --eval-interval 3000 --quiet > out 2> err &
until grep -q '^steps = 3000$' anew/config.txt; do :; done
kill -s KILL $!
wait $! 2> /dev/null
check "of a replaced run nothing is left" eval '[ ! -e anew/model.safetensors ] && [ ! -e anew/state.safetensors ]'
check "and the new one begins anew" eval 'call train --resume anew && says "begins anew" err'
check "a run that was never killed" call train $killed --out unkilled
check "has the same files" same unkilled killed
check "a killed run leaves nothing beside its files" no_leftovers killed

# -- Where nothing can be written
fresh limited
(
    ulimit -f 8
    "$lm" train --resume limited --steps 40 --quiet > out 2> err
)
check "a limit on the size of files" [ $? = 1 ]
check "one line says so" lines 1 err
check "and names a file" says "limited/.*safetensors.*: cannot write: File too large" err
check "the old files are whole" untouched limited
check "and goes on without the limit" call train --resume limited --steps 40

if has_gnuplot; then
    check "it ends gnuplot, too" eval \
        '(ulimit -c 0; ulimit -f 8; really attend --model finished --prompt abc --out cut) && lines 1 err && says "gnuplot fails on cut/attend.gp" err'
    check "and leaves no picture" eval '[ -e cut/attend.gp ] && [ ! -e cut/attend.svg ] && [ ! -e cut/attend.png ]'
fi

fresh readonly
chmod a-w readonly
if [ -w readonly ]; then # root may write anywhere
    chmod a+rx "$dir" && chmod a+r readonly/*
    setpriv --reuid 65534 --regid 65534 --clear-groups "$lm" train --resume readonly --steps 40 --quiet > out 2> err
else
    "$lm" train --resume readonly --steps 40 --quiet > out 2> err
fi
status=$?
if [ "$status" != 126 ] && [ "$status" != 127 ]; then # there is a setpriv, and the program may be run by all
    check "a directory that is read-only" [ $status = 1 ]
    check "one line says that, too" lines 1 err
    check "its files are whole" untouched readonly
fi
chmod u+w readonly

"$lm" train $long --steps 100000 --out gone > out 2> err &
wait_for gone/state.safetensors
mv gone went # at once, while the training writes
wait $!
check "a directory that is removed on the way" [ $? = 1 ]
check "one line says what is gone" lines 1 err
mkdir -p taken/model.safetensors
check "a directory in the place of a file" fails 1 "taken/model.safetensors: is a directory" train $run --steps 2 --out taken
check "state of another model" eval 'fresh other; sed "s/width = 16/width = 32/" finished/config.txt > other/config.txt
    fails 1 "width is 16 in the file, 32 in the run" train --resume other --steps 40'
check "a state cut off" eval 'fresh other; head -c 3000 finished/state.safetensors > other/state.safetensors
    fails 1 "other/state.safetensors" train --resume other --steps 40; untouched other'

check "weights without a state" eval 'fresh other; rm other/state.safetensors
    fails 1 "other: holds weights, but no state.safetensors" train --resume other --steps 40; cmp finished/model.safetensors other/model.safetensors'
mkdir -p half && cp -r finished/. half && mkdir half/state.safetensors.new
check "a state that cannot be written" fails 1 "half/state.safetensors.new: is a directory" train --resume half --steps 40 --quiet
rmdir half/state.safetensors.new
check "changes no weights either" untouched half
mkdir -p old && cp -r finished/. old && mkdir old/config.txt.new
check "a configuration that cannot be written" fails 1 "old/config.txt.new: is a directory" train $run --steps 2 --out old --quiet
check "costs no state" cmp finished/state.safetensors old/state.safetensors

# -- What else lies in the directory: leftovers of a killed run go, what only resembles them stays.
fresh crowded
stays="model.safetensors.new.tmp model.safetensors.new.1234567.tmp model.safetensors.new.mine.tmp
    model.safetensors.12345678.tmp log.tsv.12345678.tmp notes.new 12345678.tmp loss.gp.new"
goes="model.safetensors.new last.safetensors.new state.safetensors.new config.txt.new
    model.safetensors.new.12345678.tmp config.txt.new.90abcdef.tmp loss.gp.00000000.tmp attention.tsv.12345678.tmp"
for file in $stays $goes; do echo mine > crowded/$file; done
chmod 600 crowded/*.safetensors
check "a run in a crowded directory" call train --resume crowded --steps 25 --quiet
for file in $stays; do check "$file stays" grep -qx mine crowded/$file; done
for file in $goes; do check "$file goes" [ ! -e crowded/$file ]; done
for file in last state; do
    check "$file stays private" eval 'ls -l crowded/$file.safetensors | grep "^-rw-------"'
    check "and is a new one" eval '! cmp -s finished/$file.safetensors crowded/$file.safetensors'
done
fresh private
chmod 600 private/*.safetensors
check "a private run is replaced" call train $run --steps 2 --out private --overwrite --quiet
for file in model last state; do
    check "$file stays private, too" eval 'ls -l private/$file.safetensors | grep "^-rw-------"'
done

# -- Where nobody reads
{
    "$lm" sample --model finished --bytes 100000 2> err
    echo $? > status
} | head -c 10 > out
check "a closed pipe ends the program" [ "$(cat status)" = 141 ]
check "quietly" [ ! -s err ]
"$lm" train --resume finished --steps 25 --quiet >&- 2> err
check "a closed standard output" [ $? = 1 ]
check "goes into no file" eval 'lines 26 finished/log.tsv && says "standard output" err && call info --model finished'
if [ -w /dev/full ]; then
    "$lm" sample --model finished --bytes 10 > /dev/full 2> err
    check "a full device" [ $? = 1 ]
    check "one line says it is full" lines 1 err
fi
finish
