// Two users share a space, a third sees nothing of it, and one of the two is taken out again.

import { createClient } from "@supabase/supabase-js";
import WebSocket from "ws";
import { Spaces } from "./space.mjs";

const { SUPABASE_URL, SUPABASE_PUBLISHABLE_KEY } = process.env;

// Each user has a client of their own, with a token of their own.
async function signIn(name) {
  const [email, password] = (process.env[name] ?? "").split(/:(.*)/);
  const supabase = createClient(SUPABASE_URL, SUPABASE_PUBLISHABLE_KEY, {
    auth: { persistSession: false, autoRefreshToken: false },
    realtime: { transport: WebSocket }, // Node has one of its own from 22 on
  });
  const { data, error } = await supabase.auth.signInWithPassword({ email, password });
  if (error) throw new Error(`${name}: ${error.message}`);
  return { id: data.user.id, spaces: new Spaces(supabase) };
}

// What somebody gets, or the words in which they are refused.
const attempt = (promise) => promise.then(JSON.stringify, (error) => error.message);

const [maya, ben, eve] = await Promise.all(["MAYA", "BEN", "EVE"].map(signIn));
const names = { [maya.id]: "Maya", [ben.id]: "Ben" };

const studio = await maya.spaces.create("Studio");
await ben.spaces.join(await maya.spaces.invite(studio, "contributor"));
console.log("Ben is in:", (await ben.spaces.list()).map(({ name, role }) => `${name} (${role})`).join(", "));

const run = crypto.randomUUID(); // ids of one's own: a call that is repeated stores nothing twice
await maya.spaces.say("plan", `${run}-1`, "The kiln is at cone six.", studio);
await ben.spaces.say("plan", `${run}-2`, "Then I fire on Friday.", studio);
for (const { author_id, text } of await ben.spaces.read(studio, "plan")) console.log(`${names[author_id]}: ${text}`);

await ben.spaces.say(`diary-${run}`, `${run}-3`, "I am tired. Glaze 12 runs above cone five.");
await ben.spaces.contribute(`diary-${run}`, `${run}-3`, "Glaze 12 runs above cone five.", studio);
for (const { contributed_by, text } of await maya.spaces.board(studio)) {
  console.log(`On the board, by ${names[contributed_by]}: ${text}`);
}

console.log("Eve is in:", await attempt(eve.spaces.list()));
console.log("Eve reads the plan:", await attempt(eve.spaces.read(studio, "plan")));
console.log("Eve reads the board:", await attempt(eve.spaces.board(studio)));
console.log("Eve says something:", await attempt(eve.spaces.say("plan", `${run}-4`, "Hello", studio)));

await maya.spaces.remove(studio, ben.id);
console.log("Ben reads the plan:", await attempt(ben.spaces.read(studio, "plan")));
console.log("Ben reads the board:", await attempt(ben.spaces.board(studio)));
console.log("Maya still has", (await maya.spaces.read(studio, "plan")).length, "messages and",
  (await maya.spaces.board(studio)).length, "item.");
