// The page: it signs a user in, and shows what chat.ts brings.

import { createClient } from "@supabase/supabase-js";
import { Chat, type Tokens } from "./chat";

// Put in by esbuild; see package.json.
declare const SUPABASE_URL: string, SUPABASE_PUBLISHABLE_KEY: string, SERVICE_URL: string;

const supabase = createClient(SUPABASE_URL, SUPABASE_PUBLISHABLE_KEY);
let chat = open("studio");
let unfollow = () => {};

function open(thread: string) {
  return new Chat(supabase, SERVICE_URL, thread, async () => {
    const { data } = await supabase.auth.getSession(); // renews the token when it runs out
    if (!data.session) throw new Error("Sign in first.");
    return data.session.access_token;
  });
}

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const complain = (error: Error) => (find("trouble").textContent = error.message);

// textContent, never innerHTML: what was said is text, and no page.
const line = (textContent: string, className = "") =>
  Object.assign(document.createElement("li"), { textContent, className, dir: "auto" });

async function showMessages() {
  const mine = chat;
  const messages = await mine.messages();
  if (mine !== chat) return; // another conversation was opened meanwhile, or nobody is signed in any more
  find("messages").replaceChildren(...messages.map(({ role, text }) => line(`${role}: ${text}`, role)));
  find("empty").hidden = messages.length > 0;
  find("messages").lastElementChild?.scrollIntoView({ block: "nearest" });
}

async function showConversations() {
  const mine = chat;
  const known = await mine.conversations();
  if (mine !== chat) return;
  const rows = known.map(({ thread_id, title }) => {
    const button = Object.assign(document.createElement("button"), { textContent: title ?? thread_id, dir: "auto" });
    button.setAttribute("aria-current", String(thread_id === current));
    button.addEventListener("click", () => void enter(thread_id).catch(complain));
    const row = document.createElement("li");
    row.append(button);
    return row;
  });
  find("conversations").replaceChildren(...rows);
}

// What the memory spares the next prompt; or a mark while somebody makes a summary: this page, or a worker.
let isSummarizing = false;
let isWorkerBusy = false;

function showSummary({ prompt, conversation }: Tokens) {
  const spared = conversation - prompt;
  const [sent, all, rest] = [prompt, conversation, spared].map((each) => each.toLocaleString());
  find("summary").hidden = conversation === 0;
  mark(
    isWorkerBusy ? "A worker brings the memory up to date …"
    : spared > 0 ? `${rest} tokens spared: the next prompt has ${sent} instead of ${all}.`
    : `All ${all} tokens fit into the next prompt: nothing is spared yet.`,
    isWorkerBusy,
  );
}

function mark(text: string, isBusy: boolean) {
  const state = find("summary-state");
  state.textContent = text;
  state.toggleAttribute("aria-busy", isBusy);
  find<HTMLButtonElement>("summarize").disabled = isBusy;
}

async function refreshSummary() {
  const mine = chat;
  const [tokens, work] = await Promise.all([mine.tokens(), mine.work()]);
  if (mine !== chat || isSummarizing) return;
  isWorkerBusy = work === "running";
  showSummary(tokens);
}

// Asks the database alone; the service is asked when something has changed.
async function lookForWorker() {
  const mine = chat;
  const isBusy = (await mine.work()) === "running";
  if (mine === chat && isBusy !== isWorkerBusy) await refreshSummary();
}

// While the database is away the page says so. When it is back, what could not be read is read.
let isAway = false;
let isRead = false;

async function look() {
  const mine = chat;
  await (isRead ? lookForWorker() : read());
  if (mine !== chat || !isAway) return;
  isAway = false;
  find("trouble").textContent = "";
}

async function read() {
  const mine = chat;
  await showMessages();
  await showConversations();
  if (mine !== chat) return;
  isRead = true;
  await refreshSummary();
}

find("summarize").addEventListener("click", async () => {
  const mine = chat;
  isSummarizing = true;
  mark("A summary is being made …", true);
  find("trouble").textContent = "";
  await mine.summarize().catch(complain);
  isSummarizing = false;
  await refreshSummary().catch(complain);
});

let current = "studio";

// From here on, what is still on its way to the conversation before shows nothing.
function leave(next: string) {
  unfollow();
  unfollow = () => {};
  current = next;
  chat = open(next);
  isAway = isRead = false;
  for (const id of ["trouble", "messages", "board"]) find(id).replaceChildren();
  find("summary").hidden = true;
  wait(false);
}

// One message at a time: the next one can be written, and is sent when the answer is there.
function wait(isBusy: boolean) {
  find("talk").toggleAttribute("aria-busy", isBusy);
  find<HTMLButtonElement>("say").disabled = isBusy;
}

async function enter(thread: string) {
  leave(thread);
  const mine = chat;
  const away = (error: Error) => {
    if (mine !== chat) return;
    isAway = true;
    complain(error);
  };
  const stop = mine.follow(
    (board) => find("board").replaceChildren(...board.items.map(({ kind, text }) => line(`${kind}: ${text}`))),
    away,
  );
  const timer = setInterval(() => void look().catch(away), 3000);
  unfollow = () => (clearInterval(timer), stop());
  await read().catch(away);
}

function show(isSignedIn: boolean) {
  document.body.dataset.state = isSignedIn ? "in" : "out";
  find("sign-in").hidden = isSignedIn;
  for (const id of ["talk", "aside", "sign-out", "notes"]) find(id).hidden = !isSignedIn;
}

let user: string | undefined;

// Nothing of somebody who was signed in before stays on the page.
async function becomes(next: string | undefined) {
  leave("studio");
  find("conversations").replaceChildren();
  find("empty").hidden = true;
  find<HTMLInputElement>("text").value = "";
  show(next !== undefined);
  if (next !== undefined) await enter(current);
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
});

// The words stand there at once, and the answer grows while it comes.
onSubmit("talk", async (fields) => {
  const text = String(fields.get("text"));
  const mine = chat;
  const question = line(`user: ${text}`, "user");
  const answer = line("…", "assistant waiting");
  find("empty").hidden = true;
  find("messages").append(question, answer);
  answer.scrollIntoView({ block: "nearest" });
  wait(true);
  try {
    await mine.stream(text, (sofar) => (answer.textContent = `assistant: ${sofar}`));
  } catch (error) {
    if (mine === chat && answer.textContent === "…") {
      // Nobody has heard it: the words go back to where they were written, unless there are others.
      for (const each of [question, answer]) each.remove();
      find<HTMLInputElement>("text").value ||= text;
    }
    throw error;
  } finally {
    if (mine === chat) wait(false);
    answer.classList.remove("waiting");
  }
  if (mine !== chat) return;
  await showMessages();
  await showConversations();
  await refreshSummary();
});

find("new").addEventListener("click", () => void enter(crypto.randomUUID()).catch(complain));
find("sign-out").addEventListener("click", async () => {
  const { error } = await supabase.auth.signOut();
  if (error) complain(error);
});

// Who is signed in is told at the start, and whenever it changes: here, in another tab, or because the session ended.
supabase.auth.onAuthStateChange((_, session) => {
  if (session?.user.id === user) return;
  user = session?.user.id;
  setTimeout(() => void becomes(user).catch(complain)); // supabase-js waits for this function, and `becomes` for it
});
