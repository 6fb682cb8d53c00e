package main

import "strings"

// paintBlock sets off the parts of a block of policies and objectives for a terminal:
// the frame and where an item comes from are faint, headings and names bold. It adds
// colours and changes nothing else. The block holds no escapes of its own.
func paintBlock(block string) string {
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
		return painted(true, demoQuiet, line)
	case line != "" && line[0] != ' ' && strings.HasSuffix(line, ":"):
		return painted(true, demoHeading, line)
	case !isPolicy || !strings.HasPrefix(position, "  - ["):
		return line
	}
	origin := max(strings.LastIndex(item, " ("), 0)
	item, from := item[:origin], item[origin:]
	name, text, named := strings.Cut(item, ": ")
	if named {
		item = painted(true, demoHeading, name) + ": " + text
	}
	return "  - " + painted(true, demoWhy, strings.TrimPrefix(position, "  - ")+"]") + " " + item + painted(true, demoQuiet, from)
}
