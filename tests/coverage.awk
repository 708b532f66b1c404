# Adds up what `gcov -t -b -c` says of many objects. Prints the lines and branches that no object ran, then a table of
# the files, then the total; status 1 below lines_wanted or branches_wanted, in percent.
/^ *-: *0:Source:/ { file = substr($0, index($0, "Source:") + 7); next }
/^function / { function_name = $2; next } # several begin on one line of maps.def
/^branch / {
    way = file SUBSEP line SUBSEP function_name SUBSEP $2
    if (!(way in taken)) { taken[way] = 0; branches[file]++; all_branches++; ways[++way_count] = way }
    if ($3 == "taken" && $4 > 0 && !taken[way]) { taken[way] = 1; reached[file]++; all_reached++ }
    next
}
/^ *[-#=0-9*]+: *[0-9]+:/ { # "count:line:source"; the count is - where there is no code, ##### where none ran
    split($0, part, ":")
    line = part[2] + 0
    count = part[1]
    gsub(/[ *]/, "", count)
    if (count == "-" || line == 0) next
    place = file SUBSEP line
    if (!(place in run)) {
        run[place] = 0
        lines[file]++; all_lines++; places[++place_count] = place
        source[place] = substr($0, length(part[1]) + length(part[2]) + 3)
        sub(/^ +/, "", source[place])
    }
    if (count + 0 > 0 && !run[place]) { run[place] = 1; ran[file]++; all_ran++ }
}

function percent(part, whole) { return whole ? 100 * part / whole : 100 }
function grouped(n) { return n < 1000 ? n : grouped(int(n / 1000)) sprintf(",%03d", n % 1000) }

END {
    if (!all_lines) { print "gcov says nothing of src/"; exit 1 }
    for (i = 1; i <= way_count; i++) {
        split(ways[i], part, SUBSEP)
        place = part[1] SUBSEP part[2]
        if (taken[ways[i]] || !run[place]) continue
        if (!missed[place]++) half[++half_count] = place
    }
    print "Branches never taken, in lines that ran:"
    for (i = 1; i <= half_count; i++) {
        split(half[i], part, SUBSEP)
        print part[1] ":" part[2] ": " missed[half[i]] " in: " source[half[i]]
    }
    print "Lines never run:"
    for (i = 1; i <= place_count; i++) {
        split(places[i], part, SUBSEP)
        if (!run[places[i]]) print part[1] ":" part[2] ": " source[places[i]]
    }
    printf "%-36s %15s %21s\n", "file", "lines", "branches"
    for (file in lines)
        printf "%-36s %4d/%4d %5.1f %% %6d/%4d %5.1f %%\n", file, ran[file], lines[file], percent(ran[file], lines[file]),
            reached[file], branches[file], percent(reached[file], branches[file]) | "sort"
    close("sort")
    l = percent(all_ran, all_lines)
    b = percent(all_reached, all_branches)
    printf "%.1f %% of %s lines, %.1f %% of %s branches of src/\n", l, grouped(all_lines), b, grouped(all_branches)
    exit l < lines_wanted || b < branches_wanted
}
