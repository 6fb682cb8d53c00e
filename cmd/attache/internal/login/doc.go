// Package login obtains, stores and renews the credentials for remote servers that require OAuth.
//
// A person logs in once: [Login] finds the server's authorization server, asks the person to approve
// in a browser, and saves a [Grant]. Every attache of the user reads its tokens from there through
// [Credentials], which never asks a person anything. If a login is needed, a request fails with an
// error that names the command.
//
// Several processes use one grant. A process renews a token under a file lock, after it has read the
// grant again, and saves the new grant before it uses the new token. An authorization server that
// receives a refresh token twice revokes all tokens.
//
// A machine logs in by itself with the client credentials grant. Its tokens stay in memory.
//
// No log and no error contains tokens or secrets. Of a response of an authorization server, only the
// standard error code and description are shown.
package login
