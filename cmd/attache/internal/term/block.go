package term

import "strings"

// PaintBlock adds colours for a terminal to a block of policies and objectives. The frame and the origins
// of items are faint; headings and names are bold. The block must not contain escapes.
func PaintBlock(block string) string {
	lines := strings.Split(block, "\n")
	for i, line := range lines {
		lines[i] = paintBlockLine(line)
	}
	return strings.Join(lines, "\n")
}

func paintBlockLine(line string) string {
	position, item, isPolicy := strings.Cut(line, "] ")
	switch {
	case strings.HasPrefix(line, "═══"):
		return Paint(true, Quiet, line)
	case line != "" && line[0] != ' ' && strings.HasSuffix(line, ":"):
		return Paint(true, Heading, line)
	case !isPolicy || !strings.HasPrefix(position, "  - ["):
		return line
	}
	origin := max(strings.LastIndex(item, " ("), 0)
	item, from := item[:origin], item[origin:]
	name, text, named := strings.Cut(item, ": ")
	if named {
		item = Paint(true, Heading, name) + ": " + text
	}
	return "  - " + Paint(true, Reason, strings.TrimPrefix(position, "  - ")+"]") + " " + item + Paint(true, Quiet, from)
}
