#!/bin/sh
# lm.sh BUILD: runs every command of the real program with a tiny model.
. "$(dirname "$0")/lm_support.sh"

# -- Training, and what repeats it
check "train" call train $run --steps 20 --out a
check "train reports the loss" says "^validation loss"
check "the log has a row for each step" lines 21 a/log.tsv
check "every fifth step is validated" [ "$(cut -f 3 a/log.tsv | grep -c '\.')" = 4 ]
check "nothing is left beside the files" no_leftovers a
check "a configuration repeats the run" call train --overwrite --config a/config.txt --out b
check "the same bytes again" same a b
grep -v '^out' a/config.txt > a.config
grep -v '^out' b/config.txt > b.config
check "and the same configuration" cmp a.config b.config
check "two threads" call train --overwrite --config a/config.txt --out b --threads 2
check "two threads, the same bytes" same a b
head -c 50000 "$text" > one.txt
tail -c +50001 "$text" > two.txt
check "two files" call train --overwrite --config a/config.txt --out b --data one.txt two.txt
check "--data again adds a file" call train --overwrite --config a/config.txt --out c --data one.txt --data two.txt
"$lm" train --overwrite --config a/config.txt --out d --data - < "$text" > out 2> err
check "standard input" [ $? = 0 ]
check "a preset" call train --data "$text" --preset tiny --steps 2 --eval-batches 1 --out e --quiet --overwrite
check "a preset sets the width" says "^width = 64" e/config.txt
printf 'steps = 3 # few\n\n# more\nprompt = "The \\x65nd\\n"\nwidth=32\n' > my.config
check "a file of options" call train $run --config my.config --out e
check "the command line wins over the file" says "^width = 16" e/config.txt
check "the file wins over the default" says "^steps = 3" e/config.txt
check "escapes in quotes" says '^The end'
check "accumulation" call train $run --steps 2 --accumulation 3 --out e --quiet
check "quiet" [ ! -s err ]
check "a validation file" call train $run --steps 2 --validation two.txt --out e
check "samples on the way" call train $run --steps 4 --sample-interval 2 --out e
check "a sample behind step 2" says "^--- step 2"
for pair in b c d; do check "the same run from files and standard input" cmp a/last.safetensors $pair/last.safetensors; done

# -- 10 + 10 steps are 20
check "ten steps" call train $run --steps 10 --lr-steps 20 --out r
check "and ten more" call train --resume r --steps 20 --threads 2
check "are twenty" same a r
"$lm" sample --model a > sample.a
"$lm" sample --model r > sample.r
check "with the same samples" cmp sample.a sample.r
check "with dropout" call train $run --dropout 0.2 --steps 20 --out a2
check "ten steps with dropout" call train $run --dropout 0.2 --steps 10 --lr-steps 20 --out r2
check "and ten more with dropout" call train --resume r2 --steps 20
check "are twenty with dropout" same a2 r2
check "a log cut off in its last row" eval 'cp -r r q; printf "21\t3.0" >> q/log.tsv; call train --resume q'
check "is mended" cmp a/log.tsv q/log.tsv

# -- A training that goes astray
check "a loss without bounds" fails 1 "step .*learning rate 9.*,.*nothing was saved yet" \
    train $run --steps 50 --lr 10 --warmup 0 --clip 0 --eval-interval 50 --out n --quiet

# -- The report is of the best weights, which the other commands work with
check "a training that gets worse" call train $run --steps 100 --lr 0.01 --warmup 0 --out worse --quiet
cp out good
check "goes on badly" call train --resume worse --steps 105 --lr 0.3 --min-lr 0.3 --quiet
cp out report
check "model.safetensors is not the last" eval '! cmp worse/model.safetensors worse/last.safetensors'
check "reports what it keeps" eval '[ "$(sed "1s/(.*//; q" report)" = "$(sed "1s/(.*//; q" good)" ]'
"$lm" sample --model worse --bytes 40 > sampled
check "and writes as sample does" eval 'sed "1,/^$/d" report | cmp - sampled'

