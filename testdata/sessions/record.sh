#!/bin/sh
# Records the sessions in this directory again, with real clients and servers from npm
# and attache between them. It needs the packages of testdata/e2e, and git.
#
#	npm --prefix testdata/e2e install --no-package-lock
#	testdata/sessions/record.sh [NAME...]
#
# NAME is a file here without .jsonl; without a NAME it records all. Review the changes in
# the files before you commit them: see testdata/README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
e2e=$here/../e2e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$here/../.." && go build -o "$work/attache" ./cmd/attache)

wanted=" $* "
npm=$e2e/node_modules/@modelcontextprotocol
everything="node $npm/server-everything/dist/index.js stdio"
filesystem="node $npm/server-filesystem/dist/index.js"
memory="node $npm/server-memory/dist/index.js"
git="node $e2e/node_modules/@cyanheads/git-mcp-server/dist/index.js"
dual="node $e2e/servers/dual.mjs"
v1="v1.mjs"
auto="v2.mjs --mode auto"
pin="v2.mjs --mode pin"

# fresh makes a home directory with always the same files. It becomes /home/user in the
# recordings.
fresh() {
	home=$work/home
	rm -rf "$home"
	mkdir -p "$home/files/notes" "$home/project"
	printf 'zeile\r\nline two\n' >"$home/files/notes/ünïcode.txt"
	: >"$home/files/notes/empty.txt"
	printf 'one\n' >"$home/project/tracked.txt"
	(
		cd "$home/project"
		export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z
		git init -q -b main
		git add tracked.txt
		git -c user.name=user -c user.email=user@example.invalid commit -q -m first
	)
	printf 'two\n' >"$home/project/untracked.txt"
}

# session NAME DRIVER SCENARIO SERVER records NAME.jsonl, with NAME.yaml as the
# configuration if there is one.
session() {
	name=$1 driver=$2 scenario=$3 server=$4
	case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
	fresh
	flags=
	if [ -f "$here/$name.yaml" ]; then
		# Use the directory that becomes /home/user in the recording.
		sed "s|/home/user|$home|; s|dir: policies|dir: $here/policies|" "$here/$name.yaml" >"$work/attache.yaml"
		flags="--config $work/attache.yaml"
	fi
	rm -f "$work/$name"*.jsonl
	# shellcheck disable=SC2086 # the commands are lists of words
	(cd "$e2e" && env -i PATH="$PATH" HOME="$home" XDG_CONFIG_HOME="$home/.config" TZ=UTC LANG=C.UTF-8 NODE_NO_WARNINGS=1 \
		E2E_REPO="$home/project" E2E_DIR="$home/files" MEMORY_FILE_PATH="$home/graph.jsonl" \
		node $driver "$scenario" -- "$work/attache" --record "$work/$name.jsonl" $flags -- $server >"$work/transcript" 2>"$work/stderr") ||
		{ cat "$work/stderr" "$work/transcript" >&2; exit 1; }
	# A client of both eras first starts a server to ask for its era, and then starts it
	# again for the session, which the last recording has. Spaces after the header of a
	# recording reserved room for its final length.
	recording=$work/$name.jsonl
	if [ -f "$work/$name-2.jsonl" ]; then recording=$work/$name-2.jsonl; fi
	sed '1s/ *$//' "$recording" >"$here/$name.jsonl"
	printf '%s: %s lines\n' "$name" "$(wc -l <"$here/$name.jsonl")"
}

session everything-resources "$v1" everything/resources "$everything"
session everything-sampling "$v1" everything/sampling "$everything"
session everything-elicitation "$auto" everything/elicitation "$everything"
session everything-cancellation "$auto" everything/cancellation "$everything"
session everything-briefing "$v1" everything/briefing "$everything"
session filesystem-survey "$v1" filesystem/survey "$filesystem $work/home/files"
session filesystem-roots "$auto" filesystem/roots "$filesystem $work/home/files"
session memory-survey "$auto" memory/survey "$memory"
session git-survey "$v1" git/survey "$git"
session git-fill "$auto" git/fill "$git"
session modern-tools "$pin" fixture/tools "$dual"
session modern-ask "$pin" fixture/ask "$dual"
session modern-changes "$pin" fixture/changes "$dual"
session modern-briefing "$pin" fixture/briefing "$dual"
session modern-callfirst "$pin" fixture/callfirst "$dual"
session legacy-callfirst "$v1" fixture/callfirst "$dual"
