"""Verbs of git that read, each with the options under which they do nothing else.

The form is that of :mod:`cockpit.access.reads.program_options`; operands are revisions and paths. An option
that runs a program (``--ext-diff``, ``--textconv``, ``-O``), writes (``--output``) or looks at files outside
the repository (``--no-index``) is not in here. See ``docs/reference/security.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

_DIFF = (
    " -p -u -s -U=N -M=?T -C=?T -B=?T -R -a -b -w -W -z -S=T -G=T -D --patch --no-patch --unified=N"
    " --stat=?T --numstat --shortstat --dirstat=?T --summary --compact-summary --name-only"
    " --name-status --color=?T --no-color --word-diff=?T --color-words=?T --word-diff-regex=T"
    " --no-renames --find-renames=?T --find-copies=?T --find-copies-harder --text"
    " --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol"
    " --ignore-space-at-eol --function-context --no-ext-diff --no-textconv --exit-code --quiet"
    " --minimal --patience --histogram --diff-algorithm=T --full-index --binary --abbrev=?T --raw"
    " --check --relative=?T --diff-filter=T --pickaxe-all --pickaxe-regex --ignore-submodules=?T"
    " --inter-hunk-context=N --no-prefix --src-prefix=T --dst-prefix=T --patch-with-stat"
    " --patch-with-raw --irreversible-delete --no-relative --color-moved=?T --stat-width=N"
    " --stat-count=N"
)
_COMMITS = (
    " --all --branches=?T --tags=?T --remotes=?T -123 --max-count=N --skip=N --since=T"
    " --after=T --until=T --before=T --author=T --committer=T --grep=T -i -E -F -P --all-match"
    " --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges"
    " --no-merges --first-parent --reverse --left-right --cherry-pick --cherry-mark --cherry"
    " --full-history --simplify-merges --ancestry-path --topo-order --date-order --boundary"
    " --parents --children --max-parents=N --min-parents=N --no-walk --date=T --abbrev-commit"
    " --no-abbrev-commit --oneline --pretty=?T --format=T --graph --not"
)
_LOG = (
    " -n=N --decorate=?T --no-decorate --decorate-refs=T --follow --relative-date --source --show-pulls"
    " --no-notes -c --cc -m -t --root -q --clear-decorations --no-mailmap"
)

GIT_VERBS: Mapping[str, str] = {
    "status": "-sbvz -u=?T --short --branch --porcelain=?T --long --untracked-files=?T --ignored=?T"
    " --show-stash --ahead-behind --no-ahead-behind --no-renames --find-renames=?T"
    " --ignore-submodules=?T --null : git",
    "diff": f"{_DIFF} --cached --staged --merge-base -123 : git",
    "log": f"{_DIFF}{_COMMITS}{_LOG} : git",
    "show": f"{_DIFF}{_COMMITS}{_LOG} : git",
    "shortlog": f"-sne --summary --numbered --email --group=T {_COMMITS} : git",
    "rev-list": f"-n=N {_COMMITS} --count --objects : git",
    "blame": "-ltsewfnpcb -L=T -M=?T -C=?T --show-name --show-number --porcelain --line-porcelain"
    " --date=T --since=T --show-email --root --abbrev=T --first-parent : git",
    "annotate": "-ltsewfnpcb -L=T -M=?T -C=?T --date=T --since=T : git",
    "ls-files": "-cdmosiutzvk -x=T --cached --deleted --modified --others --stage --ignored --unmerged"
    " --exclude-standard --exclude=T --full-name --error-unmatch --abbrev=?T --eol --directory"
    " --no-empty-directory --deduplicate : git",
    "ls-tree": "-rdtlz --name-only --name-status --full-name --full-tree --long --abbrev=?T : git",
    "rev-parse": "-q --abbrev-ref=?T --short=?T --verify --show-toplevel --show-prefix --show-cdup"
    " --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-inside-git-dir"
    " --is-bare-repository --is-shallow-repository --symbolic --symbolic-full-name --all"
    " --branches=?T --tags=?T --remotes=?T --quiet : git",
    "describe": "--tags --always --all --long --abbrev=N --match=T --exclude=T --contains"
    " --exact-match --first-parent --candidates=N : git",
    "grep": "-niIavwhHEGPFlLcoqWprz -A=N -B=N -C=N -123 -e=T --cached --untracked --max-depth=N"
    " --heading --break --color=?T --no-color --and --or --not --all-match --column"
    " --line-number --files-with-matches --files-without-match --name-only --count"
    " --show-function --function-context --word-regexp --ignore-case --extended-regexp"
    " --fixed-strings --perl-regexp --only-matching --quiet --full-name --no-textconv"
    " --after-context=N --before-context=N --context=N --no-recursive --recursive : git",
    "cat-file": "-tsep : git 1 2",
    "merge-base": "-a --all --is-ancestor --octopus --independent : git",
    "name-rev": "--tags --name-only --always --all : git",
    "branch": "-arvq --all --remotes --list --show-current --contains=T --no-contains=T --merged=?T"
    " --no-merged=?T --sort=T --format=T --points-at=T --verbose --color=?T --no-color : listed",
    "tag": "-l -n=?N --list --sort=T --contains=T --no-contains=T --merged=?T --no-merged=?T --points-at=T"
    " --format=T : listed",
    "remote": "-v --verbose : none 0 0",
    "reflog": "-123 -n=N --date=T --oneline --pretty=?T --format=T : reflog",
    "for-each-ref": "--format=T --sort=T --count=N --points-at=T --contains=T --merged=?T"
    " --no-merged=?T --ignore-case : git",
    "show-ref": "-ds --heads --tags --dereference --hash=?T --verify --quiet : git",
    "count-objects": "-vH --verbose --human-readable : none 0 0",
    "check-ignore": "-vqn --verbose --quiet --non-matching --no-index : git",
    "check-attr": "-a --all --cached : git",
    "diff-tree": f"-r -t -m -c --cc --root --no-commit-id {_DIFF} : git",
    "cherry": "-v --abbrev=?T : git",
    "stash": " : stash 1 1",
    "worktree": "--porcelain -v : worktree 1 1",
    "version": " : none 0 0",
}
"""By verb, its row."""

LOOKS_AT_WORKTREE = frozenset({"status", "diff", "diff-files", "ls-files", "blame", "grep"})
"""Verbs for which git may look into submodules, and refresh its index."""

GLOBAL_OPTIONS = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}
)
"""Options before the verb that change nothing of what git runs."""

SAFE_SETTINGS = (
    r"core\.(repositoryformatversion|filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
    r"|eol|safecrlf|quotepath|abbrev|longpaths|untrackedcache|compression|preloadindex|bigfilethreshold)"
    r"|core\.bare=false"
    r"|remote\.(url|fetch|pushurl|tagopt|prune|gh-resolved)|branch\.\w+|user\.(name|email|signingkey)"
    r"|(color|pull|push|fetch|rerere|init|advice|gc|pack|index|maintenance|rebase)\.\w+"
    r"|(lfs|submodule)\.(repositoryformatversion|active|url|access)|extensions\.objectformat"
)
"""Settings of a repository, without subsection, under which git reads as it does without them."""
