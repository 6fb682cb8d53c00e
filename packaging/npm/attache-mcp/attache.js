#!/usr/bin/env node
// Runs the attache binary of this platform, which npm has installed as an optional dependency.
// It does not use stdin and stdout, which belong to attache.
'use strict'

const { accessSync, constants } = require('node:fs')

const windows = process.platform === 'win32'
const platform = `${process.platform}-${process.arch}`

function main(args) {
  const binary = find()
  if (process.execve) {
    replace(binary, args)
  }
  start(binary, args)
}

/** Returns the path of the binary, or prints what to do and exits. */
function find() {
  try {
    return require.resolve(`@attache-mcp/${platform}/attache${windows ? '.exe' : ''}`)
  } catch {
    const known = Object.keys(require('./package.json').optionalDependencies)
    fail(known.includes(`@attache-mcp/${platform}`)
      ? `@attache-mcp/${platform} is not installed: install attache-mcp again, on this system and without --omit=optional`
      : `there is no attache for ${platform}, only for ${known.map((name) => name.split('/')[1]).join(', ')}`)
  }
}

/** Replaces this process with attache, so that the client talks to it directly. */
function replace(binary, args) {
  try {
    accessSync(binary, constants.X_OK) // Node 22 aborts if execve fails
    process.execve(binary, [binary, ...args], process.env)
  } catch {
    // start reports the error, if there is one.
  }
}

/** Runs attache as a child on the same stdio, and exits like it. */
function start(binary, args) {
  const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']
  let child
  for (const signal of signals) {
    // On Windows attache gets these signals itself from the shared console, and kill
    // would end it immediately.
    process.on(signal, () => windows || child.kill(signal))
  }
  child = require('node:child_process').spawn(binary, args, { stdio: 'inherit' })
  child.on('error', (err) => fail(`cannot start ${binary}: ${err.message}`))
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code)
    for (const s of signals) process.removeAllListeners(s)
    process.kill(process.pid, signal)
  })
}

function fail(text) {
  require('node:fs').writeSync(2, `attache-mcp: ${text}\n`)
  process.exit(1)
}

main(process.argv.slice(2))
