package arguments

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments/internal/constraint"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Verdict is the decision whether an argument takes the path of the workspace.
type Verdict struct {
	// Path reports whether the argument, according to the schema, takes the path of the
	// workspace, project root or working directory.
	Path bool
	// Words are the decisive words of the schema or the tool's name. They are empty if the
	// schema does not describe the argument, or attache does not understand all of it.
	Words string
	// Why is the reason, for people.
	Why string
}

// Judge decides whether an argument takes the path of the workspace. It reads the title,
// description, format, examples, default and pattern of the property by a table of words. tool
// is the tool's name, schema its raw inputSchema, and argument the path of the argument. The
// built-in rule and the suggestions of `attache doctor` follow the verdict.
//
// In doubt the verdict is no, because an unfilled call is what the model wrote, and a wrongly
// filled one is not. A word of the description that is not in the table causes doubt, and so
// does such a word next to a place in the name of the tool.
func Judge(tool string, schema []byte, argument ...string) Verdict {
	property := wire.Value{Raw: schema}
	for _, key := range argument {
		property = property.Get("properties", key)
	}
	if !property.IsObject() || len(argument) == 0 {
		return Verdict{Why: "the tool has no such argument"}
	}
	// The name of the tool first: whatever the argument says, the tool may mean a workspace that is yet to be made.
	if words := choosesWorkspace(tool); words != "" {
		return Verdict{Words: words, Why: "the tool may work in another place, or make, choose or remove a workspace"}
	}
	// A keyword is what the server checks, so it counts more than prose.
	if reject := judgeForm(property); reject.Why != "" {
		return reject
	}
	return judgeText(property, argument[len(argument)-1])
}

// choosesWorkspace returns the words of a tool's name that mean that its path may not be that
// of the current workspace, "" if there are none. A word that no case of the switch accepts, and each verb
// that chooses or removes, is another word: with it the name may mean another place. A command of git such
// as git_reset or git_remote works in the repository that it is given.
func choosesWorkspace(tool string) string {
	words := slices.DeleteFunc(nameWords(tool), wholes.has)
	git := slices.Contains(words, "git")
	var verb, place, path, other, changer, part, adder, owner string
	for _, w := range words {
		switch {
		case makers.has(w), elsewhere.has(w) && !git:
			return w
		case choosers.has(w), removers.has(w):
			verb = w
		case places.has(strings.TrimSuffix(w, "s")), w == "repositories", w == "working":
			place = w
			continue
		case heads.has(strings.TrimSuffix(w, "s")), w == "directories":
			path = w
			continue
		case changers.has(w):
			changer = w
			continue
		case parts.has(w):
			part = w
			continue
		case readers.has(w), technologies.has(w), w == "mcp":
			continue
		case adders.has(w), starters.has(w):
			adder = w
		case owners.has(w):
			owner = w
		}
		other = cmp.Or(other, w)
	}
	if part == "" { // update_project, but not update_project_uids
		other = cmp.Or(other, changer)
	}
	switch {
	case place != "" && other != "": // sync_project, but not read_project_tree
		return other + " " + place
	case adder != "" && owner != "": // create_session
		return adder + " " + owner
	case verb != "" && path != "": // set_directory
		return verb + " " + path
	case verb != "" && verb == words[len(words)-1] && !git: // delete_all, of which wholes has the last word
		return verb
	}
	return ""
}

// MakesWorkspaces reports whether the name of a tool, such as init_workspace, says that it creates or
// registers workspaces. Its server may mean one of these by "workspace": see [Verdict.AmongOwn].
func MakesWorkspaces(tool string) bool {
	if !strings.Contains(strings.ToLower(tool), "workspace") { // most names; nameWords is slower
		return false
	}
	words := nameWords(tool)
	if len(words) < 2 {
		return false
	}
	verb, place := words[len(words)-2], words[len(words)-1]
	if makers.has(place) || adders.has(place) {
		verb, place = place, verb
	}
	return strings.TrimSuffix(place, "s") == "workspace" && (makers.has(verb) || adders.has(verb))
}

// AmongOwn returns the verdict on an argument of a server that makes workspaces. It is no if the word
// workspace is in the name of the argument.
func (v Verdict) AmongOwn(argument string) Verdict {
	if v.Path && slices.Contains(nameWords(argument), "workspace") {
		return Verdict{Why: "the server makes workspaces, so it may mean one of those"}
	}
	return v
}

