package teams

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on the texts of agents, in characters.
const (
	MaxTitle   = 200
	MaxFirst   = 10_000
	MaxMessage = 50_000
	MaxKey     = 64
	maxName    = 64
)

// CheckTitle checks the title of a session, which is shown to other models: it allows letters and
// digits of any script, space, "_" and "-", but none that cannot be seen.
func CheckTitle(title string) error {
	if n := utf8.RuneCountInString(title); n == 0 || n > MaxTitle {
		return Refusal("Session title must be 1-200 characters")
	}
	for _, r := range title {
		hidden := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if hidden || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != ' ' && r != '_' && r != '-' {
			return Refusal("Session title contains invalid characters")
		}
	}
	if strings.TrimSpace(title) == "" {
		return Refusal("Session title contains invalid characters")
	}
	return nil
}

// CheckName checks the name of an agent.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || word(name) != name {
		return Refusal("Agent name must be alphanumeric with hyphens/underscores")
	}
	return nil
}

// word returns a name or an id without the characters that no name and no id has.
func word(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return r
		}
		return -1
	}, text)
}

// CheckMessage returns text with \n as the only line ending, or an error if the text cannot be
// sent. name is the name of the text for the error.
func CheckMessage(name, text string, limit int) (string, error) {
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", Refusal(name + " is empty")
	case n > limit:
		return "", Refusal(fmt.Sprintf("%s too long (max %d chars)", name, limit))
	case !utf8.ValidString(text):
		return "", Refusal(name + " is not valid UTF-8")
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f {
			return "", Refusal(name + " contains invalid control characters")
		}
	}
	return text, nil
}

// Beginning returns the first n characters of a text.
func Beginning(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return strings.Clone(text[:i])
		}
	}
	return text
}
