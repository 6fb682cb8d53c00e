// Makes the npm packages of a release:
//
//   node packaging/npm/assemble.mjs dist build dist/npm
//
// dist is the output of goreleaser, build that of packaging/generate. It makes a directory for
// each package under the third one, and prints their names in the order in which to publish
// them: attache-mcp last, because it depends on all others.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [dist, build, out] = process.argv.slice(2)
if (!out) {
  console.error('usage: node packaging/npm/assemble.mjs DIST BUILD OUT')
  process.exit(2)
}
const source = join(dirname(fileURLToPath(import.meta.url)), 'attache-mcp')
const root = join(source, '..', '..', '..')

// Go's names for the systems and processors of Node and npm.
const systems = { darwin: 'darwin', linux: 'linux', win32: 'windows' }
const processors = { arm64: 'arm64', x64: 'amd64' }

const read = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'))
const { version } = read(dist, 'metadata.json')
const binaries = read(dist, 'artifacts.json').filter((artifact) => artifact.type === 'Binary')
const launcher = read(source, 'package.json')

rmSync(out, { recursive: true, force: true })
for (const name of Object.keys(launcher.optionalDependencies)) {
  const [os, cpu] = name.split('/')[1].split('-')
  const made = binaries.filter((b) => b.goos === systems[os] && b.goarch === processors[cpu])
  if (made.length !== 1) throw new Error(`${name}: ${dist}/artifacts.json has ${made.length} binaries for it, not one`)
  const program = os === 'win32' ? 'attache.exe' : 'attache'
  const dir = write(name.split('/')[1], {
    name,
    version,
    description: `The binary of attache-mcp for ${os} ${cpu}; install attache-mcp`,
    license: launcher.license,
    homepage: launcher.homepage,
    repository: launcher.repository,
    os: [os],
    cpu: [cpu],
    preferUnplugged: true, // a binary cannot run out of Yarn's archives
  })
  copyFileSync(made[0].path, join(dir, program))
  chmodSync(join(dir, program), 0o755)
  copyFileSync(join(build, 'NOTICES.txt'), join(dir, 'NOTICES.txt'))
  launcher.optionalDependencies[name] = version
}
cpSync(source, join(out, launcher.name), { recursive: true })
write(launcher.name, { ...launcher, version })

/** Writes a package's package.json and licence, and returns its directory. */
function write(name, description) {
  const dir = join(out, name)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'package.json'), JSON.stringify(description, null, 2) + '\n')
  copyFileSync(join(root, 'LICENSE'), join(dir, 'LICENSE'))
  console.log(dir)
  return dir
}
