package teamserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type tool struct {
	tool   *mcp.Tool
	schema string
	run    func(context.Context, *call) (any, error)
}

// tools returns the tools. Their schemas show the limits to clients; the handlers check them.
func (s *Server) tools() []tool {
	yes, no := true, false
	return []tool{
		{&mcp.Tool{
			Name: "create_session",
			Description: "Create a child session in the current workspace for multi-agent coordination: an agent that works on its own, with no knowledge of this conversation. " +
				"It returns at once. The result comes to you as a message when the agent is over.",
			Annotations: &mcp.ToolAnnotations{Title: "Create session", DestructiveHint: &no, OpenWorldHint: &yes},
		}, `{"type":"object","additionalProperties":false,"properties":{` +
			`"title":{"type":"string","minLength":1,"maxLength":200,"description":"Human-readable session title (e.g., 'API Implementation')"},` +
			`"agent_name":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$","description":"Agent to run (e.g., 'python-specialist')"},` +
			`"initial_message":{"type":"string","minLength":1,"maxLength":10000,"description":"First message sent to the spawned agent: all that it has to know"},` +
			`"key":{"type":"string","maxLength":64,"description":"Any text of yours; a second call with it returns the same session"}},` +
			`"required":["title","agent_name","initial_message"]}`, createSession},
		{&mcp.Tool{
			Name:        "send_message",
			Description: "Send a message to another session in the same workspace. The result says how it will reach it (reach); read_messages has the receipts.",
			Annotations: &mcp.ToolAnnotations{Title: "Send message", DestructiveHint: &no, OpenWorldHint: &no},
		}, `{"type":"object","additionalProperties":false,"properties":{` +
			`"session_id":{"type":"string","pattern":"^ses_[0-9a-hjkmnp-tv-z]{12}$","description":"Target session ID"},` +
			`"message":{"type":"string","minLength":1,"maxLength":50000,"description":"Message content"},` +
			`"key":{"type":"string","maxLength":64,"description":"Any text of yours; a second call with it does not send again"}},` +
			`"required":["session_id","message"]}`, sendMessage},
		{&mcp.Tool{
			Name:        "list_workspace_sessions",
			Description: "List the sessions in the current workspace: the active ones, or all.",
			Annotations: &mcp.ToolAnnotations{Title: "List sessions", ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no},
		}, `{"type":"object","additionalProperties":false,"properties":{` +
			`"active_only":{"type":"boolean","default":true,"description":"Leave out sessions that are over or gone"},` +
			`"agent_name":{"type":"string","description":"Only sessions of this agent"},` +
			`"children_of":{"type":"string","description":"Only sessions that this one created: a session ID, or 'me'"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":100},"cursor":{"type":"string","description":"The cursor of the list before"}}}`, listSessions},
		{&mcp.Tool{
			Name:        "read_messages",
			Description: "Read the messages that wait for you, and what became of those that you sent. With wait_seconds it waits for one.",
			Annotations: &mcp.ToolAnnotations{Title: "Read messages", DestructiveHint: &no, OpenWorldHint: &no},
		}, `{"type":"object","additionalProperties":false,"properties":{` +
			`"wait_seconds":{"type":"integer","minimum":0,"maximum":110,"default":0,"description":"How long to wait for a message"},` +
			`"peek":{"type":"boolean","default":false,"description":"Leave the messages unread"}}}`, readMessages},
		{&mcp.Tool{
			Name:        "end_session",
			Description: "End a session that you created, its agent, and the sessions that it created.",
			Annotations: &mcp.ToolAnnotations{Title: "End session", DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
		}, `{"type":"object","additionalProperties":false,"properties":{` +
			`"session_id":{"type":"string","pattern":"^ses_[0-9a-hjkmnp-tv-z]{12}$","description":"A session that you created"}},` +
			`"required":["session_id"]}`, endSession},
	}
}
