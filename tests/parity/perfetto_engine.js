// Perfetto's trace processor, run as its web page runs it in a worker: requests come on stdin, replies go to stdout.
// usage: node perfetto_engine.js FOLDER, where FOLDER has engine_bundle.js and its .wasm files
const fs = require('fs');
const path = require('path');

const folder = process.argv[2];
const stdin = process.stdin;

class Request {  // an XMLHttpRequest that knows the files of the folder
  open(_method, url) { this.file = path.join(folder, path.basename(url)); }
  send() { this.status = 200; this.response = new Uint8Array(fs.readFileSync(this.file)); }
}

const worker = {location: {href: 'file:///engine_bundle.js'}};
const quiet = {log() {}, warn() {}, error: console.error};
const source = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
new Function('self', 'process', 'WorkerGlobalScope', 'XMLHttpRequest', 'console', source)(worker, undefined, Object, Request, quiet);

const port = {
  postMessage(reply) {
    for (let sent = 0; sent < reply.length;) {
      try {
        sent += fs.writeSync(1, reply, sent);
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;  // the reader is slow
      }
    }
  },
};
worker.onmessage({data: port});
stdin.on('data', (chunk) => port.onmessage({data: new Uint8Array(chunk)}));
