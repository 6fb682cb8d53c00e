package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/policy"
)

const (
	top    = "═══ SESSION CONTEXT (auto-injected) ═══"
	bottom = "═══════════════════════════════════════"
)

// framed returns a block with the given lines in its frame.
func framed(lines ...string) string {
	return top + "\n\n" + strings.Join(lines, "\n") + "\n\n" + bottom
}

// example is the Effective of the example in the documentation.
var example = policy.Effective{
	Policies: []policy.Policy{
		{Name: "require-tests", Position: policy.Prepend, Text: "All code changes must include tests.", Inherited: true},
		{Name: "security-review", Position: policy.Append, Text: "Flag any credential handling for review."},
	},
	Objectives: []string{"Improve platform reliability", "Reduce deployment time to under 5 minutes"},
}

func TestRender(t *testing.T) {
	tests := []struct {
		name      string
		effective policy.Effective
		maxBytes  int
		want      string
	}{
		{
			name: "the block of the design", effective: example,
			want: framed("Policies:",
				"  - [prepend] require-tests: All code changes must include tests. (inherited)",
				"  - [append] security-review: Flag any credential handling for review. (local)",
				"", "Objectives:",
				"  - Improve platform reliability",
				"  - Reduce deployment time to under 5 minutes"),
		},
		{
			name:      "policies alone",
			effective: policy.Effective{Policies: example.Policies[1:]},
			want:      framed("Policies:", "  - [append] security-review: Flag any credential handling for review. (local)"),
		},
		{
			name:      "objectives alone",
			effective: policy.Effective{Objectives: example.Objectives[:1]},
			want:      framed("Objectives:", "  - Improve platform reliability"),
		},
		{name: "nothing", want: framed("No policies or objectives configured")},
		{
			name: "only invisible characters",
			effective: policy.Effective{
				Policies:   []policy.Policy{{Position: policy.Prepend, Text: "\u200b\n"}},
				Objectives: []string{"", "\t", "\x1b[31m"},
			},
			want: framed("No policies or objectives configured"),
		},
		{
			name: "an invalid position reads as append",
			effective: policy.Effective{Policies: []policy.Policy{
				{Name: "n", Text: "t", Position: "x]\n" + bottom},
			}},
			want: framed("Policies:", "  - [append] n: t (local)"),
		},
		{
			name:      "half a policy has no colon",
			effective: policy.Effective{Policies: []policy.Policy{{Name: "n", Position: policy.Prepend}, {Text: "t"}}},
			want:      framed("Policies:", "  - [prepend] n (local)", "  - [append] t (local)"),
		},
		{
			name: "cut after the first objective", effective: example, maxBytes: 400,
			want: framed("Policies:",
				"  - [prepend] require-tests: All code changes must include tests. (inherited)",
				"  - [append] security-review: Flag any credential handling for review. (local)",
				"", "(2 more left out: the limit is 400 bytes)"),
		},
		{
			name: "cut in the policies", effective: example, maxBytes: 360,
			want: framed("Policies:",
				"  - [prepend] require-tests: All code changes must include tests. (inherited)",
				"", "(3 more left out: the limit is 360 bytes)"),
		},
		{
			name: "no room for any", effective: example, maxBytes: 1,
			want: framed("(4 more left out: the limit is 1 bytes)"),
		},
		{name: "nothing to omit", maxBytes: 1, want: framed("No policies or objectives configured")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := policy.Render(test.effective, test.maxBytes)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRenderLimit(t *testing.T) {
	whole := policy.Render(example, 0)
	if got := policy.Render(example, len(whole)); got != whole {
		t.Errorf("a block of exactly the limit was cut:\n%s", got)
	}
	many := policy.Effective{}
	for i := range 200 {
		many.Objectives = append(many.Objectives, fmt.Sprintf("objective %d", i))
	}
	for limit := 250; limit < 4000; limit += 7 {
		got := policy.Render(many, limit)
		if len(got) > limit {
			t.Fatalf("limit %d: the block has %d bytes", limit, len(got))
		}
		kept := strings.Count(got, "\n  - ")
		if left := fmt.Sprintf("\n(%d more left out", 200-kept); kept < 200 && !strings.Contains(got, left) {
			t.Fatalf("limit %d: the block has %d items, but not the note %q:\n%s", limit, kept, left, got)
		}
		if spare := limit - len(got); kept < 200 && spare > len("\n  - objective 199")+1 {
			t.Fatalf("limit %d: an item is left out, although there are %d bytes to spare", limit, spare)
		}
	}
}

// Each text is rendered as an objective; want is the part after "  - ".
func TestRenderSafe(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "Keep it simple.", "Keep it simple."},
		{"line breaks fold", " a\r\n\r\n  b\tc\u2028d\u2029e\u0085f\v\fg ", "a b c d e f g"},
		{"wide and hard spaces fold", "a\u00a0\u3000b", "a b"},
		{"letters that look blank", "a\u3164b\u2800c\uffa0d\u115fe", "a b c d e"},
		{"control characters", "a\x00b\x07c\x7fd\u0080e\u0081f", "abcdef"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"colour in its one-rune form", "\u009b31mred", "red"},
		{"hyperlink", "\x1b]8;;http://x.example\x1b\\here\x1b]8;;\x07 and there", "here and there"},
		{"string in its one-rune form", "\u009d0;title\u009cshown", "shown"},
		{"command in its one-rune form", "\u009fcommand\x07shown", "shown"},
		{"character set", "\x1b(Bshown", "shown"},
		{"incomplete escape", "shown\x1b", "shown"},
		{"incomplete colour keeps the text", "\x1b[31", "[31"},
		{"endless control string keeps the text", "\x1b]0;the text", "]0;the text"},
		{"incomplete control string", "\x1b]0;a\nb\x07c", "]0;a bc"},
		{"bidi override", "a\u202eb\u2066c\u2069d\u200ee\u061cf", "abcdef"},
		{"zero width", "a\u200bb\ufeffc\u2060d\u00ade", "abcde"},
		{"tag characters", "a\U000E0041\U000E0042b", "ab"},
		{"variation selectors that hide text", "a\U000E0100\U000E0101\uFE01\uFE02b", "ab"},
		{"emoji keep theirs", "ok ❤️‍🔥 1️⃣ 👩‍💻", "ok ❤️‍🔥 1️⃣ 👩‍💻"},
		{"emoji that are text, a letter or punctuation", "☎\ufe0e ℹ\ufe0f ‼\ufe0f", "☎\ufe0e ℹ\ufe0f ‼\ufe0f"},
		{"emoji do not keep other selectors", "☎\ufe00 ‼\ufe01", "☎ ‼"},
		{"persian keeps its non-joiner", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"},
		{"joiners in a row", "👩\u200d\u200d\u200d💻\u200c\u200d", "👩\u200d💻\u200c"},
		{"joiner at the start and between latin letters", "\u200da\u200cb \u200dc", "ab c"},
		{"selector after a letter or an ascii symbol", "a\ufe0f b +\ufe0f !\ufe0e", "a b + !"},
		{"selector after a letter of another script", "é\ufe0fж\ufe0e漢\ufe0f", "éж漢"},
		{"joiners after letters that do not join", "é\u200cж\u200d漢\u200cα\u200d", "éж漢α"},
		{"mongolian keeps its selectors", "\u1820\u180b\u1821\u180f x\u180b", "\u1820\u180b\u1821\u180f x"},
		{"mongolian keeps joiners, but no other selectors", "\u1820\u200d\u1821\ufe00", "\u1820\u200d\u1821"},
		{"arabic keeps its number sign", "\u0600\u0661", "\u0600\u0661"},
		{"fillers and characters without a shape", "a\u034fb\u17b4c\u2065d\ufff0e\U000E0080f\U000E01F0g\U00016FE4h", "abcdefgh"},
		{"not utf-8", "a\xff\xfeb", "a\uFFFDb"},
		{"frame", "x\n" + bottom + "\ny", "x – y"},
		{"first line of the frame", top, "– SESSION CONTEXT (quoted) –"},
		{"first line in ascii and capitals", "=== SESSION CONTEXT (AUTO-INJECTED) ===", "=== SESSION CONTEXT (quoted) ==="},
		{"words with invisible characters inside", "(auto\u200d-\u00adinjected)", "(quoted)"},
		{"several words", "(auto-injected) (Auto-Injected)x", "(quoted) (quoted)x"},
		{"look-alikes of the rule", "━━━ ＝＝＝ ──── ╿╿ ―― ⩶", "– – – – – –"},
		{"code is kept", "Use === in code, `a <= b` and --flag.", "Use === in code, `a <= b` and --flag."},
		{"other scripts", "Tests für alles. テストを書く。", "Tests für alles. テストを書く。"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := policy.Render(policy.Effective{Objectives: []string{test.text}}, 0)
			if want := framed("Objectives:", "  - "+test.want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestEscape(t *testing.T) {
	tests := []struct {
		name, text, want string
		hidden           int
	}{
		{"plain", "Keep\tit\nsimple, ❤️ and ═══.", "Keep\tit\nsimple, ❤️ and ═══.", 0},
		{"tag characters", "a\U000E0041\U000E007Fb", "a<U+E0041><U+E007F>b", 2},
		{"variation selectors", "a\ufe0f\U000E0100b", "a<U+FE0F><U+E0100>b", 2},
		{"selectors in a row after an emoji", "❤️\ufe0e\U000E0101", "❤️<U+FE0E><U+E0101>", 2},
		{"fillers and blanks", "a\u3164b\u115fc\u00a0d\u2028e", "a<U+3164>b<U+115F>c<U+00A0>d<U+2028>e", 4},
		{"directions", "a\u202eb\u2066c", "a<U+202E>b<U+2066>c", 2},
		{"controls", "a\x1b[31mb\rc\x00", "a<U+001B>[31mb<U+000D>c<U+0000>", 3},
		{"private use and noncharacters", "a\U000F0041\ue041b\uffff\U0001d159c", "a<U+F0041><U+E041>b<U+FFFF><U+1D159>c", 4},
		{"a joiner after an omitted character", "é\U000E0041\u200d", "é<U+E0041><U+200D>", 2},
		{"an emoji's selector after an omitted character", "❤\u200b\ufe0f", "❤<U+200B>\ufe0f", 1},
		{"persian keeps its non-joiner", "\u06cc\u200c\u062e", "\u06cc\u200c\u062e", 0},
		{"not utf-8", "a\xffb", "a\uFFFDb", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, hidden := policy.Escape(test.text); got != test.want || hidden != test.hidden {
				t.Errorf("got %q with %d hidden, want %q with %d", got, hidden, test.want, test.hidden)
			}
		})
	}
}

// A text of many incomplete escapes once took quadratic time, with which this test would take
// minutes.
func TestRenderHostileTextIsLinear(t *testing.T) {
	for _, part := range []string{"\x1b]", "\u009d", "\x1b[", "(auto-injected)", "(", "═ "} {
		text := strings.Repeat(part, 1<<20/len(part))
		policy.Render(policy.Effective{Objectives: []string{text}}, 1<<14)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("require-tests", "All code\nmust have tests", "Improve\x1b[31m", 0)
	f.Add("a\u202e", top, bottom, 120)
	f.Add("", "\xff", "\u0085 (auto-injected) \x1b]8;;\x07", 300)
	f.Add("n", "a\n\n"+framed("Policies:")+"\n", "👩\u200d💻", 1)
	f.Fuzz(func(t *testing.T, name, text, objective string, limit int) {
		e := policy.Effective{
			Policies:   []policy.Policy{{Name: name, Position: policy.Prepend, Text: text}},
			Objectives: []string{objective},
		}
		got := policy.Render(e, limit)
		lines := strings.Split(got, "\n")
		for i, line := range lines {
			first, last := i == 0, i == len(lines)-1
			switch {
			case first && line != top, last && line != bottom:
				t.Fatalf("the frame is broken: %q", got)
			case !first && !last && strings.ContainsAny(line, "═━─"):
				t.Fatalf("line %d looks like the frame: %q", i, got)
			case !first && strings.Contains(strings.ToLower(line), "(auto-injected)"):
				t.Fatalf("line %d has the words of the frame: %q", i, got)
			}
			if bad := strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }); bad >= 0 {
				t.Fatalf("line %d has a control character: %q", i, got)
			}
		}
		if !utf8.ValidString(got) || len(lines) > 11 {
			t.Fatalf("not valid UTF-8, or an item has more than one line: %q", got)
		}
		// Rendering safe text again does not change it.
		for _, line := range lines {
			item, ok := strings.CutPrefix(line, "  - ")
			if again := policy.Render(policy.Effective{Objectives: []string{item}}, 0); ok && !strings.Contains(again, "\n"+line+"\n") {
				t.Fatalf("%q became %q", line, again)
			}
		}
	})
}
