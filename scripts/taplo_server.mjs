// taplo's language server on standard input and output: `node taplo_server.mjs FOLDER`.
//
// FOLDER is where `npm install @taplo/lsp` was run. That package is the server that VS Code's "Even Better TOML" starts,
// as WebAssembly: it reads files through the functions below, and speaks of messages, not of pipes. The wheels of taplo
// are built without a language server.
import { existsSync, promises } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const { TaploLsp } = createRequire(path.resolve(process.argv[2], "package.json"))("@taplo/lsp");

const environment = {
  now: () => new Date(),
  envVar: (name) => process.env[name],
  envVars: () => Object.entries(process.env),
  stdErrAtty: () => false,
  stdin: async () => new Uint8Array(), // the messages come by `send`
  stdout: async (bytes) => bytes.length,
  stderr: async (bytes) => process.stderr.write(bytes) && bytes.length,
  glob: () => [],
  readFile: (file) => promises.readFile(file),
  writeFile: (file, bytes) => promises.writeFile(file, bytes),
  urlToFilePath: (url) => (url.startsWith("file:") ? fileURLToPath(url) : new URL(url).pathname),
  isAbsolute: (file) => path.isAbsolute(file),
  cwd: () => process.cwd(),
  findConfigFile: (from) => [".taplo.toml", "taplo.toml"].map((name) => path.join(from, name)).find(existsSync),
};

function write(message) {
  const body = Buffer.from(JSON.stringify(message));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
}

const server = await TaploLsp.initialize(environment, { onMessage: write });
let waiting = Buffer.alloc(0);
process.stdin.on("data", (data) => {
  waiting = Buffer.concat([waiting, data]);
  for (;;) {
    const end = waiting.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: *(\d+)/i.exec(waiting.subarray(0, end))[1]);
    if (waiting.length < end + 4 + length) return;
    const message = JSON.parse(waiting.subarray(end + 4, end + 4 + length));
    waiting = waiting.subarray(end + 4 + length);
    server.send(message);
  }
});
process.stdin.on("end", () => process.exit(0));
