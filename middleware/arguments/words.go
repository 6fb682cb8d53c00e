package arguments

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// This file contains the table of words by which [Judge] reads the description of an
// argument, and the grammar for them: a description begins with what the argument is
// ("Absolute path to the root of the project"), and the rest does not change that if
// attache knows all of its words. A list of words that do change it would never be
// complete: it may be a workspace to delete, the second of two, one on another machine, or
// one that another tool returned.

// A vocabulary is a set of words, separated by white space.
type vocabulary string

func (v vocabulary) has(word string) bool {
	// Searching the text needs no memory, and no map that each start of attache would have to fill.
	for rest := string(v); word != ""; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || rest[i-1] <= ' ') && (end == len(rest) || rest[end] <= ' ') {
			return true
		}
		// word was found within another one.
		rest = rest[i+1:]
	}
	return false
}

const (
	// places are words for the workspace, heads words for a path.
	places vocabulary = `workspace project repository repo codebase monorepo worktree cwd
		workspace's project's repository's repo's codebase's`
	heads vocabulary = `path directory dir folder root`
	// fillers may precede both without changing the meaning.
	fillers vocabulary = `the a an your this its absolute full fully qualified complete local optional required valid
		existing top level toplevel current active user user's whole entire git filesystem disk system
		provide specify specifies pass enter use is be must should contains`
	// technologies may precede a place, which is built with them.
	technologies vocabulary = `git godot nx react native expo node nodejs typescript javascript python rust cargo go golang
		java kotlin gradle maven android ios flutter dart swift ruby rails php laravel vue angular svelte unity deno bun
		dotnet cmake`
	// strong words mean that a path is one of the file system, and not the path of a
	// project on a host ("group/project").
	strong vocabulary = `absolute local filesystem disk directory dir folder root`
	// system words mean the same if they precede a path.
	system vocabulary = `absolute full local filesystem`
	// links stand between a path and what it is the path of.
	links vocabulary = `to of`
	// onward words may follow the complete subject of a description.
	onward vocabulary = `to for in on where that which if is used when must should you defaults default will so e.g eg i.e ie`
	// work are verbs for what is done in a workspace, or with all of it.
	work vocabulary = `use operate work run execute index search scan analyze analyse inspect check lint build test read
		query review explore examine validate verify look find watch monitor resolve`
	// participles describe an argument that is in a call: "if not given".
	participles vocabulary = `given provided specified supplied passed set`
	// plain words may appear anywhere.
	plain vocabulary = `to of for where that which and or if when so it you are will can may via e.g eg i.e ie example
		examples like such default defaults used uses using run running executed working resolving resolved resolve paths
		unset omitted missing exist exists
		command commands cli tool tools code file files any symbols tests task operation operations execution session
		process claude mandatory referencing usually`
	// hosts are words for the machine that attache runs on if one of ours precedes them; disks
	// need no such word.
	ours  vocabulary = `your this my local`
	disks vocabulary = `disk filesystem`
	hosts vocabulary = `machine computer system`
	// against are words that rule out the workspace wherever they appear.
	against vocabulary = `id ids gid uuid guid slug slugs key keys identifier identifiers handle namespace filter filters
		url urls uri uris encoded name names named alias relative glob globs regex regexp wildcard subdirectory
		subdirectories subfolder subfolders subpath sub list array comma token hostname host remote bucket container
		docker vault organization organisation team account tenant xcode xcodeproj xcworkspace sln csproj api endpoint
		initialize initialise clone cloned created destination`
	// makers in the name of a tool mean that it creates a workspace. Choosers and removers
	// mean that it chooses or removes one if they are the last word, or if the name also has
	// a word for a path.
	makers   vocabulary = `init initialize initialise clone scaffold bootstrap`
	choosers vocabulary = `set change switch select open activate use cd`
	removers vocabulary = `delete remove destroy purge wipe trash erase drop clean cleanup archive reset restore prune
		share upload publish merge compare transfer migrate replace overwrite import nuke rm rmdir del erase unlink discard`
	// adders next to "workspace" in the name of a tool mean that the server has workspaces of its
	// own, and so do makers.
	adders vocabulary = `create add new make register attach`
	// owners are things with a workspace of their own. The caller who adds or starts such a thing chooses its
	// workspace.
	owners   vocabulary = `session agent subagent worker profile`
	starters vocabulary = `start spawn launch`
	// wholes may follow a verb without naming its object.
	wholes vocabulary = `all everything now it force`
	// elsewhere are words in the name of a tool whose paths are not on this machine.
	elsewhere vocabulary = `ssh sftp ftp scp remote kubectl kubernetes k8s pod sandbox vm container devcontainer codespace
		databricks e2b`
	// readers and parts are the only other words that the name of a tool may have if it has a
	// place: what the tool does there, and with which part. Changers need a part, as in
	// "update_project_uids".
	readers vocabulary = `get list read show find search index run build test lint check analyze analyse inspect scan
		query describe explore info status summary summarize overview tree structure map stats metrics diagnostics`
	parts    vocabulary = `uids symbols symbol files file tasks issues errors problems dependencies docs documentation`
	changers vocabulary = `update`

	pathFormats vocabulary = `path directory directory-path dir-path dirpath folder folder-path absolute-path`
)

