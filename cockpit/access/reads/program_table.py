"""Programs that read, each with the options under which it does nothing else.

A program, an option or a verb that is missing here is no read: an addition needs a line in
``tests/adversarial/commands`` that shows it, and one for each neighbour that writes or runs something. See
:mod:`cockpit.access.reads.program_options` for the form, and ``docs/reference/security.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

_GREP = (
    "-EFGPivwxcLloqsbHhnTZaIrUz -e=T -f=F -m=N -A=N -B=N -C=N -123 --color=?T --colour=?T"
    " --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case"
    " --invert-match --word-regexp --line-regexp --count --files-without-match --files-with-matches"
    " --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename"
    " --line-number --initial-tab --null --text --recursive --binary --null-data --line-buffered"
    " --regexp=T --file=F --max-count=N --after-context=N --before-context=N --context=N --label=T"
    " --include=T --exclude=T --exclude-dir=T --binary-files=T : searched"
)
_SUM = "-btz --binary --text --tag --zero : files"

PROGRAMS: Mapping[str, str] = {
    "cat": "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
    " --show-nonprinting : files",
    "tac": "-br -s=T --before --regex --separator=T : files",
    "nl": "-p -b=T -d=T -f=T -h=T -i=N -l=N -n=T -s=T -v=N -w=N --body-numbering=T"
    " --number-format=T --number-width=N --number-separator=T : files",
    "head": "-qvz -123 -c=N -n=N --lines=N --bytes=N --quiet --silent --verbose : files",
    "tail": "-qvz -123 -c=N -n=N --lines=N --bytes=N --quiet --silent --verbose : files",
    "wc": "-cmlLw --bytes --chars --lines --words --max-line-length : files",
    "sort": "-bdfgiMhnRrVcCsuz -k=T -t=T --ignore-leading-blanks --dictionary-order --ignore-case"
    " --general-numeric-sort --month-sort --human-numeric-sort --numeric-sort --reverse"
    " --version-sort --check=?T --key=T --stable --field-separator=T --unique --zero-terminated : files",
    "uniq": "-cdDiuz -f=N -s=N -w=N --count --repeated --all-repeated=?T --ignore-case --unique"
    " --skip-fields=N --skip-chars=N --check-chars=N : files 0 1",
    "cut": "-nsz -b=T -c=T -d=T -f=T --bytes=T --characters=T --delimiter=T --fields=T --complement"
    " --only-delimited --output-delimiter=T : files",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 : texts",
    "rev": " : files",
    "paste": "-sz -d=T --serial --delimiters=T : files",
    "column": "-tx -s=T -c=N : files",
    "fold": "-bs -w=N --width=N --spaces : files",
    "expand": "-i -t=T --tabs=T : files",
    "unexpand": "-a -t=T --tabs=T : files",
    "comm": "-1 -2 -3 -iz --output-delimiter=T --total : files",
    "join": "-iz -a=N -e=T -j=N -o=T -t=T -v=N -1=N -2=N --header : files",
    "diff": "-abBcdEinNpqrstTuwyZ -C=N -U=N -W=N -x=T -I=T --brief --unified=?N --context=?N"
    " --side-by-side --width=N --color=?T --report-identical-files --strip-trailing-cr"
    " --suppress-common-lines --ignore-all-space --ignore-space-change --ignore-blank-lines"
    " --ignore-case --ignore-trailing-space --minimal --new-file --recursive --exclude=T"
    " --label=T --text --left-column : folders",
    "cmp": "-bls -n=N -i=T --bytes=N --print-bytes --verbose --silent --quiet : files",
    "ls": "-aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -T=N -w=N -I=T --color=?T --time=T --sort=T"
    " --time-style=T --full-time --group-directories-first --human-readable --all --almost-all"
    " --author --directory --recursive --reverse --size --inode --classify=?T --file-type"
    " --format=T --ignore=T --hide=T --quoting-style=T --si --numeric-uid-gid --no-group"
    " --width=N --show-control-chars --literal --escape : names",
    "tree": "-adfishDrtCnpugFvJX -L=N -P=T -I=T --noreport --dirsfirst --du --filelimit=N --prune"
    " --gitignore --matchdirs --sort=T --filesfirst : names",
    "file": "-bihkN0 -F=T --brief --mime --mime-type --mime-encoding --separator=T --no-pad : files",
    "stat": "-Lft -c=T --format=T --printf=T --terse --dereference --file-system : names",
    "du": "-abcHhkmsSx0 -d=N -t=N --all --bytes --total --human-readable --summarize --si"
    " --separate-dirs --one-file-system --max-depth=N --apparent-size --exclude=T --time=?T : names",
    "pwd": "-LP --logical --physical : none 0 0",
    "date": "-uRI -d=T --date=T --utc --universal --rfc-email --rfc-3339=T --iso-8601=?T : date 0 1",
    "true": " : texts",
    "false": " : texts",
    ":": " : texts",
    "seq": "-w -s=T -f=T --separator=T --format=T --equal-width : numbers",
    "basename": "-az -s=T --multiple --suffix=T --zero : texts",
    "dirname": "-z --zero : texts",
    "realpath": "-emLPqsz --relative-to=T --relative-base=T : names",
    "readlink": "-femnqsvz : names",
    "which": "-as : texts",
    "whoami": " : none 0 0",
    "id": "-ugGnrz --user --group --groups --name --real : none 0 0",
    "uname": "-asnrvmpio --all --kernel-name --kernel-release --machine : none 0 0",
    "nproc": "--all : none 0 0",
    "arch": " : none 0 0",
    "hostname": "-s : none 0 0",
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": "-isSvwxFPUclnNHIoq0pau. -e=T -f=F -g=T -t=T -T=T -m=N -A=N -B=N -C=N -M=N -d=N -r=T -j=N"
    " -E=T --ignore-case --case-sensitive --smart-case --invert-match --word-regexp"
    " --line-regexp --fixed-strings --pcre2 --multiline --multiline-dotall --count"
    " --count-matches --files-with-matches --files-without-match --files --line-number"
    " --no-line-number --with-filename --no-filename --heading --no-heading --only-matching"
    " --quiet --null --pretty --text --hidden --no-ignore --no-ignore-vcs --unrestricted"
    " --column --no-column --stats --trim --vimgrep --json --no-messages --type-list --no-config"
    " --regexp=T --file=F --glob=T --iglob=T --type=T --type-not=T --max-count=N"
    " --after-context=N --before-context=N --context=N --max-columns=N --max-depth=N"
    " --replace=T --threads=N --encoding=T --sort=T --sortr=T --color=T --colors=T"
    " --max-filesize=T --context-separator=T : searched",
    "fd": "-HIapgsiFu0 -e=T -t=T -d=N -E=T --hidden --no-ignore --absolute-path --full-path --glob"
    " --case-sensitive --ignore-case --fixed-strings --print0 --extension=T --type=T"
    " --max-depth=N --min-depth=N --exclude=T --color=T --max-results=N : patterned",
    "jq": "-rcnsSeMCaj --raw-output --compact-output --null-input --slurp --sort-keys --exit-status"
    " --monochrome-output --color-output --ascii-output --join-output --tab --indent=N : filtered",
    "sed": "-nErsuz -e=T --quiet --silent --regexp-extended --expression=T --separate --unbuffered"
    " --null-data --posix --sandbox : sed",
    "awk": "-F=T -v=T : awk",
    "gawk": "-F=T -v=T : awk",
    "mawk": "-F=T -v=T : awk",
    "xxd": "-bpu -c=N -g=N -l=N -s=N : files 0 1",
    "od": "-bcdxvoisl -A=T -t=T -N=N -j=N -w=?N : files",
    "hexdump": "-Cbcdovx -n=N -s=N : files",
    "strings": "-a -n=N -t=T -e=T : files",
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha224sum": _SUM,
    "sha256sum": _SUM,
    "sha384sum": _SUM,
    "sha512sum": _SUM,
    "b2sum": _SUM,
    "cksum": " : files",
    "base64": "-di -w=N --decode --ignore-garbage --wrap=N : files 0 1",
    "python": "-V --version : none 0 0",
    "python3": "-V --version : none 0 0",
    "node": "-v --version : none 0 0",
    "bash": "--version : none 0 0",
    "gcc": "--version : none 0 0",
    "make": "-v --version : none 0 0",
}
"""By program, its row."""

MUST_HAVE_OPTION = frozenset({"python", "python3", "node", "bash", "gcc", "make"})
"""Programs that read only with one of the options of their row: without one they run something."""

SEARCH_ALL_BELOW = frozenset({"rg"})
"""Programs that search the current folder when they are given none."""

BUILTINS = frozenset(
    {":", "command", "type", "echo", "printf", "true", "false", "test", "[", "pwd"}
)
"""Words that a shell does itself where ``PATH`` has no such program."""

HARMLESS_VARIABLES: Mapping[str, str] = {
    "LC_ALL": r"[A-Za-z0-9_.@-]*",
    "LC_CTYPE": r"[A-Za-z0-9_.@-]*",
    "LC_COLLATE": r"[A-Za-z0-9_.@-]*",
    "LANG": r"[A-Za-z0-9_.@-]*",
    "NO_COLOR": r"[0-9a-z]*",
    "CLICOLOR": r"[0-9]*",
    "COLUMNS": r"[0-9]*",
    "PAGER": r"(cat|less)?",
    "GIT_PAGER": r"(cat|less)?",
    "GIT_OPTIONAL_LOCKS": r"0",
    "GIT_TERMINAL_PROMPT": r"0",
}
"""Variables that may be set for a command, with the values that they may have."""

AGENT_GIT_VARIABLES = frozenset(
    {
        *("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_MERGE_AUTOEDIT", "GIT_TERMINAL_PROMPT"),
        *("GIT_OPTIONAL_LOCKS", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
        *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
        *("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_ASKPASS"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_HTTP_USER_AGENT"),
        *("GIT_CEILING_DIRECTORIES", "GIT_PS1_SHOWDIRTYSTATE", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
    }
)
"""``GIT_*`` variables of an agent's environment under which git reads as it does without them, so long as
they name nothing in the project."""
