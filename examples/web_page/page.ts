// The page: it signs a user in, and shows what chat.ts brings.

import { createClient } from "@supabase/supabase-js";
import { Chat } from "./chat";

// Put in by esbuild; see package.json.
declare const SUPABASE_URL: string, SUPABASE_PUBLISHABLE_KEY: string, SERVICE_URL: string;

const supabase = createClient(SUPABASE_URL, SUPABASE_PUBLISHABLE_KEY);
const chat = new Chat(supabase, SERVICE_URL, "studio", async () => {
  const { data } = await supabase.auth.getSession(); // renews the token when it runs out
  if (!data.session) throw new Error("Sign in first.");
  return data.session.access_token;
});

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const complain = (error: Error) => (find("trouble").textContent = error.message);

// textContent, never innerHTML: what was said is text, and no page.
function list(id: string, lines: string[]) {
  find(id).replaceChildren(
    ...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
}

async function showMessages() {
  list("messages", (await chat.messages()).map(({ role, text }) => `${role}: ${text}`));
}

async function begin() {
  find("sign-in").hidden = true;
  find("talk").hidden = false;
  await showMessages();
  chat.follow((board) => list("board", board.items.map(({ kind, text }) => `${kind}: ${text}`)), complain);
}

function onSubmit(id: string, act: (fields: FormData) => Promise<void>) {
  const form = find<HTMLFormElement>(id);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    form.reset();
    find("trouble").textContent = "";
    await act(fields).catch(complain);
  });
}

onSubmit("sign-in", async (fields) => {
  const { error } = await supabase.auth.signInWithPassword({
    email: String(fields.get("email")),
    password: String(fields.get("password")),
  });
  if (error) throw error;
  await begin();
});

onSubmit("talk", async (fields) => {
  await chat.say(String(fields.get("text")));
  await showMessages();
});

const { data } = await supabase.auth.getSession();
if (data.session) await begin().catch(complain);
