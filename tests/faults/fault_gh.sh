#!/bin/sh
# Plays GitHub for one pull request: a folder of comments, each a file.
case "$1 $2" in
"pr comment")
    place=$(mktemp "$FAULTS_GITHUB/comment.XXXXXXXX") || exit 1
    cat >"$place.part" && mv "$place.part" "$place"
    echo "https://github.com/acme/calc/pull/7#comment" ;;
"pr view")
    printf '{"reviews":[],"comments":['
    comma=
    for place in "$FAULTS_GITHUB"/comment.????????; do
        [ -e "$place" ] || continue
        mark=$(grep -o '<!-- cockpit:[^ ]* -->' "$place")
        printf '%s{"body":"%s"}' "$comma" "$mark"
        comma=,
    done
    echo ']}' ;;
*)  echo "not played: $*" >&2; exit 1 ;;
esac