// sentences returns the words of each sentence of a text, in lower case. Brackets enclose
// sentences of their own, a comma is a word, and an absolute path, which is an example, ends a
// sentence.
func sentences(text string) (all [][]string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			all, words = append(all, words), nil
		}
	}
	// A colon ends a sentence, also without a blank behind it, as in "path:the".
	for field := range strings.FieldsSeq(strings.ReplaceAll(withoutPaths(text), ":", ": ")) {
		switch field {
		case "(", ")", ".":
			end()
			continue
		case ",":
			words = append(words, field)
			continue
		}
		trimmed := strings.TrimRight(field, `.;:!?`+quotes)
		words = append(words, strings.FieldsFunc(strings.TrimLeft(trimmed, quotes), func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '\'' && c != '.'
		})...)
		if strings.ContainsAny(field[len(trimmed):], ".;:!?") && !slices.Contains([]string{"e.g", "i.e", "eg", "ie"}, trimmed) {
			end()
		}
	}
	end()
	return all
}

const quotes = `"'` + "`"

// withoutPaths returns a text in lower case, with a dot instead of each absolute path and each
// dash, and white space around brackets and commas.
func withoutPaths(text string) string {
	spaced := strings.NewReplacer("file system", "filesystem", "file-system", "filesystem", "’", "'",
		"(", " ( ", ")", " ) ", ",", " , ", "—", " . ", " - ", " . ").Replace(strings.ToLower(text))
	var out strings.Builder
	for field := range strings.FieldsSeq(spaced) {
		if isAbsolute(strings.TrimLeft(field, quotes)) {
			field = "."
		}
		out.WriteString(field + " ")
	}
	return out.String()
}

// A textKind is what the argument is according to a sentence.
type textKind uint8

const (
	nothingText       textKind = iota
	workspacePathText          // the path of the workspace
	otherPathText              // the path of something else
	barePathText               // a path of something unnamed
	placeText                  // the workspace in some form
)