# -- What is said of a run that is there
check "a training is not replaced by a slip" fails 1 "a: holds a training of 20 steps; --resume a goes on" train --config a/config.txt
check "a is as it was" same a r
check "a run that is done" eval 'cp -r a done; call train --resume done; says "^done has done all its 20 steps; --steps 40 goes on" err'
cp -r r seeded
sed 's/^seed = .*/seed = 7/' r/config.txt > seeded/config.txt
check "a seed that was edited" fails 1 "seed: 7, but the run began with 1337" train --resume seeded --steps 30
check "a stretched cosine" eval 'call train --resume done --steps 40; says "the cosine is stretched to 40 steps: lr .* --lr-steps 20 keeps it" err'
mkdir begun
grep -v '^out' a/config.txt > begun/config.txt
check "a run without a state" eval 'call train --resume begun; says "^no saved state in begun: begins anew" err'
check "is the same run" same a begun
cp "$text" src.txt
check "a text of its own" call train --overwrite --config a/config.txt --data src.txt --out moved
echo more >> src.txt
check "a text that has grown" eval 'call train --resume moved --steps 21; says "the text has 5 bytes more than when the run was saved" err'
rm src.txt
check "a text that has gone" fails 1 "src.txt: cannot open: No such file or directory; --data FILE says where it is now" train --resume moved
check "is elsewhere" call train --resume moved --data "$text"
check "over how many batches" says "^validation loss [0-9.]* nats a byte, over 100 batches ("

# -- Sampling
check "a seed" eval 'call sample --model a --seed 7 --bytes 50; cp out s1; call sample --model a --seed 7 --bytes 50; cmp out s1'
check "length" [ "$(wc -c < s1)" = 51 ]
check "several samples" eval 'call sample --model a --samples 3 --bytes 20; [ "$(grep -c "^---\$" out)" = 2 ]'
check "top-k 1 is temperature 0" eval \
    'call sample --model a --top-k 1 --bytes 50; cp out s1; call sample --model a --temperature 0 --bytes 50; cmp out s1'
check "a prompt from a file" eval 'printf "Once " > p; call sample --model a --prompt-file p; says "^Once "'
check "a prompt from standard input" eval 'printf "Once " | "$lm" sample --model a --prompt-file - > out; says "^Once "'
check "a prompt that is a dash" fails 1 "prompt: '-' (0x2D) at offset 0 is not in the vocabulary of 60 bytes; with the tokenizer" sample --model a --prompt -
check "a stop text" eval 'call sample --model a --stop e --bytes 2000; ! says e && [ "$(wc -c < out)" -lt 2000 ]'
check "a byte that the model does not know" fails 1 "byte 0x01 at offset 2" sample --model a --prompt "$(printf 'ab\001')"
printf 'é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀é€😀' > wide.txt
check "text of wide characters" call train --data wide.txt --validation wide.txt $model --steps 2 --out w
check "a part of a character, at the end" eval 'call sample --model w --prompt é --bytes 3; [ "$(wc -c < out)" = 6 ]'

# -- The other commands
check "eval" call eval --model a --data "$text"
check "eval counts every byte but the first" says "^tokens *110745 "
cp out e1
check "eval in other batches" eval 'call eval --model a --data "$text" --batch 1; cmp out e1'
check "eval of a share" eval 'call eval --model a --data "$text" --validation-share 0.1; says "^tokens *11073 "'
check "logits" call logits --model a --text p --out l.safetensors
check "logits in a file" eval 'says "(5, 60)" && says "ids.*logits" l.safetensors'
check "attend" call attend --model a --prompt "the fox"
check "attend names its files" says "^a/attend.tsv and attend.gp, drawn as attend.svg"
check "and keeps the picture of the training" eval 'cmp a/attention.tsv r/attention.tsv && ! cmp a/attention.tsv a/attend.tsv'
check "queries and keys are counted from 1" eval '[ "$(sed -n 2p a/attend.tsv | cut -f 1-4 | tr "\t" " ")" = "1 1 1 1" ]'
check "attention as data" lines 99 a/attend.tsv
check "rows sum to 1" awk 'NR > 1 { sum[$1, $2, $3] += $5 } END { for (i in sum) if (sum[i] < 0.999 || sum[i] > 1.001) exit 1 }' \
    a/attend.tsv
call train $run --tokenizer bytes --context 256 --steps 2 --out by
"$lm" attend --model by --prompt "\`a'b%\`" > out
check "labels that gnuplot hands to no shell" says "= .'\`', 'a', \"'\", 'b', '%%', '\`'.$" by/attend.gp
printf "$(awk 'BEGIN { for (i = 0; i < 256; i++) printf "\\%03o", i }')" > every.txt
if has_gnuplot; then
    check "every byte has a label that gnuplot takes" really attend --model by --prompt-file every.txt --head 1
    check "and is drawn" eval '[ ! -s err ] && says "drawn as" && says "</svg>" by/attend.svg'
    check "without a warning of gnuplot" eval '! (PATH=$real_path; cd by; gnuplot attend.gp 2>&1 | grep "line [0-9]*: warning")'