// nameWords returns the words of a name in snake, kebab or camel case, in lower case.
func nameWords(name string) []string {
	var spaced strings.Builder
	lower := false
	for _, c := range name {
		if unicode.IsUpper(c) && lower {
			spaced.WriteByte(' ')
		}
		lower = unicode.IsLower(c)
		spaced.WriteRune(unicode.ToLower(c))
	}
	return strings.FieldsFunc(spaced.String(), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// judgeForm decides by keywords that are not prose. A verdict without a reason means that they
// do not decide.
func judgeForm(property wire.Value) Verdict {
	reject := func(key, why string) Verdict {
		return Verdict{Words: key + " " + middleware.Clip(string(property.Get(key).Raw)), Why: why}
	}
	if (constraint.Schema{Value: property}).Accepted()&constraint.Texts == 0 {
		for _, key := range []string{"enum", "const", "type"} {
			if property.Get(key).Exists() {
				return reject(key, "it does not take any text")
			}
		}
		return Verdict{Why: "its schema is more than a plain text"}
	}
	if format := property.Get("format").Text(); format != "" && !pathFormats.has(format) {
		return reject("format", "the format is not that of a path")
	}
	if v := property.Get("default"); v.IsString() && !v.Equals("") && !looksLikePath(v.Text()) {
		return reject("default", "the default is not a path")
	}
	if pattern := property.Get("pattern"); pattern.Exists() && !matchesPath(pattern) {
		return reject("pattern", "the pattern does not match paths")
	}
	// A number with three digits or more, or one such as 1e2, passes: misfit then checks the value itself.
	if v := property.Get("maxLength"); v.Exists() && len(v.Raw) < 3 { // digits: less than 100
		return reject("maxLength", "a path may be longer")
	}
	for example := range property.Get("examples").Elements() {
		if !isAbsolute(example.Text()) {
			return reject("examples", "an example is not an absolute path")
		}
	}
	return Verdict{}
}

// matchesPath reports whether a pattern matches paths of all operating systems.
func matchesPath(pattern wire.Value) bool {
	r := constraint.CompilePattern(pattern)
	return r != nil && r.MatchString("/home/ada lovelace/src/shop.v2") && r.MatchString(`C:\Users\ada\src\shop`)
}

// judgeText decides by the title, the description and the examples.
func judgeText(property wire.Value, name string) Verdict {
	text := textOf(property)
	for _, key := range []string{"anyOf", "oneOf"} {
		for e := range property.Get(key).Elements() {
			text += ". " + textOf(e)
		}
	}
	// Before the sentences, because sentences drops absolute paths and splits others into words.
	if w := foreignExample(text); w != "" {
		return Verdict{Words: w, Why: "an example is not an absolute path"}
	}
	isWorkspace := isPlace(nameWords(name)) // decides together with barePath
	var path, otherPath Verdict
	barePath, unknown := "", ""
	for _, s := range sentences(text) {
		for i, w := range s {
			// One such word anywhere is a no, so the order of the sentences does not matter for it.
			if against.has(w) && !resolves(s, i) {
				return Verdict{Words: w, Why: "it speaks of something other than the path of the workspace"}
			}
		}
		switch kind, words := subjectOf(s); kind {
		case workspacePathText:
			path = Verdict{Path: true, Words: words, Why: "it says that it takes the path of the workspace"}
		case otherPathText:
			otherPath = Verdict{Words: words, Why: "it is a path, but not that of the workspace"}
		case barePathText:
			barePath = words
		case placeText:
			isWorkspace = true
		}
		// A path without a name, as in "Absolute path.", decides only together with isWorkspace.
		barePath = cmp.Or(barePath, absolutePath(s))
		unknown = cmp.Or(unknown, unknownWords(s))
	}
	barePath = cmp.Or(barePath, formOfPath(property))
	switch {
	// A sentence about another path outweighs all about the workspace.
	case otherPath.Why != "":
		return otherPath
	// Doubt counts against a yes. A no needs no understanding of the rest.
	case unknown != "" && (path.Path || isWorkspace && barePath != ""):
		return Verdict{Why: "it says more than attache understands: " + strconv.QuoteToASCII(middleware.Clip(unknown))}
	case path.Path:
		return path
	case isWorkspace && barePath != "":
		return Verdict{Path: true, Words: barePath, Why: "it says that it takes a path, and is named after the workspace"}
	case strings.Trim(text, ". ") == "":
		return Verdict{Why: "its schema does not say what it takes"}
	}
	return Verdict{Why: "its schema does not say that it takes the path of the workspace"}
}

func textOf(schema wire.Value) string {
	return schema.Get("title").Text() + ". " + schema.Get("description").Text()
}

// formOfPath returns the format or example that shows that a property takes a path.
func formOfPath(property wire.Value) string {
	if format := property.Get("format"); format.Exists() {
		return "format " + string(format.Raw)
	}
	for example := range property.Get("examples").Elements() {
		return "example " + middleware.Clip(string(example.Raw)) // absolute, by judgeForm
	}
	return ""
}

// isPlace reports whether the words of an argument's name mean the workspace, and nothing in it.
func isPlace(words []string) bool {
	hasPlace := false
	for _, w := range words {
		if !places.has(w) && !heads.has(w) && w != "working" && w != "abs" && w != "absolute" {
			return false
		}
		hasPlace = hasPlace || places.has(w) || w == "working"
	}
	return hasPlace
}
