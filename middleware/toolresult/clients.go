package toolresult

import (
	"fmt"
	"slices"
	"strings"
)

// A Client describes the measured behaviour of one client: what it shows to the model, and what
// it tells a server about the session. docs/briefing.md has the measurements, with the client's
// versions.
type Client struct {
	// Name is the clientInfo.name that the client sends. If Name ends in "-", the client sends it
	// with the name of the server after it.
	Name string
	// StructuredAlone means that the client shows only structuredContent of a result that has
	// it, Content that it shows content. If neither is set, the behaviour is unknown.
	// Of an error result (isError) every client shows content, or only a part of it: see FirstText and FirstAlone.
	StructuredAlone, Content bool
	// FirstText means that of an error result the client shows only the first text. A text in front of
	// it would hide what failed.
	FirstText bool
	// FirstAlone means that of any result the client shows only the first block. A text in front of it would
	// hide the result.
	FirstAlone bool
	// Instructions means that the briefing goes into the server's instructions: the client
	// shows them in every conversation of a process, including those that a server cannot
	// distinguish from the first and those of sub-agents.
	Instructions bool
	// Late means, with Instructions, that the interactive mode can begin its first conversation before it has
	// the instructions, and then does not show them in it. So a response carries the briefing as well.
	Late bool
	// Limits are the limits on instructions, the newest version first. A client without
	// limits shows them in full.
	Limits []Limit
	// ByProcess means that the client does not tell a server which session it serves, but
	// starts the servers of a session as children of one process.
	ByProcess bool
	// ByDirectory means, with ByProcess, that the client's process can have several projects at once.
	// It starts the servers of each in the project's directory.
	ByDirectory bool
	// NamesInCalls means that the client names the session in its calls only.
	NamesInCalls bool
	// Variable is the environment variable in which the client gives its servers a name of the
	// session, and its shells too, "" for none.
	Variable string
	// Older means that older versions, which do not set Variable, do not show instructions. So if
	// Variable does not name the session, a response carries the briefing as well.
	Older bool
	// Window is the member of _meta that identifies the part of a conversation that the model
	// sees. It ends in a number that grows when the client compacts the conversation.
	Window string
	// Moves means that the client can change to another directory during a session. The first root in its
	// answer to roots/list is then that directory, but it sends no notifications/roots/list_changed.
	Moves bool
	// SharedRoot means that the client can have several projects at once, and answers roots/list with the
	// directory of its own process in all of them. It starts the servers of each in the project's directory.
	SharedRoot bool
}

// A Limit is the number of UTF-16 code units of a server's instructions that a client shows, in
// the version Since and later ones.
type Limit struct {
	Since [3]int
	Units int
}

// limit returns the Units for a version, 0 if there is no limit.
func (c Client) limit(version string) int {
	var v [3]int // stays zero, the oldest, if version is not a version number
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2])
	for _, l := range c.Limits {
		if slices.Compare(v[:], l.Since[:]) >= 0 {
			return l.Units
		}
	}
	return 0
}

// Clients returns the table of known clients. Any other client gets the text block in its
// first tool response.
func Clients() []Client {
	return []Client{
		{
			Name:            "claude-code",
			StructuredAlone: true,
			Instructions:    true,
			Variable:        "CLAUDE_CODE_SESSION_ID",
			Moves:           true, // EnterWorktree
			Limits:          []Limit{{[3]int{2, 1, 330}, 4096}, {Units: 2048}},
		},
		{
			Name:            "codex-mcp-client",
			StructuredAlone: true,
			NamesInCalls:    true,
			Window:          "windowId", // after /compact the model sees none of the results before
		},
		{
			Name:     "copilot-cli",
			Content:  true,
			Variable: "COPILOT_AGENT_SESSION_ID",
		},
		{
			Name:         "gemini-cli-mcp-client",
			Content:      true,
			Instructions: true,
			Late:         true,
			ByProcess:    true,
		},
		{
			Name:         "qwen-cli-mcp-client-", // and the name of the server
			Content:      true,
			Instructions: true,
			Variable:     "QWEN_CODE_SESSION_ID",
			Older:        true, // such as the one in @qwen-code/sdk 0.1.14
			SharedRoot:   true, // in ACP mode (--acp)
		},
		{Name: "opencode", Content: true, Instructions: true, ByProcess: true, ByDirectory: true},
		{Name: "kilo", Content: true, Instructions: true, ByProcess: true, ByDirectory: true}, // a fork of opencode
		{Name: "factory-cli", Content: true, NamesInCalls: true},                              // Droid; resumed sessions and sub-agents need its service, and were not measured
		// Version 2.17 and older versions show content. Their clientInfo is the same.
		{Name: "@n8n/n8n-nodes-langchain.mcpClientTool", StructuredAlone: true, FirstText: true},
		{Name: "grok-cli", Content: true, FirstText: true}, // @vibe-kit/grok-cli, not the one of xAI
		{Name: "nanocoder-mcp-client", FirstAlone: true},
	}
}

// ClientOf returns the client that sends name. For an unknown client it returns the zero Client.
func ClientOf(name string) Client {
	for _, c := range Clients() {
		if c.Name == name || strings.HasSuffix(c.Name, "-") && strings.HasPrefix(name, c.Name) {
			return c
		}
	}
	return Client{}
}