// subjectOf returns the kind of the subject at the beginning of a sentence, and its words.
func subjectOf(s []string) (kind textKind, words string) {
	at := skip(s, 0, fillers)
	// A strong filler is, for example, "absolute" in "absolute path to the project".
	isStrong := slices.ContainsFunc(s[:at], func(w string) bool { return strong.has(w) })
	if n := workingDirectory(s); n > 0 { // "current working directory"
		return pathKind(s, n, true), strings.Join(s[:n], " ")
	}
	if at < len(s) && places.has(s[at]) { // "the project root"
		end := skip(s, at, places)
		to := skip(s, end, heads)
		switch {
		case to == end && goesOn(s, end):
			return placeText, "" // "the workspace"
		// The place is only a part of what the argument is.
		case to == end:
			return nothingText, "" // "project file"
		}
		isStrong = isStrong || s[end] != "path" || s[end-1] != "project" // "project path" may be one on a host
		return pathKind(s, to, isStrong), strings.Join(s[:to], " ")
	}
	to := skip(s, at, heads)
	switch {
	case to == at:
		return nothingText, ""
	case to == len(s) || s[to] == ",": // "path"
		return barePathText, strings.Join(s[:to], " ")
	case isWorkedIn(s, to): // "directory to run the tests in"
		return workspacePathText, strings.Join(s[:to+2], " ")
	case !links.has(s[to]) && goesOn(s, to): // "path where files are"
		return nothingText, ""
	case !links.has(s[to]): // "path separator"
		return otherPathText, strings.Join(s[:to], " ")
	}
	isStrong = isStrong || slices.ContainsFunc(s[at:to], func(w string) bool { return strong.has(w) }) || s[to] != "of"
	return pathTo(s, to+1, isStrong) // "path to the project"
}

// isWorkedIn reports whether a directory is the working directory according to s[i:]: that
// something is run there, or that relative paths are resolved there.
func isWorkedIn(s []string, i int) bool {
	next := strings.Join(s[i:], " ") + " "
	return strings.HasPrefix(next, "to run ") || strings.HasPrefix(next, "to execute ") || strings.HasPrefix(next, "for resolving relative paths ")
}

// pathTo is like subjectOf for a path "to" or "of" s[at:].
func pathTo(s []string, at int, isStrong bool) (textKind, string) {
	if n := workingDirectory(s[at:]); n > 0 {
		return pathKind(s, at+n, true), strings.Join(s[:at+n], " ")
	}
	end := skip(s, at, fillers)
	// Each turn passes a technology, or a root of what follows.
	for end < len(s) && !places.has(s[end]) {
		if !technologies.has(s[end]) && !isRootOf(s, end) {
			return otherPathText, strings.Join(s[:end+1], " ") // "path to the file"
		}
		end = skip(s, end, heads) // "the root of the project"
		end = skip(s, end+1, fillers)
	}
	if end >= len(s) || !places.has(s[end]) {
		return otherPathText, strings.Join(s[:min(end+1, len(s))], " ")
	}
	if s[end] == "workspace" || s[end] == "codebase" || s[end] == "monorepo" {
		isStrong = true
	}
	end = skip(s, skip(s, end, places), heads)
	return pathKind(s, end, isStrong), strings.Join(s[:end], " ")
}

// isRootOf reports whether s[i:] begins with "root of" or "root directory of".
func isRootOf(s []string, i int) bool {
	end := skip(s, i, heads)
	return s[i] == "root" && end < len(s) && s[end] == "of"
}

// pathKind returns the kind of a sentence in which s[:end] is the path of the workspace,
// unless s[end:] means that it is another path.
func pathKind(s []string, end int, isStrong bool) textKind {
	if !isStrong || !goesOn(s, end) {
		return otherPathText
	}
	return workspacePathText
}

// goesOn reports whether s[i:] does not change the meaning of s[:i]: "path to the project to
// build", but not "path to the project file", "path to the project to delete", or "path to the
// project, a folder or a file".
func goesOn(s []string, i int) bool {
	switch {
	case i >= len(s):
		return true
	case s[i] == ",":
		return !slices.Contains(s[i:], "or")
	case s[i] == "to":
		return i+1 < len(s) && work.has(s[i+1])
	}
	return onward.has(s[i])
}

