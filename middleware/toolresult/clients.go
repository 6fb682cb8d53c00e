package toolresult

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
	// ByProcess says that nothing tells a server which session it serves, and that the
	// servers of a session are children of one process.
	ByProcess bool
	// Window is the member of _meta that names the part of a conversation that the model
	// sees: its end is a number that grows when the client compacts the conversation.
	Window string
	// Measured says what was seen, with which version.
	Measured string
}

// Clients returns the table of known clients. A client that is not in it gets the text
// block in its first tool response.
func Clients() []Client {
	return []Client{
		{
			Name:            "claude-code",
			StructuredAlone: true,
			Instructions:    true,
			Measured: "2.1.197 and 2.1.330: shows structuredContent alone; CLAUDE_CODE_SESSION_ID stays the same after /clear, " +
				"and is the same for sub-agents; --resume has a new one. Instructions are shown in the conversation, again after " +
				"/clear and /compact, not again after --resume, and to a sub-agent after its first call.",
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
