// Serves a built Edge Function under its path: node edge_function.mjs FILE PATH. It fakes the Edge runtime:
// Deno.serve, and a session of Supabase.ai whose vectors depend on the lengths of the texts. It prints its address.

import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [file, path] = process.argv.slice(2);
let handler;

globalThis.Deno = { serve: (given) => { handler = given; } };
globalThis.Supabase = {
  ai: {
    Session: class {
      constructor(model) {
        if (model !== "gte-small") throw new Error(`The runtime has no model ${model}.`);
      }
      async run(text, { mean_pool, normalize }) {
        if (!mean_pool || !normalize) throw new Error("A vector for each token is none for the text.");
        return Array.from({ length: 384 }, (_, place) => Number(place === [...text].length % 384));
      }
    },
  },
};
await import(pathToFileURL(file));

const server = createServer(async (request, response) => {
  const { method, url, headers } = request;
  const body = method === "GET" ? undefined : await buffer(request);
  if (url !== path) return response.writeHead(404).end();
  const answer = await handler(new Request(`http://127.0.0.1${url}`, { method, headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
