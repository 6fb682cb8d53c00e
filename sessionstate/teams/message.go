package teams

import "time"

// A Kind says what a message is.
type Kind string

// The kinds.
const (
	// First is the message that a session was created with.
	First Kind = "initial"
	// Text is what one agent wrote to another.
	Text Kind = "message"
	// Result tells a session how a run of one that it created ended.
	Result Kind = "result"
	// Notice tells a sender of a message that will not arrive.
	Notice Kind = "notice"
)

// The states of a message.
const (
	Queued        = "queued"        // it waits in the mailbox
	Carried       = "carried"       // its bytes went to the client
	Seen          = "seen"          // the client has sent a request after that
	Expired       = "expired"       // nobody took it in time
	Undeliverable = "undeliverable" // its session was ended
)

// A Relation is what a sender is to the receiver, according to the registry.
type Relation string

// The relations.
const (
	FromParent Relation = "your parent"
	FromChild  Relation = "which you created"
	FromPeer   Relation = "same workspace"
)

// A Message is one that was taken from a mailbox.
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
	// Again says that the message was taken before, and that it is not known whether it
	// arrived.
	Again bool
	// Cut says that Body is only the beginning: the rest is for read_messages.
	Cut bool

	seq int64
}

// A Receipt is what became of a message.
type Receipt struct {
	ID    string    `json:"message_id"`
	To    string    `json:"session_id"`
	State string    `json:"status"`
	At    time.Time `json:"at"`
}
