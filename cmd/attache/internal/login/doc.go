// Package login gets, keeps and renews the credentials with which attache reaches a remote
// server that wants OAuth.
//
// A person logs in once: [Login] finds the server's authorization server, has the person
// approve in a browser, and saves a [Grant]. Every attache of the user takes its tokens
// from there through [Credentials], which never asks a person anything: where a person is
// needed, a request is answered with an error that names the command.
//
// Several processes use one grant. A token is renewed under a lock of the system, after
// the grant was read again under it, and the new grant is on disk before its token is
// used: an authorization server that sees a refresh token twice takes all tokens back.
//
// A machine logs in by itself, with the client credentials grant; its tokens stay in
// memory.
//
// Tokens and secrets are in no log and no error. An answer of an authorization server is
// never shown but for the error code and description that the standard has.
package login
