package config

import (
	"cmp"
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

var updateReference = goflag.Bool("update", false, "write the reference in docs/configuration.md")

// TestReference checks that docs/configuration.md has every key, flag, variable and
// default. With -update it writes them.
func TestReference(t *testing.T) {
	const name, begin, end = "../../../../docs/configuration.md", "<!-- TestReference begins -->\n", "<!-- TestReference ends -->\n"
	data, err := os.ReadFile(name)
	check(t, err)
	before, rest, begun := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has no place for the reference", name)
	}
	want := before + begin + reference() + end + after
	if *updateReference {
		check(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	if d := diff.Diff(want, string(data)); d != "" {
		t.Errorf("run this test with -update: %s", d)
	}
}

// reference returns a table of options for each section of the file, and one for small sections and for options
// without a key.
func reference() string {
	var b, others strings.Builder
	all := byKey(Options(DefaultSettings("")))
	for len(all) > 0 {
		section := sectionOf(all[0])
		end := slices.IndexFunc(all, func(o setting.Option) bool { return sectionOf(o) != section })
		if end < 0 {
			end = len(all)
		}
		var rows strings.Builder
		for _, o := range all[:end] {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", strings.Join(waysToSet(o), ", "), code(shortDefault(o)), cell(o.Help)+choices(o.Value.Schema(), o.Help))
			rows.WriteString(entryRows(o))
		}
		all = all[end:]
		if strings.Count(rows.String(), "\n") < 3 {
			others.WriteString(rows.String())
			continue
		}
		writeTable(&b, "`"+section+"`", rows.String())
	}
	writeTable(&b, "Other keys", others.String())
	return b.String() + "\n"
}

func writeTable(b *strings.Builder, heading, rows string) {
	fmt.Fprintf(b, "\n### %s\n\n| key | default | meaning |\n|---|---|---|\n%s", heading, rows)
}

// byKey sorts options by the section of their key. Options without a key come last.
func byKey(all []setting.Option) []setting.Option {
	slices.SortStableFunc(all, func(a, b setting.Option) int {
		if (a.Key == "") != (b.Key == "") {
			return strings.Compare(b.Key, a.Key)
		}
		return cmp.Compare(sectionOf(a), sectionOf(b))
	})
	return all
}

func sectionOf(o setting.Option) string {
	section, _, _ := strings.Cut(o.Key, ".")
	return section
}

// waysToSet returns the key, the flag and the variables of an option.
func waysToSet(o setting.Option) (ways []string) {
	if o.Key != "" {
		ways = append(ways, code(o.Key))
	}
	if o.Flag != "" {
		ways = append(ways, code("--"+o.Flag), code(o.Variable()))
	}
	if own := setting.Prefix + "_" + o.Injected; o.Injected != "" && own != o.Variable() {
		ways = append(ways, code(own))
	}
	return ways
}

// entryRows returns rows for the keys of the entries of a list, or of a value by name.
func entryRows(o setting.Option) string {
	items, _ := o.Value.Schema()["items"].(map[string]any)
	each := "[]."
	if named, ok := o.Value.Schema()["additionalProperties"].(map[string]any); ok {
		items, each = named, ".NAME."
	}
	properties, _ := items["properties"].(map[string]any)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := properties[name].(map[string]any)
		help, _ := property["description"].(string)
		value := ""
		if d := property["default"]; d != nil && d != false {
			value = code(fmt.Sprint(d)) + " "
		}
		fmt.Fprintf(&b, "| %s | %s| %s |\n", code(o.Key+each+name), value, cell(help)+choices(property, help))
	}
	return b.String()
}

// choices returns the words that a value may be, in parentheses, unless help contains them all.
func choices(schema map[string]any, help string) string {
	if items, ok := schema["items"].(map[string]any); ok {
		schema = items
	}
	words, _ := schema["enum"].([]string)
	if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(help, word) }) {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// shortDefault returns the default of an option, "" for none.
func shortDefault(o setting.Option) string {
	switch text := o.Shown(); text {
	case "[]", "{}", `""`:
		return ""
	default:
		return text
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell escapes the character that ends the cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
