package policy

import (
	"fmt"
	"sort"
	"strings"
)

// The constant lines of the block. The first and the last separate the block from a tool's own
// text, so [oneLine] removes look-alikes of both from items.
const (
	frameTop    = "═══ SESSION CONTEXT (auto-injected) ═══"
	frameBottom = "═══════════════════════════════════════"
	nothingSet  = "No policies or objectives configured"
)

// Render returns e as the block for the beginning of a session's first tool response, without a
// newline at the end.
//
// Every item is one line that does not look like another part of the block: Render replaces line
// breaks with spaces, and removes control characters, terminal escapes, invisible and
// direction-changing characters and look-alikes of the frame. It omits items that are empty then.
//
// The block has at most maxBytes (0: no limit). Render omits all items from the first one that
// does not fit, and the last line inside the frame has their number. It always writes the frame
// and that line, even if these are too long.
func Render(e Effective, maxBytes int) string {
	b := blockOf(e)
	total := len(b.policies) + len(b.objectives)
	whole := b.text(total, "")
	if maxBytes <= 0 || total == 0 || len(whole) <= maxBytes {
		return whole
	}
	note := func(left int) string {
		return fmt.Sprintf("(%d more left out: the limit is %d bytes)", left, maxBytes)
	}
	// Omitting an item shortens the block by more than the number in the note can grow, so a
	// binary search finds the smallest number.
	left := sort.Search(total, func(left int) bool { return len(b.text(total-left, note(left))) <= maxBytes })
	return b.text(total-left, note(left))
}

// block holds the lines of a block's two sections.
type block struct {
	policies, objectives []string
}

func blockOf(e Effective) block {
	var b block
	for _, p := range e.Policies {
		item := oneLine(p.Name)
		if text := oneLine(p.Text); item == "" || text == "" {
			item += text
		} else {
			item += ": " + text
		}
		if item == "" {
			continue
		}
		position, origin := Append, "local"
		if p.Position == Prepend {
			position = Prepend
		}
		if p.Inherited {
			origin = "inherited"
		}
		b.policies = append(b.policies, fmt.Sprintf("  - [%s] %s (%s)", position, item, origin))
	}
	for _, o := range e.Objectives {
		if text := oneLine(o); text != "" {
			b.objectives = append(b.objectives, "  - "+text)
		}
	}
	return b
}

// text returns the text of the block with the first count items and the note, if not empty.
func (b block) text(count int, note string) string {
	policies := b.policies[:min(count, len(b.policies))]
	objectives := b.objectives[:count-len(policies)]
	parts := []string{frameTop}
	if len(policies) > 0 {
		parts = append(parts, "Policies:\n"+strings.Join(policies, "\n"))
	}
	if len(objectives) > 0 {
		parts = append(parts, "Objectives:\n"+strings.Join(objectives, "\n"))
	}
	if note != "" {
		parts = append(parts, note)
	}
	if len(parts) == 1 {
		parts = append(parts, nothingSet)
	}
	return strings.Join(append(parts, frameBottom), "\n\n")
}
