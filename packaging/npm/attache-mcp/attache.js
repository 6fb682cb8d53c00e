#!/usr/bin/env node
// Becomes the attache of this platform, which npm brought as an optional dependency.
// Nothing is written to stdout and stdin is never touched: they are attache's.
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

/** Returns the path of the binary, or says what to do and ends. */
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

/** Has attache take this process's place, so that nothing stands between it and the client. */
function replace(binary, args) {
  try {
    accessSync(binary, constants.X_OK) // Node 22 aborts where execve fails
    process.execve(binary, [binary, ...args], process.env)
  } catch {
    // start says what is wrong, if anything is.
  }
}

/** Runs attache as a child, on the same stdio, and ends as it ends. */
function start(binary, args) {
  const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']
  let child
  for (const signal of signals) {
    // On Windows whoever shares the console hears of these, so attache does too, and
    // kill would be its end at once.
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
