// Calls SQL functions with the real supabase-js. It reads {url, key, token, calls: [[name, arguments]]} and prints the
// result of each call: {data, error, status}.

import { text } from "node:stream/consumers";
import { createClient } from "@supabase/supabase-js";
import WebSocket from "ws";

const { url, key, token, calls } = JSON.parse(await text(process.stdin));
const supabase = createClient(url, key, {
  accessToken: token && (async () => token),
  // PostgREST answers at the root here, and not behind Supabase's gateway.
  global: { fetch: (address, options) => fetch(String(address).replace("/rest/v1/", "/"), options) },
  // Node has WebSockets of its own only from 22 on; the client wants to know of one though none is opened.
  realtime: { transport: WebSocket },
});

const answers = [];
for (const [name, args] of calls) {
  const { data, error, status } = await supabase.rpc(name, args);
  answers.push({ data, error, status });
}
console.log(JSON.stringify(answers));
