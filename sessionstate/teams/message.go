package teams

import "time"

// A Kind is a kind of messages.
type Kind string

// The kinds.
const (
	// First is the first message of a created session.
	First Kind = "initial"
	// Text is a message from one agent to another.
	Text Kind = "message"
	// Result reports the end of a child's run to the parent.
	Result Kind = "result"
	// Notice reports to the sender that a message will not arrive.
	Notice Kind = "notice"
)

// The states of a message.
const (
	Queued        = "queued"        // it waits in the mailbox
	Carried       = "carried"       // its bytes were written to the client
	Seen          = "seen"          // the client has sent a request after that
	Expired       = "expired"       // nobody took it in time
	Undeliverable = "undeliverable" // its session was ended, or its agent did not start or did not read it
)

// A Relation is the relation of a sender to the receiver, according to the registry.
type Relation string

// The relations.
const (
	FromParent Relation = "your parent"
	FromChild  Relation = "which you created"
	FromPeer   Relation = "same workspace"
)

// A Message is a message that was taken from a mailbox.
type Message struct {
	ID       string
	From     string // the handle of the sender
	Title    string // of the sender
	Agent    string // the template of the sender, "" for a person's session
	Trust    string // of the sender
	Relation Relation
	Kind     Kind
	Body     string
	Sent     time.Time
	// Again reports whether the message was taken before and may already have arrived.
	Again bool
	// Cut reports whether Body is only the beginning: read_messages returns the rest.
	Cut bool

	seq int64
}

// A Receipt is a change of the state of a message.
type Receipt struct {
	ID    string    `json:"message_id"`
	To    string    `json:"session_id"`
	State string    `json:"status"`
	At    time.Time `json:"at"`
}