fi
cp a/model.safetensors nan.st
printf '\377\377\377\377' | dd of=nan.st bs=1 seek=$(($(wc -c < nan.st) - 4)) conv=notrunc 2> err
for reader in "sample" "eval --data $text" "attend --prompt a" "logits --text p --out x.st" "info"; do
    check "a weight that is no number" fails 1 "nan.st: transformer.ln_f.weight: element 15 is not finite" $reader --model nan.st
done
printf '\357\273\277steps = 3\n' > mark.config
check "a byte order mark" eval 'call train $run --config mark.config --out e && says "^steps = 3" e/config.txt'
head -c 3000000 /dev/zero | tr '\0' x > long.config
echo " = 3" >> long.config
check "a key of megabytes" fails 2 "no option xxx" train $run --config long.config --out e
printf ' = 3\n' > no_key.config
check "no key" fails 2 "no_key.config:1: no key" train $run --config no_key.config --out e
printf 'prompt = "\\x00a"\n' > zero.config
check "a zero in quotes" fails 2 "zero.config:1: prompt: the text in quotes has" train $run --config zero.config --out e
check "a learning rate below the least" eval 'call train $run --steps 2 --lr 1e-5 --out e && says "^min-lr = 1.*e-06" e/config.txt'
head -c 4000 /dev/zero | tr '\0' x > one_byte.txt
check "one byte only" call train --data one_byte.txt $model --steps 2 --eval-batches 1 --bytes 2 --out o --overwrite
check "is not worse than pairs" eval '! says "no better"'
check "and can be drawn" eval '! has_gnuplot || { really plot --model o && [ ! -s err ]; }'
cp "$text" log_like.txt && mkdir input && cp "$text" input/log.tsv
check "a text that would be replaced" fails 1 "input/log.tsv: is read, and would be" train --data input/log.tsv $model --out input
check "is still there" cmp "$text" input/log.tsv
check "one head" eval 'call attend --model a --prompt "the fox" --head 2 --out h; lines 50 h/attend.tsv'
check "digits where there is no terminal" eval 'says "^t 9" && says "a digit is tenths" && ! says "$(printf "\033")"'
check "info of a model" eval 'call info --model a; says "transformer.h.0.attn.c_attn.weight  *(48, 16)  *768"'
mkdir other && cp a/model.safetensors other && echo "server: foo" > other/config.txt
check "info of a model beside a configuration of something else" call info --model other/model.safetensors
for file in log.tsv loss.gp; do
    cp -r a piped && rm -f piped/$file && mkfifo piped/$file
    check "plot of a pipe" fails 1 "piped/$file: is not a regular file" plot --model piped
    rm -rf piped
done
cp -r a piped && rm piped/config.txt && mkfifo piped/config.txt
check "to go on with a pipe" fails 1 "piped/config.txt: is not a regular file" train --resume piped
cp -r a unread && rm unread/log.tsv && mkdir unread/log.tsv
check "a log that cannot be read has no number of steps" fails 1 "unread/log.tsv: is a directory" train --data $text --out unread
from_locked() { # root may search it all the same
    mkdir -p locked
    (cd locked && chmod 0 . && "$lm" "$@")
    status=$?
    chmod 700 locked
    return $status
}
check "from a directory that may not be searched" from_locked train --data "$dir/$text" $model --steps 1 --eval-batches 1 --out "$dir/u"
check "with a text from standard input" eval 'from_locked logits --model "$dir/a" --text - --out "$dir/l.st" < p'
rm other/config.txt && mkfifo other/config.txt && : > other/log.tsv
check "info of a model beside a pipe" call info --model other/model.safetensors
check "info of options" eval 'call info --preset shakespeare; says "^all  *804096" && says "FLOPs of the step  *3.8"'
check "info has the model's words" eval 'call info --model a; says "attention fused, positions learned"'
check "info of a run" call info --config a/config.txt
check "plot" eval 'really plot --model a && [ -s a/loss.gp ]'
check "plot keeps the line of byte pairs" says "^bigram = [0-9]" a/loss.gp
PATH=$dir/no-programs "$lm" plot --model a > out 2> err
check "without gnuplot" [ $? = 0 ]
PATH=$dir/bin:$real_path
check "one warning without gnuplot" eval 'lines 1 err && says "gnuplot is not installed" err && [ ! -s out ]'
cp -r a "a blank"
check "where it would be drawn" eval 'PATH=$dir/no-programs "$lm" plot --model "a blank" 2> err; says "cd '"'a blank'"' && gnuplot" err'
check "plot tells of its pictures" eval 'call plot --model a; says "a/loss.svg"'
printf '#!/bin/sh\nexit 1\n' > no-programs/gnuplot
chmod +x no-programs/gnuplot
PATH=$dir/no-programs:$real_path "$lm" plot --model a > out 2> err
check "a gnuplot that fails" eval 'lines 1 err && says "gnuplot fails on a/loss.gp" err && [ ! -s out ]'
for half in 'printf "<svg>, cut off" > attend.svg' 'printf "PNG, cut off" | tee attend.png; echo "<svg></svg>" > attend.svg' 'rm -f attend.svg'; do
    printf '#!/bin/sh\n%s\n' "$half" > no-programs/gnuplot
    check "a picture that is cut off: $half" eval \
        '(PATH=$dir/no-programs:$real_path; call attend --model a --prompt abc) && lines 1 err && says "no picture: .*cut off" err && ! says "drawn" && [ ! -e a/attend.svg ] && [ ! -e a/attend.png ]'
