// Package revive starts the server of a relay's session again when it has ended during the
// session. The [Supervisor] replaces the [Link] to the server that has ended by a new one,
// starts a server when its pace allows it, sends it the messages that it has to know
// ([Record]), and then lets the client's frames pass. Until then the [Gate] of the link
// keeps them.
//
// serverRequests and listens track what the old server leaves open. [Ending] has the
// texts for the client and its model. The relay knows its calls, and tells which of them
// the old server had ([Relay]).
//
// R1 to R20 in comments are the rules of docs/restart.md.
package revive
