package toolresult

import (
	"fmt"
	"slices"
	"strings"
)

// A Client describes the measured behaviour of one client: what it shows to the model, and what
// it tells a server about the session.
type Client struct {
	// Name is the clientInfo.name that the client sends. If Name ends in "-", the client sends it
	// with the name of the server after it.
	Name string
	// StructuredAlone means that the client shows only structuredContent of a result that has
	// it, Content that it shows content. If neither is set, the behaviour is unknown.
	// Of an error result (isError) every client shows content.
	StructuredAlone, Content bool
	// Instructions means that the briefing goes into the server's instructions: the client
	// shows them in every conversation of a process, including those that a server cannot
	// distinguish from the first and those of sub-agents.
	Instructions bool
	// Limits are the limits on instructions, the newest version first. A client without
	// limits shows them in full.
	Limits []Limit
	// ByProcess means that the client does not tell a server which session it serves, but
	// starts the servers of a session as children of one process.
	ByProcess bool
	// ByDirectory means, with ByProcess, that the client's process can have several projects at once.
	// It starts the servers of each in the project's directory.
	ByDirectory bool
	// Variable is the environment variable in which the client gives its servers a name of the
	// session, and its shells too, "" for none.
	Variable string
	// Window is the member of _meta that identifies the part of a conversation that the model
	// sees. It ends in a number that grows when the client compacts the conversation.
	Window string
	// Measured describes the measurements, with the client's versions.
	Measured string
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

// NamesInCalls reports whether the client is known to name the session in its calls only.
func (c Client) NamesInCalls() bool { return c.Name != "" && c.Variable == "" && !c.ByProcess }

// Clients returns the table of known clients. Any other client gets the text block in its
// first tool response.
func Clients() []Client { return append(vendorClients(), otherClients()...) }

// vendorClients returns the clients of companies that make models, and Copilot.
func vendorClients() []Client {
	return []Client{
		{
			Name:            "claude-code",
			StructuredAlone: true,
			Instructions:    true,
			Variable:        "CLAUDE_CODE_SESSION_ID",
			Limits:          []Limit{{[3]int{2, 1, 330}, 4096}, {Units: 2048}},
			Measured: "2.1.197 and 2.1.330: shows structuredContent alone; CLAUDE_CODE_SESSION_ID stays the same after /clear " +
				"and with --resume, and is the same for sub-agents; --continue has a new one. Instructions are shown in " +
				"the conversation, again after /clear and /compact, not again after --resume, and to a sub-agent after its " +
				"first call; of each server 2048 UTF-16 code units of them, or 4096 in 2.1.330, and then \"… [truncated]\".",
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
			Name:     "copilot-cli",
			Content:  true,
			Variable: "COPILOT_AGENT_SESSION_ID",
			Measured: "1.0.102: shows content, and after it structuredContent if that is not the same; of instructions the " +
				"first line. COPILOT_AGENT_SESSION_ID is the same for sub-agents and after --resume; /clear starts the servers " +
				"again with a new one.",
		},
		{
			Name:         "gemini-cli-mcp-client",
			Content:      true,
			Instructions: true,
			ByProcess:    true,
			Measured: "0.61.0: shows content also beside structuredContent; instructions are in the project context of every " +
				"request, a sub-agent's too; nothing names the session, the servers are children of the client's process.",
		},
		{
			Name:         "qwen-cli-mcp-client-", // and the name of the server
			Content:      true,
			Instructions: true,
			Variable:     "QWEN_CODE_SESSION_ID",
			Measured: "0.24.4: shows content, and before it structuredContent if that is not the same. Instructions are at the " +
				"beginning of a conversation, also after /clear and (from its code) /compress; sub-agents do not see them. With " +
				"--continue the model sees only the instructions of the new process, and QWEN_CODE_SESSION_ID does not change. " +
				"With --acp no instructions are shown, QWEN_CODE_SESSION_ID is the same in all conversations of a process, and " +
				"they share the processes of servers on stdio.",
		},
	}
}

// otherClients returns the other clients.
func otherClients() []Client {
	return []Client{
		{
			Name: "opencode", Content: true, Instructions: true, ByProcess: true, ByDirectory: true,
			Measured: "1.18.33: shows content; instructions are in the system prompt of every conversation, a sub-agent's too, in " +
				"full; nothing names the session; the servers are children of the client's process, in the project's directory.",
		},
		{
			Name: "kilo", Content: true, Instructions: true, ByProcess: true, ByDirectory: true, // a fork of opencode
			Measured: "7.7.7: as opencode; one conversation in a process, and --continue.",
		},
		{
			Name: "factory-cli", Content: true, // Droid
			Measured: "0.225.2: shows content also beside structuredContent, no instructions; _meta.assemblySessionId names the " +
				"conversation on each call; a fork has its own. Not measured: resumed sessions and sub-agents, which need the service.",
		},
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
