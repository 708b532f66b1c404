#!/bin/sh
# lm_faults.sh BUILD [SPARSE]: call after call of the program fails, once (tests/faults.c). Either the command fails with
# one line and leaves weights, state and options as they were or as they would have become, or nothing shows of it: the same files, the same
# output. Whatever it left, the command can be run again. Each call; or, after the n-th, the n + 1 + n/SPARSE-th, so that
# 1 tries the 1st, 3rd, 7th ...; of the arena, all of whose calls suite_faults_memory.c lets fail, the hundreds are so thinned.
. "$(dirname "$0")/lm_support.sh"
sparse=${2:-1000000}
faults=0
[ -x "$lm-faults" ] || { echo "FAILED: there is no $lm-faults"; exit 1; }

memory="malloc calloc realloc aligned_alloc gr_arena_alloc"
files="open pread read write fsync rename close stat fstat fchown fchmod opendir readdir access unlink mkdir ftruncate"
streams="fopen fdopen fclose fflush fwrite fputs fprintf fgets fread"
head -c 2000 "$text" > short.txt
small="--layers 1 --heads 2 --width 8 --context 4 --batch 1 --eval-batches 1 --bytes 4 --quiet --prompt e"

has_hardened() { nm "$lm-faults" | grep -q "__$1_chk"; } # a compiler that makes this call of it

call() { # lm with the text on standard input
    "$lm" "$@" < short.txt > out 2> err
    status=$?
    return "$status"
}

# What a command leaves, in a directory t, and prints; the seconds that it took may differ, and what was drawn.
before() { rm -rf t && { [ ! -d start ] || cp -R start t; }; }
printed() { sed 's/ ([0-9]* s of training)//; s/, drawn as .*//' out; }
saved="model.safetensors last.safetensors state.safetensors config.txt"
alone="logits.safetensors attend.tsv attend.gp"
kept="$saved log.tsv loss.gp attention.tsv attention.gp $alone"
wanted() { # what it is without a fault
    before
    check "without a fault: $1" call "$@"
    printed > wanted.out
    rm -rf wanted && cp -R t wanted
}
as_wanted() { for file in ${1:-$kept}; do [ ! -e wanted/$file ] || cmp wanted/$file t/$file || return; done; }
# Weights, state and options: those from before, or the new ones; none where there were none, or --overwrite forgot them.
old_or_new() {
    for file in $saved $alone; do
        case $file in *.safetensors) gone=$forgets ;; *) gone="" ;; esac
        [ -e t/$file ] || { { [ ! -e start/$file ] || [ "$gone" ]; } && continue || return; }
        cmp -s t/$file start/$file || cmp t/$file wanted/$file || return
    done
}
silent() { [ "$status" = 0 ] && [ ! -s err ] && printed | cmp - wanted.out && as_wanted; }
told() { # one line that says what and why; the pictures may only be warned of
    grep -v "no picture" err > said
    [ "$status" = 1 ] && lines 1 said && grep -q -e "^lm [a-z]*: ..*: ..*" -e "^lm [a-z]*: no memory" said && old_or_new
}
warned() { # of a picture, and the rest is done; lm plot prints nothing then
    [ "$status" = 0 ] && says "no picture" err && { [ ! -s out ] || printed | cmp - wanted.out; } && as_wanted "$saved"
}
exposed() { # weights and state that others may read, though those of start are private
    [ -d start ] && find t \( -name 'model.s*' -o -name 'last.s*' -o -name 'state.s*' \) ! -perm 600 | grep .
}
judged() { # of a call
    ! exposed || return
    case $1 in
    access | stat | fchown | fchmod | opendir | readdir | mkdir | unlink | close | open | fopen | fclose | fflush | fgets | fread) silent || warned || told ;;
    *) told ;; # these must not fail unseen
    esac && return
    echo "status $status"
    cat err
    return 1
}
again() { call "$@" && as_wanted; }

inject() { # way, call, arguments of lm
    way=$1 name=$2 n=1 dense=$sparse
    shift 2
    [ "$name" != gr_arena_alloc ] || [ "$dense" -lt 100 ] || dense=100
    while :; do
        before
        rm -f mark
        FAULT=$name FAULT_AT=$n FAULT_WAY=$way FAULT_MARK=$dir/mark "$lm-faults" "$@" < short.txt > out 2> err
        status=$?
        [ -e mark ] || { check "$1, without a $name $n" silent; break; } # and without a fault
        faults=$((faults + 1))
        : > "came.$name"
        case $way in
        fails) check "$1, $name $n" judged "$name" ;;
        *) check "$1, $name $n, $way" silent ;;
        esac
        case $name in # what could not be removed lies there still
        unlink) ;;
        *) [ ! -d t ] || check "$1, $name $n: nothing is left beside" no_leftovers t ;;
        esac
        check "$1, $name $n, and again" again "$@"
        n=$((n + 1 + n / dense))
    done
}
each_call() { # arguments of lm
    earlier=$faults forgets=""
    case "$*" in *--overwrite*) forgets=yes ;; esac
    wanted "$@"
    for call in $memory $files $streams; do inject fails "$call" "$@"; done
    for call in pread read write; do
        inject short "$call" "$@"
        inject interrupted "$call" "$@"
    done
    check "calls failed: $1" [ "$faults" -gt "$earlier" ]
}

each_call train --data - $small --steps 2 --eval-interval 2 --out t --overwrite
mv wanted start
chmod 600 start/*.safetensors
each_call train --data short.txt $small --steps 2 --eval-interval 2 --seed 5 --out t --overwrite
rm -rf start
mv wanted start # with the permissions of the one before
each_call train --resume t --steps 4 --eval-interval 2 --quiet
each_call sample --model t --bytes 4 --prompt e
each_call eval --model t --data short.txt --batch 64
printf the > the.txt
each_call logits --model t --text the.txt --out t/logits.safetensors
each_call attend --model t --prompt the
each_call info --model t
each_call plot --model t
rm -f mark
FAULT=open FAULT_AT=1 FAULT_WAY=fails FAULT_MARK=$dir/mark "$lm-faults" train --data short.txt $small --steps 1 --out n >&- 2> err
check "without standard output, and what would stand in for it" eval "[ $? = 1 ] && [ -e mark ] && [ ! -e n ]"
for call in $memory $files $streams; do
    if has_hardened "$call"; then continue; fi
    check "a $call has failed" [ -e "came.$call" ]
done
(finish)
status=$?
echo "$faults calls failed, $failures of them badly"
exit $status