done
for command in train sample eval attend plot info logits; do
    check "help $command" eval "call help $command && says '^lm $command:' && says ' default ' && call $command --help"
done
check "help" eval 'call help && says "lm logits"'
check "version" eval 'call --version && says "gradus [0-9]"'

# -- What a command reads it does not replace
cp -r a kept
for name in config.txt.new state.safetensors.new attention.svg attention.png loss.png loss.svg; do
    cp "$text" kept/$name
    check "$name that is read" fails 1 "kept/$name: is read, and would be replaced by lm train" train --resume kept --steps 21 --data kept/$name
    check "$name is still there" cmp "$text" kept/$name
    rm kept/$name
done
check "a file of options that is read" eval 'cp a/config.txt kept/loss.gp
    fails 1 "kept/loss.gp: is read, and would be replaced" train --overwrite --config kept/loss.gp --out kept'
check "a run's own configuration can be read" call train --overwrite --config kept/config.txt --out kept
printf the > kept/attend.tsv
cp "$text" kept/loss.gp.00000000.tmp
ln -s kept/loss.gp.00000000.tmp link.txt
check "a leftover that is read" call train $run --data link.txt --steps 1 --out kept
check "stays" cmp "$text" kept/loss.gp.00000000.tmp
rm link.txt kept/loss.gp.00000000.tmp
check "a prompt that is read" fails 1 "kept/attend.tsv: is read, and would be replaced by lm attend" attend --model kept --prompt-file kept/attend.tsv
check "is as it was" [ "$(cat kept/attend.tsv)" = the ]
rm kept/attend.tsv
cp -r kept before
for name in model.safetensors last.safetensors state.safetensors config.txt log.tsv attention.tsv; do
    for model_is in kept kept/last.safetensors; do
        check "$name of the run" fails 1 "kept/$name .*and would be replaced" logits --model $model_is --text p --out kept/$name
    done
done
check "the run is as it was" diff -r before kept

# -- Commands to be copied: a shell reads them as they are meant
for name in "run one" "l'eau" "-x" 'a$(b)'; do
    call train $run --steps 1 --out="$name"
    sed -n 's/.*; \(.* sample .*\) writes more$/\1/p' err > command
    check "the command for \"$name\"" eval 'says sample command && sh ./command > copied && [ -s copied ]'
    call train --data "$text" --out="$name"
    sed -n 's/.*\(--resume .*\) goes on, another.*/lm train \1 --steps 2/p' err > command
    check "the other one for \"$name\"" eval 'says resume command && (lm() { "$lm" "$@"; }; . ./command) && lines 3 "./$name/log.tsv"'
done
ln -s "$lm" "an lm"
check "the name of the program" eval '"./an lm" train $run --steps 1 --out e 2> err; says "; '"'./an lm'"' sample" err'

# -- What is said of a text that has gone, or has other bytes
check "a text that a configuration names" eval 'mkdir elsewhere; cd elsewhere
    fails 1 "$text: cannot open: No such file or directory; --data FILE says where it is now" train --config ../a/config.txt --out r; s=$?; cd ..; [ $s = 0 ]'
check "nothing on standard input" fails 1 "standard input: empty" train --data - $model --out x < /dev/null
printf 'the ~' > foreign.txt
for command in "eval --data" "sample --prompt-file" "logits --out x.st --text"; do
    check "a foreign byte" fails 1 "foreign.txt: '~' (0x7E) at offset 4 is not in the vocabulary of 60 bytes; with the tokenizer .bytes. a model reads" \
        $command foreign.txt --model a
done

