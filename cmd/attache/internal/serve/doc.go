// Package serve runs attache as a Streamable HTTP server for many clients: listeners,
// credentials, the MCP servers behind it, reload and shutdown.
//
// Each server behind attache is an endpoint: its compiled rules, and a [front.Front], which speaks MCP over
// HTTP and knows the sessions. The front calls the endpoint to check a credential, and to open the relay of a
// session. Each session has an upstream of its own: a process, or a session with a remote server.
//
// A reload changes the rules of the servers. What is decided at the start stays: the addresses, the paths, the
// limits, and whether clients need a credential.
//
// With a state directory or a database, this process is one of several fronts that share sessions. It holds a
// lease; when it ends or loses the lease, another front can continue its sessions.
//
// At the end, requests in flight are answered before sessions and listeners close: see drain. A new request gets
// an answer from which a client or a balancer learns that it was not executed.
//
// The other files adapt net/http to many connections on which little happens: deadlines without a timer for each
// message (deadline.go), a late look at whether the client has left and connections without a request at the end
// (connection.go), and the memory of a front that has become idle (quiettimer.go).
package serve