// unknownWords returns the first words of a sentence that may change its meaning, "" if there
// are none.
func unknownWords(s []string) string {
	for i := 0; i < len(s); i++ {
		w, at := s[i], i
		ok := w == "," || places.has(w) || heads.has(w) || fillers.has(w) || technologies.has(w) || work.has(w) || participles.has(w) || plain.has(w)
		switch w {
		case "in", "on":
			end := skipLocation(s, i+1)
			ok = end > 0
			// The words of the location are known. A location that is not ok ends the search below.
			i = end - 1
		case "not":
			ok = slices.Contains(s[:i], "if") && (i+1 == len(s) || participles.has(s[i+1]))
		case "a", "an", "the": // not as in "workspace A"
			ok = i+1 < len(s)
		case "relative":
			ok = resolves(s, i)
		}
		switch {
		case ok:
		case w == "in" || w == "on":
			return strings.Join(s[at:min(at+3, len(s))], " ")
		default:
			return w
		}
	}
	return ""
}

// skipLocation returns the end of the words after "in" or "on" at i if they name no other place,
// as in "to run the command in", "on disk" and "on the local machine". Otherwise it returns 0.
func skipLocation(s []string, i int) int {
	end, isOurs := i, false
	for end < len(s) && (s[end] == "the" || s[end] == "a" || ours.has(s[end])) {
		isOurs = isOurs || ours.has(s[end])
		end++
	}
	if end < len(s) && (disks.has(s[end]) || isOurs && hosts.has(s[end])) {
		i = end + 1
	}
	if i >= len(s) || s[i] == "," || s[i] == "which" {
		return i
	}
	return 0
}

// workingDirectory returns the number of words at the beginning of s that name the working
// directory, 0 if they do not.
func workingDirectory(s []string) int {
	at := skip(s, 0, fillers)
	switch {
	case at < len(s) && s[at] == "cwd":
		return at + 1
	case at+1 < len(s) && s[at] == "working" && heads.has(s[at+1]):
		return skip(s, at+1, heads)
	case at > 0 && at < len(s) && s[at-1] == "current" && heads.has(s[at]):
		return skip(s, at, heads)
	}
	return 0
}

// absolutePath returns words anywhere in a sentence that mean an absolute path, "" if there are
// none.
func absolutePath(s []string) string {
	for i := range s {
		if i > 0 && heads.has(s[i]) && system.has(s[i-1]) && goesOn(s, i+1) && (i+1 == len(s) || !links.has(s[i+1])) {
			return s[i-1] + " " + s[i]
		}
	}
	return ""
}

// skip returns the index of the first word from at on that is not in a vocabulary.
func skip(s []string, at int, of vocabulary) int {
	for at < len(s) && of.has(s[at]) {
		at++
	}
	return at
}

// examplesOf matches what follows words such as "e.g.", and what is in quotes or parentheses.
var examplesOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\be\.g\.?|\bfor example|\bexamples?:?|\bsuch as)[,:]?\s*["'` + "`" + `]?([^\s"'` + "`" + `,)]+)|[("'` + "`" + `]([^\s("'` + "`" + `)]+)[)"'` + "`" + `]`)
})

// foreignExample returns an example in a description that is not an absolute path, "" if there
// is none.
func foreignExample(text string) string {
	for _, m := range examplesOf().FindAllStringSubmatch(text, -1) {
		// Only one of the two groups has matched. Without a slash it may be any word in quotes.
		if example := m[1] + m[2]; strings.ContainsAny(example, `/\`) && !looksLikePath(example) && example[0] != '.' {
			return example
		}
	}
	return ""
}

// isAbsolute reports whether a text is an absolute path on some operating system.
func isAbsolute(text string) bool {
	drive := len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') && unicode.IsLetter(rune(text[0]))
	return drive || len(text) > 1 && text[0] == '/' || strings.HasPrefix(text, `\\`)
}

// looksLikePath reports whether a default is a path: an absolute one, the working
// directory, or one that begins with a variable or the home directory.
func looksLikePath(text string) bool {
	return isAbsolute(text) || text == "." || text == "./" || text == "cwd" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "$")
}

// resolves reports whether s[i] is the second word of "resolving relative", so that the argument
// is the base of relative paths.
func resolves(s []string, i int) bool {
	return s[i] == "relative" && i > 0 && strings.HasPrefix(s[i-1], "resolv")
}
