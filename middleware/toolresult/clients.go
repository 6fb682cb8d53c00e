package toolresult

import (
	"fmt"
	"slices"
)

// A Client is what was measured of one client: what it shows the model of what a server
// says, and what it tells a server of the session.
type Client struct {
	// Name is the clientInfo.name it sends.
	Name string
	// StructuredAlone says that of a result with structuredContent the client shows
	// nothing else; ContentAlone that it shows content and not structuredContent. With
	// neither, it is not known. Of an error result (isError) every client shows content.
	StructuredAlone, ContentAlone bool
	// Instructions says that the briefing goes into the server's instructions: the client
	// shows them in every conversation of a process, also in those that a server cannot
	// tell from the first, and in a conversation of a sub-agent.
	Instructions bool
	// Limits say how much of a server's instructions the client shows, the newest version
	// first. Without a limit it shows all of them.
	Limits []Limit
	// ByProcess says that nothing tells a server which session it serves, and that the
	// servers of a session are children of one process.
	ByProcess bool
	// Window is the member of _meta that names the part of a conversation that the model
	// sees: its end is a number that grows when the client compacts the conversation.
	Window string
	// Measured says what was seen, with which version.
	Measured string
}

// A Limit is the number of UTF-16 code units of a server's instructions that a client shows, in
// the version Since and later ones. It cuts off the rest.
type Limit struct {
	Since [3]int
	Units int
}

// limit returns the Units of that version, 0 if it shows all.
func (c Client) limit(version string) int {
	var v [3]int // what is not a number is the oldest
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2])
	for _, l := range c.Limits {
		if slices.Compare(v[:], l.Since[:]) >= 0 {
			return l.Units
		}
	}
	return 0
}

// Clients returns the table of known clients. A client that is not in it gets the text
// block in its first tool response.
func Clients() []Client {
	return []Client{
		{
			Name:            "claude-code",
			StructuredAlone: true,
			Instructions:    true,
			Limits:          []Limit{{[3]int{2, 1, 330}, 4096}, {Units: 2048}},
			Measured: "2.1.197 and 2.1.330: shows structuredContent alone; CLAUDE_CODE_SESSION_ID stays the same after /clear, " +
				"and is the same for sub-agents; --resume has a new one. Instructions are shown in the conversation, again after " +
				"/clear and /compact, not again after --resume, and to a sub-agent after its first call; of each server 2048 " +
				"UTF-16 code units of them, or 4096 in 2.1.330, and then \"… [truncated]\".",
		},
		{
			Name:            "codex-mcp-client",
			StructuredAlone: true,
			Window:          "windowId",
			Measured: "0.169.0: shows structuredContent alone; _meta.threadId names the conversation on each call, and stays the " +
				"same when it is resumed; a sub-agent has its own. It comes after initialize, so instructions could not be given " +
				"once among several servers. After /compact the model sees none of the results before, and _meta.windowId, " +
				"which is the thread's id and a number, has the next number.",
		},
		{
			Name:         "gemini-cli-mcp-client",
			ContentAlone: true,
			Instructions: true,
			ByProcess:    true,
			Measured: "0.61.0: shows content also beside structuredContent; instructions are in the project context of every " +
				"request, a sub-agent's too; nothing names the session, the servers are children of the client's process.",
		},
	}
}

// ClientOf returns what is known of the client of that name.
func ClientOf(name string) Client {
	for _, c := range Clients() {
		if c.Name == name {
			return c
		}
	}
	return Client{}
}