# -- lm info counts as gr_gpt_new does
for options in "" "--bias" "--positions rotary" "--bias --positions rotary --layers 3 --attention textbook" "--attention window" "--attention sparse" "--attention linear --width 24"; do
    call train $run --steps 1 --eval-batches 1 --out counted $options
    grep -ao '"transformer[^}]*' counted/model.safetensors | sed 's/^"\([^"]*\)".*"shape":\[\([^]]*\)\].*/\1 (\2)/' | sort > stored
    call info --model counted
    sed -n 's/^\(transformer[^ ]*\) *\(([^)]*)\).*/\1 \2/p' out | tr -d ' ' | sed 's/(/ (/' | sort > counted.out
    check "every parameter of a model with $options" eval '[ -s stored ] && cmp stored counted.out'
    check "and their number" [ "$(sed -n 's/^all  *//p' out)" = "$("$lm" train --resume counted --steps 2 2>&1 | sed -n 's/ weights learn.*//p')" ]
done
check "the batch of the run" eval 'call info --model a; says "step: 1 x 4 windows"'
check "or another" eval 'call info --model a --batch 7 --accumulation 2; says "step: 2 x 7 windows"'
check "a model of terabytes" eval 'call info --layers 1000 --width 65536 --heads 1; says "^all  *51539"'

mkdir broken bare
echo hello > broken/log.tsv
ln -s loop loop
: > empty.txt
# -- Wrong usage: status, what the line says, the words
while IFS='|' read -r status words arguments; do
    check "wrong usage" fails "$status" "$words" $arguments
done <<TABLE
2|which command|
2|did you mean "train"? lm help lists them|trian
2|--data FILE... is missing|train
2|--out DIR is missing|train --data $text
2|--heads 5 does not divide --width 128|train --data $text --out x --heads 5
2|--positions rotary turns pairs|train --data $text --out x --positions rotary --width 12
2|did you mean --heads|train --heasd 5
2|lm help train lists|train --nonsense 5
2|"x" is not a whole number in \[1, 65536\]|train --width x
2|"1" is not a number in \[0, 1)|train --dropout 1
2|--steps 99999999999999999999 is beyond what a number can hold|train --steps 99999999999999999999
2|"99999999999999999999x" is not a whole number|train --steps 99999999999999999999x
2|"nan" is not a number|train --lr nan
2|"0x10" is not a whole number|train --width 0x10
2|is not one of chars.bytes|train --tokenizer words
2|is not one of tiny.shakespeare.small|train --preset huge
2|these begin with --|train data
2|needs a value|train --data
2|--min-lr 2 is above --lr 0.001|train --data $text --out x --min-lr 2
2|one is wanted|sample --model a --prompt x --prompt-file y
2|--prompt TEXT is missing|attend --model a
2|--width does not go with --model|info --model a --width 3
2|--vocab does not go with --model|info --model a --vocab 3
2|--config does not go with --model|info --model a --config a/config.txt
2|--width 32: the run to resume has 16|train --resume a --width 32
2|--seed 3: the run to resume has 1337|train --resume a --seed 3
2|--out does not go with it|train --resume a --out b
2|--overwrite does not go with it|train --resume a --overwrite
2|--steps 10: the run to resume has 20, which may only grow|train --resume a --steps 10
1|none: cannot open: No such file|train --data none --out x
1|is a directory|train --data . --out x
1|needs at least 65|train --data p --out x
1|cannot make the directory|train --data $text --out p/x
1|none/config.txt: cannot open|train --resume none
1|none: cannot open|sample --model none
1|not a safetensors file|sample --model p
1|--layer: 2 is none of the model's layers 1 to 1|attend --model a --prompt x --layer 2
1|the model sees 16 at a time|attend --model a --prompt 01234567890123456
1|none/log.tsv: cannot open|plot --model none
1|is not a log of lm train|plot --model broken
1|loop: .*Too many levels of symbolic links|train --resume loop
1|loop.*Too many levels of symbolic links|train --data $text --out loop
1|loop.*Too many levels of symbolic links|train $run --out loop
1|loop.*Too many levels of symbolic links|sample --model loop
1|bare: holds no training (no config.txt)|train --resume bare
1|bare: holds no model (no model.safetensors)|sample --model bare
1|bare: holds no training (no log.tsv)|plot --model bare
1|empty.txt: empty|train --data empty.txt $model --out x
1|empty.txt: empty|eval --model a --data empty.txt
1|p is read, and would be replaced|logits --model a --text p --out p
1|not a regular file|logits --model a --text p --out /dev/null
TABLE
finish
